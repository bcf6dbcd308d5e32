import { systemClock, type Clock } from "../base/clock.js";
import { findError, type RetryAfterError } from "../base/errors.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { createChildLogger, messageOf, type Logger } from "../base/logger.js";
import type { ResourceChange } from "../cluster/resource-cache.js";
import { WorkQueue } from "../queue/work-queue.js";
import type { ControllerDefinition } from "./controller-definition.js";
import { createPrimaryFilter, type PrimaryFilter, type Seen } from "./primary-filter.js";
import { PrimaryReconciler, type PrimaryDependencies } from "./primary-reconciler.js";
import { RateLimiter } from "./rate-limiter.js";
import type { ReconcileObserver } from "./reconcile-event.js";
import type { ReconcileScope } from "./reconcile-scope.js";
import { isLastAttempt, nextRetry, retryOptionsOf, type RetryState } from "./retry.js";
import { RunningTasks } from "./running-tasks.js";

/** What a controller works with; the caches are filled by somebody else. */
export interface ControllerDependencies extends PrimaryDependencies {
  readonly logger: Logger;
  readonly observer?: ReconcileObserver | undefined;
  readonly clock?: Clock | undefined;
}

// JOSDK's defaults.
const MAX_CONCURRENT_RECONCILES = 50;
// How long reconciles may keep the event loop to themselves.
const LONGEST_TURN_MS = 20;
const SHORT_WAIT_MS = 5_000;
const MAX_RECONCILIATION_INTERVAL_MS = 10 * 60 * 60 * 1000;

interface ScheduledRetry extends RetryState {
  readonly dueAt: number;
}

/** Decides when primaries are reconciled: one at a time for each of them, many at once, until each is as desired. */
export class Controller {
  readonly #definition: ControllerDefinition;
  readonly #dependencies: ControllerDependencies;
  readonly #clock: Clock;
  readonly #primary: PrimaryReconciler;
  readonly #queue: WorkQueue<ObjectKey>;
  readonly #rateLimiter: RateLimiter | undefined;
  readonly #retries = new Map<ObjectKey, ScheduledRetry>();
  readonly #seen = new Map<ObjectKey, Seen>();
  readonly #isRelevant: PrimaryFilter;
  readonly #running = new Set<Promise<void>>();
  readonly #abort = new AbortController();
  #isStarted = false;
  /** When the current turn of the event loop began to reconcile. */
  #turnStartedAt: number | undefined;
  #isYielding = false;

  constructor(definition: ControllerDefinition, dependencies: ControllerDependencies) {
    const { rateLimit } = definition;
    this.#definition = definition;
    this.#dependencies = dependencies;
    this.#clock = dependencies.clock ?? systemClock;
    this.#primary = new PrimaryReconciler(definition, dependencies);
    const lacksFinalizer = (primary: KubernetesObject) => this.#primary.lacksFinalizer(primary);
    this.#isRelevant = createPrimaryFilter({ ...definition, lacksFinalizer, logger: dependencies.logger });
    this.#queue = new WorkQueue({ clock: this.#clock, onReady: () => this.#fill() });
    this.#rateLimiter = rateLimit && new RateLimiter(rateLimit, () => this.#clock.now());
  }

  /** Starts reconciling; what was asked for before is done now. */
  start(): void {
    this.#isStarted = true;
    this.#fill();
  }

