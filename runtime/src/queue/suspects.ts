// The quarantine of primaries whose functions may have blocked the event loop. They are reconciled only while all controllers are idle, and one at a
// time, so that they delay no other primary and a function that blocks again is identified. While a controller is busy, they wait a minute longer at most.
import type { ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { Clock } from "../base/wait.js";
import type { KnownPrimary } from "./controller.js";

/** A primary whose functions may have blocked the event loop. */
export interface Suspect {
  readonly controller: string;
  readonly primary: ObjectKey;
  /** How often since its last successful reconcile. */
  readonly stalls: number;
}

/** The dispatcher of one controller. */
export interface SuspectQueue {
  readonly controller: string;
  /** Whether it was started and is not paused. */
  readonly isRunning: boolean;
  /** Whether nothing is queued or in progress. */
  readonly isIdle: boolean;
  /** Starts the reconcile of a primary, unless the primary has to wait. */
  begin(primary: KnownPrimary): void;
  /** Starts reconciles of queued primaries. */
  fill(): void;
}

interface SuspectsOptions {
  /** The controllers of the operator. */
  readonly controllers: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

// A busy operator is never idle, so a suspect waits no longer than this for that.
const MAX_WAIT_MS = 60_000;
// No other reconcile starts for this long after the start of a suspect: enough to see whether it blocks.
const ALONE_MS = 5_000;
const CHECK_MS = 1_000;
// A suspect that ends the process each time would keep the operator in CrashLoopBackOff, which delays all primaries.
const DELAY = { firstMs: 30_000, factor: 4, maxMs: 15 * 60_000 };
// They must fit into an annotation.
const MAX_SUSPECTS = 100;

/** The suspects of an operator. They outlive a restart in an annotation of its Lease. */
export class Suspects {
  readonly #options: SuspectsOptions;
  readonly #suspects = new Map<string, Suspect & { readonly notedAt: number }>();
  readonly #queues = new Set<SuspectQueue>();
  readonly #waiting = new Map<KnownPrimary, { readonly queue: SuspectQueue; readonly since: number }>();
  #alone: { readonly primary: KnownPrimary; readonly end: () => void } | undefined;
  #cancelCheck: (() => void) | undefined;
  /** The ids in the annotation as it was read last, and as it is being written. */
  #seen: ReadonlySet<string> = new Set();
  #written: ReadonlySet<string> = new Set();

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  get all(): readonly Suspect[] {
    return [...this.#suspects.values()].map(({ controller, primary, stalls }) => ({ controller, primary, stalls }));
  }

  /** Whether a suspect is being reconciled, so that no other reconcile may start. */
  get isReconciling(): boolean {
    return this.#alone !== undefined;
  }

  has(controller: string, primary: ObjectKey): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(idOf({ controller, primary }));
  }

  /** Records that a function may have blocked the event loop while it ran for a primary. */
  add(controller: string, primary: ObjectKey): void {
    const id = idOf({ controller, primary });
    const { stalls = 0 } = this.#suspects.get(id) ?? {};
    if (stalls === 0 && this.#suspects.size >= MAX_SUSPECTS) return;
    this.#suspects.set(id, { controller, primary, stalls: stalls + 1, notedAt: this.#options.clock.now() });
  }

  /** Removes a suspect. `startedAt` is the start of its successful reconcile: a suspect that was recorded after that stays. */
  delete(controller: string, primary: ObjectKey, startedAt = Infinity): void {
    const id = idOf({ controller, primary });
    if ((this.#suspects.get(id)?.notedAt ?? Infinity) <= startedAt) this.#suspects.delete(id);
  }

  /** Removes the suspects of a controller that no longer exist. */
  retain(controller: string, exists: (primary: ObjectKey) => boolean): void {
    for (const [id, suspect] of this.#suspects)
      if (suspect.controller === controller && !exists(suspect.primary)) this.#suspects.delete(id);
  }

  join(queue: SuspectQueue): void {
    this.#queues.add(queue);
  }

  leave(queue: SuspectQueue): void {
    this.#queues.delete(queue);
    for (const [primary, { queue: its }] of this.#waiting) if (its === queue) this.withdraw(primary);
    if (this.#queues.size > 0) return;
    this.#alone?.end();
    this.#cancelCheck?.();
    this.#alone = this.#cancelCheck = undefined;
  }

  /** Returns the number of suspects of a queue that wait. */
  waitingIn(queue: SuspectQueue): number {
    if (this.#waiting.size === 0) return 0;
    return [...this.#waiting.values()].filter((each) => each.queue === queue).length;
  }

  /** Puts a primary that was taken from its queue into quarantine. */
  wait(queue: SuspectQueue, primary: KnownPrimary): void {
    if (this.#waiting.has(primary)) return;
    this.#waiting.set(primary, { queue, since: this.#options.clock.now() });
    const { controller } = queue;
    const retryAfterMs = this.#delayOf(primary, queue);
    const when = retryAfterMs === 0 ? "" : `, in ${retryAfterMs / 1000} s at the earliest, or when it is edited`;
    this.#options.logger.warn(
      { controller, primary: primary.key, retryAfterMs },
      `primary "${primary.key}" of controller "${controller}" is reconciled last${when}: its functions blocked the event loop before`,
    );
    this.#cancelCheck ??= this.#checkLater();
  }

  withdraw(primary: KnownPrimary): void {
    this.#waiting.delete(primary);
  }

  /** Starts the reconcile of the next suspect if all queues are idle. Called whenever a queue is empty. */
  advance(): void {
    if (this.#waiting.size === 0 || this.#alone !== undefined) return;
    const isIdle = [...this.#queues].every((queue) => queue.isRunning && queue.isIdle);
    const now = this.#options.clock.now();
    // A suspect with more stalls is more likely to be the one that blocks; the others became suspects beside it, so they go first.
    const stallsOf = ([primary, { queue }]: readonly [KnownPrimary, { readonly queue: SuspectQueue }]) =>
      this.#suspects.get(idOf({ controller: queue.controller, primary: primary.key }))?.stalls ?? 0;
    const waiting = [...this.#waiting].sort((one, other) => stallsOf(one) - stallsOf(other));
    for (const [primary, { queue, since }] of waiting) {
      const dueAt = since + this.#delayOf(primary, queue);
      if (!queue.isRunning || now < (isIdle ? dueAt : dueAt + MAX_WAIT_MS)) continue;
      this.#waiting.delete(primary);
      queue.begin(primary);
      if (primary.run === undefined) continue;
      const cancel = this.#options.clock.schedule(ALONE_MS, () => this.#endAlone());
      this.#alone = { primary, end: cancel };
      return;
    }
  }

  /** Lets other reconciles start after that of a suspect. */
  ended(primary: KnownPrimary): void {
    if (this.#alone?.primary === primary) this.#endAlone();
  }

  /** Serializes the suspects for the annotation; undefined if there are none. */
  write(): string | undefined {
    this.#written = new Set(this.#suspects.keys());
    return this.#suspects.size === 0 ? undefined : JSON.stringify(this.all);
  }

  /** Reads the annotation that another process wrote. A standby also removes the suspects that the leader removed. */
  read(text: string | undefined, isLeading: boolean): void {
    const found = new Map(suspectsIn(text).map((each) => [idOf(each), each]));
    if (!isLeading) for (const id of this.#seen) if (!found.has(id)) this.#suspects.delete(id);
    for (const [id, suspect] of found) {
      const isNews = !this.#seen.has(id) && !this.#written.has(id);
      const isOwn = this.#options.controllers.includes(suspect.controller) && this.#suspects.size < MAX_SUSPECTS;
      if (isNews && isOwn && !this.#suspects.has(id)) this.#suspects.set(id, { ...suspect, notedAt: -Infinity });
    }
    this.#seen = new Set(found.keys());
  }

  #endAlone(): void {
    this.#alone?.end();
    this.#alone = undefined;
    for (const queue of [...this.#queues]) queue.fill();
  }

  // An edit may have fixed the cause.
  #delayOf({ key: primary, state }: KnownPrimary, { controller }: SuspectQueue): number {
    const { stalls = 0 } = this.#suspects.get(idOf({ controller, primary })) ?? {};
    const isEdited = state.reasons.some((reason) => reason.kind === "primary" && !reason.isInitial);
    if (stalls < 2 || isEdited) return 0;
    return Math.min(DELAY.maxMs, DELAY.firstMs * DELAY.factor ** (stalls - 2));
  }

  #checkLater(): () => void {
    return this.#options.clock.schedule(CHECK_MS, () => {
      this.#cancelCheck = undefined;
      this.advance();
      if (this.#waiting.size > 0) this.#cancelCheck = this.#checkLater();
    });
  }
}

function idOf({ controller, primary }: Pick<Suspect, "controller" | "primary">): string {
  return `${controller} ${primary}`;
}

// Untrusted: anyone who may write the Lease can write this. It can only delay the named primaries, and never longer than DELAY.maxMs.
function suspectsIn(text: string | undefined): readonly Suspect[] {
  try {
    const parsed: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(parsed)) return [];
    return (parsed as readonly Partial<Record<keyof Suspect, unknown>>[]).flatMap((each) => {
      const { controller, primary, stalls } = Object(each) as Partial<Record<keyof Suspect, unknown>>;
      if (typeof controller !== "string" || typeof primary !== "string") return [];
      return [{ controller, primary, stalls: typeof stalls === "number" && stalls > 0 ? stalls : 1 }];
    });
  } catch {
    return [];
  }
}
