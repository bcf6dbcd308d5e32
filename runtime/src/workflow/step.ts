// One step of a run: reconciles or deletes one object, in a slot that others wait for, within a time, and with retries.
import { sleep, type Clock } from "../base/clock.js";
import { findError } from "../base/errors.js";
import { untilAborted } from "../base/promises.js";
import type { Semaphore } from "../base/semaphore.js";
import type { NodeDefinition } from "./definition/workflow-definition.js";
import type { DependentRun } from "./dependents/dependent-reconciler.js";

/** Slots that steps take turns in. */
export type Slots = Pick<Semaphore, "acquire" | "release">;

/**
 * A run, as a dependent or one of its steps sees it. When a step runs out of time, the signal of its context is aborted, and `track` throws
 * instead of returning.
 */
export interface Run extends DependentRun {
  /** `secondary` without the last states of deleted objects, for conditions; absent unless the primary is being deleted. */
  readonly present?: object;
  /** Calls a function of the user under a name, so that a message can say which one does not return. */
  readonly track: <Result>(what: string, task: () => Result | Promise<Result>) => Promise<Result>;
  readonly clock: Clock;
  /** Is told of every write that may still be in flight when the time of its step is over. */
  linger?(write: Promise<unknown>): void;
  /** The slots of the controller, after those of a bulk dependent; a step has one of each while it works. */
  readonly slots: readonly Slots[];
}

/** Thrown by a step that took longer than its `timeoutMs`. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/** Does a step; rejects with the error of its last attempt, or with a TimeoutError while `body` may still be running, to no effect. */
export async function takeStep<Result>(
  { timeoutMs, retry }: Pick<NodeDefinition, "timeoutMs" | "retry">,
  run: Run,
  body: (step: Run) => Promise<Result>,
): Promise<Result> {
  const time = timeoutMs === undefined ? undefined : limitTime(timeoutMs, run);
  const step = time?.step ?? run;
  const { signal } = step.context;
  const limit = <Value>(work: Promise<Value>) => (time === undefined ? work : untilAborted(work, signal));
  // A step that runs out of time gives its slots back, whether or not its body ever returns.
  const inSlots = async () => {
    const taken: Slots[] = [];
    try {
      for (const slot of run.slots) {
        const turn = slot.acquire(signal);
        if (turn !== undefined) await turn;
        taken.push(slot);
      }
      time?.begin();
      return await limit(body(step));
    } finally {
      for (const slot of taken) slot.release();
    }
  };
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await inSlots();
      } catch (error) {
        if (retry === undefined || attempt > retry.maxRetries || signal.aborted || isSettled(error)) throw error;
      }
      const { initialIntervalMs = 1_000, multiplier = 1.5, maxIntervalMs = Infinity } = retry;
      const delayMs = Math.min(initialIntervalMs * multiplier ** (attempt - 1), maxIntervalMs);
      await limit(sleep(delayMs, signal, run.clock));
    }
  } finally {
    time?.end();
  }
}

function limitTime(timeoutMs: number, run: Run) {
  const { context, track, clock } = run;
  const controller = new AbortController();
  const { signal } = controller;
  let cancel: (() => void) | undefined;
  /** The name of the function of the user that the step waits for. */
  let awaited: string | undefined;
  const onTimeout = () => {
    const where = awaited === undefined ? "" : `, and was waiting for ${awaited}`;
    controller.abort(new TimeoutError(`it took longer than the ${timeoutMs} ms that it may take${where}`));
  };
  const onGivenUp = () => controller.abort(context.signal.reason);
  context.signal.addEventListener("abort", onGivenUp);
  if (context.signal.aborted) onGivenUp();
  const step: Run = {
    ...run,
    // Members of a context that are made when they are asked for stay so.
    context: new Proxy(context, {
      get: (target, member) => (member === "signal" ? signal : (Reflect.get(target, member) as unknown)),
    }),
    async track(what, task) {
      awaited = what;
      const result = await track(what, task);
      signal.throwIfAborted();
      awaited = undefined;
      return result;
    },
  };
  return {
    step,
    /** The time begins with the first attempt: waiting for a slot is no work. */
    begin: () => void (cancel ??= clock.schedule(timeoutMs, onTimeout)),
    end() {
      cancel?.();
      // The signal of a controller lives as long as the controller, so nothing may stay tied to it.
      context.signal.removeEventListener("abort", onGivenUp);
    },
  };
}

// An error that says when to try again means the reconcile: nothing is held up until then.
function isSettled(error: unknown): boolean {
  return ["TerminalError", "RetryAfterError", "BlockedError"].some((name) => findError(error, name) !== undefined);
}
