// The workflows of a controller and their runs: its own workflow, which runs before the reconciler unless the reconciler invokes it, and named
// workflows, which only the reconciler invokes.
import type { StepTiming, Tracing } from "../base/activity.js";
import { type KubernetesObject, type ObjectKey, type ResourceDefinition, memberOf } from "../base/kubernetes-object.js";
import { Semaphore } from "../base/wait.js";
import type { ReconcileScope } from "../queue/controller.js";
import type { SecondarySources } from "../sources/controller-sources.js";
import type { Context } from "../workflow/context.js";
import {
  type CallUser,
  type DependentReconciler,
  type DiscoveredObjects,
  type HoldRun,
  type LinkedPrimary,
  type Reconcile,
  ReconcileNotes,
} from "../workflow/dependent-reconciler.js";
import { type RemovedKinds, pruneWorkflow } from "../workflow/prune.js";
import { type Plan, type PlanNode, buildPlan, isGone } from "../workflow/plan.js";
import {
  MOST_STEPS_AT_ONCE,
  type RunOptions,
  type RunnableWorkflow,
  type WorkflowInvocation,
  type WorkflowResult,
  cleanupWorkflow,
  createSecondary,
  isNothingLeft,
  reconcileWorkflow,
  removeUnseen,
} from "../workflow/run.js";
import { mayHaveAny } from "../workflow/step.js";
import {
  type DependentArguments,
  type DependentDefinition,
  type WorkflowDefinition,
  deletionOf,
  isDeletedByOperator,
  isKubernetes,
  needsCleanup,
} from "../workflow/workflow-definition.js";
import type { ControllerDefinition } from "./controller-definition.js";
import type { LateWrites } from "./late-writes.js";

/** Dependencies of workflow runs. */
export interface WorkflowDependencies {
  /** Creates the reconciler of a dependent. */
  reconcilerOf(dependent: DependentDefinition): DependentReconciler;
  readonly secondaries: SecondarySources;
  /** Returns the namespaces that the controller watches; undefined for all. Default: all */
  namespaces?(): readonly string[] | undefined;
  readonly tracing?: Tracing | undefined;
  /** Kinds that may have objects to prune. Default: nothing is pruned */
  readonly removedKinds?: RemovedKinds | undefined;
  /** Aborted writes that the API server may still execute. */
  readonly lateWrites: LateWrites;
}

/** How often a cleanup checks a condition that causes no events. */
export const LOOK_AGAIN_AFTER_MS = 1_000;

type IsKnown = (key: ObjectKey, uid: string) => boolean;

interface CompiledWorkflow extends RunnableWorkflow {
  readonly definition: WorkflowDefinition;
  readonly others: readonly PlanNode[];
}

type Kind = "reconcile" | "cleanup";

/** Creates the context for the user functions of one reconcile. */
export type CreateContext = (scope: ReconcileScope, primary: KubernetesObject, runs: WorkflowRuns) => Context;

/** The workflows of one controller. */
export class ControllerWorkflows {
  readonly own: CompiledWorkflow;
  readonly named: ReadonlyMap<string, CompiledWorkflow>;
  readonly dependencies: WorkflowDependencies;
  readonly dependents: readonly PlanNode[];
  readonly definition: ControllerDefinition;
  readonly createContext: CreateContext;

  constructor(definition: ControllerDefinition, dependencies: WorkflowDependencies, createContext: CreateContext) {
    const { name, workflow, workflows = {}, onAllEvents = false } = definition;
    this.definition = definition;
    this.createContext = createContext;
    this.dependencies = onAllEvents ? { ...dependencies, removedKinds: undefined } : dependencies;
    const planOf = (each: WorkflowDefinition) => buildPlan(each, (dependent) => dependencies.reconcilerOf(dependent));
    const own = planOf(workflow);
    const named = Object.entries(workflows).map(([key, each]) => [key, each, planOf(each)] as const);
    this.dependents = [...own, ...named.flatMap(([, , plan]) => plan)];
    const compile = (each: WorkflowDefinition, plan: Plan): CompiledWorkflow => ({
      ...{ definition: each, plan, others: this.dependents.filter((node) => !plan.includes(node)) },
      slots: new Semaphore(each.maxConcurrency ?? MOST_STEPS_AT_ONCE),
    });
    this.own = compile(workflow, own);
    this.named = new Map(named.map(([key, each, plan]) => [key, compile(each, plan)]));
    const names = this.dependents.map((each) => each.definition.name);
    const twice = names.find((each, index) => names.indexOf(each) !== index);
    if (twice !== undefined) throw new Error(`controller "${name}" has two dependents named "${twice}"`);
  }

