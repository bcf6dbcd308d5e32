// Tracks which user functions block the event loop. All operators of a process share one event loop, so there is one record per process.
import { type KubernetesObject, type ObjectKey, keyOf } from "./kubernetes-object.js";
import type { Logger } from "./logger.js";
import type { Clock } from "./wait.js";

/** A call of a user function. */
export interface UserCall {
  /** Description of the function, such as `desired() of dependent "web"`. */
  readonly what: string;
  /** The controller. Absent if several controllers may share the function. */
  readonly controller?: string | undefined;
  /** `namespace/name` of the primary that the function is called for. */
  readonly primary?: ObjectKey | undefined;
  /** The object that the function is called with, if it is not the primary. */
  readonly object?: unknown;
}

/** A call that blocked the event loop. The time excludes nested calls. */
export interface BlockingCall {
  readonly call: UserCall;
  readonly blockedMs: number;
}

/** How long the event loop was blocked. */
export interface LoopDelay {
  readonly delayMs: number;
  /** The CPU time that the process used during this period. */
  readonly cpuMs: number;
  /** The minimum part of the delay in which the event loop waited for I/O: a process that is suspended while it waits continues to wait. */
  readonly idleMs: number;
  /** The synchronous parts of calls in this period, longest first. */
  readonly blockers: readonly BlockingCall[];
}

/** Observes the event loop. Called about twice a second, and as soon as a function has blocked the event loop for `urgentMs`. */
export interface LoopObserver {
  readonly urgentMs: number;
  onDelay(delay: LoopDelay): void;
}

/** Receives a text when a call starts, and an empty one when no function is running. */
export type CallMarker = (text: string) => void;

const TICK_MS = 500;
// Shorter calls cannot block the event loop for seconds.
const MIN_BLOCKING_MS = 100;
const MAX_BLOCKERS = 20;
// A function that takes longer may never return.
const SLOW_AFTER_MS = 30_000;

/** Describes a call with its primary, or the object that it is called with, and its controller. */
export function describeCall({ what, controller, primary, object }: UserCall): string {
  const { metadata } = Object(object) as Partial<KubernetesObject>;
  const named = primary ?? (metadata?.name === undefined ? undefined : keyOf(metadata));
  const details = [
    ...(named === undefined ? [] : [`${primary === undefined ? "object" : "primary"} "${named}"`]),
    ...(controller === undefined ? [] : [`controller "${controller}"`]),
  ];
  return details.length === 0 ? what : `${what} (${details.join(", ")})`;
}

/**
 * Marks calls of user functions and measures their synchronous parts.
 *
 * Guarantees that a function is named if it blocks the event loop before its first await. After an await, it cannot be distinguished from other calls
 * in progress without async hooks, which slow down every promise; see `pending` for these calls.
 */
export class UserCalls {
  readonly #observers = new Set<LoopObserver>();
  readonly #pending = new Set<UserCall>();
  #marker: CallMarker | undefined;
  #current: UserCall | undefined;
  #startedAt = 0;
  /** The time spent in nested calls of the current call. */
  #nestedMs = 0;
  #blockers: BlockingCall[] = [];
  #tickedAt = 0;
  #cpuMs = 0;
  #idleMs = 0;
  #urgentMs = Infinity;
  #timer: NodeJS.Timeout | undefined;

