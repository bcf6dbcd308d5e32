// Event sources without resources, with which your code triggers reconciles (controller-runtime's source.Channel).
import type { ObjectKey } from "../base/kubernetes-object.js";
import { requireNumbers } from "../base/validation.js";
import { type EventSource, type EventSourceContext, HealthRecord } from "./event-source.js";

/** An event source with which your code triggers reconciles (JOSDK's SimpleInboundEventSource). */
export interface InboundSource extends EventSource<never> {
  /** Triggers reconciles of primaries. No effect while the source is stopped. */
  notify(...primaries: readonly ObjectKey[]): void;
}

/** An event source with which your code schedules reconciles (JOSDK's TimerEventSource). */
export interface TimerSource extends EventSource<never> {
  /**
   * Schedules a reconcile after `delayMs` milliseconds, or immediately for 0. Replaces an earlier schedule. Throws while the source is stopped, and
   * for an invalid delay.
   */
  schedule(primary: ObjectKey, delayMs: number): void;
  /** Cancels the scheduled reconcile. */
  cancel(primary: ObjectKey): void;
}

/** Creates an event source for external triggers, such as a webhook or a message queue. */
export function inboundSource({ name }: { readonly name: string }): InboundSource {
  const { source, running } = createTrigger(name);
  return Object.assign(source, {
    notify: (...primaries: readonly ObjectKey[]) => running.context?.notify(primaries),
  });
}

/** Creates an event source with one timer per primary, which is canceled when the primary is deleted. */
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

/** Creates a source, and a holder for its context while it runs. */
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
