// The workflows of a controller: its own, which runs before the reconciler unless that invokes it, and those that only the reconciler runs.
import type { Tracing } from "../base/activity.js";
import { memberOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { Semaphore } from "../base/semaphore.js";
import type { SecondarySources } from "../sources/controller-sources.js";
import type { contextFactoryOf } from "./reconcile-context.js";
import type { DependentReconciler, FindRun, HoldRun } from "../workflow/dependents/dependent-reconciler.js";
import type { LinkedPrimary } from "../workflow/dependents/live-objects.js";
import { buildPlan, isGone, type PlanNode } from "../workflow/plan.js";
import type { RemovedKinds } from "../workflow/prune/leftovers.js";
import { pruneWorkflow } from "../workflow/prune/prune.js";
import {
  cleanupWorkflow,
  createSecondary,
  MOST_STEPS_AT_ONCE,
  reconcileWorkflow,
  removeUnseen,
} from "../workflow/run.js";
import type { RunOptions } from "../workflow/run.js";
import { ReconcileNotes } from "../workflow/reconcile-notes.js";
import { mayHaveAny } from "../workflow/target.js";
import {
  deletionOf,
  isDeletedByOperator,
  isKubernetes,
  needsCleanup,
} from "../workflow/definition/workflow-definition.js";
import type {
  DependentArguments,
  DependentDefinition,
  WorkflowDefinition,
} from "../workflow/definition/workflow-definition.js";
import type { DependentOutcome, WorkflowInvocation, WorkflowResult } from "../workflow/workflow-result.js";
import type { ControllerDefinition } from "./controller-definition.js";
import type { ReconcileScope } from "../schedule/reconcile-scope.js";
import type { LateWrites } from "./late-writes.js";

/** What the runs of a controller need besides its definition. */
export interface WorkflowDependencies {
  /** Makes what finds and writes the objects of a dependent. */
  reconcilerOf(dependent: DependentDefinition): DependentReconciler;
  readonly secondaries: SecondarySources;
  /** Returns the namespaces that the controller watches now. Default: all of them */
  namespaces?(): readonly string[] | undefined;
  readonly tracing?: Tracing | undefined;
  /** Where objects may be that no dependent wants. Default: nothing is pruned. */
  readonly removedKinds?: RemovedKinds | undefined;
  /** Which writes may still come that were given up. */
  readonly lateWrites: LateWrites;
}

/** After how long a cleanup is looked at again that no event ends. */
export const LOOK_AGAIN_AFTER_MS = 1_000;

type IsKnown = (key: ObjectKey, uid: string) => boolean;

/** A workflow with what all its runs share. */
interface CompiledWorkflow extends Pick<RunOptions, "plan" | "slots"> {
  readonly definition: WorkflowDefinition;
}

type Kind = "reconcile" | "cleanup";

/** The workflows of one controller. */
export class ControllerWorkflows {
  readonly own: CompiledWorkflow;
  readonly named: ReadonlyMap<string, CompiledWorkflow>;
  readonly dependencies: WorkflowDependencies;
  readonly dependents: readonly PlanNode[];
  readonly definition: ControllerDefinition;
  readonly createContext: ReturnType<typeof contextFactoryOf>;

  constructor(
    definition: ControllerDefinition,
    dependencies: WorkflowDependencies,
    createContext: ReturnType<typeof contextFactoryOf>,
  ) {
    const { name, workflow, workflows = {}, onAllEvents = false } = definition;
    this.definition = definition;
    this.createContext = createContext;
    this.dependencies = onAllEvents ? { ...dependencies, removedKinds: undefined } : dependencies;
    const compile = (each: WorkflowDefinition): CompiledWorkflow => ({
      definition: each,
      plan: buildPlan(each, (dependent) => dependencies.reconcilerOf(dependent)),
      slots: new Semaphore(each.maxConcurrency ?? MOST_STEPS_AT_ONCE),
    });
    this.own = compile(workflow);
    this.named = new Map(Object.entries(workflows).map(([key, each]) => [key, compile(each)]));
    this.dependents = [this.own, ...this.named.values()].flatMap(({ plan }) => plan);
    const names = this.dependents.map((each) => each.definition.name);
    const twice = names.find((each, index) => names.indexOf(each) !== index);
    if (twice !== undefined) throw new Error(`controller "${name}" has two dependents named "${twice}"`);
  }

  /** The live dependents of all workflows, and what event sources know. */
  createSecondary(primary: KubernetesObject, { discovered }: Partial<Pick<ReconcileNotes, "discovered">> = {}): object {
    const facts = { primary, dependents: this.dependents, sources: this.dependencies.secondaries };
    return createSecondary(discovered === undefined ? facts : { ...facts, discovered });
  }

  /** Returns how long a write that was given up may still create an object which a cleanup of the primary has to delete; 0 if none may. */
  lateMsOf(primary: KubernetesObject): number {
    const isConcerned = this.dependents.some(({ definition }) => isKubernetes(definition) && needsCleanup(definition));
    return isConcerned ? this.dependencies.lateWrites.remainingMs(primary) : 0;
  }

  /** The dependents that need the finalizer of the primary. */
  get ofCleanup(): readonly PlanNode[] {
    return this.dependents.filter(({ definition }) => needsCleanup(definition));
  }

  /** Tells whether anything is known of a primary that has to be cleaned up before it goes. */
  hasAnyToCleanUp(primary: KubernetesObject): boolean {
    return this.ofCleanup.some(({ reconciler }) => mayHaveAny(reconciler, primary));
  }

  /** Names the objects of a primary that nobody but the operator deletes, and that are not being deleted. */
  leftOf(primary: KubernetesObject): readonly string[] {
    return [...new Set(this.#ordered.flatMap(({ reconciler }) => reconciler.leftOf?.({ primary }) ?? []))];
  }

  /** Names the external dependents of which a primary may have resources. */
  externalsOf(primary: KubernetesObject): readonly string[] {
    const externals = this.ofCleanup.filter(({ definition }) => !isKubernetes(definition));
    return externals.flatMap(({ definition: { name }, reconciler }) =>
      mayHaveAny(reconciler, primary) ? `resources of dependent "${name}"` : [],
    );
  }

  /** Returns the primaries to which objects are linked that nobody but the operator deletes, but for those that are known. */
  primariesOfOrdered(isKnown: IsKnown): readonly LinkedPrimary[] {
    // An own delete may have left its object on purpose.
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

  /** Returns the primaries to which objects are linked that have to be cleaned up, but for those that are known. */
  linkedPrimaries(isKnown: IsKnown): readonly LinkedPrimary[] {
    return linkedPrimariesOf(this.ofCleanup, isKnown);
  }

  /** Tells whether objects are held for a primary. */
  isAnyHeld(run: Pick<HoldRun, "primary">): boolean {
    return this.dependents.some(({ reconciler }) => reconciler.isAnyHeld?.(run) === true);
  }

  /** Releases all objects that are held for a primary, but for those with a uid in `needed`. */
  async releaseHeld(run: HoldRun, needed = new Set<string | undefined>()): Promise<void> {
    for (const { reconciler } of this.dependents)
      if (reconciler.isAnyHeld?.(run) === true) await reconciler.releaseHeld?.(run, needed);
  }

  /** Releases the objects that a primary does not refer to any more, or that are held no more, by what became of its dependents. */
  async releaseUnneeded(run: FindRun & HoldRun, { dependents }: WorkflowResult): Promise<void> {
    if (!this.isAnyHeld(run)) return;
    const isOver = ({ name }: DependentDefinition) =>
      ["inactive", "left", "deleted"].includes(memberOf(dependents, name)?.kind ?? "");
    const needed = this.dependents.flatMap(({ definition, reconciler }) =>
      isOver(definition) ? [] : (reconciler.objectsToHold?.(run) ?? []),
    );
    await this.releaseHeld(run, new Set(needed.map(({ metadata }) => metadata.uid)));
  }

  /** Says that a primary is gone, so that what was watched for it alone is watched no more. */
  release(primary: ObjectKey): void {
    for (const { definition, reconciler } of this.dependents)
      if (definition.activationCondition !== undefined) void reconciler.source.deactivate(primary);
  }
}

/** The runs of the workflows in one reconcile of one primary. */
export class WorkflowRuns {
  /** What the functions of the user are called with. */
  args: DependentArguments<KubernetesObject, object>;
  /** What the workflow of the controller came to; absent before it has run. */
  result?: WorkflowResult;
  readonly cleanups: WorkflowResult[] = [];
  /** The writes of steps that can run out of time. Until they end, nobody knows what is there. */
  readonly lingering: Promise<unknown>[] = [];
  readonly #workflows: ControllerWorkflows;
  readonly #scope: ReconcileScope;
  readonly #ensureFinalizer: (() => Promise<KubernetesObject>) | undefined;
  readonly #started: { workflow: CompiledWorkflow; kind: Kind; result: Promise<WorkflowResult> }[] = [];
  readonly #notes = new ReconcileNotes();

  constructor(
    workflows: ControllerWorkflows,
    primary: KubernetesObject,
    scope: ReconcileScope,
    ensureFinalizer?: () => Promise<KubernetesObject>,
  ) {
    this.#workflows = workflows;
    this.#scope = scope;
    this.#ensureFinalizer = ensureFinalizer;
    const context = workflows.createContext(scope, primary, this);
    this.args = { primary, secondary: workflows.createSecondary(primary, this.#notes), context };
  }

  /** Objects of dependents that were read in this reconcile, as the watches do not show them. */
  get discovered(): readonly KubernetesObject[] {
    return this.#notes.discovered.all.map(({ object }) => object);
  }

  /** Runs a workflow, once for each kind. Default: the workflow of the controller */
  run(kind: Kind, workflow = this.#workflows.own): Promise<WorkflowResult> {
    const runs = this.#started.filter((each) => each.workflow === workflow);
    const known = runs.find((each) => each.kind === kind);
    if (known !== undefined) return known.result;
    const result = this.#start(workflow, kind, Promise.allSettled(runs.map((each) => each.result)));
    this.#started.push({ workflow, kind, result });
    // Whoever started it may not look at it.
    result.catch(() => {});
    return result;
  }

  /** What the reconciler runs the workflow of the controller by. */
  get own(): WorkflowInvocation {
    return this.#invocationOf(this.#workflows.own);
  }

  /** What the reconciler runs another workflow by; throws if the controller was not given it. */
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

  /** Waits for a function of the user and for what it started: a run that nobody waited for still writes. */
  async settleAfter<Result>(call: Promise<Result>): Promise<Result> {
    try {
      return await call;
    } finally {
      await Promise.allSettled(this.#started.map(({ result }) => result));
    }
  }

  /**
   * Returns 0 if nothing is left that needs the finalizer of the primary, after how long that has to be looked at again, or undefined if something
   * needs it. Looks once more for objects that the watches do not show, and deletes those.
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
      // A workflow that did not run leaves what it made.
      const isOver = outcome === undefined ? definition.activationCondition === undefined : isNothingLeft(outcome);
      if (!isOver || mayHaveAny(reconciler, primary)) return undefined;
      if (reconciler.isPartlyUnknown?.({ primary }) === true) return undefined;
    }
    const unconfirmedMs = ofCleanup.map(({ reconciler }) => reconciler.unconfirmedMs?.(primary) ?? 0);
    const waitMs = Math.max(this.#workflows.lateMsOf(primary), ...unconfirmedMs);
    if (waitMs > 0) return waitMs;
    const all = [own, ...named.values()].map((workflow) => removeUnseen(this.#optionsOf(workflow)));
    return (await Promise.all(all)).includes(true) ? LOOK_AGAIN_AFTER_MS : 0;
  }

  /** Cleans up all workflows of a primary that is gone; resolves with whether nothing is left. Throws the errors of dependents. */
  async cleanUpAll(): Promise<boolean> {
    const { own, named } = this.#workflows;
    const results = await Promise.all([own, ...named.values()].map((each) => this.run("cleanup", each)));
    const failed = results.find(({ error }) => error !== undefined);
    if (failed !== undefined) throw failed.error;
    return results.every(({ isReady }) => isReady);
  }

  /** Says what a cleanup leaves behind that did not clean up the workflow of the controller. */
  warnOfOrphans(): void {
    const { own } = this.#workflows;
    if (this.#started.some(({ workflow, kind }) => workflow === own && kind === "cleanup")) return;
    const left = own.definition.dependents.filter(isDeletedByOperator);
    if (left.length === 0) return;
    const what = `nobody deletes what there is of ${left.map(({ name }) => name).join(", ")}`;
    this.#scope.logger.warn({}, `cleanup() did not call context.workflow.cleanup(), so that ${what}`);
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
    // One dependent is not written and deleted at once.
    await before;
    const run = this.#optionsOf(workflow);
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

  #optionsOf(workflow: CompiledWorkflow): RunOptions {
    const { dependencies, dependents } = this.#workflows;
    const { secondaries } = dependencies;
    const { primary, context } = this.args;
    const scope = this.#scope;
    const { definition, ...compiled } = workflow;
    const ensureFinalizer = this.#ensureFinalizer;
    const isPrimaryUnknown = scope.isPrimaryDeleted && scope.isFinalStateUnknown;
    return {
      definition: definition.primary,
      ...{ primary, secondaries, ...compiled },
      namespaces: dependencies.namespaces?.(),
      context,
      track: (what, task) => scope.tasks.track(what, task),
      notes: this.#notes,
      onStep: (step) => scope.onStep(step),
      tracing: dependencies.tracing,
      linger: (write) => void this.lingering.push(write),
      onGivenUp: () => dependencies.lateWrites.note(primary, this.#workflows.definition),
      ...(isPrimaryUnknown && { isPrimaryUnknown }),
      ...(ensureFinalizer && { ensureFinalizer: async () => this.#goOnWith(await ensureFinalizer()) }),
      others: dependents.filter((each) => !compiled.plan.includes(each)),
    };
  }

  // What the functions of the user see from now on has the finalizer.
  #goOnWith(primary: KubernetesObject): void {
    if (this.args.primary !== primary) this.args = { ...this.args, primary };
  }
}

function linkedPrimariesOf(nodes: readonly PlanNode[], isKnown: IsKnown): readonly LinkedPrimary[] {
  const all = nodes.flatMap(({ reconciler }) => reconciler.linkedPrimaries?.(isKnown) ?? []);
  return [...new Map(all.map((each) => [each.uid, each])).values()];
}

function isNothingLeft({ kind, items = {}, ...outcome }: DependentOutcome): boolean {
  const isOver =
    kind === "left" ||
    ("isGone" in outcome && outcome.isGone && outcome.isHeld !== true) ||
    ("isReady" in outcome && Object.keys(items).length > 0);
  return isOver && Object.values(items).every(isNothingLeft);
}