  /**
   * Starts no further reconcile and waits for those under way, for `deadlineMs` at most; then their signal is aborted and they are
   * left alone. Tells whether all of them finished.
   */
  async stop(deadlineMs: number): Promise<boolean> {
    this.#queue.close();
    const finished = Promise.all(this.#running).then(() => true);
    let cancel = () => {};
    const late = new Promise<false>((resolve) => (cancel = this.#clock.schedule(deadlineMs, () => resolve(false))));
    const isFinished = await Promise.race([finished, late]);
    cancel();
    this.#abort.abort(new Error("the operator stops"));
    return isFinished;
  }

  /** Asks for a reconcile. */
  enqueue(key: ObjectKey): void {
    this.#queue.add(key);
  }

  /** Takes a change of a primary. */
  onPrimaryChange(change: ResourceChange): void {
    const { kind, key } = change;
    if (kind !== "deleted") {
      if (this.#isRelevant(change, this.#seen.get(key))) this.#queue.add(key);
      return;
    }
    this.#forget(key);
    // The name may have been given to another object before this was told.
    if (this.#dependencies.primaries.has(key)) this.#queue.add(key);
  }

  /** Takes a change of something that belongs to these primaries. */
  onSecondaryChange(keys: Iterable<ObjectKey>): void {
    // Of a primary that is not known yet there will be an event of its own.
    for (const key of keys) if (this.#dependencies.primaries.has(key)) this.#queue.add(key);
  }

  #forget(key: ObjectKey): void {
    this.#queue.remove(key);
    this.#retries.delete(key);
    this.#seen.delete(key);
    this.#rateLimiter?.delete(key);
    const { workflow } = this.#definition;
    this.#dependencies.sources.forEach((source, index) => {
      if (workflow.dependents[index]!.activationCondition !== undefined) void source.deactivate(key);
    });
  }

  #fill(): void {
    const limit = this.#definition.maxConcurrentReconciles ?? MAX_CONCURRENT_RECONCILES;
    while (this.#isStarted && this.#running.size < limit) {
      if (!this.#mayGoOn()) return;
      const key = this.#queue.take();
      if (key === undefined) return;
      const run = this.#reconcile(key).finally(() => {
        this.#running.delete(run);
        this.#queue.done(key);
        this.#fill();
      });
      this.#running.add(run);
    }
  }

  // Reconciles that find nothing to write wait for nothing, and thousands of them would stop everything else: watches, the lease, probes.
  #mayGoOn(): boolean {
    if (this.#isYielding) return false;
    const now = performance.now();
    if (this.#turnStartedAt === undefined) {
      this.#turnStartedAt = now;
      setImmediate(() => (this.#turnStartedAt = undefined));
    }
    if (now - this.#turnStartedAt < LONGEST_TURN_MS) return true;
    this.#isYielding = true;
    setImmediate(() => {
      this.#isYielding = false;
      this.#turnStartedAt = undefined;
      this.#fill();
    });
    return false;
  }

  /** One reconcile; never rejects. */
  async #reconcile(key: ObjectKey): Promise<void> {
    const waitMs = this.#rateLimiter?.take(key) ?? 0;
    if (waitMs > 0) return this.#queue.add(key, waitMs);
    const entry = this.#dependencies.primaries.get(key);
    if (entry === undefined) return this.#forget(key);
    const { uid, generation, deletionTimestamp } = entry.object.metadata;
    this.#seen.set(key, { uid, generation, isDeleting: deletionTimestamp !== undefined });
    const startedAt = this.#clock.now();
    const logger = createChildLogger(this.#dependencies.logger, { controller: this.#definition.name, primary: key });
    const tasks = new RunningTasks(logger, this.#clock);
    const onAbort = () => tasks.close();
    this.#abort.signal.addEventListener("abort", onAbort, { once: true });
    const outcome = await this.#primary.run(this.#scopeOf(key, { entry, logger, tasks }));
    tasks.close();
    this.#abort.signal.removeEventListener("abort", onAbort);
    let failure: { error: unknown; retryAfterMs: number | undefined } | undefined;
    if (outcome.failure === undefined) {
      this.#retries.delete(key);
      this.#reschedule(key, outcome.rescheduleAfterMs);
    } else {
      const { error } = outcome.failure;
      failure = { error, retryAfterMs: this.#scheduleRetry(key, error, logger) };
    }
    const { kind, wroteStatus, workflow } = outcome;
    this.#dependencies.observer?.({
      controller: this.#definition.name,
      primary: key,
      kind,
      wroteStatus,
      durationMs: this.#clock.now() - startedAt,
      ...(workflow === undefined ? {} : { workflow }),
      ...(failure === undefined ? {} : { error: failure.error }),
      ...(failure?.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs }),
    });
  }

  #scopeOf(key: ObjectKey, rest: Pick<ReconcileScope, "entry" | "logger" | "tasks">): ReconcileScope {
    const state = this.#retries.get(key);
    const options = retryOptionsOf(this.#definition.retry);
    return {
      ...rest,
      key,
      retry: { attempt: state?.attempt ?? 0, isLastAttempt: isLastAttempt(options, state) },
      isPrimaryDeleted: false,
      isFinalStateUnknown: false,
      reasons: [],
      isNextReconcileImminent: () => this.#queue.isImminent(key),
      signal: this.#abort.signal,
    };
  }

  #reschedule(key: ObjectKey, rescheduleAfterMs: number | undefined): void {
    const { maxReconciliationIntervalMs = MAX_RECONCILIATION_INTERVAL_MS } = this.#definition;
    const delayMs = rescheduleAfterMs ?? (maxReconciliationIntervalMs > 0 ? maxReconciliationIntervalMs : undefined);
    if (delayMs !== undefined) this.#queue.add(key, delayMs);
  }

  // Changes that come during a long wait are reconciled at once; if that fails, it uses up no attempt and the wait goes on (JOSDK 5.4).
  #nextRetryIn(key: ObjectKey): number | undefined {
    const now = this.#clock.now();
    const state = this.#retries.get(key);
    if (state !== undefined && state.dueAt - now > SHORT_WAIT_MS) return state.dueAt - now;
    const next = nextRetry(retryOptionsOf(this.#definition.retry), state);
    if (next !== undefined) this.#retries.set(key, { ...next, dueAt: now + next.intervalMs });
    return next?.intervalMs;
  }

  #scheduleRetry(key: ObjectKey, error: unknown, logger: Logger): number | undefined {
    const message = messageOf(error);
    if (this.#abort.signal.aborted) return undefined;
    if (!this.#dependencies.primaries.has(key)) {
      logger.debug({}, `the primary went while it was reconciled: ${message}`);
      return undefined;
    }
    // A change came meanwhile: it is reconciled at once, and that is no retry.
    if (this.#queue.isImminent(key)) {
      logger.warn({}, `reconcile failed, and runs again for a new change: ${message}`);
      return 0;
    }
    const retryAfterMs = isTerminal(error)
      ? undefined
      : (findError<RetryAfterError>(error, "RetryAfterError")?.retryAfterMs ?? this.#nextRetryIn(key));
    if (retryAfterMs === undefined) {
      logger.error({}, `reconcile failed, and is not tried again before something changes: ${message}`);
      this.#reschedule(key, undefined);
      return undefined;
    }
    logger.warn({ retryAfterMs, attempt: this.#retries.get(key)?.attempt ?? 0 }, `reconcile failed: ${message}`);
    this.#queue.add(key, retryAfterMs);
    return retryAfterMs;
  }
}

// Trying again helps if any of several failures may go away.
function isTerminal(error: unknown): boolean {
  const parts: unknown[] = error instanceof AggregateError ? error.errors : [error];
  return parts.every((part) => findError(part, "TerminalError") !== undefined);
}
