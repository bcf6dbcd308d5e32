import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import type { ApiClient } from "../cluster/api-client.js";
import type { DecodedResource } from "../cluster/decode-resource.js";
import type { ResourceView } from "../cluster/resource-view.js";
import { buildPlan, type Plan } from "../workflow/plan.js";
import {
  cleanupWorkflow,
  reconcileWorkflow,
  secondaryOf,
  WorkflowError,
  type DependentSource,
  type RunOptions,
} from "../workflow/run.js";
import type { Context } from "../workflow/workflow-definition.js";
import type { WorkflowResult } from "../workflow/workflow-result.js";
import type { ControllerDefinition } from "./controller-definition.js";
import { defaultFinalizerOf, hasFinalizer, removeFinalizer } from "./finalizer.js";
import { addFinalizer, applyPrimaryStatus, type PrimaryWrite } from "./primary-write.js";
import type { PrimaryOutcome, ReconcileScope } from "./reconcile-scope.js";
import type { DeleteControl, ReconcileArguments, UpdateControl } from "./reconciler.js";
import type { RunningTasks } from "./running-tasks.js";

/** What reconciling a primary needs. */
export interface PrimaryDependencies {
  readonly client: ApiClient;
  readonly primaries: ResourceView;
  /** For each dependent of the workflow, in its order. */
  readonly sources: readonly DependentSource[];
  /** Writes as the field manager of the controller. */
  readonly writer: RunOptions["writer"];
}

/** What is found out while a primary is reconciled. */
type Findings = { -readonly [Field in keyof PrimaryOutcome]: PrimaryOutcome[Field] };

/** One reconcile of one primary. */
interface PrimaryRun {
  readonly context: Context;
  readonly outcome: Findings;
  readonly tasks: RunningTasks;
}

/** Does what a reconcile of one primary consists of: finalizer, workflow, the user's reconciler, status. It knows nothing of when. */
export class PrimaryReconciler {
  readonly #definition: ControllerDefinition;
  readonly #dependencies: PrimaryDependencies;
  readonly #plan: Plan;
  readonly #finalizer: string;
  readonly #needsFinalizer: boolean;

  constructor(definition: ControllerDefinition, dependencies: PrimaryDependencies) {
    const { workflow, reconciler, finalizer } = definition;
    this.#definition = definition;
    this.#dependencies = dependencies;
    this.#plan = buildPlan(workflow);
    this.#finalizer = finalizer ?? defaultFinalizerOf(workflow.primary);
    this.#needsFinalizer =
      reconciler?.cleanup !== undefined || workflow.dependents.some(({ isGarbageCollected }) => !isGarbageCollected);
  }

  /** Tells whether a primary should have the finalizer of the controller and does not. */
  lacksFinalizer(primary: KubernetesObject): boolean {
    return this.#needsFinalizer && !hasFinalizer(primary, this.#finalizer);
  }

  /** Reconciles a primary, or cleans up after one that is being deleted. */
  async run({ entry, retry, signal, logger, tasks }: ReconcileScope): Promise<PrimaryOutcome> {
    const kind = entry.object.metadata.deletionTimestamp === undefined ? "reconcile" : "cleanup";
    const outcome: Findings = { kind, isFinalizerRemoved: false, wroteStatus: false, wroteResource: false };
    const context = { signal, client: this.#dependencies.client, logger, retry };
    try {
      await this[kind](entry, { context, outcome, tasks });
    } catch (error) {
      outcome.failure = { error, isHandled: false };
    }
    return outcome;
  }

  /** Forgets what is kept for a primary that is gone. */
  release(key: ObjectKey): void {
    this.#dependencies.sources.forEach((source, index) => {
      if (this.#definition.workflow.dependents[index]!.activationCondition !== undefined) void source.deactivate(key);
    });
  }

  /** Makes everything about a primary as desired; throws if anything failed. */
  async reconcile(found: DecodedResource, { context, outcome, tasks }: PrimaryRun): Promise<void> {
    const entry = await this.#withFinalizer(found);
    // The primary is gone, or has become another one: there will be an event.
    if (entry === undefined) return;
    const run = this.#runOptions(entry.object, context, tasks);
    const result = await reconcileWorkflow(run);
    outcome.workflow = result;
    throwErrors(result);
    const { reconciler } = this.#definition;
    if (reconciler === undefined) return;
    const args = argumentsOf(run, result);
    const control = await tasks.track("the reconciler", () => reconciler.reconcile(args as never));
    const { status, rescheduleAfterMs } = (control ?? {}) as UpdateControl<object>;
    if (status !== undefined)
      outcome.wroteStatus = await applyPrimaryStatus(this.#primaryWrite(), { primary: entry.object, status });
    if (rescheduleAfterMs !== undefined) outcome.rescheduleAfterMs = rescheduleAfterMs;
  }

  /** Lets a primary that is being deleted go, in the order of the graph. */
  async cleanup({ object }: DecodedResource, { context, outcome, tasks }: PrimaryRun): Promise<void> {
    if (!hasFinalizer(object, this.#finalizer)) return;
    const run = this.#runOptions(object, context, tasks);
    const result = await cleanupWorkflow(run);
    outcome.workflow = result;
    throwErrors(result);
    const { reconciler, workflow } = this.#definition;
    const args = argumentsOf(run, result);
    const control = (await tasks.track("the cleanup of the reconciler", () => reconciler?.cleanup?.(args as never))) as
      DeleteControl | undefined;
    if (control?.rescheduleAfterMs !== undefined) outcome.rescheduleAfterMs = control.rescheduleAfterMs;
    // What is not gone yet brings an event when it goes.
    if (control?.removeFinalizer === false || !result.isReady) return;
    const { client, primaries: cache } = this.#dependencies;
    await removeFinalizer(object, { finalizer: this.#finalizer, definition: workflow.primary, client, cache });
    outcome.isFinalizerRemoved = true;
  }

  async #withFinalizer(entry: DecodedResource): Promise<DecodedResource | undefined> {
    if (!this.lacksFinalizer(entry.object)) return entry;
    return addFinalizer(this.#primaryWrite(), { primary: entry, finalizer: this.#finalizer });
  }

  #primaryWrite(): PrimaryWrite {
    const { writer, primaries } = this.#dependencies;
    return { writer, target: { definition: this.#definition.workflow.primary, cache: primaries } };
  }

  #runOptions(primary: KubernetesObject, context: Context, tasks: RunningTasks): RunOptions {
    const { workflow, namespaces } = this.#definition;
    const { sources, writer } = this.#dependencies;
    const { track } = tasks;
    return { plan: this.#plan, sources, definition: workflow.primary, namespaces, primary, writer, context, track };
  }
}

function argumentsOf(run: RunOptions, workflow: WorkflowResult): ReconcileArguments<KubernetesObject, object> {
  return { primary: run.primary, secondary: secondaryOf(run), context: run.context, workflow };
}

function throwErrors({ errors }: WorkflowResult): void {
  if (errors.size > 0) throw new WorkflowError([...errors.values()], "the workflow failed");
}
