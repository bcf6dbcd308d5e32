// Which functions of the user occupy the event loop. All operators of a process share one event loop, so there is one record for the process.
import { keyOf, type KubernetesObject, type ObjectKey } from "./kubernetes-object.js";

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
    const [outer, outerStartedAt, outerNestedMs] = [this.#current, this.#startedAt, this.#nestedMs];
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

function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The calls of this process. */
export const userCalls = new UserCalls();
