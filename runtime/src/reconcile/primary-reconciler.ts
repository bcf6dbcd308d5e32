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
import type { RemovedDrivers } from "../workflow/prune.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";
import type { Writer } from "../workflow/dependents/kubernetes-driver.js";
import { dependentsOf, type ControllerDefinition } from "./controller-definition.js";
import { reportError } from "./error-status.js";
import type { ExpectationRegistry } from "./expectations.js";
import { hasFinalizer, removeFinalizer, finalizerNameOf, finalizerOf } from "./finalizer.js";
import { InventoryKeeper } from "./inventory-keeper.js";
import { addFinalizer, writePrimary, type PrimaryWrite, type WantedPrimary } from "./primary-write.js";
import { ContextFactory } from "./reconcile-context.js";
import type { PrimaryOutcome } from "./reconcile-event.js";
import type { ReconcileScope } from "../schedule/reconcile-scope.js";
import { conditionsManagerOf, writeConditions } from "./write-conditions.js";
import { checkControl, type DeleteControl, type UpdateControl } from "./reconciler.js";
import { ControllerWorkflows, WorkflowRuns } from "./workflow-runs.js";
import { noSecondarySources } from "./secondary-access.js";

/** What reconciling a primary needs. */
export interface PrimaryDependencies {
  readonly client: ApiClient;
  readonly primaries: ResourceView;
  /** Makes what finds and writes the objects of a dependent; `index` is its place among those of all workflows. */
  driverOf(node: PlanNode, index: number): DependentDriver;
  /** Finds what is left of dependents that the workflow no longer has; nothing is looked for if absent. */
  readonly removedDrivers?: RemovedDrivers;
  /** Writes as the field manager of the controller. */
  readonly writer: Writer;
  /** Writes the conditions of the status, as the field manager that is for them; absent if the controller keeps none. */
  readonly conditionsWriter?: Writer;
  /** The field managers of all controllers of the operator; that of this one alone if absent. */
  readonly fieldManagers?: readonly string[];
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
  readonly #inventory: InventoryKeeper | undefined;
  /** The finalizer that primaries may have, whether or not the controller puts it there now. */
  readonly #finalizer: string;

