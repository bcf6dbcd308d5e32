// Event sources through which the user's code asks for reconciles; they know no resources.
import { requireNumbers } from "../base/checks.js";
import type { ObjectKey } from "../base/kubernetes-object.js";
import type { EventSource, EventSourceContext } from "./event-source.js";
import { HealthRecord } from "./health-record.js";

/** An event source through which the user's code asks for reconciles (JOSDK SimpleInboundEventSource). */
export interface InboundSource extends EventSource<never> {
  /** Asks for primaries to be reconciled; without effect while the source is stopped. */
  notify(...primaries: readonly ObjectKey[]): void;
}

/** An event source that reconciles a primary at a time that the user's code says (JOSDK TimerEventSource). */
export interface TimerSource extends EventSource<never> {
  /** Asks for a reconcile after `delayMs`, at once for 0, instead of at the time asked for before; throws while the source is stopped, and if that is no time. */
  schedule(primary: ObjectKey, delayMs: number): void;
  /** Takes back what was asked for. */
  cancel(primary: ObjectKey): void;
}

/** Creates an event source for triggers from outside, such as a webhook or a queue. */
export function inboundSource({ name }: { readonly name: string }): InboundSource {
  const { source, running } = createTrigger(name);
  return Object.assign(source, {
    notify: (...primaries: readonly ObjectKey[]) => running.context?.notify(primaries),
  });
}

/** Creates an event source with one timer for each primary, which ends with the primary. */
export function timerSource({ name }: { readonly name: string }): TimerSource {
  const timers = new Map<ObjectKey, () => void>();
  const cancel = (primary: ObjectKey) => {
    timers.get(primary)?.();
    timers.delete(primary);
  };
  const { source, running } = createTrigger(name, () => [...timers.keys()].forEach(cancel));
  const own: Pick<TimerSource, "cancel" | "onPrimaryChange" | "schedule"> = {
    onPrimaryChange({ kind, key }) {
      if (kind === "deleted" && running.context?.onAllEvents !== true) cancel(key);
    },
    schedule(primary, delayMs) {
      const { context } = running;
      if (context === undefined) throw new Error(`timer source "${name}" is not started: cannot schedule "${primary}"`);
      requireNumbers(`timer source "${name}"`, { delayMs: [delayMs, 0] });
      cancel(primary);
      if (delayMs === 0) return context.notify([primary]);
      const ring = () => {
        timers.delete(primary);
        context.notify([primary]);
      };
      timers.set(primary, context.clock.schedule(delayMs, ring));
    },
    cancel,
  };
  return Object.assign(source, own);
}

/** Creates a source, and what holds what it was started with while it runs. */
function createTrigger(name: string, onStop = () => {}) {
  const record = new HealthRecord(name);
  const running: { context?: EventSourceContext | undefined } = {};
  const source: EventSource<never> = {
    name,
    get health() {
      return record.health;
    },
    async start(context) {
      running.context = context;
      record.start(context);
    },
    async stop() {
      running.context = undefined;
      record.stop();
      onStop();
    },
    secondariesOf: () => [],
  };
  return { source, running };
}
