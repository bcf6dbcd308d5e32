import type { ControllerActivity } from "../../base/activity.js";
import { PostponableTimer, turns, type Clock } from "../../base/clock.js";
import { withDeadline } from "../../base/promises.js";
import type { ReconcilePriority } from "../../base/reconcile-reason.js";
import type { KnownPrimary } from "../known-primary.js";
import type { ReconcileRun } from "../reconcile-run.js";
import type { SuspectQueue, Suspects } from "./suspects.js";
import { WorkQueue } from "./work-queue.js";

const MAX_CONCURRENT_RECONCILES = 50;
// How long a reconcile whose signal is aborted may take to end before its slot is given to others.
const GRACE_MS = 30_000;

interface DispatcherOptions {
  readonly clock: Clock;
  /** The name of the controller. */
  readonly controller: string;
  /** The primaries that are reconciled last. Default: none */
  readonly suspects: Suspects | undefined;
  readonly maxRunning: number | undefined;
  /** After how long the signal of a reconcile is aborted; 0 for never. */
  readonly timeoutMs: number;
  /** All primaries, some of which have a reconcile under way. */
  primaries(): Iterable<KnownPrimary>;
  /** Begins the reconcile of a primary, unless it turns out that it has to wait. */
  begin(primary: KnownPrimary): void;
}