  /** Creates the `secondary` argument of user functions: the objects of all dependents, and the resources of event sources. */
  createSecondary(primary: KubernetesObject, discovered?: DiscoveredObjects): object {
    return createSecondary({
      primary,
      dependents: this.dependents,
      sources: this.dependencies.secondaries,
      discovered,
    });
  }

  /**
   * Returns the time until no aborted write can create an object that the cleanup of the primary would have to delete, in milliseconds; 0 if none
   * can.
   */
  lateMsOf(primary: KubernetesObject): number {
    const isConcerned = this.dependents.some(({ definition }) => isKubernetes(definition) && needsCleanup(definition));
    return isConcerned ? this.dependencies.lateWrites.remainingMs(primary) : 0;
  }

  /** Dependents that need the primary's finalizer. */
  get ofCleanup(): readonly PlanNode[] {
    return this.dependents.filter(({ definition }) => needsCleanup(definition));
  }

  /** Reports whether a primary may have objects that need a cleanup. */
  hasAnyToCleanUp(primary: KubernetesObject): boolean {
    return this.ofCleanup.some(({ reconciler }) => mayHaveAny(reconciler, primary));
  }

  /** Returns the names of the primary's objects that only the operator deletes, and that are not being deleted. */
  leftOf(primary: KubernetesObject): readonly string[] {
    return [...new Set(this.#ordered.flatMap(({ reconciler }) => reconciler.leftOf?.(primary) ?? []))];
  }

  /** Describes the external resources that a primary may have. */
  externalsOf(primary: KubernetesObject): readonly string[] {
    const externals = this.ofCleanup.filter(({ definition }) => !isKubernetes(definition));
    return externals.flatMap(({ definition: { name }, reconciler }) =>
      mayHaveAny(reconciler, primary) ? `resources of dependent "${name}"` : [],
    );
  }

  /** Returns unknown primaries that are linked from objects which only the operator deletes. */
  primariesOfOrdered(isKnown: IsKnown): readonly LinkedPrimary[] {
    // A custom delete function may keep objects on purpose.
    const isCertain = ({ definition }: PlanNode) =>
      isKubernetes(definition) && typeof definition.operations?.delete !== "function";
    return linkedPrimariesOf(this.#ordered.filter(isCertain), isKnown);
  }

  get #ordered(): readonly PlanNode[] {
    return this.ofCleanup.filter(
      ({ definition }) =>
        isKubernetes(definition) && deletionOf(definition) === "ordered" && isDeletedByOperator(definition),
    );
  }

  /** Returns unknown primaries that are linked from objects which need a cleanup. */
  linkedPrimaries(isKnown: IsKnown): readonly LinkedPrimary[] {
    return linkedPrimariesOf(this.ofCleanup, isKnown);
  }

  /** Reports whether any objects are held for a primary. */
  isAnyHeld(primary: KubernetesObject): boolean {
    return this.dependents.some(({ reconciler }) => reconciler.holds?.hasAny(primary) === true);
  }

  /** Releases the objects held for a primary, except for the UIDs in `needed`. */
  async releaseHeld(run: HoldRun, needed = new Set<string | undefined>()): Promise<void> {
    for (const { reconciler } of this.dependents)
      if (reconciler.holds?.hasAny(run.primary) === true) await reconciler.holds.releaseAll(run, needed);
  }

  /** Releases the held objects that the dependents of a primary no longer need after this run. */
  async releaseUnneeded(run: RunOptions, { dependents }: WorkflowResult): Promise<void> {
    if (!this.isAnyHeld(run.primary)) return;
    const isOver = ({ name }: DependentDefinition) =>
      ["inactive", "left", "deleted"].includes(memberOf(dependents, name)?.kind ?? "");
    const needed = this.dependents.flatMap(({ definition, reconciler }) =>
      isOver(definition) ? [] : (reconciler.holds?.objectsToHold(run) ?? []),
    );
    await this.releaseHeld(run, new Set(needed.map(({ metadata }) => metadata.uid)));
  }

  /** Stops watches that were activated for a deleted primary. */
  release(primary: ObjectKey): void {
    for (const { definition, reconciler } of this.dependents)
      if (definition.activationCondition !== undefined) void reconciler.source.deactivate(primary);
  }
}

/** The workflow runs of one reconcile of one primary, and the state that they share. */
export class WorkflowRuns implements Reconcile {
  readonly definition: ResourceDefinition;
  readonly namespaces: readonly string[] | undefined;
  readonly notes = new ReconcileNotes();
  readonly isPrimaryUnknown: boolean;
  /** The arguments of user functions. */
  args: DependentArguments<KubernetesObject, object>;
  /** The result of the controller's workflow; absent before it has run. */
  result?: WorkflowResult;
  readonly cleanups: WorkflowResult[] = [];
  /** Writes of steps that timed out. The state of their objects is unknown until these writes end. */
  readonly lingering: Promise<unknown>[] = [];
  readonly #workflows: ControllerWorkflows;
  readonly #scope: ReconcileScope;
  readonly #ensureFinalizer: (() => Promise<KubernetesObject>) | undefined;
  readonly #started: { workflow: CompiledWorkflow; kind: Kind; result: Promise<WorkflowResult> }[] = [];

  constructor(
    workflows: ControllerWorkflows,
    primary: KubernetesObject,
    scope: ReconcileScope,
    ensureFinalizer?: () => Promise<KubernetesObject>,
  ) {
    this.#workflows = workflows;
    this.#scope = scope;
    this.#ensureFinalizer = ensureFinalizer;
    this.definition = workflows.definition.workflow.primary;
    this.namespaces = workflows.dependencies.namespaces?.();
    this.isPrimaryUnknown = scope.isPrimaryDeleted && scope.isFinalStateUnknown;
    const context = workflows.createContext(scope, primary, this);
    this.args = { primary, secondary: workflows.createSecondary(primary, this.notes.discovered), context };
  }

  get secondaries(): SecondarySources {
    return this.#workflows.dependencies.secondaries;
  }

  get tracing(): Tracing | undefined {
    return this.#workflows.dependencies.tracing;
  }

  readonly track: CallUser = (what, task) => this.#scope.tasks.track(what, task);

  readonly onGivenUp = (): void => {
    const { dependencies, definition } = this.#workflows;
    dependencies.lateWrites.note(this.args.primary, definition);
  };

  async ensureFinalizer(): Promise<void> {
    const primary = await this.#ensureFinalizer?.();
    // From now on, user functions receive the primary with the finalizer.
    if (primary !== undefined && this.args.primary !== primary) this.args = { ...this.args, primary };
  }

  linger(write: Promise<unknown>): void {
    this.lingering.push(write);
  }

  onStep(step: StepTiming): void {
    this.#scope.onStep(step);
  }

  /** Objects of dependents that are not in any watch, as read in this reconcile. */
  get discovered(): readonly KubernetesObject[] {
    return this.notes.discovered.all.map(({ object }) => object);
  }

  /** Runs a workflow; repeated calls of the same kind return the first result. Default: the controller's workflow */
  run(kind: Kind, workflow = this.#workflows.own): Promise<WorkflowResult> {
    const runs = this.#started.filter((each) => each.workflow === workflow);
    const known = runs.find((each) => each.kind === kind);
    if (known !== undefined) return known.result;
    const result = this.#start(workflow, kind, Promise.allSettled(runs.map((each) => each.result)));
    this.#started.push({ workflow, kind, result });
    // The user may ignore the result of a run.
    result.catch(() => {});
    return result;
  }

  /** Implements `context.workflow` of the reconciler. */
  get own(): WorkflowInvocation {
    return this.#invocationOf(this.#workflows.own);
  }

  /** Returns the invocation of a named workflow. Throws if the controller has no such workflow. */
  other(wanted: string | WorkflowDefinition): WorkflowInvocation {
    const { named } = this.#workflows;
    const found = [...named].find(([name, { definition }]) => name === wanted || definition === wanted);
    if (found !== undefined) return this.#invocationOf(found[1]);
    const names = [...named.keys()].map((each) => `"${each}"`).join(", ");
    const problem =
      typeof wanted === "string"
        ? `the controller has no workflow "${wanted}"`
        : 'the workflow is none of the "workflows" of the controller';
    throw new Error(`${problem}; it has ${names || "none besides its own"}`);
  }

  /** Waits for a user function and for all runs that it started, even if it did not await them. */
  async settleAfter<Result>(call: Promise<Result>): Promise<Result> {
    try {
      return await call;
    } finally {
      await Promise.allSettled(this.#started.map(({ result }) => result));
    }
  }

  /**
   * Returns 0 if nothing needs the primary's finalizer, the time until the next check in milliseconds, or undefined if something needs it. Also finds
   * and deletes objects that no watch selects.
   */
  async releaseAfterMs(): Promise<number | undefined> {
    const { own, ofCleanup, named } = this.#workflows;
    const { primary } = this.args;
    const results = await Promise.all(this.#started.map(({ result }) => result));
    const isDone = ({ errors, removed = {} }: WorkflowResult) =>
      errors.size === 0 && Object.values(removed).every(isGone);
    if (this.result === undefined || !results.every(isDone)) return undefined;
    const outcomeOf = (name: string) => results.flatMap((each) => memberOf(each.dependents, name) ?? []).at(-1);
    for (const node of ofCleanup) {
      const { definition, reconciler } = node;
      const outcome = outcomeOf(definition.name);
      // Objects of a workflow that did not run stay.
      const isOver = outcome === undefined ? definition.activationCondition === undefined : isNothingLeft(outcome);
      if (!isOver || mayHaveAny(reconciler, primary)) return undefined;
      if (reconciler.isPartlyUnknown?.({ primary }) === true) return undefined;
    }
    const unconfirmedMs = ofCleanup.map(({ reconciler }) => reconciler.unconfirmedMs?.(primary) ?? 0);
    const waitMs = Math.max(this.#workflows.lateMsOf(primary), ...unconfirmedMs);
    if (waitMs > 0) return waitMs;
    const all = [own, ...named.values()].map((workflow) => removeUnseen(this.#runOf(workflow)));
    return (await Promise.all(all)).includes(true) ? LOOK_AGAIN_AFTER_MS : 0;
  }

  /** Cleans up all workflows of a deleted primary. Resolves with whether nothing is left. Rejects with the errors of dependents. */
  async cleanUpAll(): Promise<boolean> {
    const { own, named } = this.#workflows;
    const results = await Promise.all([own, ...named.values()].map((each) => this.run("cleanup", each)));
    const failed = results.find(({ error }) => error !== undefined);
    if (failed !== undefined) throw failed.error;
    return results.every(({ isReady }) => isReady);
  }

  /** Warns about a cleanup() that did not invoke the cleanup of the workflow. */
  warnOfOrphans(): void {
    const { own } = this.#workflows;
    if (this.#started.some(({ workflow, kind }) => workflow === own && kind === "cleanup")) return;
    const left = own.definition.dependents.filter(isDeletedByOperator);
    if (left.length === 0) return;
    const what = `the objects of ${left.map(({ name }) => name).join(", ")} are not deleted`;
    this.#scope.logger.warn({}, `cleanup() did not call context.workflow.cleanup(): ${what}`);
  }

  #invocationOf(workflow: CompiledWorkflow): WorkflowInvocation {
    const { invocation, exceptions } = workflow.definition;
    const invoke = async (kind: Kind) => {
      if (workflow === this.#workflows.own && invocation !== "explicit")
        throw new Error(
          `context.workflow.${kind}() is for workflows with invocation: explicit; this one runs by itself, and its result is the ` +
            'argument "workflow"',
        );
      const result = await this.run(kind, workflow);
      if (exceptions !== "result" && result.error !== undefined) throw result.error;
      return result;
    };
    return { reconcile: () => invoke("reconcile"), cleanup: () => invoke("cleanup") };
  }

  async #start(workflow: CompiledWorkflow, kind: Kind, before: Promise<unknown>): Promise<WorkflowResult> {
    const { own, dependencies } = this.#workflows;
    const { removedKinds: kinds } = dependencies;
    // A dependent must not be written and deleted at the same time.
    await before;
    const run = this.#runOf(workflow);
    const { definition } = workflow;
    const isCleanup = kind === "cleanup";
    let result = await (isCleanup ? cleanupWorkflow(run) : reconcileWorkflow(run));
    if (workflow === own && kinds !== undefined)
      result = await pruneWorkflow({ run, result, isCleanup, workflow: definition, kinds });
    if (isCleanup) this.cleanups.push(result);
    else if (workflow === own) await this.#workflows.releaseUnneeded(run, result);
    if (workflow === own) this.result = result;
    return result;
  }

  #runOf({ plan, others, slots }: CompiledWorkflow): RunOptions {
    const { primary, context } = this.args;
    return { reconcile: this, primary, context, plan, others, slots };
  }
}

function linkedPrimariesOf(nodes: readonly PlanNode[], isKnown: IsKnown): readonly LinkedPrimary[] {
  const all = nodes.flatMap(({ reconciler }) => reconciler.linkedPrimaries?.(isKnown) ?? []);
  return [...new Map(all.map((each) => [each.uid, each])).values()];
}
