// The work queue of a controller, and the dispatcher that starts reconciles for queued primaries while workers are free.
import type { ControllerActivity } from "../base/activity.js";
import type { ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { type Clock, PostponableTimer, turns, withDeadline } from "../base/wait.js";
import type { KnownPrimary, ReconcileRun } from "./controller.js";
import type { ReconcilePriority } from "./processor.js";
import { MAX_CONCURRENT_RECONCILES, type Schedule } from "./schedule-settings.js";

// While both priorities have items, one item in this many is taken from the background, so that edits do not starve resyncs and initial lists.
const BACKGROUND_SHARE = 5;
// A Fifo compacts its array after this many taken items.
const FEW = 32;
const MANY = 1_000;
// How long a reconcile may take to return after its signal was aborted. Then its worker is freed.
const GRACE_MS = 30_000;

/** An item of a work queue. */
export interface Queued {
  /** Groups are served in turn (round-robin). Must not change. */
  readonly group: string;
  /** The priority with which the item is queued; undefined if it is not. Set by the queue only. */
  waiting: ReconcilePriority | undefined;
}

/**
 * A deduplicating queue with two priorities that is fair between groups.
 *
 * Edits are taken before background items, but every fifth item is a background item while both wait. Within a priority, groups are served
 * round-robin, so that a group with many items delays another group by one item only. Every operation takes constant time.
 */
export class WorkQueue<Item extends Queued> {
  readonly #queues = { edit: new FairQueue<Item>("edit"), background: new FairQueue<Item>("background") };
  /** Consecutive edits taken while background items were queued. */
  #editsInARow = 0;

  /** Adds an item. An item that is already queued keeps its position, unless its priority increases. */
  add(item: Item, priority: ReconcilePriority = "edit"): void {
    if (item.waiting === "edit" || item.waiting === priority) return;
    this.delete(item);
    item.waiting = priority;
    this.#queues[priority].push(item);
  }

  /** Removes and returns the next item; undefined if the queue is empty. */
  take(): Item | undefined {
    const { edit, background } = this.#queues;
    const isBackgroundsTurn = edit.size === 0 || this.#editsInARow >= BACKGROUND_SHARE - 1;
    const isBackground = background.size > 0 && isBackgroundsTurn;
    this.#editsInARow = background.size > 0 && !isBackground ? this.#editsInARow + 1 : 0;
    return isBackground ? background.shift() : edit.shift();
  }

  /** Removes an item. If it is added again soon, it may get its former position. */
  delete(item: Item): void {
    if (item.waiting !== undefined) this.#queues[item.waiting].size--;
    item.waiting = undefined;
  }

  get size(): number {
    return this.#queues.edit.size + this.#queues.background.size;
  }
}

/** The items of one priority. Deleted items stay in the FIFO of their group; shift() skips them. */
class FairQueue<Item extends Queued> {
  readonly #priority: ReconcilePriority;
  readonly #lines = new Map<string, Fifo<Item>>();
  /** The non-empty FIFOs of groups, in round-robin order. */
  readonly #turns = new Fifo<Fifo<Item>>();
  size = 0;

  constructor(priority: ReconcilePriority) {
    this.#priority = priority;
  }

  push(item: Item): void {
    // FIFOs of empty groups are kept for the next batch, but not forever: namespaces are created and deleted.
    if (this.size === 0 && this.#lines.size > MANY) this.#lines.clear();
    let line = this.#lines.get(item.group);
    if (line === undefined) this.#lines.set(item.group, (line = new Fifo<Item>()));
    if (line.isEmpty) this.#turns.push(line);
    line.push(item);
    this.size++;
  }

  shift(): Item | undefined {
    for (let line = this.#turns.shift(); line !== undefined; line = this.#turns.shift()) {
      let item = line.shift();
      while (item !== undefined && item.waiting !== this.#priority) item = line.shift();
      if (!line.isEmpty) this.#turns.push(line);
      if (item === undefined) continue;
      item.waiting = undefined;
      this.size--;
      return item;
    }
    return undefined;
  }
}

/** A first-in-first-out queue with amortized constant time. */
class Fifo<Item> {
  #items: Item[] = [];
  /** The number of items at the start of the array that were taken already. */
  #taken = 0;

  push(item: Item): void {
    this.#items.push(item);
  }

  shift(): Item | undefined {
    if (this.isEmpty) return undefined;
    const item = this.#items[this.#taken++];
    if (this.#taken > FEW && this.#taken * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#taken);
      this.#taken = 0;
    }
    return item;
  }

  get isEmpty(): boolean {
    return this.#taken === this.#items.length;
  }
}

interface DispatcherOwner {
  /** All known primaries of the controller. */
  readonly primaries: Iterable<KnownPrimary>;
  /** Starts the reconcile of a primary, unless it has to wait. */
  begin(primary: KnownPrimary): void;
}

/**
 * Takes primaries from the work queue while workers are free (`maxConcurrentReconciles`), and aborts reconciles that exceed their timeout. If a
 * reconcile does not return after its signal was aborted, its worker is freed for other primaries.
 */
export class Dispatcher implements SuspectQueue {
  isStarted = false;
  /** Whether the reconciles in progress were aborted by a stop. */
  isAborted = false;
  /** The name of the controller. */
  readonly controller: string;
  readonly #schedule: Schedule;
  readonly #owner: DispatcherOwner;
  readonly #suspects: Suspects | undefined;
  readonly #queue = new WorkQueue<KnownPrimary>();
  #maxRunning: number;
  /** Reconciles in progress, including hung ones. Only a count: maintaining a set would cost more than the rest of the dispatcher. */
  #running = 0;
  /** Hung reconciles, whose worker was freed. */
  #hung = 0;
  #submissions = 0;
  #isPaused = false;
  #isWaking = false;
  /** A single timer for the timeouts of all reconciles, since reconciles are many and short. */
  readonly #checks: PostponableTimer;
  #onIdle = () => {};
  #idle: Promise<void> | undefined;

  constructor(schedule: Schedule, owner: DispatcherOwner, suspects?: Suspects) {
    this.controller = schedule.controller;
    this.#schedule = schedule;
    this.#owner = owner;
    this.#suspects = suspects;
    this.#maxRunning = schedule.maxConcurrentReconciles;
    this.#checks = new PostponableTimer(schedule.clock, () => this.#checkAll());
    suspects?.join(this);
  }

  /** Changes the limit of concurrent reconciles. Reconciles in progress continue. */
  setMaxRunning(count = MAX_CONCURRENT_RECONCILES): void {
    this.#maxRunning = count;
    this.fill();
  }

  start(): void {
    this.isStarted = true;
    this.#wakeUp();
  }

  /** Starts no further reconcile until `resume` is called. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#wakeUp();
  }

  /** Enqueues a primary. */
  submit(primary: KnownPrimary, priority: ReconcilePriority): void {
    if (primary.waiting === undefined) {
      primary.queuedAt = this.#schedule.clock.now();
      this.#submissions++;
    }
    this.#queue.add(primary, priority);
    this.#wakeUp();
  }

  withdraw(primary: KnownPrimary): void {
    this.#queue.delete(primary);
    this.#suspects?.withdraw(primary);
  }

  /** Called when a reconcile has started. */
  add(): void {
    this.#running++;
    const { timeoutMs } = this.#schedule;
    if (!this.#checks.isSet && timeoutMs > 0) this.#checks.set(timeoutMs);
  }

  /** Called when a reconcile has ended. */
  delete(primary: KnownPrimary, run: ReconcileRun): void {
    run.tasks.close();
    this.#suspects?.ended(primary);
    this.#running--;
    if (run.endOfSlot === Infinity) this.#hung--;
    if (this.#usedSlots === 0) this.#checks.cancel();
    if (this.#running === 0) this.#onIdle();
    this.fill();
  }

  /**
   * Waits for the reconciles in progress, and aborts them at the deadline. Returns whether all of them ended before it. Do not enqueue primaries
   * afterwards.
   */
  async stop(deadlineMs: number): Promise<boolean> {
    this.#suspects?.leave(this);
    const idle = (this.#idle = new Promise<void>((resolve) => (this.#onIdle = resolve)));
    if (this.#running === 0) this.#onIdle();
    const deadline = { timeoutMs: deadlineMs, clock: this.#schedule.clock };
    const isFinished = await withDeadline(() => idle, deadline).then(
      () => true,
      () => false,
    );
    this.isAborted = true;
    this.#checks.cancel();
    for (const run of this.runs) {
      run.abort(new Error("the operator stops"));
      run.tasks.close();
    }
    return isFinished;
  }

  /** Resolves when the last reconcile has ended after a stop, even if that is after the deadline. Resolves immediately if `stop` was not called. */
  async whenIdle(): Promise<void> {
    await this.#idle;
  }

  activity(): ControllerActivity {
    const now = this.#schedule.clock.now();
    const waiting = this.#suspects?.waitingIn(this) ?? 0;
    const ages = this.runs.map(({ startedAt }) => now - startedAt);
    return {
      ...{ submissions: this.#submissions, queued: this.#queue.size + waiting, running: this.#running },
      ...{ maxRunning: this.#maxRunning, unfinishedMs: ages.reduce((sum, age) => sum + age, 0) },
      longestMs: Math.max(0, ...ages),
    };
  }

  get isRunning(): boolean {
    return this.isStarted && !this.#isPaused;
  }

  get isIdle(): boolean {
    return this.#queue.size === 0 && this.#usedSlots === 0;
  }

  begin(primary: KnownPrimary): void {
    this.#owner.begin(primary);
  }

  /** Starts reconciles while primaries are queued and workers are free. */
  fill(): void {
    const suspects = this.#suspects;
    while (this.isRunning && !this.#isWaking && this.#usedSlots < this.#maxRunning) {
      if (this.#queue.size === 0) return suspects?.advance();
      if (suspects?.isReconciling === true) return;
      // Without yielding, thousands of reconciles that write nothing would starve watches, Lease renewals, and probes.
      const pause = turns.pause();
      if (pause !== undefined) return this.#wakeUp(pause);
      const primary = this.#queue.take();
      if (primary === undefined) continue;
      if (suspects?.has(this.controller, primary.key) === true) suspects.wait(this, primary);
      else this.begin(primary);
    }
  }

  /** The reconciles in progress. */
  get runs(): readonly ReconcileRun[] {
    return [...this.#owner.primaries].flatMap(({ run }) => run ?? []);
  }

  get #usedSlots(): number {
    return this.#running - this.#hung;
  }

  // Reconciles start asynchronously, so that a batch of events is enqueued as a whole first.
  #wakeUp(pause = Promise.resolve()): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    void pause.then(() => {
      this.#isWaking = false;
      this.fill();
    });
  }

  #checkAll(): void {
    const nextMs = Math.min(...this.runs.map((run) => this.#check(run)));
    if (this.#usedSlots > 0) this.#checks.set(Math.min(nextMs, this.#schedule.timeoutMs));
  }

  /** Checks the timeout of a reconcile. Returns the time until its next check, in milliseconds. */
  #check(run: ReconcileRun): number {
    const { clock, timeoutMs } = this.#schedule;
    const leftMs = (run.endOfSlot ?? run.startedAt + timeoutMs) - clock.now();
    // Timers of Node.js may fire a fraction of a millisecond early.
    if (leftMs >= 1) return leftMs;
    if (run.endOfSlot !== undefined) return this.#giveUp(run);
    const seconds = Math.round(timeoutMs / 1000);
    run.endOfSlot = clock.now() + GRACE_MS;
    run.logger.warn({ seconds }, `reconcile timed out after ${seconds} s (reconcileTimeoutMs); aborting its signal`);
    run.abort(new Error(`reconcile timed out after ${seconds} s (reconcileTimeoutMs)`));
    return GRACE_MS;
  }

  #giveUp(run: ReconcileRun): number {
    const message =
      "reconcile ignored its aborted signal; freeing its worker. " +
      "This primary is not reconciled again until the function returns";
    run.logger.error({}, message);
    run.endOfSlot = Infinity;
    this.#hung++;
    this.fill();
    return Infinity;
  }
}

// The quarantine of suspects: primaries whose functions may have blocked the event loop. They are reconciled one at a time and only while all
// controllers are idle, so that they delay no other primary, and a function that blocks again is identified. If the controllers stay busy, a suspect
// waits at most one minute longer.

/** A primary whose functions may have blocked the event loop. */
export interface Suspect {
  readonly controller: string;
  readonly primary: ObjectKey;
  /** The number of stalls since its last successful reconcile. */
  readonly stalls: number;
}

/** The dispatcher of one controller. */
interface SuspectQueue {
  readonly controller: string;
  /** Whether it has started and is not paused. */
  readonly isRunning: boolean;
  /** Whether nothing is queued or in progress. */
  readonly isIdle: boolean;
  /** Starts the reconcile of a primary, unless it has to wait. */
  begin(primary: KnownPrimary): void;
  /** Starts reconciles of queued primaries while workers are free. */
  fill(): void;
}

interface SuspectsOptions {
  /** Names of the controllers of the operator. */
  readonly controllers: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

// The maximum time that a suspect waits for idle controllers: a busy operator may never be idle.
const MAX_WAIT_MS = 60_000;
// How long a suspect runs alone after its start: long enough to see whether it blocks.
const ALONE_MS = 5_000;
const CHECK_MS = 1_000;
// The backoff of a suspect with repeated stalls. Without it, a suspect that crashes the process each time would keep the operator in
// CrashLoopBackOff, which delays all primaries.
const DELAY = { firstMs: 30_000, factor: 4, maxMs: 15 * 60_000 };
// The suspects have to fit into an annotation.
const MAX_SUSPECTS = 100;

/** The suspects of an operator. They are stored in an annotation of its Lease, and so survive restarts. */
export class Suspects {
  readonly #options: SuspectsOptions;
  readonly #suspects = new Map<string, Suspect & { readonly notedAt: number }>();
  readonly #queues = new Set<SuspectQueue>();
  readonly #waiting = new Map<KnownPrimary, { readonly queue: SuspectQueue; readonly since: number }>();
  #alone: { readonly primary: KnownPrimary; readonly end: () => void } | undefined;
  #cancelCheck: (() => void) | undefined;
  /** Ids in the annotation as last read, and as last written. */
  #seen: ReadonlySet<string> = new Set();
  #written: ReadonlySet<string> = new Set();

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  get all(): readonly Suspect[] {
    return [...this.#suspects.values()].map(({ controller, primary, stalls }) => ({ controller, primary, stalls }));
  }

  /** Whether a suspect runs alone, so that no other reconcile may start. */
  get isReconciling(): boolean {
    return this.#alone !== undefined;
  }

  has(controller: string, primary: ObjectKey): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(idOf({ controller, primary }));
  }

  /** Records that a function may have blocked the event loop during the reconcile of a primary. */
  add(controller: string, primary: ObjectKey): void {
    const id = idOf({ controller, primary });
    const { stalls = 0 } = this.#suspects.get(id) ?? {};
    if (stalls === 0 && this.#suspects.size >= MAX_SUSPECTS) return;
    this.#suspects.set(id, { controller, primary, stalls: stalls + 1, notedAt: this.#options.clock.now() });
  }

  /** Removes a suspect. `startedAt` is when its successful reconcile started: a suspect that was recorded later is kept. */
  delete(controller: string, primary: ObjectKey, startedAt = Infinity): void {
    const id = idOf({ controller, primary });
    if ((this.#suspects.get(id)?.notedAt ?? Infinity) <= startedAt) this.#suspects.delete(id);
  }

  /** Removes suspects of a controller that no longer exist. */
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

  /** Returns the number of quarantined suspects of a queue. */
  waitingIn(queue: SuspectQueue): number {
    if (this.#waiting.size === 0) return 0;
    return [...this.#waiting.values()].filter((each) => each.queue === queue).length;
  }

  /** Quarantines a primary that was taken from its queue. */
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

  /**
   * Starts the reconcile of the next suspect if all queues are idle, or if it has waited long enough. Called whenever a queue is empty, and every
   * second while suspects wait.
   */
  advance(): void {
    if (this.#waiting.size === 0 || this.#alone !== undefined) return;
    const isIdle = [...this.#queues].every((queue) => queue.isRunning && queue.isIdle);
    const now = this.#options.clock.now();
    // The suspect with the most stalls is most likely to be the one that blocks; others became suspects because they ran at the same time, so they go
    // first.
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

  /** Allows other reconciles to start after the reconcile of a suspect has ended. */
  ended(primary: KnownPrimary): void {
    if (this.#alone?.primary === primary) this.#endAlone();
  }

  /** Serializes the suspects for the annotation; undefined if there are none. */
  write(): string | undefined {
    this.#written = new Set(this.#suspects.keys());
    return this.#suspects.size === 0 ? undefined : JSON.stringify(this.all);
  }

  /** Merges the suspects in an annotation that another process wrote. A standby also removes the suspects that the leader has removed. */
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

  // No delay after an edit, which may have fixed the cause.
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

// Untrusted input: any client that can write the Lease can set this. It can only delay the listed primaries, and not longer than DELAY.maxMs.
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
