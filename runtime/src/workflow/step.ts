// One step of a run: reconciling or deleting one object, in a place that others wait for, within a time, and tried again if that is asked for.
import { sleep, type Clock } from "../base/clock.js";
import { findError } from "../base/errors.js";
import type { Semaphore } from "../base/semaphore.js";
import type { Context } from "./definition/context.js";
import type { NodeDefinition, StepRetry } from "./definition/workflow-definition.js";

const FIRST_INTERVAL_MS = 1_000;
const MULTIPLIER = 1.5;

/** Calls a function of the user under a name, so that it can be said which one does not return. */
export type Track = <Result>(what: string, task: () => Result | Promise<Result>) => Promise<Result>;

/** Some of the places that steps take turns in. */
export type Place = Pick<Semaphore, "acquire" | "release">;

/** Where a step is done. */
export interface StepSurroundings {
  readonly context: Context;
  readonly track: Track;
  readonly clock: Clock;
  /** Takes a write that is still under way when the time of its step is over. */
  linger?(write: Promise<unknown>): void;
  /** The places of the controller, and those of a bulk dependent before them; a step has one of each while it works. */
  readonly places: readonly Place[];
}

/** What the body of a step works with. */
export interface Step {
  /** Its signal is aborted when the step ran out of time. */
  readonly context: Context;
  /** Calls a function of the user; throws instead of returning what comes too late. */
  readonly track: Track;
  /** Makes a write, of which nobody knows what becomes of it if the step runs out of time. */
  write<Result>(write: () => Promise<Result>): Promise<Result>;
}

/** Thrown by a step that took longer than it may. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/** Does a step; rejects with the error of its last attempt, or with a TimeoutError while `body` may still be running, to no effect. */
export async function takeStep<Result>(
  { timeoutMs, retry }: Pick<NodeDefinition, "timeoutMs" | "retry">,
  around: StepSurroundings,
  body: (step: Step) => Promise<Result>,
): Promise<Result> {
  const time = timeoutMs === undefined ? unlimited(around) : new LimitedTime(timeoutMs, around);
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await inPlaces(around.places, time, () => body(time.step));
      } catch (error) {
        if (retry === undefined || attempt >= retry.maxAttempts || !isWorthRetrying(error, time.step.context.signal))
          throw error;
      }
      await time.limit(sleep(intervalMsOf(retry, attempt), time.step.context.signal, around.clock));
    }
  } finally {
    time.end();
  }
}

interface StepTime {
  readonly step: Step;
  /** Begins with the first attempt: waiting for a place is no work. */
  begin(): void;
  /** Rejects when the time is over. */
  limit<Result>(work: Promise<Result>): Promise<Result>;
  end(): void;
}

function unlimited({ context, track }: StepSurroundings): StepTime {
  return { step: { context, track, write: (write) => write() }, begin() {}, limit: (work) => work, end() {} };
}

class LimitedTime implements StepTime {
  readonly step: Step;
  readonly #timeoutMs: number;
  readonly #around: StepSurroundings;
  readonly #controller = new AbortController();
  readonly #isOver: Promise<never>;
  readonly #writes = new Set<Promise<unknown>>();
  /** What the step waits for, of what has a name. */
  #doing: string | undefined;
  #cancel: (() => void) | undefined;

  constructor(timeoutMs: number, around: StepSurroundings) {
    this.#timeoutMs = timeoutMs;
    this.#around = around;
    const { signal } = this.#controller;
    this.step = {
      context: withSignal(around.context, signal),
      track: (what, task) => this.#track(what, task),
      write: (write) => this.#write(write),
    };
    around.context.signal.addEventListener("abort", this.#onGivenUp);
    if (around.context.signal.aborted) this.#onGivenUp();
    this.#isOver = new Promise((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
    );
    this.#isOver.catch(() => {});
  }

  begin(): void {
    this.#cancel ??= this.#around.clock.schedule(this.#timeoutMs, () => this.#controller.abort(this.#error()));
  }

  limit<Result>(work: Promise<Result>): Promise<Result> {
    return Promise.race([work, this.#isOver]);
  }

  end(): void {
    this.#cancel?.();
    this.#around.context.signal.removeEventListener("abort", this.#onGivenUp);
    for (const write of this.#writes) this.#around.linger?.(write);
  }

  // The signal of a controller lives as long as that, so nothing may stay tied to it.
  readonly #onGivenUp = () => this.#controller.abort(this.#around.context.signal.reason);

  async #track<Result>(what: string, task: () => Result | Promise<Result>): Promise<Result> {
    this.#doing = what;
    const result = await this.#around.track(what, task);
    this.step.context.signal.throwIfAborted();
    this.#doing = undefined;
    return result;
  }

  async #write<Result>(write: () => Promise<Result>): Promise<Result> {
    const written = write();
    this.#writes.add(written);
    try {
      return await written;
    } finally {
      this.#writes.delete(written);
    }
  }

  #error(): TimeoutError {
    const where = this.#doing === undefined ? "" : `, and was waiting for ${this.#doing}`;
    return new TimeoutError(`it took longer than the ${this.#timeoutMs} ms that it may take${where}`);
  }
}

// What runs out of time gives its places back, whether or not it ever returns.
async function inPlaces<Result>(
  places: readonly Place[],
  time: StepTime,
  work: () => Promise<Result>,
): Promise<Result> {
  const { signal } = time.step.context;
  const taken: Place[] = [];
  try {
    for (const place of places) {
      const turn = place.acquire(signal);
      if (turn !== undefined) await turn;
      taken.push(place);
    }
    time.begin();
    return await time.limit(work());
  } finally {
    for (const place of taken) place.release();
  }
}

function isWorthRetrying(error: unknown, signal: AbortSignal): boolean {
  // An error that says when to try again means the reconcile: nothing is held up until then.
  const isSettled = ["TerminalError", "RetryAfterError"].some((name) => findError(error, name) !== undefined);
  return !signal.aborted && !isSettled;
}

function intervalMsOf(
  { initialIntervalMs = FIRST_INTERVAL_MS, multiplier = MULTIPLIER, maxIntervalMs = Infinity }: StepRetry,
  attempt: number,
): number {
  return Math.min(initialIntervalMs * multiplier ** (attempt - 1), maxIntervalMs);
}

const origins = new WeakMap<object, Context>();

/** Returns the context of the reconcile, of which there is one, from that of a step, which may have a time of its own. */
export function originOf(context: object): object {
  return origins.get(context) ?? context;
}

// A context has private parts, so its members are asked for on itself.
function withSignal(context: Context, signal: AbortSignal): Context {
  const derived = new Proxy(context, {
    get: (target, member) => (member === "signal" ? signal : (Reflect.get(target, member, target) as unknown)),
  });
  origins.set(derived, context);
  return derived;
}