/** The primaries whose turn comes, and the reconciles under way. Each of these has a slot until it ends, or goes on after its time is up. */
export class Dispatcher implements SuspectQueue {
  isStarted = false;
  /** Whether it was stopped, and reconciles that have not ended are given up. */
  isAborted = false;
  readonly #options: DispatcherOptions;
  readonly #queue = new WorkQueue<KnownPrimary>();
  #maxRunning: number;
  /** How many reconciles are under way, with those that have no slot any more. A list of them would cost more than all else here. */
  #running = 0;
  /** How many of the reconciles have no slot any more. */
  #hung = 0;
  #submissions = 0;
  #isPaused = false;
  #isWaking = false;
  /** When the reconciles are looked at that may take too long: one timer for all, as they are many and short. */
  readonly #checks: PostponableTimer;
  #onIdle = () => {};
  #idle: Promise<void> | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#maxRunning = options.maxRunning ?? MAX_CONCURRENT_RECONCILES;
    this.#checks = new PostponableTimer(options.clock, () => this.#checkAll());
    options.suspects?.join(this);
  }

  /** Changes how many reconciles may run at once; those under way go on. */
  setMaxRunning(count = MAX_CONCURRENT_RECONCILES): void {
    this.#maxRunning = count;
    this.#fill();
  }

  start(): void {
    this.isStarted = true;
    this.#wakeUp();
  }

  /** Begins no further reconcile until `resume`. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#wakeUp();
  }

  /** Puts a primary into the queue, in which it waits once. */
  submit(primary: KnownPrimary, priority: ReconcilePriority): void {
    if (primary.waiting === undefined) {
      primary.queuedAt = this.#options.clock.now();
      this.#submissions++;
    }
    this.#queue.add(primary, priority);
    this.#wakeUp();
  }

  withdraw(primary: KnownPrimary): void {
    this.#queue.delete(primary);
    this.#options.suspects?.withdraw(primary);
  }

  /** Takes note that a reconcile is under way. */
  add(): void {
    this.#running++;
    const { timeoutMs } = this.#options;
    if (!this.#checks.isSet && timeoutMs > 0) this.#checks.set(timeoutMs);
  }

  /** Takes note that a reconcile of a primary has ended. */
  delete(primary: KnownPrimary, run: ReconcileRun): void {
    run.tasks.close();
    this.#options.suspects?.ended(primary);
    this.#running--;
    if (run.endOfSlot === Infinity) this.#hung--;
    if (this.#usedSlots === 0) this.#checks.cancel();
    if (this.#running === 0) this.#onIdle();
    this.#fill();
  }

  /** Waits for the reconciles under way, and then aborts their signals; tells whether all of them ended in time. Nothing may be submitted any more. */
  async stop(deadlineMs: number): Promise<boolean> {
    this.#options.suspects?.leave(this);
    const idle = (this.#idle = new Promise<void>((resolve) => (this.#onIdle = resolve)));
    if (this.#running === 0) this.#onIdle();
    const deadline = { timeoutMs: deadlineMs, clock: this.#options.clock };
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

  /** Resolves when the last reconcile has ended after a stop, be it after the deadline. Resolves at once without a stop. */
  async whenIdle(): Promise<void> {
    await this.#idle;
  }

  activity(): ControllerActivity {
    const now = this.#options.clock.now();
    const waiting = this.#options.suspects?.waitingIn(this) ?? 0;
    const ages = this.runs.map(({ startedAt }) => now - startedAt);
    return {
      ...{ submissions: this.#submissions, queued: this.#queue.size + waiting, running: this.#running },
      ...{ maxRunning: this.#maxRunning, unfinishedMs: ages.reduce((sum, age) => sum + age, 0) },
      longestMs: Math.max(0, ...ages),
    };
  }

  get controller(): string {
    return this.#options.controller;
  }

  get isRunning(): boolean {
    return this.isStarted && !this.#isPaused;
  }

  get isIdle(): boolean {
    return this.#queue.size === 0 && this.#usedSlots === 0;
  }

  begin(primary: KnownPrimary): void {
    this.#options.begin(primary);
  }

  fill(): void {
    this.#fill();
  }

  /** The reconciles in progress. */
  get runs(): readonly ReconcileRun[] {
    return [...this.#options.primaries()].flatMap(({ run }) => run ?? []);
  }

  get #usedSlots(): number {
    return this.#running - this.#hung;
  }

  // No reconcile starts inside the call that brings an event, so a batch of events is taken as a whole.
  #wakeUp(pause = Promise.resolve()): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    void pause.then(() => {
      this.#isWaking = false;
      this.#fill();
    });
  }

  #fill(): void {
    const { suspects, controller } = this.#options;
    while (this.isRunning && !this.#isWaking && this.#usedSlots < this.#maxRunning) {
      // An empty queue needs no turn.
      if (this.#queue.size === 0) return suspects?.advance();
      if (suspects?.isReconciling === true) return;
      // Thousands of reconciles without a write never wait, and would starve watches, the lease and probes.
      const pause = turns.pause();
      if (pause !== undefined) return this.#wakeUp(pause);
      const primary = this.#queue.take();
      if (primary === undefined) continue;
      if (suspects?.has(controller, primary.key) === true) suspects.wait(this, primary);
      else this.#options.begin(primary);
    }
  }

  #checkAll(): void {
    const nextMs = Math.min(...this.runs.map((run) => this.#check(run)));
    if (this.#usedSlots > 0) this.#checks.set(Math.min(nextMs, this.#options.timeoutMs));
  }

  /** Returns after how long the reconcile is to be checked again. */
  #check(run: ReconcileRun): number {
    const { clock, timeoutMs } = this.#options;
    const leftMs = (run.endOfSlot ?? run.startedAt + timeoutMs) - clock.now();
    // A timer of Node may ring a part of a millisecond early.
    if (leftMs >= 1) return leftMs;
    if (run.endOfSlot !== undefined) return this.#giveUp(run);
    const seconds = Math.round(timeoutMs / 1000);
    run.endOfSlot = clock.now() + GRACE_MS;
    run.logger.warn({ seconds }, `the reconcile has taken ${seconds} s, the reconcileTimeoutMs; its signal is aborted`);
    run.abort(new Error(`the reconcile took longer than ${seconds} s, its reconcileTimeoutMs`));
    return GRACE_MS;
  }

  #giveUp(run: ReconcileRun): number {
    const message =
      "the reconcile goes on although its signal is aborted; other primaries take its place, " +
      "and this primary is not reconciled until it returns";
    run.logger.error({}, message);
    run.endOfSlot = Infinity;
    this.#hung++;
    this.#fill();
    return Infinity;
  }
}