  constructor(definition: ControllerDefinition, dependencies: PrimaryDependencies) {
    const { workflow, usesServerSideApply = true, name, fieldManager = name, indexes = {} } = definition;
    const { client, primaries, writer, fieldManagers = [fieldManager] } = dependencies;
    const { secondaries = noSecondarySources, resources, expectations } = dependencies;
    this.#definition = definition;
    this.#dependencies = dependencies;
    this.#finalizer = finalizerNameOf(definition);
    const target = { client, definition: workflow.primary, cache: primaries, fieldManager, fieldManagers };
    this.#write = { ...target, writer, usesServerSideApply, finalizer: finalizerOf(definition) };
    const { removedDrivers } = dependencies;
    const prunes = removedDrivers !== undefined && definition.reconcilesOnAllEvents !== true;
    const others = Object.values(definition.workflows ?? {});
    const kept = { controller: name, workflow, others, write: this.#write };
    const inventory = prunes ? new InventoryKeeper({ ...kept, removedDrivers }) : undefined;
    this.#inventory = inventory;
    this.#workflows = new ControllerWorkflows(definition, {
      driverOf: (node, index) => dependencies.driverOf(node, index),
      secondaries: dependencies.secondaries,
      namespaces: () => this.#namespaces(),
      clock: dependencies.clock,
      complete: (options, result, isCleanup) => inventory?.prune(options, result, isCleanup) ?? Promise.resolve(result),
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
    const { reconcilesOnAllEvents = false } = this.#definition;
    const isCleanup = !reconcilesOnAllEvents && scope.entry.object.metadata.deletionTimestamp !== undefined;
    const kind = isCleanup ? "cleanup" : "reconcile";
    const attempt: Attempt = {
      scope,
      outcome: { kind, isFinalizerRemoved: false, wroteStatus: false, wroteResource: false },
    };
    try {
      if (scope.isPrimaryDeleted && !reconcilesOnAllEvents)
        throw new Error(`${scope.key} is gone, and only a controller with reconcilesOnAllEvents is called for that`);
      await (isCleanup ? this.#cleanup(attempt) : this.#reconcile(attempt));
    } catch (error) {
      attempt.error = error;
      note(attempt, { failure: { error, isHandled: false } });
    }
    await this.#keepConditions(attempt);
    return attempt.outcome;
  }

  /** Forgets what is kept for a primary that is gone. */
  release(key: ObjectKey): void {
    this.#workflows.release(key);
    this.#inventory?.release(key);
  }

  async #reconcile(attempt: Attempt): Promise<void> {
    const entry = await this.#prepared(attempt.scope);
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
    await removeFinalizer(object, { ...this.#write, finalizer: this.#finalizer });
    note(attempt, { isFinalizerRemoved: true });
  }

  async #keepConditions(attempt: Attempt): Promise<void> {
    const { conditionsWriter: writer } = this.#dependencies;
    const { scope, outcome, error } = attempt;
    if (writer === undefined || scope.signal.aborted || scope.isPrimaryDeleted || outcome.isFinalizerRemoved) return;
    try {
      const { workflow, kind } = outcome;
      const fieldManager = conditionsManagerOf(this.#write.fieldManager);
      const dependents = this.#definition.workflow.dependents.map(({ name }) => name);
      const facts = { primary: scope.entry.object, workflow, error, isCleanup: kind === "cleanup", dependents };
      const wroteStatus = await writeConditions({ ...this.#write, writer, fieldManager }, facts);
      if (wroteStatus) note(attempt, { wroteStatus });
    } catch (error) {
      if (outcome.failure === undefined) note(attempt, { failure: { error, isHandled: false } });
      else scope.logger.warn({}, `the conditions of the status could not be written: ${messageOf(error)}`);
    }
  }

  // The finalizer and the inventory are there before anything is made.
  async #prepared({ entry, logger }: ReconcileScope): Promise<DecodedResource | undefined> {
    const withFinalizer = await this.#withFinalizer(entry);
    if (withFinalizer === undefined || this.#inventory === undefined) return withFinalizer;
    return this.#inventory.note(withFinalizer, logger);
  }

  /** Whether the reconciler sees the errors of dependents in the result, so that they are not thrown. */
  #isTold(name: "reconcile" | "cleanup"): boolean {
    const { reconciler, workflow } = this.#definition;
    return workflow.exceptions === "result" && reconciler?.[name] !== undefined;
  }

  async #withFinalizer(entry: DecodedResource): Promise<DecodedResource | undefined> {
    const { finalizer } = this.#write;
    if (finalizer === undefined || !this.lacksFinalizer(entry.object)) return entry;
    const inventory = this.#inventory;
    const annotationsFor = inventory && ((primary: KubernetesObject) => inventory.annotationsFor(primary));
    return addFinalizer(this.#write, { primary: entry, finalizer, annotationsFor });
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
    return writePrimary(this.#write, wanted, (written) => note(attempt, written));
  }

  #callFor(primary: KubernetesObject, attempt: Attempt): Call {
    const { scope } = attempt;
    const onResult = (workflow: WorkflowResult) => note(attempt, { workflow });
    const runs = new WorkflowRuns(this.#workflows, { primary, scope, onResult });
    const context = this.#contexts.create(scope, primary, runs);
    runs.context = context;
    return { runs, args: { primary, secondary: runs.createSecondary(), context } };
  }

  #namespaces(): readonly string[] | undefined {
    const { namespaces } = this.#dependencies;
    if (namespaces !== undefined) return namespaces();
    const stated = this.#definition.namespaces;
    return stated === "current" ? undefined : stated;
  }
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
