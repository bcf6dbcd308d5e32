import type { ObjectKey } from "../base/kubernetes-object.js";
import type { EventSource, EventSourceContext } from "./event-source.js";
import { HealthRecord } from "./health-record.js";

/** An event source that reconciles a primary at a time that the user's code says (JOSDK TimerEventSource). */
export interface TimerSource extends EventSource<never> {
  /** Asks for a reconcile after `delayMs`, at once for 0, instead of at the time asked for before; throws while the source is stopped, and if that is no time. */
  schedule(primary: ObjectKey, delayMs: number): void;
  /** Takes back what was asked for. */
  cancel(primary: ObjectKey): void;
}

/** Creates an event source with one timer for each primary, which ends with the primary. */
export function timerSource({ name }: { readonly name: string }): TimerSource {
  const record = new HealthRecord(name);
  const timers = new Map<ObjectKey, () => void>();
  let context: EventSourceContext | undefined;
  const cancel = (primary: ObjectKey) => {
    timers.get(primary)?.();
    timers.delete(primary);
  };
  return {
    name,
    get health() {
      return record.health;
    },
    async start(given) {
      context = given;
      record.start(given.logger);
    },
    async stop() {
      context = undefined;
      record.stop();
      for (const primary of [...timers.keys()]) cancel(primary);
    },
    secondariesOf: () => [],
    onPrimaryChange({ kind, key }) {
      if (kind === "deleted" && context?.onAllEvents !== true) cancel(key);
    },
    schedule(primary, delayMs) {
      if (context === undefined) throw new Error(`timer source "${name}" is not started: cannot schedule "${primary}"`);
      if (typeof delayMs !== "number" || !(delayMs >= 0))
        throw new RangeError(`timer source "${name}" cannot wait ${String(delayMs)} ms; it takes 0 or more`);
      cancel(primary);
      if (delayMs === 0) return context.notify([primary]);
      const ring = () => {
        timers.delete(primary);
        context?.notify([primary]);
      };
      timers.set(primary, context.clock.schedule(delayMs, ring));
    },
    cancel,
  };
}
