// One run of a workflow: starts every step as soon as nothing holds it back, and collects what became of it.
import { systemClock, type Clock } from "../base/clock.js";
import { TerminalError } from "../base/errors.js";
import { keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { Semaphore } from "../base/semaphore.js";
import type { SecondarySources } from "../sources/secondary-sources.js";
import { BulkRun } from "./bulk.js";
import { conditionsOf } from "./conditions/conditions.js";
import type { DependentDriver, DriverRun } from "./dependents/driver.js";
import { ask, createTarget, deleteObject, reconcileObject, releaseOrThrow, type Target } from "./object-steps.js";
import { blockersOf, condemn, condemnAll, missingOf, nextSteps, pendAll, type NodeState, type Plan } from "./plan.js";
import { createSecondary, withoutMembers, type SeenDependent } from "./secondary.js";
import { takeStep, type Step, type StepSurroundings, type Track } from "./step.js";
import { createDependentError } from "./workflow-error.js";
import type { Context } from "./definition/workflow-definition.js";
import { createWorkflowResult, type DependentOutcome, type WorkflowResult } from "./workflow-result.js";

const INACTIVE = "its activation condition does not hold";
const DELETED = "the primary is being deleted";
const CLEANED_UP = "the reconciler cleaned up";
const UNWANTED = "its reconcile precondition does not hold";

/** How many steps are done at once, unless the workflow says so. */
export const MOST_STEPS_AT_ONCE = 50;

/** Everything that one run needs. */
export interface RunOptions {
  readonly plan: Plan;
  /** As many as the plan has nodes, in its order. */
  readonly drivers: readonly DependentDriver[];
  readonly definition: ResourceDefinition;
  /** The namespaces that the controller watches; all of them if absent. */
  readonly namespaces?: readonly string[] | undefined;
  readonly primary: KubernetesObject;
  readonly context: Context;
  readonly track: Track;
  /** Takes writes that are still under way when the run has given them up. */
  readonly linger?: StepSurroundings["linger"];
  /** The event sources of the user, whose resources stand beside the dependents. */
  readonly secondaries?: SecondarySources | undefined;
  /** The dependents of the other workflows of the controller, which can be seen. */
  readonly others?: readonly SeenDependent[];
  /** The places for steps that all runs of the workflow share; as many as are usual, for this run alone, if absent. */
  readonly places?: Semaphore;
  readonly clock?: Clock | undefined;
}

/** Makes all dependents of a primary as they should be; independent ones at once, each as soon as what it depends on is ready. */
export function reconcileWorkflow(options: RunOptions): Promise<WorkflowResult> {
  return new WorkflowRun(options, pendAll(options.plan)).finish();
}

/** Deletes the dependents of a primary in reverse order; those of a deleted primary that Kubernetes collects are left to that. */
export function cleanupWorkflow(options: RunOptions): Promise<WorkflowResult> {
  const isLeft = options.primary.metadata.deletionTimestamp !== undefined;
  return new WorkflowRun(options, condemnAll(options.plan, isLeft ? DELETED : CLEANED_UP), isLeft).finish();
}

/** The state of one run, which is thrown away with it. */
class WorkflowRun {
  readonly #options: RunOptions;
  /** Whether what Kubernetes collects is left to that. */
  readonly #isLeft: boolean;
  readonly #run: DriverRun;
  /** What functions of a dependent are called with, if it goes on without something; by its index. */
  readonly #reducedRuns: DriverRun[] = [];
  readonly #around: StepSurroundings;
  readonly #targets: readonly Target[];
  readonly #bulks: readonly (BulkRun | undefined)[];
  #states: NodeState[];
  readonly #outcomes: (DependentOutcome | undefined)[] = [];
  #running = 0;
  #onIdle: () => void = () => {};

  constructor(options: RunOptions, states: NodeState[], isLeft = false) {
    const {
      plan,
      drivers,
      primary,
      context,
      definition,
      namespaces,
      secondaries,
      track,
      linger,
      clock = systemClock,
    } = options;
    const { places = new Semaphore(MOST_STEPS_AT_ONCE), others = [] } = options;
    this.#options = options;
    this.#states = states;
    this.#isLeft = isLeft;
    this.#around = { context, track, clock, places: [places], ...(linger && { linger }) };
    this.#targets = plan.nodes.map((node, index) => createTarget(node.definition, drivers[index]!));
    const secondary = createSecondary({ primary, dependents: [...this.#targets, ...others], sources: secondaries });
    this.#run = { primary, secondary, context: context as DriverRun["context"], definition, namespaces };
    this.#bulks = plan.nodes.map(({ definition: { bulk } }, index) =>
      bulk === undefined ? undefined : this.#createBulk(index),
    );
  }

  async finish(): Promise<WorkflowResult> {
    const { signal } = this.#around.context;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      this.#advance();
    });
    for (const index of this.#options.plan.sweepOrder) await this.#sweep(index);
    signal.throwIfAborted();
    return createWorkflowResult(
      this.#targets.map(({ definition }, index) => [definition.name, this.#outcomeOf(index)] as const),
    );
  }

  // Every end of a step looks again, so a step never waits for another that it does not depend on.
  #advance(): void {
    const { plan } = this.#options;
    const { aborted: isGivenUp } = this.#around.context.signal;
    const steps = isGivenUp ? { reconcile: [], delete: [] } : nextSteps(plan, this.#states);
    for (const index of steps.reconcile) void this.#start(index, () => this.#reconcile(index));
    for (const index of steps.delete) {
      const { because } = this.#states[index] as NodeState & { readonly kind: "condemned" };
      void this.#start(index, () => this.#delete(index, because));
    }
    if (this.#running === 0) this.#onIdle();
  }

  async #start(index: number, work: () => Promise<void>): Promise<void> {
    this.#running++;
    this.#states[index] = { kind: "running" };
    try {
      await work();
    } catch (error) {
      const { definition, conditions } = this.#targets[index]!;
      const failure = { kind: "failed" as const, error: createDependentError(definition.name, error) };
      this.#end(index, { ...failure, ...conditionsOf(conditions) });
    }
    this.#running--;
    this.#advance();
  }

  async #reconcile(index: number): Promise<void> {
    const target = this.#targets[index]!;
    const { definition, conditions } = target;
    const bulk = this.#bulks[index];
    this.#hideMissing(index);
    const entered = await takeStep(definition, this.#around, async (step) => {
      const run = this.#runIn(index, step);
      if (!(await this.#isActive(target, run, step))) return INACTIVE;
      if (!(await ask("reconcilePrecondition", target, { run, step }))) return UNWANTED;
      const desired = target.driver.capabilities.write ? await this.#desiredOf(target, run, step) : undefined;
      if (bulk !== undefined) return { items: desired };
      if (desired !== undefined) target.wanted ??= target.driver.complete(run, desired.object);
      return reconcileObject(target, run, step);
    });
    if (typeof entered === "string") return this.#condemn(index, entered);
    if ("kind" in entered) return this.#end(index, entered);
    await bulk!.reconcile(entered.items === undefined ? undefined : itemsOf(entered.items.object), () =>
      this.#goOn(index),
    );
    this.#end(index, { ...bulk!.outcome(), ...conditionsOf(conditions) });
  }

  async #delete(index: number, because: string): Promise<void> {
    const target = this.#targets[index]!;
    const { definition, driver, conditions } = target;
    // The garbage collector acts when the primary is gone: waiting for it here would be for ever.
    if (this.#isLeft && driver.isGarbageCollected) return this.#end(index, { kind: "left" });
    const bulk = this.#bulks[index];
    const entered = await takeStep(definition, this.#around, async (step): Promise<DependentOutcome | undefined> => {
      const run = this.#runIn(index, step);
      if (!(await this.#isActive(target, run, step))) return { kind: "inactive", ...conditionsOf(conditions) };
      return bulk === undefined ? deleteObject(target, { run, step, because }) : undefined;
    }).catch((error: unknown) => releaseOrThrow(target, this.#run, error));
    if (entered !== undefined) return this.#end(index, entered);
    await bulk!.delete(because, () => this.#goOn(index));
    this.#end(index, { ...bulk!.outcome(because), ...conditionsOf(conditions) });
  }

  async #isActive(target: Target, run: DriverRun, step: Step): Promise<boolean> {
    const { definition, driver } = target;
    if (definition.activationCondition === undefined) return true;
    const key = keyOf(this.#options.primary.metadata);
    if (await ask("activationCondition", target, { run, step })) {
      await step.track(`the watch of dependent "${definition.name}"`, () => driver.activate(key));
      return true;
    }
    await driver.deactivate(key);
    return false;
  }

  // What was computed once is not computed again when the step is tried again.
  async #desiredOf(target: Target, run: DriverRun, step: Step): Promise<{ readonly object: unknown }> {
    const { desired, name } = target.definition;
    if (desired === undefined) throw new TerminalError("it has no desired()");
    if (target.desired !== undefined) return target.desired;
    const object: unknown = await step.track(`desired() of dependent "${name}"`, () => desired(run as never));
    return (target.desired = { object });
  }

  // Others may go on with the items of a dependent as soon as it is known which there are.
  #goOn(index: number): void {
    this.#states[index] = { kind: "running", hasItems: true };
    this.#advance();
  }

  #condemn(index: number, because: string): void {
    const { definition, conditions } = this.#targets[index]!;
    const isActive = because !== INACTIVE;
    this.#states = condemn(this.#options.plan, this.#states, { index, because, isActive });
    if (isActive) return;
    this.#outcomes[index] = { kind: "inactive", ...conditionsOf(conditions) };
    if (definition.bulk !== undefined) this.#bulks[index]!.isInactive = true;
  }

  #end(index: number, outcome: DependentOutcome): void {
    const bulk = this.#bulks[index];
    this.#outcomes[index] = outcome;
    this.#states[index] = stateOf(outcome, this.#states[index]!);
    if (bulk !== undefined && outcome.kind === "inactive") bulk.isInactive = true;
  }

  // What items of others needed goes when those are gone, which may be the case by now.
  async #sweep(index: number): Promise<void> {
    const bulk = this.#bulks[index]!;
    if (!bulk.isReconciled || this.#around.context.signal.aborted) return;
    await bulk.sweep();
    this.#end(index, { ...bulk.outcome(), ...conditionsOf(this.#targets[index]!.conditions) });
  }

  #outcomeOf(index: number): DependentOutcome {
    const { plan } = this.#options;
    const known = this.#outcomes[index];
    if (known !== undefined) return known;
    const { conditions } = this.#targets[index]!;
    return { kind: "waiting", for: blockersOf(plan, this.#states, index), ...conditionsOf(conditions) };
  }

  #createBulk(index: number): BulkRun {
    const { itemsDependOn, itemDependents } = this.#options.plan.nodes[index]!;
    return new BulkRun(this.#targets[index]!, this.#run, {
      around: this.#around,
      runIn: (step) => this.#runIn(index, step),
      needed: () => itemsDependOn.map((each) => this.#bulks[each]!),
      dependents: () => itemDependents.map((each) => this.#bulks[each]!),
    });
  }

  // What is not wanted may be there until this dependent stopped using it.
  #hideMissing(index: number): void {
    const { plan } = this.#options;
    const missing = missingOf(plan, this.#states, index).map((each) => plan.nodes[each]!.definition);
    if (missing.length === 0) return;
    this.#reducedRuns[index] = { ...this.#run, secondary: withoutMembers(this.#run.secondary, missing) };
  }

  #runIn(index: number, { context }: Step): DriverRun {
    const run = this.#reducedRuns[index] ?? this.#run;
    return context === this.#around.context ? run : { ...run, context: context as DriverRun["context"] };
  }
}

function stateOf(outcome: DependentOutcome, before: NodeState): NodeState {
  const items = "hasItems" in before && before.hasItems === true ? { hasItems: true } : {};
  switch (outcome.kind) {
    case "failed":
    case "inactive":
      return { kind: outcome.kind, ...items };
    case "left":
      return { kind: "deleted", isGone: true, ...items };
    case "deleted":
      return { kind: "deleted", isGone: outcome.isGone, ...items };
    case "waiting":
      return { kind: "reconciled", isReady: false, ...items };
    default:
      return { kind: "reconciled", isReady: outcome.isReady, ...items };
  }
}

function itemsOf(desired: unknown): ReadonlyMap<string, unknown> {
  const fail = (found: string) =>
    new TerminalError(`desired() of a bulk dependent has to return its items by their keys, and returned ${found}`);
  if (desired instanceof Map) {
    const stranger: unknown = [...desired.keys()].find((key) => typeof key !== "string");
    if (stranger !== undefined) throw fail(`a Map with the key ${String(stranger)}, which is no text`);
    return desired as Map<string, unknown>;
  }
  if (isPlain(desired)) return new Map(Object.entries(desired));
  // What has no items by keys, such as a Set, must not be taken for no items: all there are would be deleted.
  const nameOf = (value: object) =>
    Array.isArray(value) ? "a list" : `a ${value.constructor?.name ?? "strange object"}`;
  throw fail(typeof desired !== "object" ? typeof desired : desired === null ? "null" : nameOf(desired));
}

// The prototype of a plain object has none itself, in whichever realm.
function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
