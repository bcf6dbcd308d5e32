import type { PostponedWrite, WriteCause } from "../write/send/postponed-write.js";
import type { Clock } from "../base/clock.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import type { ApiClient } from "../client/api-client.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { deepFreeze } from "../decode/deep-freeze.js";
import type { ResourceView } from "../cache/resource-view.js";
import { type SecondarySources } from "../sources/secondary-sources.js";
import type { Context, ResourceOperations } from "../workflow/definition/context.js";
import type { DependentDriver } from "../workflow/dependents/driver.js";
import type { PlanNode } from "../workflow/plan.js";
import type { RemovedKinds } from "../workflow/prune/leftovers.js";
import { pruneWorkflow } from "../workflow/prune/prune.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";
import type { Writer } from "../workflow/dependents/kubernetes-driver.js";
import { dependentsOf, type ControllerDefinition } from "./controller-definition.js";
import { reportError } from "./status/error-status.js";
import type { ExpectationRegistry } from "./expectations.js";
import { hasFinalizer, removeFinalizer, finalizerNameOf, finalizerOf } from "./finalizer.js";
import { addFinalizer, writePrimary, type PrimaryWrite, type WantedPrimary } from "./primary-write.js";
import { ContextFactory } from "./reconcile-context.js";
import type { PrimaryOutcome } from "./reconcile-event.js";
import type { ReconcileScope } from "../schedule/reconcile-scope.js";
import { writeConditions } from "./status/write-conditions.js";
import { checkControl, type DeleteControl, type UpdateControl } from "./reconciler.js";
import { ControllerWorkflows, WorkflowRuns } from "./workflow-runs.js";
import { noSecondarySources } from "./secondary-access.js";

/** What reconciling a primary needs. */
export interface PrimaryDependencies {
  readonly client: ApiClient;
  readonly primaries: ResourceView;
  /** Makes what finds and writes the objects of a dependent; `index` is its place among those of all workflows. */
  driverOf(node: PlanNode, index: number): DependentDriver;
  /** Where objects may be that no dependent wants. Default: nothing is pruned. */
  readonly removedKinds?: RemovedKinds;
  /** Writes as the field manager of the controller. */
  readonly writer: Writer;
  /** Writes the conditions of the status, as the field manager that is for them; absent if the controller keeps none. */
  readonly conditionsWriter?: Writer;
  /** All event sources of the controller; it has none if absent. */
  readonly secondaries?: SecondarySources;
  /** Returns the namespaces that the controller watches now, all of them if undefined; those of its definition if absent. */
  namespaces?(): readonly string[] | undefined;
  /** What reconciles write with besides their dependents; there is nothing if absent. */
  readonly resources?: ResourceOperations;
  /** What is expected of primaries; nothing can be if absent. */
  readonly expectations?: ExpectationRegistry;
  readonly clock?: Clock | undefined;
}

/** One reconcile, and what has become of it so far. */
interface Attempt {
  readonly scope: ReconcileScope;
  outcome: PrimaryOutcome;
  /** What was thrown, also where it is not retried. */
  error?: unknown;
  /** What was not written of the primary for now. */
  postponed: readonly PostponedWrite[];
  /** Absent before the functions of the user are called. */
  runs?: WorkflowRuns;
}

/** What the functions of the user are called with. */
interface Call {
  readonly runs: WorkflowRuns;
  readonly args: { readonly primary: KubernetesObject; readonly secondary: object; readonly context: Context };
}

/**
 * Does what a reconcile of one primary consists of: finalizer, context, workflow, the user's reconciler, what that wants written, and
 * the report of an error. It knows nothing of when (JOSDK's ReconciliationDispatcher).
 */
export class PrimaryReconciler {
  readonly #definition: ControllerDefinition;
  readonly #dependencies: PrimaryDependencies;
  readonly #workflows: ControllerWorkflows;
  readonly #contexts: ContextFactory;
  readonly #write: PrimaryWrite;
  /** The finalizer that primaries may have, whether or not the controller puts it there now. */
  readonly #finalizer: string;

