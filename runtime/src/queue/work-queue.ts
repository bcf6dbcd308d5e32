// The work queue of a controller, and the dispatcher that starts a reconcile for what the queue hands out while a worker is free.
import type { ControllerActivity } from "../base/activity.js";
import type { ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { type Clock, PostponableTimer, turns, withDeadline } from "../base/wait.js";
import type { KnownPrimary, ReconcileRun } from "./controller.js";
import type { ReconcilePriority } from "./processor.js";
import { MAX_CONCURRENT_RECONCILES, type Schedule } from "./schedule-settings.js";

// While both priorities wait, one item in this many is taken from the background, so that edits do not starve resyncs and initial lists.
const BACKGROUND_SHARE = 5;
// A Fifo compacts its array after this many taken items.
const FEW = 32;
const MANY = 1_000;
// How long a reconcile may take to return after its signal was aborted. Then another reconcile may start in its place.
const GRACE_MS = 30_000;

/** An item of a work queue. */
export interface Queued {
  /** Groups take turns. It must not change. */
  readonly group: string;
  /** The priority with which it waits; set by the queue only. */
  waiting: ReconcilePriority | undefined;
}

/**
 * A deduplicating queue with two priorities that is fair between groups.
 *
 * Edits are taken before background items, which get one turn in five. Within a priority the groups take turns, so a group with many items delays the
 * items of another group by one turn only. Every operation takes constant time.
 */
export class WorkQueue<Item extends Queued> {
  readonly #queues = { edit: new FairQueue<Item>("edit"), background: new FairQueue<Item>("background") };
  /** Edits taken in a row while background items waited. */
  #editsInARow = 0;

  /** Adds an item. An item that is queued already keeps its place, unless its priority increases. */
  add(item: Item, priority: ReconcilePriority = "edit"): void {
    if (item.waiting === "edit" || item.waiting === priority) return;
    this.delete(item);
    item.waiting = priority;
    this.#queues[priority].push(item);
  }

  /** Takes the next item. */
  take(): Item | undefined {
    const { edit, background } = this.#queues;
    const isBackgroundsTurn = edit.size === 0 || this.#editsInARow >= BACKGROUND_SHARE - 1;
    const isBackground = background.size > 0 && isBackgroundsTurn;
    this.#editsInARow = background.size > 0 && !isBackground ? this.#editsInARow + 1 : 0;
    return isBackground ? background.shift() : edit.shift();
  }

  /** Removes an item. If it is added again soon, it may get its former place. */
  delete(item: Item): void {
    if (item.waiting !== undefined) this.#queues[item.waiting].size--;
    item.waiting = undefined;
  }

  get size(): number {
    return this.#queues.edit.size + this.#queues.background.size;
  }
}

/** The items of one priority. Deleted items stay in their line and are skipped by shift(). */
class FairQueue<Item extends Queued> {
  readonly #priority: ReconcilePriority;
  readonly #lines = new Map<string, Fifo<Item>>();
  /** The lines with items, the next one first. */
  readonly #turns = new Fifo<Fifo<Item>>();
  size = 0;

  constructor(priority: ReconcilePriority) {
    this.#priority = priority;
  }

  push(item: Item): void {
    // Empty lines are kept for the next batch, but not forever: namespaces come and go.
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

/** First in, first out, in constant time on average. */
class Fifo<Item> {
  #items: Item[] = [];
  /** The number of items at the start of the array that are taken. */
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
  /** All primaries of the controller. */
  readonly primaries: Iterable<KnownPrimary>;
  /** Starts the reconcile of a primary, unless the primary has to wait. */
  begin(primary: KnownPrimary): void;
}

/**
 * Takes primaries from the work queue while a worker is free (`maxConcurrentReconciles`), and aborts reconciles that take too long. A reconcile that
 * does not return after its abort loses its worker to other primaries.
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
  /** The number of reconciles in progress, including hung ones. A set of them would cost more than everything else here. */
  #running = 0;
  /** The number of reconciles that lost their worker. */
  #hung = 0;
  #submissions = 0;
  #isPaused = false;
  #isWaking = false;
  /** One timer for the timeouts of all reconciles, which are many and short. */
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

  /** Changes the limit of concurrent reconciles. Those in progress continue. */
  setMaxRunning(count = MAX_CONCURRENT_RECONCILES): void {
    this.#maxRunning = count;
    this.fill();
  }

  start(): void {
    this.isStarted = true;
    this.#wakeUp();
  }

  /** Starts no further reconcile until `resume`. */
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

  /** Waits for the reconciles in progress and aborts them at the deadline. Returns whether all of them ended before it. Do not submit primaries afterwards. */
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

  /** Resolves when the last reconcile has ended after a stop, also if that is after the deadline. Resolves at once without a stop. */
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
      // Thousands of reconciles that write nothing would starve watches, the lease and probes.
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

  // No reconcile starts within the call that delivers an event, so that a batch of events is queued as a whole.
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

  /** Returns the time until the next check of the reconcile. */
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

// The quarantine of primaries whose functions may have blocked the event loop. They are reconciled only while all controllers are idle, and one at a
// time, so that they delay no other primary and a function that blocks again is identified. While a controller is busy, they wait a minute longer at most.

/** A primary whose functions may have blocked the event loop. */
export interface Suspect {
  readonly controller: string;
  readonly primary: ObjectKey;
  /** How often since its last successful reconcile. */
  readonly stalls: number;
}

/** The dispatcher of one controller. */
interface SuspectQueue {
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
