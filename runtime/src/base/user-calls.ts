// Which functions of the user occupy the event loop. All operators of a process share one event loop, so there is one record for the process.
import { type KubernetesObject, type ObjectKey, keyOf } from "./kubernetes-object.js";
import type { Logger } from "./logger.js";
import type { Clock } from "./wait.js";

/** A call of a function of the user. */
export interface UserCall {
  /** The function, such as `desired() of dependent "web"`. */
  readonly what: string;
  /** The controller; absent where several controllers may share the function. */
  readonly controller?: string | undefined;
  /** `namespace/name` of the primary that it is called for. */
  readonly primary?: ObjectKey | undefined;
  /** The object that it is called with, where that is not the primary. */
  readonly object?: unknown;
}

/** A call that kept the event loop busy by itself, without the calls inside of it. */
export interface BlockingCall {
  readonly call: UserCall;
  readonly blockedMs: number;
}

/** How late the event loop was. */
export interface LoopDelay {
  readonly delayMs: number;
  /** The CPU time of the process meanwhile. */
  readonly cpuMs: number;
  /** How much of the delay the event loop waited for I/O, at least: a process that is suspended while it waits goes on waiting. */
  readonly idleMs: number;
  /** The synchronous parts of calls that account for it, longest first. */
  readonly blockers: readonly BlockingCall[];
}

/** What observes the event loop; called about twice a second, and as soon as a function has blocked the loop for `urgentMs`. */
export interface LoopObserver {
  readonly urgentMs: number;
  onDelay(delay: LoopDelay): void;
}

/** Takes a text for every call that begins, and an empty one when no function is running. */
export type CallMarker = (text: string) => void;

const TICK_MS = 500;
// Shorter calls cannot be what blocks the event loop for seconds.
const MIN_BLOCKING_MS = 100;
const MAX_BLOCKERS = 20;
// A function that takes longer may never return.
const SLOW_AFTER_MS = 30_000;

/** Names a call with its primary, or the object that it is called with, and its controller. */
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
 * Marks the calls of functions of the user, and measures their synchronous parts.
 *
 * Promises: a function that blocks the event loop before its first await is named exactly. What it blocks after an await cannot be told apart from
 * other calls in progress without async hooks, which slow every promise down; for that see what is in progress.
 */
export class UserCalls {
  readonly #observers = new Set<LoopObserver>();
  readonly #pending = new Set<UserCall>();
  #marker: CallMarker | undefined;
  #current: UserCall | undefined;
  #startedAt = 0;
  /** The time that calls inside of the current one took. */
  #nestedMs = 0;
  #blockers: BlockingCall[] = [];
  #tickedAt = 0;
  #cpuMs = 0;
  #idleMs = 0;
  #urgentMs = Infinity;
  #timer: NodeJS.Timeout | undefined;

  /** Calls a function of the user, and marks its synchronous part. */
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

  /** Calls a function of the user, and waits for it. */
  async track<Result>(call: UserCall, task: () => Result | Promise<Result>): Promise<Result> {
    this.#pending.add(call);
    try {
      return await this.run(call, task);
    } finally {
      this.settle();
      this.#pending.delete(call);
    }
  }

  /** The calls of `track` that have not returned. */
  get pending(): Iterable<UserCall> {
    return this.#pending;
  }

  /** Called when an asynchronous function has ended: the reconcile may end before any timer is due. */
  settle(): void {
    if (performance.now() - this.#tickedAt > this.#urgentMs + TICK_MS && this.#timer !== undefined) this.flush();
  }

  /** Tells the observers how late the event loop is now, without waiting for the timer. */
  flush(): void {
    const now = performance.now();
    const cpuMs = cpuTimeMs();
    const idleMs = performance.eventLoopUtilization().idle;
    const delayMs = Math.max(0, now - this.#tickedAt - TICK_MS);
    // It may ask for this itself: by a write, for which the time is up.
    if (this.#current !== undefined)
      this.#blockers.push({ call: this.#current, blockedMs: now - this.#startedAt - this.#nestedMs });
    const all = this.#blockers.sort((one, other) => other.blockedMs - one.blockedMs).slice(0, MAX_BLOCKERS);
    // Between two looks it may wait all the time.
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

  /** Passes every call to a marker, until it is replaced. */
  markWith(marker: CallMarker | undefined): void {
    this.#marker = marker;
  }

  #tick(): void {
    this.flush();
    // No call outlives a turn of the event loop, unless the watchdog broke it off, which runs no finally block.
    this.#current = undefined;
    this.#nestedMs = 0;
  }

  #setUrgency(): void {
    this.#urgentMs = Math.min(...[...this.#observers].map(({ urgentMs }) => urgentMs));
  }
}

// A rejected promise that nothing handles ends the process, so both functions handle what an asynchronous function returns.

/** Returns the result of a function that has to be synchronous; throws if it is a promise. */
export function synchronous<Result>(returned: Result): Result {
  if (!isThenable(returned)) return returned;
  returned.then(undefined, () => {});
  throw new TypeError("it returned a promise; nothing waits for it here, so it has to be synchronous");
}

/** Calls a function without waiting for its result; calls `onSuccess` or `onFailure` when it has ended, at once or later. */
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

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The calls of this process. */
export const userCalls = new UserCalls();

interface RunningTasksOptions extends Pick<UserCall, "controller" | "primary"> {
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The functions of the user that one reconcile is waiting for; says so when that takes long, because such a one may never return. */
export class RunningTasks {
  readonly #options: RunningTasksOptions;
  /** Those that have not returned yet. */
  readonly running: (UserCall & { readonly startedAt: number })[] = [];
  /** Absent until there is something to watch. */
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: RunningTasksOptions) {
    this.#options = options;
  }

  /** Calls `task` and waits for it, under the name `what`. */
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

  /** Says nothing more of functions that do not return. */
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
