// Cleanup after primaries: before their deletion completes, which a finalizer delays, or afterwards without a finalizer (sweep).
import { findError } from "../base/errors.js";
import { type KubernetesObject, type ObjectKey, describeObject, keyOf, uidOf } from "../base/kubernetes-object.js";
import { deepFreeze } from "../base/lazy-object.js";
import { messageOf, withFields } from "../base/logger.js";
import { holdFinalizerOf } from "../base/primary-link.js";
import { RunningTasks } from "../base/user-calls.js";
import { Backoff, type Clock, KeyedTimers, Semaphore, systemClock } from "../base/wait.js";
import type { ReconcileScope } from "../queue/controller.js";
import type { CleanupContext } from "../workflow/dependent-reconciler.js";
import { ownFinalizersOn } from "./controller-definition.js";
import type { Attempt, ReconcileParts } from "./reconcile-context.js";
import type { DeleteControl } from "./reconciler.js";
import { LOOK_AGAIN_AFTER_MS, WorkflowRuns } from "./workflow-runs.js";

const SWEEP_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 60_000 };
const BUSY_MS = 100;
const MAX_CONCURRENT_SWEEPS = 5;

/** Cleans up after the primaries of one controller. */
export class Cleanups {
  readonly #parts: ReconcileParts;
  /** Timers for `cleanupTimeoutMs`, after which the finalizers are removed even though the cleanup has not succeeded. */
  readonly #deadlines = new KeyedTimers<ObjectKey>(systemClock);
  /** Primaries whose last cleanup was aborted. After their timeout they are released without another attempt. */
  readonly #aborted = new Set<ObjectKey>();
  /** UIDs of primaries whose finalizer was removed after their cleanup, until they are deleted. */
  readonly #cleanedUp = new Map<ObjectKey, string | undefined>();

  constructor(parts: ReconcileParts) {
    this.#parts = parts;
  }

  release(key: ObjectKey): void {
    this.#deadlines.delete(key);
    this.#aborted.delete(key);
    this.#cleanedUp.delete(key);
  }

  /** Cancels the timers of cleanup timeouts. */
  close(): void {
    this.#deadlines.close();
  }