  /** Calls a user function and marks its synchronous part. */
  run<Result>(call: UserCall, task: () => Result): Result {
    const outer = this.#current;
    const outerStartedAt = this.#startedAt;
    const outerNestedMs = this.#nestedMs;
    this.#marker?.(describeCall(call));
    const startedAt = performance.now();
    this.#current = call;
    this.#startedAt = startedAt;
    this.#nestedMs = 0;
    try {
      return task();
    } finally {
      const tookMs = performance.now() - startedAt;
      const blockedMs = tookMs - this.#nestedMs;
      if (blockedMs >= MIN_BLOCKING_MS && this.#timer !== undefined) this.#blockers.push({ call, blockedMs });
      this.#current = outer;
      this.#startedAt = outerStartedAt;
      this.#nestedMs = outerNestedMs + tookMs;
      this.#marker?.(outer === undefined ? "" : describeCall(outer));
    }
  }

  /** Calls a user function and waits for its result. */
  async track<Result>(call: UserCall, task: () => Result | Promise<Result>): Promise<Result> {
    this.#pending.add(call);
    try {
      return await this.run(call, task);
    } finally {
      this.settle();
      this.#pending.delete(call);
    }
  }

  /** The calls of track() that have not returned. */
  get pending(): Iterable<UserCall> {
    return this.#pending;
  }

  /** Called when an asynchronous function has ended: the reconcile may end before the next timer fires. */
  settle(): void {
    if (performance.now() - this.#tickedAt > this.#urgentMs + TICK_MS && this.#timer !== undefined) this.flush();
  }

  /** Notifies the observers of the current delay without waiting for the timer. */
  flush(): void {
    const now = performance.now();
    const cpuMs = cpuTimeMs();
    const idleMs = performance.eventLoopUtilization().idle;
    const delayMs = Math.max(0, now - this.#tickedAt - TICK_MS);
    // The current call may have triggered this flush itself, with a write whose deadline has passed.
    if (this.#current !== undefined)
      this.#blockers.push({ call: this.#current, blockedMs: now - this.#startedAt - this.#nestedMs });
    const all = this.#blockers.sort((one, other) => other.blockedMs - one.blockedMs).slice(0, MAX_BLOCKERS);
    // The event loop may be idle for the whole interval between two ticks.
    const waitedMs = Math.max(0, idleMs - this.#idleMs - TICK_MS);
    const delay = { delayMs, cpuMs: cpuMs - this.#cpuMs, idleMs: waitedMs, blockers: all };
    this.#tickedAt = now;
    this.#cpuMs = cpuMs;
    this.#idleMs = idleMs;
    this.#blockers = [];
    for (const observer of [...this.#observers]) observer.onDelay(delay);
  }

  /** Observes the event loop until the returned function is called. */
  observe(observer: LoopObserver): () => void {
    this.#observers.add(observer);
    this.#setUrgency();
    if (this.#timer === undefined) {
      this.#tickedAt = performance.now();
      this.#cpuMs = cpuTimeMs();
      this.#idleMs = performance.eventLoopUtilization().idle;
      this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    }
    return () => {
      this.#observers.delete(observer);
      this.#setUrgency();
      if (this.#observers.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Passes each call to a marker, until it is replaced. */
  markWith(marker: CallMarker | undefined): void {
    this.#marker = marker;
  }

  #tick(): void {
    this.flush();
    // No synchronous call spans two iterations of the event loop, unless the watchdog has terminated it, in which case no finally block ran.
    this.#current = undefined;
    this.#nestedMs = 0;
  }

  #setUrgency(): void {
    this.#urgentMs = Math.min(...[...this.#observers].map(({ urgentMs }) => urgentMs));
  }
}

// An unhandled rejection ends the process, so both functions handle promises that a user function returns.

/** Returns the result of a function that must be synchronous. Throws if it is a promise. */
export function synchronous<Result>(returned: Result): Result {
  if (!isThenable(returned)) return returned;
  returned.then(undefined, () => {});
  throw new TypeError("it returned a promise; nothing waits for it here, so it has to be synchronous");
}

/** Calls a function without awaiting its result. Calls `onSuccess` or `onFailure` when it has ended, immediately or later. */
export function callUnawaited(
  call: () => unknown,
  { onSuccess = () => {}, onFailure }: { onSuccess?: () => void; onFailure: (error: unknown) => void },
): void {
  let returned: unknown;
  try {
    returned = call();
  } catch (error) {
    return onFailure(error);
  }
  if (isThenable(returned)) returned.then(onSuccess, onFailure);
  else onSuccess();
}

/** Returns an observer that calls a function of the user without awaiting its result, and neither throws nor rejects. */
export function guardedObserver<Observation>(
  observe: (observation: Observation) => void,
  onFailure: (error: unknown) => void,
): (observation: Observation) => void {
  return (observation) => callUnawaited(() => observe(observation), { onFailure });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The user calls of this process. */
export const userCalls = new UserCalls();

interface RunningTasksOptions extends Pick<UserCall, "controller" | "primary"> {
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The user functions that a reconcile is waiting for. Logs a warning if one takes long, because it may never return. */
export class RunningTasks {
  readonly #options: RunningTasksOptions;
  /** The calls that have not returned yet. */
  readonly running: (UserCall & { readonly startedAt: number })[] = [];
  /** Absent until a call is tracked. */
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: RunningTasksOptions) {
    this.#options = options;
  }

  /** Calls `task` and waits for it. `what` describes it in logs. */
  async track<Result>(what: string, task: () => Result | Promise<Result>): Promise<Result> {
    if (!this.#isClosed) this.#cancel ??= this.#watch();
    const { controller, primary, clock } = this.#options;
    const running = { what, controller, primary, startedAt: clock.now() };
    this.running.push(running);
    try {
      return await userCalls.run(running, task);
    } finally {
      userCalls.settle();
      this.running.splice(this.running.indexOf(running), 1);
    }
  }

  /** Stops logging functions that do not return. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #watch(): () => void {
    const { clock, logger } = this.#options;
    return clock.schedule(SLOW_AFTER_MS, () => {
      const now = clock.now();
      for (const { what, startedAt } of this.running) {
        const seconds = Math.round((now - startedAt) / 1000);
        const message = `${what} has not returned for ${seconds} s; this primary is not reconciled until it does`;
        logger.warn({ seconds }, message);
      }
      this.#cancel = this.#watch();
    });
  }
}
