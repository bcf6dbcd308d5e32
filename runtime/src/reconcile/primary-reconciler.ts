import type { EventSink, PostponedWrite } from "../base/activity.js";
import { findError } from "../base/errors.js";
import {
  describeObject,
  isTerminating,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { describeReason } from "../base/reconcile-reason.js";
import { holdFinalizerOf, isPaused } from "../base/primary-link.js";
import type { ResourceView } from "../cache/resource-view.js";
import { deepFreeze } from "../cache/deep-freeze.js";
import { ownedBy, uidOf, type DecodedResource } from "../base/decoded-resource.js";
import type { HoldRun } from "../workflow/dependents/dependent-reconciler.js";
import type { PrimaryOutcome, ReconcileScope } from "../schedule/reconcile-scope.js";
import { KindOperations } from "../write/kind-operations.js";
import { hasFinalizer, type ResourceOperations } from "../write/resource-operations.js";
import type { Sender } from "../write/send/send.js";
import {
  finalizerNameOf,
  finalizerOf,
  isFinalizerReleased,
  keptConditionsOf,
  needsFinalizerAlways,
  ownFinalizersOn,
  type ControllerDefinition,
} from "./controller-definition.js";
import type { CleanupDeadlines } from "./cleanup-deadlines.js";
import { isRetried, logUnreported } from "./error-report.js";
import type { ExpectationRegistry } from "./expectations.js";
import { putFinalizer, writePrimary, type PrimaryWrite, type WantedPrimary } from "./primary-write.js";
import { contextFactoryOf } from "./reconcile-context.js";
import { checkControl, type DeleteControl, type ErrorControl, type UpdateControl } from "./reconciler.js";
import { OwnFields } from "./own-fields.js";
import { ReadObserver } from "./observed-primary.js";
import { inputReaderOf, type InputReader } from "./primary-inputs.js";
import type { ConditionTypes } from "./status/condition-types.js";
import { withOwnConditions, writeConditions, type ReconcileFacts } from "./status/status-conditions.js";
import { ControllerWorkflows, LOOK_AGAIN_AFTER_MS, WorkflowRuns, type WorkflowDependencies } from "./workflow-runs.js";

/** What reconciling a primary needs. */
export interface PrimaryDependencies extends WorkflowDependencies {
  readonly primaries: ResourceView;
  /** Writes as the field manager of the controller. */
  readonly sender: Sender;
  /** Writes the conditions of the status, as the field manager that is for them; absent if the controller keeps none. */
  readonly conditionsSender?: Sender;
  /** The field managers that wrote conditions under former names of the controller. */
  readonly formerConditionsSenders?: readonly Sender[];
  /** What reconciles write with besides their dependents. */
  readonly resources: ResourceOperations;
  /** What is expected of primaries. */
  readonly expectations: ExpectationRegistry;
  /** Returns the writes of loops for a primary whose pause is not over. */
  loopsOf?(primary: KubernetesObject): readonly PostponedWrite[];
  /** Reconciles primaries when the time for their cleanup is over. */
  readonly cleanupDeadlines?: CleanupDeadlines;
  /** Records Events; without it they are lost. */
  readonly events?: EventSink;
  /** Called when somebody has paused or resumed a primary. */
  onPaused?(primary: KubernetesObject, isPaused: boolean): void;
  /** Returns the number of the term in which the operator leads; absent without leader election. */
  readonly fencingToken?: (() => number | undefined) | undefined;
}

/** One reconcile, and what has become of it so far. */
interface Attempt {
  readonly scope: ReconcileScope;
  readonly outcome: { -readonly [Part in keyof PrimaryOutcome]: PrimaryOutcome[Part] };
  /** What was thrown, also where it is not retried. */
  error?: unknown;
  /** What was not written of the primary for now. */
  postponed: readonly PostponedWrite[];
  /** Whether somebody has paused the primary, so that nothing is done for it. */
  readonly isPaused: boolean;
  /** Absent before the functions of the user are called. */
  runs?: WorkflowRuns;
  /** The primary as the function of the reconciler was called with it. */
  given?: KubernetesObject;
  /** Whether the primary turned out to be gone, or to be another one. */
  isGone?: boolean;
}

/**
 * Does what a reconcile of one primary consists of: finalizer, context, workflow, the user's reconciler, what that wants written, and
 * the report of an error. It knows nothing of when (JOSDK's ReconciliationDispatcher).
 */
export class PrimaryReconciler {
  readonly workflows: ControllerWorkflows;
  readonly #definition: ControllerDefinition;
  readonly #dependencies: PrimaryDependencies;
  readonly #write: Omit<PrimaryWrite, "cause">;
  readonly #conditionTypes: ConditionTypes;
  readonly #ownFields: OwnFields;
  readonly #readInputs: InputReader | undefined;
  readonly #reads: ReadObserver;
  /** The primaries whose last cleanup was aborted: they are released without another attempt when their time is over. */
  readonly #abortedCleanups = new Set<ObjectKey>();

  #isErrorStatusHinted = false;

  /** The uids of the primaries whose finalizer was removed after their cleanup, until they are gone. */
  readonly #cleanedUp = new Map<ObjectKey, string | undefined>();

  constructor(definition: ControllerDefinition, dependencies: PrimaryDependencies) {
    const { workflow, serverSideApply = true } = definition;
    const { primaries, sender, conditionsSender } = dependencies;
    this.#definition = definition;
    this.#dependencies = dependencies;
    const conditionTypes = (this.#conditionTypes = keptConditionsOf(definition));
    const target = { definition: workflow.primary, cache: primaries };
    this.#ownFields = new OwnFields(target, { sender, conditionsSender, serverSideApply, conditionTypes });
    this.#reads = new ReadObserver(definition);
    this.#readInputs = inputReaderOf(definition.inputs, (entry) => sender.matcher.appliedMetadata(entry));
    this.#write = { target, sender, serverSideApply, finalizer: finalizerOf(definition) };
    this.workflows = new ControllerWorkflows(definition, dependencies, contextFactoryOf(definition, dependencies));
  }

  /** Tells whether somebody took away what the controller itself writes to a primary: its finalizer, status or metadata. */
  isUndone(entry: DecodedResource): boolean {
    const isGoing = entry.object.metadata.deletionTimestamp !== undefined;
    const isFinalizerLost = !isGoing && this.#lacksFinalizer(entry.object) && this.#needsFinalizer(entry.object);
    return isFinalizerLost || this.#ownFields.isOverwritten(entry);
  }

  /** Returns a text that changes with the inputs of the controller; undefined if it has none. */
  inputsOf(entry: DecodedResource): string | undefined {
    return this.#readInputs?.(entry);
  }

  /** Tells whether a primary needs the finalizer, by what is known of it before its workflow runs. */
  #needsFinalizer(primary: KubernetesObject): boolean {
    return needsFinalizerAlways(this.#definition) || this.workflows.hasAnyToCleanUp(primary);
  }

  #lacksFinalizer(primary: KubernetesObject): boolean {
    const { finalizer } = this.#write;
    return finalizer !== undefined && !hasFinalizer(primary, finalizer);
  }

  /** Makes everything about a primary as desired, or lets it go if it is being deleted; never rejects. */
  run(scope: ReconcileScope): Promise<PrimaryOutcome> {
    const { tracing } = this.#dependencies;
    if (tracing === undefined) return this.#run(scope);
    const { key: primary, queuedMs, retry, reasons } = scope;
    const { name: controller } = this.#definition;
    const facts = { controller, primary, attempt: retry.attempt, queuedMs, reasons: reasons.map(describeReason) };
    return tracing.reconcile(facts, () => this.#run(scope));
  }

  async #run(scope: ReconcileScope): Promise<PrimaryOutcome> {
    const { onAllEvents = false } = this.#definition;
    const isCleanup = !onAllEvents && scope.entry.object.metadata.deletionTimestamp !== undefined;
    const kind = isCleanup ? "cleanup" : "reconcile";
    const { object } = scope.entry;
    const attempt: Attempt = {
      scope,
      outcome: { kind, isFinalizerRemoved: false, wroteStatus: false, wroteResource: false },
      postponed: [],
      isPaused: !scope.isPrimaryDeleted && isPaused(object.metadata),
    };
    if (!scope.isPrimaryDeleted) this.#ownFields.begin(scope.entry);
    if (attempt.isPaused !== scope.wasPaused) this.#dependencies.onPaused?.(object, attempt.isPaused);
    try {
      if (scope.isPrimaryDeleted && !onAllEvents)
        throw new Error(`${scope.key} is gone, and only a controller with onAllEvents is called for that`);
      if (!attempt.isPaused) await (isCleanup ? this.#cleanup(attempt) : this.#reconcile(attempt));
    } catch (error) {
      attempt.error = error;
      attempt.outcome.failure = { error, isHandled: false };
    }
    if (isCleanup) await this.#endCleanup(attempt);
    await this.#keepConditions(attempt);
    this.#ownFields.end(object);
    // A write that ran out of time may still have its effect: what comes next would be made beside it.
    const { lingering = [], result } = attempt.runs ?? {};
    if (lingering.length > 0)
      await scope.tasks.track("a write that ran out of time", () => Promise.allSettled(lingering));
    if (result !== undefined) attempt.outcome.workflow = result;
    return attempt.outcome;
  }

  /** Releases what is held for a primary that is gone without a cleanup, because a person removed its finalizer; never rejects. */
  async releaseAfterDeletion(primary: KubernetesObject, context: HoldRun["context"]): Promise<void> {
    if (!this.workflows.isAnyHeld({ primary })) return;
    const { target, sender } = this.#write;
    try {
      // The watch also reports an object as deleted that is no longer selected.
      const now = await sender.read(target, primary.metadata, context.signal);
      if (uidOf(now) === primary.metadata.uid) return;
      await this.workflows.releaseHeld({ primary, context });
    } catch (error) {
      if (context.signal.aborted) return;
      const finalizer = holdFinalizerOf(finalizerNameOf(this.#definition), primary.metadata);
      const what = `objects that were held for ${describeObject(primary, primary.metadata)} keep finalizer "${finalizer}"`;
      context.logger.warn({ finalizer }, `${what}: ${messageOf(error)}; remove it`);
    }
  }

  /**
   * Deletes what is left of a primary that seems to be gone, once the API server confirms that. Resolves with after how long that has to be tried
   * again, 0 if nothing is left, or the primary is there. Rejects if the primary cannot be read, which proves nothing, or a deletion fails.
   */
  async cleanUpDeleted(scope: ReconcileScope): Promise<number> {
    const { target, sender } = this.#write;
    const { object } = scope.entry;
    const now = await sender.read(target, object.metadata, scope.signal);
    // The watch also reports an object as deleted that is no longer selected.
    if (uidOf(now) === object.metadata.uid) return 0;
    const metadata = { deletionTimestamp: new Date().toISOString(), ...object.metadata };
    const primary = { ...object, metadata };
    deepFreeze(primary);
    const isOver = await new WorkflowRuns(this.workflows, primary, scope).cleanUpAll();
    // What is activated for the cleanup alone is watched no more.
    if (!target.cache.has(scope.key)) this.workflows.release(scope.key);
    const lateMs = this.workflows.lateMsOf(primary);
    return isOver ? Math.ceil(lateMs) : LOOK_AGAIN_AFTER_MS;
  }

  /** Forgets what is kept for a primary that is gone. */
  release(key: ObjectKey): void {
    this.workflows.release(key);
    this.#ownFields.release(key);
    this.#dependencies.cleanupDeadlines?.delete(key);
    this.#abortedCleanups.delete(key);
    this.#cleanedUp.delete(key);
  }

  /** Tells whether the finalizer of a primary was removed after its cleanup. */
  isCleanedUp({ metadata }: KubernetesObject): boolean {
    return metadata.uid !== undefined && this.#cleanedUp.get(keyOf(metadata)) === metadata.uid;
  }

  /** Tells whether the API server confirms that a primary is gone. Rejects if it cannot be read. */
  async isGone({ metadata }: KubernetesObject, signal: AbortSignal): Promise<boolean> {
    const { target, sender } = this.#write;
    return uidOf(await sender.read(target, metadata, signal)) !== metadata.uid;
  }

  /**
   * Cleans up a primary that is being deleted, and that is not selected. Resolves with after how long that has to be tried again, 0 if it is gone, or
   * not for this controller. `scopeOf` makes the scope of the cleanup.
   */
  async cleanUpUnselected(
    { metadata }: KubernetesObject,
    signal: AbortSignal,
    scopeOf: (entry: DecodedResource) => ReconcileScope,
  ): Promise<number> {
    const { target, sender } = this.#write;
    const entry = await sender.read(target, metadata, signal);
    if (entry === undefined || uidOf(entry) !== metadata.uid || !isTerminating(entry.object)) return 0;
    const key = keyOf(metadata);
    if (ownFinalizersOn(this.#definition, entry.object).length === 0 || target.cache.has(key)) return 0;
    const { failure, isFinalizerRemoved, rescheduleAfterMs } = await this.run(scopeOf(entry));
    if (!target.cache.has(key)) this.release(key);
    if (failure !== undefined) throw failure.error;
    return isFinalizerRemoved ? 0 : (rescheduleAfterMs ?? LOOK_AGAIN_AFTER_MS);
  }

  async #reconcile(attempt: Attempt): Promise<void> {
    const { scope } = attempt;
    const { entry } = scope;
    const write = this.#writeIn(scope);
    const postponed = write.sender.postponementOfEdits(write.target, write.cause);
    if (postponed !== undefined) return void (attempt.postponed = [postponed]);
    const isUnmarked = this.#lacksFinalizer(entry.object);
    const isNeeded = isUnmarked && this.#needsFinalizer(entry.object);
    const isMade = isNeeded && this.workflows.hasAnyToCleanUp(entry.object);
    if (isUnmarked && !isMade) this.#dependencies.lateWrites.noteNew(entry.object);
    const primary = isNeeded ? await this.#putFinalizer(attempt) : entry.object;
    // The primary is gone, or has become another one: there will be an event.
    if (primary === undefined) return;
    const runs = this.#prepare(primary, attempt);
    try {
      const control = await this.#call<UpdateControl<object, object>>("reconcile", runs, attempt);
      if (this.#definition.reconciler !== undefined) {
        const { resource, status, rescheduleAfterMs } = control ?? {};
        scope.signal.throwIfAborted();
        await this.#writePrimary({ primary: attempt.given ?? primary, resource, status }, attempt);
        attempt.outcome.rescheduleAfterMs = rescheduleAfterMs;
      }
      await this.#releaseFinalizers(runs, attempt);
    } catch (error) {
      // What was given up may not write any more: somebody else may be in charge by now.
      if (scope.signal.aborted) throw error;
      if (attempt.isGone === true) return;
      attempt.error = error;
      const control = await this.#report(error, runs, attempt);
      if (isRetried(control)) attempt.outcome.failure = { error, isHandled: control !== undefined };
      else attempt.outcome.rescheduleAfterMs = control?.rescheduleAfterMs;
    }
  }

  #putFinalizer({ scope }: Attempt): Promise<KubernetesObject | undefined> {
    const write = this.#writeIn(scope);
    const latest = this.#dependencies.primaries.get(scope.key);
    const entry = latest !== undefined && uidOf(latest) === uidOf(scope.entry) ? latest : scope.entry;
    return putFinalizer(write, this.#dependencies.resources.within(write.cause), entry);
  }

  /** Returns what puts the finalizer on the primary once, before the first object is written that needs it. */
  #finalizerGuard(primary: KubernetesObject, attempt: Attempt): (() => Promise<KubernetesObject>) | undefined {
    if (this.#write.finalizer === undefined || isTerminating(primary)) return undefined;
    if (!this.#lacksFinalizer(primary)) return () => Promise.resolve(primary);
    let putting: Promise<KubernetesObject> | undefined;
    const put = async () => {
      const written = await this.#putFinalizer(attempt);
      if (written === undefined) {
        attempt.isGone = true;
        throw new Error(`${describeObject(primary, primary.metadata)} is being deleted, or is gone`);
      }
      deepFreeze(written);
      return written;
    };
    return () =>
      (putting ??= put().catch((error: unknown) => {
        putting = undefined;
        throw error;
      }));
  }

  /** Removes finalizers from a primary that lives, once nothing needs them: else its deletion would wait for an operator that is away. */
  async #releaseFinalizers(runs: WorkflowRuns, attempt: Attempt): Promise<void> {
    const { scope } = attempt;
    const { formerFinalizers = [] } = this.#definition;
    const primary = this.#dependencies.primaries.get(scope.key)?.object;
    if (primary === undefined || isTerminating(primary) || primary.metadata.uid !== uidOf(scope.entry)) return;
    // What is not ready may not be protected by the finalizer of the controller yet.
    const former = runs.result?.isReady === false ? [] : formerFinalizers.filter((each) => hasFinalizer(primary, each));
    const own = (await this.#isReleased(primary, runs, attempt)) ? [finalizerNameOf(this.#definition)] : [];
    if (former.length + own.length === 0) return;
    scope.signal.throwIfAborted();
    const { cause } = this.#writeIn(scope);
    await this.#dependencies.resources.within(cause).removeFinalizers(primary, [...former, ...own]);
  }

  /** Tells whether a primary that lives has the finalizer, and nothing needs it. */
  async #isReleased(primary: KubernetesObject, runs: WorkflowRuns, { outcome }: Attempt): Promise<boolean> {
    if (!isFinalizerReleased(this.#definition) || !hasFinalizer(primary, finalizerNameOf(this.#definition)))
      return false;
    const waitMs = this.#definition.cleanupPolicy === "sweep" ? 0 : await runs.releaseAfterMs();
    if (waitMs !== undefined && waitMs > 0)
      outcome.rescheduleAfterMs = Math.ceil(Math.min(waitMs, outcome.rescheduleAfterMs ?? waitMs));
    return waitMs === 0;
  }

  async #cleanup(attempt: Attempt): Promise<void> {
    const { scope } = attempt;
    const { object } = scope.entry;
    // It may have one that the controller does not put there any more.
    const own = ownFinalizersOn(this.#definition, object).join('", "');
    if (own === "") return this.#releaseHeld(scope);
    // Further attempts follow a timer, or an object that went.
    const level = scope.reasons.some(({ kind }) => kind === "primary") ? "info" : "debug";
    scope.logger[level]({}, `the primary is being deleted: cleans up before finalizer "${own}" goes`);
    if (this.#abortedCleanups.delete(scope.key) && this.#remainingMsOf(object) <= 0)
      throw new Error("the last attempt was aborted, as it took too long");
    const runs = this.#prepare(object, attempt);
    const control = await this.#call<DeleteControl>("cleanup", runs, attempt);
    attempt.outcome.rescheduleAfterMs = control?.rescheduleAfterMs;
    if (control?.removeFinalizer === false) return;
    runs.warnOfOrphans();
    // An object that is not gone yet brings an event when it goes. A failure brings none.
    const failed = runs.cleanups.find(({ error }) => error !== undefined);
    if (failed !== undefined) attempt.outcome.failure = { error: failed.error, isHandled: true };
    if (failed !== undefined || !runs.cleanups.every(({ isReady }) => isReady)) return;
    scope.signal.throwIfAborted();
    const lateMs = this.workflows.lateMsOf(object);
    if (lateMs > 0) {
      // What such a write creates brings an event, and is deleted then.
      const what =
        "the finalizer stays for a moment: a write that was given up, or one of the process before, may still create an object";
      scope.logger.info({ lateMs: Math.round(lateMs) }, what);
      attempt.outcome.rescheduleAfterMs = Math.ceil(Math.min(lateMs, attempt.outcome.rescheduleAfterMs ?? lateMs));
      return;
    }
    // Before the primary is gone: nothing would release them afterwards.
    await this.#releaseHeld(scope);
    await this.#removeFinalizer(attempt);
  }

  // What keeps a primary is reported where people look for it; it is released only after the time that the user set for that.
  async #endCleanup(attempt: Attempt): Promise<void> {
    const { scope, outcome } = attempt;
    const { object } = scope.entry;
    const { failure } = outcome;
    const own = ownFinalizersOn(this.#definition, object);
    if (attempt.isPaused || outcome.isFinalizerRemoved || own.length === 0) return;
    const finalizer = own.join('", "');
    const remainingMs = this.#remainingMsOf(object);
    if (scope.signal.aborted) {
      if (remainingMs < Infinity) this.#abortedCleanups.add(scope.key);
    } else if (remainingMs <= 0) return this.#giveUpCleanup(attempt);
    if (remainingMs < Infinity)
      this.#dependencies.cleanupDeadlines?.set(scope.key, Math.max(remainingMs, LOOK_AGAIN_AFTER_MS));
    // An error that says when to try again is no end.
    const isReported = failure !== undefined && findError(failure.error, "RetryAfterError") === undefined;
    if (!isReported || scope.signal.aborted) return;
    const note =
      `the cleanup failed and is tried again; finalizer "${finalizer}" stays until it succeeds: ${messageOf(failure.error)}. If it cannot, set ` +
      "cleanupTimeout, or remove the finalizer, which leaves what is not deleted yet";
    this.#recordCleanup(object, "CleanupFailed", note);
  }

  /** Returns how long the finalizer of a primary still waits for its cleanup. */
  #remainingMsOf({ metadata: { deletionTimestamp } }: KubernetesObject): number {
    const { cleanupTimeoutMs = Infinity } = this.#definition;
    return Date.parse(deletionTimestamp!) + cleanupTimeoutMs - Date.now();
  }

  async #giveUpCleanup(attempt: Attempt): Promise<void> {
    const { scope, outcome, runs } = attempt;
    const { object } = scope.entry;
    const finalizer = ownFinalizersOn(this.#definition, object).join('", "');
    const left = [outcome.failure === undefined ? notGone(runs) : messageOf(outcome.failure.error)];
    try {
      await this.#releaseHeld(scope).catch((error: unknown) => void left.push(messageOf(error)));
      await this.#removeFinalizer(attempt);
    } catch (error) {
      outcome.failure ??= { error, isHandled: false };
      return scope.logger.warn({ finalizer }, `finalizer "${finalizer}" could not be removed: ${messageOf(error)}`);
    }
    delete outcome.failure;
    const seconds = this.#definition.cleanupTimeoutMs! / 1_000;
    const note = `the cleanup did not end within its cleanupTimeout of ${seconds} s; removed finalizer "${finalizer}", although this may be left: ${left.join("; ")}`;
    scope.logger.warn({ finalizer }, note);
    this.#recordCleanup(object, "CleanupTimedOut", note);
  }

  #recordCleanup(about: KubernetesObject, reason: string, note: string): void {
    const { name: controller } = this.#definition;
    this.#dependencies.events?.record({ controller, about }, { type: "Warning", reason, action: "Delete", note });
  }

  async #removeFinalizer({ scope, outcome }: Attempt): Promise<void> {
    scope.signal.throwIfAborted();
    // Before the answer: the event of the deletion may come first.
    this.#cleanedUp.set(scope.key, uidOf(scope.entry));
    const { object } = scope.entry;
    const finalizers = ownFinalizersOn(this.#definition, object);
    try {
      await this.#dependencies.resources.within(this.#writeIn(scope).cause).removeFinalizers(object, finalizers);
    } catch (error) {
      this.#cleanedUp.delete(scope.key);
      throw error;
    }
    outcome.isFinalizerRemoved = true;
    scope.logger.info({}, `removed finalizer "${finalizers.join('", "')}"`);
  }

  #releaseHeld({ entry, signal, logger }: ReconcileScope): Promise<void> {
    return this.workflows.releaseHeld({ primary: entry.object, context: { signal, logger } });
  }

  async #keepConditions(attempt: Attempt): Promise<void> {
    const { conditionsSender: sender } = this.#dependencies;
    const { scope, outcome } = attempt;
    const { object } = scope.entry;
    const isOnlyOwn = ownFinalizersOn(this.#definition, object).length === object.metadata.finalizers?.length;
    const wasLastFinalizer = outcome.isFinalizerRemoved && isOnlyOwn;
    if (sender === undefined || scope.signal.aborted || scope.isPrimaryDeleted || wasLastFinalizer) return;
    // What is not selected does not belong into the cache.
    if (!this.#dependencies.primaries.has(scope.key)) return;
    try {
      const facts = this.#factsOf(attempt);
      const wroteStatus = await writeConditions({ ...this.#writeIn(scope), sender }, scope.entry.object, facts);
      if (wroteStatus) outcome.wroteStatus = true;
      await this.#removeFormerConditions(scope);
    } catch (error) {
      if (outcome.failure === undefined) outcome.failure = { error, isHandled: false };
      else scope.logger.warn({}, `the conditions of the status could not be written: ${messageOf(error)}`);
    }
  }

  #factsOf({ scope, outcome, error, postponed, isPaused, runs }: Attempt): ReconcileFacts {
    const isCleanup = outcome.kind === "cleanup";
    // A loop of the conditions themselves would be told by what is undone.
    const isTold = ({ paths }: PostponedWrite) =>
      paths.length === 0 || !paths.every((path) => path.startsWith("status.conditions"));
    const loops = [...postponed, ...(this.#dependencies.loopsOf?.(scope.entry.object) ?? [])].filter(isTold);
    const own = { types: this.#conditionTypes, hasDependents: this.#definition.workflow.dependents.length > 0 };
    return { workflow: runs?.result, error, isCleanup, postponed: loops, isPaused, ...own };
  }

  // Those of today are applied by now, so that only what is over is owned by the former field manager alone.
  async #removeFormerConditions(scope: ReconcileScope): Promise<void> {
    const { target, cause } = this.#writeIn(scope);
    const { name, namespace } = scope.entry.object.metadata;
    for (const sender of this.#dependencies.formerConditionsSenders ?? []) {
      const entry = target.cache.get(scope.key);
      if (entry === undefined || ownedBy(entry, sender.fieldManager, "status") === undefined) continue;
      const operations = new KindOperations(target, { sender, cause });
      await operations.applyStatus({ metadata: { name, namespace }, status: {} } as never, { mode: "forceFilter" });
    }
  }

  /** Runs the workflow, unless the reconciler does that, and then the function of the reconciler; returns what that wants. */
  async #call<Control extends object>(
    kind: "reconcile" | "cleanup",
    runs: WorkflowRuns,
    attempt: Attempt,
  ): Promise<Control | undefined> {
    const { tasks, signal } = attempt.scope;
    const { args } = runs;
    const { reconciler, workflow: definition } = this.#definition;
    const { secondaries } = this.#dependencies;
    await tasks.track("an event source", async () => {
      await secondaries.activate(args);
      await secondaries.load(args.primary, signal);
    });
    if (reconciler?.initContext !== undefined)
      await tasks.track("initContext() of the reconciler", () => reconciler.initContext?.(args as never));
    const hasFunction = reconciler?.[kind] !== undefined;
    const isInvoked = definition.invocation === "explicit" && hasFunction;
    const workflow = isInvoked ? undefined : await runs.run(kind);
    // Otherwise the function sees the errors of dependents in the result.
    if (workflow?.error !== undefined && !(definition.exceptions === "result" && hasFunction)) {
      if (hasFunction && kind === "reconcile") this.#hintAtErrorStatus(attempt);
      throw workflow.error;
    }
    const what = kind === "cleanup" ? "the cleanup of the reconciler" : "the reconciler";
    attempt.given = this.#reads.originalOf(runs.args.primary);
    const returned = tasks.track(what, () => reconciler?.[kind]?.({ workflow, ...runs.args } as never));
    return checkControl<Control>(kind, await runs.settleAfter(returned));
  }

  // Said once: a status that only reconcile() returns keeps what the last success wrote.
  #hintAtErrorStatus({ scope: { logger, signal } }: Attempt): void {
    const hasErrorStatus = this.#definition.reconciler?.updateErrorStatus !== undefined;
    if (hasErrorStatus || this.#isErrorStatusHinted || signal.aborted) return;
    this.#isErrorStatusHinted = true;
    const what = "reconcile() is not called when the workflow fails, so the status stays as it is";
    logger.info({}, `${what}; add updateErrorStatus() to the reconciler to write it after failures`);
  }

  /** Lets the reconciler report an error, and writes the status that it returns; never throws. Returns its control. */
  async #report(error: unknown, runs: WorkflowRuns, attempt: Attempt): Promise<ErrorControl<object> | undefined> {
    const { reconciler } = this.#definition;
    const { scope } = attempt;
    if (reconciler?.updateErrorStatus === undefined) return undefined;
    const { args, result: workflow } = runs;
    const facts = { ...args, error, ...(workflow !== undefined && { workflow }) };
    let control: ErrorControl<object> | undefined;
    try {
      const returned = await scope.tasks.track("updateErrorStatus() of the reconciler", () =>
        reconciler.updateErrorStatus?.(facts as never),
      );
      control = checkControl<ErrorControl<object>>("updateErrorStatus", returned);
      const { status } = control ?? {};
      if (status !== undefined)
        await this.#writePrimary({ primary: this.#reads.originalOf(args.primary), status }, attempt);
    } catch (problem) {
      logUnreported(problem, scope, isRetried(control) && findError(error, "TerminalError") === undefined);
    }
    return control;
  }

  #writePrimary({ status: stated, ...wanted }: WantedPrimary, attempt: Attempt): Promise<void> {
    const lacksConditions = !this.#write.serverSideApply && this.#dependencies.conditionsSender !== undefined;
    const status =
      lacksConditions && stated ? withOwnConditions(stated, wanted.primary, this.#factsOf(attempt)) : stated;
    return writePrimary(this.#writeIn(attempt.scope), { ...wanted, status }, ({ postponed, ...written }) => {
      if (postponed !== undefined) attempt.postponed = [...attempt.postponed, postponed];
      Object.assign(attempt.outcome, written);
    });
  }

  #writeIn({ signal, logger, entry: { object: primary }, reasons }: ReconcileScope) {
    const followsEvent = reasons.some((reason) => reason.kind === "secondary" && reason.isTimer !== true);
    const onWritten = this.#ownFields.note.bind(this.#ownFields, primary);
    return { cause: { signal, logger, primary, onWritten, followsEvent }, ...this.#write };
  }

  #prepare(primary: KubernetesObject, attempt: Attempt): WorkflowRuns {
    const { scope } = attempt;
    // An answer to what was just written is the same object that the cache has, as yet unfrozen.
    deepFreeze(primary);
    const guard = this.#finalizerGuard(primary, attempt);
    const given = this.#reads.observe(primary, scope);
    // The primary with its finalizer is what functions get from then on.
    const put = guard && (async () => this.#reads.observe(await guard(), scope));
    return (attempt.runs = new WorkflowRuns(this.workflows, given, scope, put));
  }
}

// Names what a cleanup without errors waits for.
function notGone(runs: WorkflowRuns | undefined): string {
  const names = runs?.cleanups.flatMap(({ notReady }) => notReady) ?? [];
  return names.length === 0 ? "cleanup() keeps the finalizer" : `not gone yet: ${names.join(", ")}`;
}