  constructor(definition: ControllerDefinition, dependencies: PrimaryDependencies) {
    const { workflow, serverSideApply = true, indexes = {} } = definition;
    const { client, primaries, writer } = dependencies;
    const { secondaries = noSecondarySources, resources, expectations } = dependencies;
    this.#definition = definition;
    this.#dependencies = dependencies;
    this.#finalizer = finalizerNameOf(definition);
    const target = { definition: workflow.primary, cache: primaries };
    this.#write = { target, writer, serverSideApply, finalizer: finalizerOf(definition) };
    const { removedKinds } = dependencies;
    const kinds = definition.onAllEvents === true ? undefined : removedKinds;
    this.#workflows = new ControllerWorkflows(definition, {
      driverOf: (node, index) => dependencies.driverOf(node, index),
      secondaries: dependencies.secondaries,
      namespaces: () => this.#namespaces(),
      clock: dependencies.clock,
      complete: async (run, result, isCleanup) =>
        kinds === undefined ? result : pruneWorkflow({ run, result, isCleanup, workflow, kinds }),
    });
    this.#contexts = new ContextFactory({
      client,
      primaries,
      secondaries,
      workflow: { primary: workflow.primary, dependents: dependentsOf(definition) },
      indexes: Object.keys(indexes),
      resources,
      expectations,
    });
  }

  /** Tells whether a primary should have the finalizer of the controller and does not. */
  lacksFinalizer(primary: KubernetesObject): boolean {
    const { finalizer } = this.#write;
    return finalizer !== undefined && !hasFinalizer(primary, finalizer);
  }

  /** Returns what is known now of the dependents and the event sources of a primary, by name. */
  secondaryOf(primary: KubernetesObject): object {
    return this.#workflows.createSecondary(primary);
  }

  /** Makes everything about a primary as desired, or lets it go if it is being deleted; never rejects. */
  async run(scope: ReconcileScope): Promise<PrimaryOutcome> {
    const { onAllEvents = false } = this.#definition;
    const isCleanup = !onAllEvents && scope.entry.object.metadata.deletionTimestamp !== undefined;
    const kind = isCleanup ? "cleanup" : "reconcile";
    const attempt: Attempt = {
      scope,
      outcome: { kind, isFinalizerRemoved: false, wroteStatus: false, wroteResource: false },
      postponed: [],
    };
    try {
      if (scope.isPrimaryDeleted && !onAllEvents)
        throw new Error(`${scope.key} is gone, and only a controller with onAllEvents is called for that`);
      await (isCleanup ? this.#cleanup(attempt) : this.#reconcile(attempt));
    } catch (error) {
      attempt.error = error;
      note(attempt, { failure: { error, isHandled: false } });
    }
    await this.#keepConditions(attempt);
    await this.#settleWrites(attempt);
    return attempt.outcome;
  }

  /** Forgets what is kept for a primary that is gone. */
  release(key: ObjectKey): void {
    this.#workflows.release(key);
  }

  async #reconcile(attempt: Attempt): Promise<void> {
    const entry = await this.#withFinalizer(attempt.scope);
    // The primary is gone, or has become another one: there will be an event.
    if (entry === undefined) return;
    // An answer to what was just written is the same object that the cache has, as yet unfrozen.
    deepFreeze(entry.object);
    const call = this.#callFor(entry.object, attempt);
    try {
      await this.#reconcileWith(call, attempt);
    } catch (error) {
      // What was given up may not write any more: somebody else may be in charge by now.
      if (attempt.scope.signal.aborted) throw error;
      attempt.error = error;
      await this.#report(error, call, attempt);
    }
  }

  async #reconcileWith({ runs, args }: Call, attempt: Attempt): Promise<void> {
    const { reconciler, workflow: definition } = this.#definition;
    const { tasks } = attempt.scope;
    await this.#prepare(args, attempt);
    const workflow = definition.invocation === "explicit" ? undefined : await runs.run("reconcile");
    if (workflow?.error !== undefined && !this.#isTold("reconcile")) throw workflow.error;
    if (reconciler === undefined) return;
    const returned = await runs.settleAfter(
      tasks.track("the reconciler", () => reconciler.reconcile({ ...args, workflow } as never)),
    );
    const { resource, status, rescheduleAfterMs } =
      checkControl<UpdateControl<object, object>>("reconcile", returned) ?? {};
    attempt.scope.signal.throwIfAborted();
    await this.#writePrimary({ primary: args.primary, resource, status }, attempt);
    reschedule(attempt, rescheduleAfterMs);
  }

  async #report(error: unknown, { args }: Call, attempt: Attempt): Promise<void> {
    const { scope, outcome } = attempt;
    const { workflow } = outcome;
    const report = await reportError({
      reconciler: this.#definition.reconciler,
      args: { ...args, error, ...(workflow === undefined ? {} : { workflow: workflow as never }) },
      scope,
      writeStatus: (status) => this.#writePrimary({ primary: args.primary, status }, attempt),
    });
    if (report.isRetried) return note(attempt, { failure: { error, isHandled: report.isHandled } });
    reschedule(attempt, report.rescheduleAfterMs);
  }

  async #cleanup(attempt: Attempt): Promise<void> {
    const { scope } = attempt;
    const { object } = scope.entry;
    if (!hasFinalizer(object, this.#finalizer)) return;
    const { runs, args } = this.#callFor(object, attempt);
    await this.#prepare(args, attempt);
    const { reconciler, workflow: definition } = this.#definition;
    const isInvoked = definition.invocation === "explicit" && reconciler?.cleanup !== undefined;
    const workflow = isInvoked ? undefined : await runs.run("cleanup");
    if (workflow?.error !== undefined && !this.#isTold("cleanup")) throw workflow.error;
    const returned = await runs.settleAfter(
      scope.tasks.track("the cleanup of the reconciler", () => reconciler?.cleanup?.({ ...args, workflow } as never)),
    );
    const control = checkControl<DeleteControl>("cleanup", returned);
    reschedule(attempt, control?.rescheduleAfterMs);
    if (control?.removeFinalizer === false) return;
    // What is not gone yet brings an event when it goes, and what failed does not.
    if (isInvoked) runs.warnOfOrphans();
    const failed = runs.cleanups.find(({ error }) => error !== undefined);
    if (failed !== undefined) return note(attempt, { failure: { error: failed.error, isHandled: true } });
    if (!runs.cleanups.every(({ isReady }) => isReady)) return;
    scope.signal.throwIfAborted();
    const { target, writer } = this.#write;
    const cause = causeOf(scope);
    await removeFinalizer(object, { target, sender: writer.sender, finalizer: this.#finalizer, cause });
    note(attempt, { isFinalizerRemoved: true });
  }

  // A write that ran out of time may still have its effect: what comes next would be made beside it.
  async #settleWrites({ scope, runs }: Attempt): Promise<void> {
    const lingering = runs?.lingering ?? [];
    if (lingering.length === 0) return;
    await scope.tasks.track("a write that ran out of time", () => Promise.allSettled(lingering));
  }

  async #keepConditions(attempt: Attempt): Promise<void> {
    const { conditionsWriter: writer } = this.#dependencies;
    const { scope, outcome, error, postponed } = attempt;
    if (writer === undefined || scope.signal.aborted || scope.isPrimaryDeleted || outcome.isFinalizerRemoved) return;
    try {
      const { workflow, kind } = outcome;
      const dependents = this.#definition.workflow.dependents.map(({ name }) => name);
      const primary = scope.entry.object;
      const facts = { primary, workflow, error, isCleanup: kind === "cleanup", dependents, postponed };
      const wroteStatus = await writeConditions({ ...this.#write, writer }, { ...facts, cause: causeOf(scope) });
      if (wroteStatus) note(attempt, { wroteStatus });
    } catch (error) {
      if (outcome.failure === undefined) note(attempt, { failure: { error, isHandled: false } });
      else scope.logger.warn({}, `the conditions of the status could not be written: ${messageOf(error)}`);
    }
  }

  /** Whether the reconciler sees the errors of dependents in the result, so that they are not thrown. */
  #isTold(name: "reconcile" | "cleanup"): boolean {
    const { reconciler, workflow } = this.#definition;
    return workflow.exceptions === "result" && reconciler?.[name] !== undefined;
  }

  async #withFinalizer(scope: ReconcileScope): Promise<DecodedResource | undefined> {
    const { entry } = scope;
    const { finalizer } = this.#write;
    if (finalizer === undefined || !this.lacksFinalizer(entry.object)) return entry;
    return addFinalizer(this.#write, { primary: entry, finalizer, cause: causeOf(scope) });
  }

  async #prepare(args: Call["args"], { scope }: Attempt): Promise<void> {
    const { reconciler } = this.#definition;
    const { secondaries } = this.#dependencies;
    if (secondaries !== undefined)
      await scope.tasks.track("an event source", () => secondaries.load(args.primary, scope.signal));
    if (reconciler?.initContext === undefined) return;
    await scope.tasks.track("initContext() of the reconciler", () => reconciler.initContext?.(args as never));
  }

  #writePrimary(wanted: WantedPrimary, attempt: Attempt): Promise<void> {
    const cause = causeOf(attempt.scope);
    return writePrimary(this.#write, { ...wanted, cause }, ({ postponed, ...written }) => {
      if (postponed !== undefined) attempt.postponed = [...attempt.postponed, postponed];
      note(attempt, written);
    });
  }

  #callFor(primary: KubernetesObject, attempt: Attempt): Call {
    const { scope } = attempt;
    const onResult = (workflow: WorkflowResult) => note(attempt, { workflow });
    const runs = new WorkflowRuns(this.#workflows, { primary, scope, onResult });
    const context = this.#contexts.create(scope, primary, runs);
    runs.context = context;
    attempt.runs = runs;
    return { runs, args: { primary, secondary: runs.createSecondary(), context } };
  }

  #namespaces(): readonly string[] | undefined {
    const { namespaces } = this.#dependencies;
    if (namespaces !== undefined) return namespaces();
    const stated = this.#definition.namespaces;
    return stated === "current" ? undefined : stated;
  }
}

function causeOf({ signal, logger, entry }: ReconcileScope): WriteCause {
  return { signal, logger, primary: entry.object };
}

function note(attempt: Attempt, news: Partial<PrimaryOutcome>): void {
  attempt.outcome = { ...attempt.outcome, ...news };
}

function reschedule(attempt: Attempt, rescheduleAfterMs: number | undefined): void {
  if (rescheduleAfterMs === undefined) return;
  const { isPrimaryDeleted, logger } = attempt.scope;
  if (isPrimaryDeleted)
    logger.warn({ rescheduleAfterMs }, "a deleted primary is not reconciled again; its reschedule is ignored");
  else note(attempt, { rescheduleAfterMs });
}