  /** Cleans up after a terminating primary, and removes its finalizers when nothing is left. `call` runs the workflow and the user's function. */
  async run(
    attempt: Attempt,
    call: () => Promise<{ readonly runs: WorkflowRuns; readonly control: DeleteControl | undefined }>,
  ): Promise<void> {
    const { scope } = attempt;
    const { object } = scope.entry;
    // Includes finalizers that the controller no longer adds.
    const own = ownFinalizersOn(this.#parts.resolved.finalizer, object).join('", "');
    if (own === "") return this.#releaseHeld(scope);
    // Later attempts follow a timer, or the deletion of an object.
    const level = scope.reasons.some(({ kind }) => kind === "primary") ? "info" : "debug";
    scope.logger[level]({}, `primary is being deleted: cleaning up before removing finalizer "${own}"`);
    if (this.#aborted.delete(scope.key) && this.#remainingMsOf(object) <= 0)
      throw new Error("the last attempt was aborted, as it took too long");
    const { runs, control } = await call();
    attempt.outcome.rescheduleAfterMs = control?.rescheduleAfterMs;
    if (control?.removeFinalizer === false) return;
    runs.warnOfOrphans();
    // The deletion of an object causes an event. A failure causes none, so it has to be retried.
    const failed = runs.cleanups.find(({ error }) => error !== undefined);
    if (failed !== undefined) attempt.outcome.failure = { error: failed.error, isHandled: true };
    if (failed !== undefined || !runs.cleanups.every(({ isReady }) => isReady)) return;
    scope.signal.throwIfAborted();
    const lateMs = this.#parts.workflows.lateMsOf(object);
    if (lateMs > 0) {
      // If such a write creates an object, its event causes a reconcile, which deletes the object.
      const what =
        "delaying finalizer removal: an aborted write, or one of the previous process, may still create an object";
      scope.logger.info({ lateMs: Math.round(lateMs) }, what);
      attempt.outcome.rescheduleAfterMs = Math.ceil(Math.min(lateMs, attempt.outcome.rescheduleAfterMs ?? lateMs));
      return;
    }
    // After the deletion of the primary, nothing would release held objects.
    await this.#releaseHeld(scope);
    await this.#removeFinalizer(attempt);
  }

  /** Reports why the cleanup has not succeeded, and removes the finalizer after `cleanupTimeoutMs`. */
  async end(attempt: Attempt): Promise<void> {
    const { scope, outcome } = attempt;
    const { object } = scope.entry;
    const { failure } = outcome;
    const own = ownFinalizersOn(this.#parts.resolved.finalizer, object);
    if (attempt.isPaused || outcome.isFinalizerRemoved || own.length === 0) return;
    const finalizer = own.join('", "');
    const { onCleanupDue } = this.#parts.dependencies;
    const remainingMs = this.#remainingMsOf(object);
    if (scope.signal.aborted) {
      if (remainingMs < Infinity) this.#aborted.add(scope.key);
    } else if (remainingMs <= 0) return this.#giveUp(attempt);
    if (remainingMs < Infinity && onCleanupDue !== undefined)
      this.#deadlines.set(scope.key, Math.max(remainingMs, LOOK_AGAIN_AFTER_MS), () => onCleanupDue(scope.key));
    // A RetryAfterError is not reported: user code throws it on purpose.
    const isReported = failure !== undefined && findError(failure.error, "RetryAfterError") === undefined;
    if (!isReported || scope.signal.aborted) return;
    const note =
      `the cleanup failed and is tried again; finalizer "${finalizer}" stays until it succeeds: ${messageOf(failure.error)}. If it cannot, set ` +
      "cleanupTimeout, or remove the finalizer, which leaves what is not deleted yet";
    this.#recordCleanup(object, "CleanupFailed", note);
  }

  /** Reports whether the finalizer of a primary was removed after its cleanup. */
  isCleanedUp({ metadata }: KubernetesObject): boolean {
    return metadata.uid !== undefined && this.#cleanedUp.get(keyOf(metadata)) === metadata.uid;
  }

  /** Reports whether a primary was deleted, according to the API server. Rejects if the request fails. */
  async isGone({ metadata }: KubernetesObject, signal: AbortSignal): Promise<boolean> {
    const { target, sender } = this.#parts.write;
    return uidOf(await sender.read(target, metadata, signal)) !== metadata.uid;
  }

  /** Releases the objects held for a primary that was deleted without a cleanup, because another client removed its finalizer. Never rejects. */
  async releaseAfterDeletion(primary: KubernetesObject, context: CleanupContext): Promise<void> {
    if (!this.#parts.workflows.isAnyHeld(primary)) return;
    const { target, sender } = this.#parts.write;
    try {
      // The watch also reports an object as deleted when it no longer matches the selector.
      const now = await sender.read(target, primary.metadata, context.signal);
      if (uidOf(now) === primary.metadata.uid) return;
      await this.#parts.workflows.releaseHeld({ primary, context });
    } catch (error) {
      if (context.signal.aborted) return;
      const finalizer = holdFinalizerOf(this.#parts.resolved.finalizer.name, primary.metadata);
      const what = `objects that were held for ${describeObject(primary, primary.metadata)} keep finalizer "${finalizer}"`;
      context.logger.warn({ finalizer }, `${what}: ${messageOf(error)}; remove it`);
    }
  }

  /**
   * Deletes the objects of a primary after the API server has confirmed its deletion. Resolves with the time until the next attempt in milliseconds:
   * 0 if nothing is left, or if the primary still exists. Rejects if the primary cannot be read, which does not prove its deletion, or if an object
   * cannot be deleted.
   */
  async cleanUpDeleted(object: KubernetesObject, context: CleanupContext): Promise<number> {
    const { target, sender } = this.#parts.write;
    const { workflows, definition } = this.#parts;
    const now = await sender.read(target, object.metadata, context.signal);
    // The watch also reports an object as deleted when it no longer matches the selector.
    if (uidOf(now) === object.metadata.uid) return 0;
    const metadata = { deletionTimestamp: new Date().toISOString(), ...object.metadata };
    const primary = { ...object, metadata };
    deepFreeze(primary);
    const scope = scopeOfCleanup(object, { controller: definition.name, context, isPrimaryDeleted: true });
    try {
      const isOver = await new WorkflowRuns(workflows, primary, scope).cleanUpAll();
      // Stop watches that were only activated for the cleanup.
      if (!target.cache.has(scope.key)) workflows.release(scope.key);
      return isOver ? Math.ceil(workflows.lateMsOf(primary)) : LOOK_AGAIN_AFTER_MS;
    } finally {
      scope.tasks.close();
    }
  }

  /** Returns the time that is left of `cleanupTimeoutMs`; `Infinity` without one. */
  #remainingMsOf({ metadata: { deletionTimestamp } }: KubernetesObject): number {
    const { cleanupTimeoutMs = Infinity } = this.#parts.definition;
    return Date.parse(deletionTimestamp!) + cleanupTimeoutMs - Date.now();
  }

  async #giveUp(attempt: Attempt): Promise<void> {
    const { scope, outcome, runs } = attempt;
    const { object } = scope.entry;
    const finalizer = ownFinalizersOn(this.#parts.resolved.finalizer, object).join('", "');
    const left = [outcome.failure === undefined ? notGone(runs) : messageOf(outcome.failure.error)];
    try {
      await this.#releaseHeld(scope).catch((error: unknown) => void left.push(messageOf(error)));
      await this.#removeFinalizer(attempt);
    } catch (error) {
      outcome.failure ??= { error, isHandled: false };
      return scope.logger.warn({ finalizer }, `finalizer "${finalizer}" could not be removed: ${messageOf(error)}`);
    }
    delete outcome.failure;
    const seconds = this.#parts.definition.cleanupTimeoutMs! / 1_000;
    const note = `cleanup timed out after ${seconds} s (cleanupTimeout); removed finalizer "${finalizer}"; these may remain: ${left.join("; ")}`;
    scope.logger.warn({ finalizer }, note);
    this.#recordCleanup(object, "CleanupTimedOut", note);
  }

  #recordCleanup(about: KubernetesObject, reason: string, note: string): void {
    const { name: controller } = this.#parts.definition;
    this.#parts.dependencies.events?.record({ controller, about }, { type: "Warning", reason, action: "Delete", note });
  }

  async #removeFinalizer({ scope, outcome, write }: Attempt): Promise<void> {
    scope.signal.throwIfAborted();
    // The watch may report the deletion before the response arrives.
    this.#cleanedUp.set(scope.key, uidOf(scope.entry));
    const { object } = scope.entry;
    const finalizers = ownFinalizersOn(this.#parts.resolved.finalizer, object);
    try {
      await this.#parts.dependencies.resources.within(write.cause).removeFinalizers(object, finalizers);
    } catch (error) {
      this.#cleanedUp.delete(scope.key);
      throw error;
    }
    outcome.isFinalizerRemoved = true;
    scope.logger.info({}, `removed finalizer "${finalizers.join('", "')}"`);
  }

  #releaseHeld(scope: ReconcileScope): Promise<void> {
    return this.#parts.workflows.releaseHeld({ primary: scope.entry.object, context: scope });
  }
}

interface UnqueuedCleanup {
  readonly controller: string;
  readonly context: CleanupContext;
  readonly isPrimaryDeleted: boolean;
}

/**
 * Creates the scope of a cleanup that does not run from the queue. If the watch missed the deletion, only the name and the UID of the primary are
 * known.
 */
export function scopeOfCleanup(
  object: KubernetesObject,
  { controller, context, isPrimaryDeleted }: UnqueuedCleanup,
): ReconcileScope {
  const key = keyOf(object.metadata);
  const { signal, logger: parent } = context;
  const logger = withFields(parent, () => ({ controller, primary: key }));
  return {
    ...{ key, entry: { object }, signal, logger },
    tasks: new RunningTasks({ controller, primary: key, logger, clock: systemClock }),
    reasons: [{ kind: "primary", change: "deleted", isInitial: false }],
    retry: { attempt: 0, isLastAttempt: false },
    ...{ queuedMs: 0, wasPaused: false, isPrimaryDeleted },
    isFinalStateUnknown: object.metadata.resourceVersion === undefined,
    isNextReconcileImminent: () => false,
    onStep: () => {},
  };
}

function notGone(runs: WorkflowRuns | undefined): string {
  const names = runs?.cleanups.flatMap(({ notReady }) => notReady) ?? [];
  return names.length === 0 ? "cleanup() keeps the finalizer" : `waiting for deletion of ${names.join(", ")}`;
}

export interface SweeperOptions {
  readonly clock: Clock;
  /** Reports whether a reconcile of this object is in progress, which may still write. */
  isReconciling(primary: KubernetesObject): boolean;
  /** Deletes the objects of a primary. Resolves with the time until the next attempt in milliseconds; 0 if nothing is left. */
  cleanUp(primary: KubernetesObject, signal: AbortSignal): Promise<number>;
  onFailure(primary: KubernetesObject, error: unknown, retryAfterMs: number): void;
}

interface Job {
  primary: KubernetesObject;
  readonly backoff: Backoff;
  problem?: unknown;
}

/** Cleans up after deleted primaries of a controller without a finalizer (`cleanupPolicy: "sweep"`). */
export class Sweeper {
  readonly #options: SweeperOptions;
  /** By UID of the primary. */
  readonly #jobs = new Map<string, Job>();
  readonly #slots = new Semaphore(MAX_CONCURRENT_SWEEPS);
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #timers: KeyedTimers<string>;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#timers = new KeyedTimers(options.clock);
  }

  /** Cleans up after a primary that seems to be deleted, and repeats until nothing is left. */
  add(primary: KubernetesObject): void {
    const { uid } = primary.metadata;
    if (uid === undefined || this.#jobs.has(uid) || this.#stopping.signal.aborted) return;
    const job: Job = { primary, backoff: new Backoff(SWEEP_BACKOFF) };
    this.#jobs.set(uid, job);
    this.#start(uid, job);
  }

  /** Primaries whose last attempt failed, with the errors. */
  get failures(): readonly { readonly primary: KubernetesObject; readonly error: unknown }[] {
    return [...this.#jobs.values()].flatMap(({ primary, problem }) =>
      problem === undefined ? [] : [{ primary, error: problem }],
    );
  }

  /** Starts no further attempt. Resolves when the attempts in progress have ended. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error("the controller was stopped"));
    this.#timers.close();
    this.#jobs.clear();
    await Promise.all(this.#running);
  }

  #start(uid: string, job: Job): void {
    const running: Promise<void> = this.#attempt(uid, job).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  #startAfter(delayMs: number, uid: string, job: Job): void {
    this.#timers.set(uid, delayMs, () => this.#start(uid, job));
  }

  async #attempt(uid: string, job: Job): Promise<void> {
    const { isReconciling, cleanUp, onFailure } = this.#options;
    const { signal } = this.#stopping;
    if (isReconciling(job.primary)) return this.#startAfter(BUSY_MS, uid, job);
    try {
      await this.#slots.acquire(signal);
      try {
        const afterMs = await cleanUp(job.primary, signal);
        delete job.problem;
        job.backoff.reset();
        if (afterMs > 0) this.#startAfter(afterMs, uid, job);
        else this.#jobs.delete(uid);
      } finally {
        this.#slots.release();
      }
    } catch (error) {
      if (signal.aborted) return;
      const retryAfterMs = job.backoff.next();
      job.problem = error;
      onFailure(job.primary, error, retryAfterMs);
      this.#startAfter(retryAfterMs, uid, job);
    }
  }
}
