// One run of a workflow: starts every step as soon as nothing holds it back, and collects what became of it.
import { systemClock, type Clock } from "../base/clock.js";
import { TerminalError } from "../base/errors.js";
import { keyOf } from "../base/kubernetes-object.js";
import type { Semaphore } from "../base/semaphore.js";
import type { SecondarySources } from "../sources/secondary-sources.js";
import { BulkRun } from "./bulk.js";
import { argumentsOf, type DependentDriver, type DriverRun } from "./dependents/driver.js";
import {
  ask,
  deleteObject,
  reconcileObject,
  releaseOrThrow,
  withConditions,
  type StepRun,
  type Target,
} from "./object-steps.js";
import { blockersOf, condemn, endsOf, missingOf, nextSteps } from "./plan.js";
import type { NodeState, Plan } from "./plan.js";
import { createSecondary, type SecondaryFacts, type SeenDependent } from "./secondary.js";
import { takeStep, type StepSurroundings } from "./step.js";
import { createDependentError } from "./workflow-error.js";
import { createWorkflowResult, type DependentOutcome, type WorkflowResult } from "./workflow-result.js";

const INACTIVE = "its activation condition does not hold";
const DELETED = "the primary is being deleted";
const CLEANED_UP = "the reconciler cleaned up";
const UNWANTED = "its reconcile precondition does not hold";

/** Why a dependent must not exist. */
type Refusal = typeof INACTIVE | typeof UNWANTED;

/** How many steps are done at once. Default of `maxConcurrency` of a workflow. */
export const MOST_STEPS_AT_ONCE = 50;

/** Everything that one run needs. */
export interface RunOptions
  extends Omit<DriverRun, "secondary">, Pick<StepSurroundings, "context" | "track" | "linger"> {
  readonly plan: Plan;
  /** As many as the plan has nodes, in its order. */
  readonly drivers: readonly DependentDriver[];
  readonly secondaries?: SecondarySources | undefined;
  /** The dependents of the other workflows of the controller, which functions of the user see as well. */
  readonly others?: readonly SeenDependent[];
  /** The places for steps that all runs of the workflow share. */
  readonly places: Semaphore;
  readonly clock?: Clock | undefined;
}

/** Makes all dependents of a primary as they should be; each as soon as what it depends on is ready. */
export function reconcileWorkflow(options: RunOptions): Promise<WorkflowResult> {
  return new WorkflowRun(options, { kind: "pending" }).finish();
}

/** Deletes the dependents of a primary in reverse order; if the primary is being deleted, some are left to the garbage collector. */
export function cleanupWorkflow(options: RunOptions): Promise<WorkflowResult> {
  const isDeleted = options.primary.metadata.deletionTimestamp !== undefined;
  return new WorkflowRun(options, { kind: "condemned", because: isDeleted ? DELETED : CLEANED_UP }).finish();
}

/** The state of one run, which is thrown away with it. */
class WorkflowRun {
  readonly #options: RunOptions;
  readonly #seen: SecondaryFacts;
  /** The run as each dependent sees it: a dependent that goes on without an optional dependency does not see that. */
  readonly #runs: DriverRun[];
  readonly #around: StepSurroundings;
  readonly #targets: readonly Target[];
  readonly #bulks: readonly (BulkRun | undefined)[];
  #states: NodeState[];
  readonly #outcomes: DependentOutcome[] = [];
  #running = 0;
  #onIdle: () => void = () => {};

  constructor(options: RunOptions, state: NodeState) {
    const { plan, drivers, primary, secondaries, others = [], places, clock = systemClock } = options;
    this.#options = options;
    this.#states = plan.nodes.map(() => state);
    this.#around = { ...options, clock, places: [places] };
    this.#targets = plan.nodes.map(({ definition }, index) => ({
      definition,
      driver: drivers[index]!,
      conditions: {},
    }));
    this.#seen = { primary, dependents: [...this.#targets, ...others], sources: secondaries };
    const secondary = createSecondary(this.#seen);
    this.#runs = plan.nodes.map(() => ({ ...options, secondary }));
    this.#bulks = plan.nodes.map(({ definition, needs, neededBy }, index) => {
      if (definition.bulk === undefined) return undefined;
      const bulksAt = (nodes: readonly number[]) => nodes.map((each) => this.#bulks[each]!);
      return new BulkRun(this.#targets[index]!, {
        around: this.#around,
        run: () => this.#runs[index]!,
        needed: () => bulksAt(endsOf(needs, "items")),
        dependents: () => bulksAt(endsOf(neededBy, "items")),
      });
    });
  }

  async finish(): Promise<WorkflowResult> {
    const { plan } = this.#options;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      this.#advance();
    });
    // The items that needed an unwanted item may be gone by now.
    for (const index of plan.sweepOrder) {
      const bulk = this.#bulks[index]!;
      if (!bulk.isReconciled || this.#around.context.signal.aborted) continue;
      await bulk.sweep();
      this.#end(index, bulk.outcome());
    }
    this.#around.context.signal.throwIfAborted();
    const outcomes = this.#targets.map((target, index) => {
      const { name } = target.definition;
      const waiting = () => ({ kind: "waiting", for: blockersOf(plan, this.#states, index) }) as const;
      return [name, this.#outcomes[index] ?? withConditions(waiting(), target)] as const;
    });
    return createWorkflowResult(outcomes);
  }

  // Every end of a step looks again, so a step never waits for another that it does not depend on.
  #advance(): void {
    if (!this.#around.context.signal.aborted) {
      const steps = nextSteps(this.#options.plan, this.#states);
      for (const index of steps.reconcile) void this.#settle(index, this.#reconcile(index));
      for (const index of steps.delete) void this.#settle(index, this.#delete(index));
    }
    if (this.#running === 0) this.#onIdle();
  }

  async #settle(index: number, step: Promise<DependentOutcome | Refusal>): Promise<void> {
    this.#running++;
    try {
      const outcome = await step;
      if (typeof outcome !== "string") this.#end(index, outcome);
      else {
        const isActive = outcome !== INACTIVE;
        this.#states = condemn(this.#options.plan, this.#states, { index, because: outcome, isActive });
        if (!isActive) this.#end(index, { kind: "inactive" });
      }
    } catch (error) {
      const { name } = this.#targets[index]!.definition;
      this.#end(index, { kind: "failed", error: createDependentError(name, error) });
    }
    this.#running--;
    this.#advance();
  }

  async #reconcile(index: number): Promise<DependentOutcome | Refusal> {
    const target = this.#targets[index]!;
    const { definition, driver } = target;
    const bulk = this.#bulks[index];
    this.#states[index] = { kind: "running" };
    this.#hideMissing(index);
    const outcome = await takeStep(definition, this.#around, async (step) => {
      const run = { ...this.#runs[index]!, ...step };
      if (!(await this.#isActive(target, run))) return INACTIVE;
      if (!(await ask("reconcilePrecondition", target, run))) return UNWANTED;
      const { desired, name } = definition;
      if (driver.capabilities.write && target.desired === undefined) {
        if (desired === undefined) throw new TerminalError("it has no desired()");
        const compute = () => desired(argumentsOf(run) as never) as unknown;
        target.desired = { object: await run.track(`desired() of dependent "${name}"`, compute) };
      }
      if (bulk !== undefined) return undefined;
      if (target.desired !== undefined) target.wanted ??= driver.complete(run, target.desired.object);
      return reconcileObject(target, run);
    });
    if (outcome !== undefined) return outcome;
    await bulk!.reconcile(() => this.#goOn(index));
    return bulk!.outcome();
  }

  async #delete(index: number): Promise<DependentOutcome> {
    const target = this.#targets[index]!;
    const { definition, driver } = target;
    const bulk = this.#bulks[index];
    const { because } = this.#states[index] as NodeState & { readonly kind: "condemned" };
    this.#states[index] = { kind: "running" };
    // The garbage collector acts only after the primary is gone: waiting for it here would never end.
    if (because === DELETED && driver.isGarbageCollected) return { kind: "left" };
    const outcome = await takeStep(definition, this.#around, async (step): Promise<DependentOutcome | undefined> => {
      const run = { ...this.#runs[index]!, ...step };
      if (!(await this.#isActive(target, run))) return { kind: "inactive" };
      return bulk === undefined ? deleteObject(target, run, { because }) : undefined;
    }).catch((error: unknown) => releaseOrThrow(target, this.#runs[index]!, error));
    if (outcome !== undefined) return outcome;
    await bulk!.delete(because, () => this.#goOn(index));
    return bulk!.outcome(because);
  }

  async #isActive(target: Target, run: StepRun): Promise<boolean> {
    const { definition, driver } = target;
    if (definition.activationCondition === undefined) return true;
    const key = keyOf(run.primary.metadata);
    if (await ask("activationCondition", target, run)) {
      await run.track(`the watch of dependent "${definition.name}"`, () => driver.source.activate(key));
      return true;
    }
    await driver.source.deactivate(key);
    return false;
  }

  // Others may go on with the items of a dependent as soon as its items are known.
  #goOn(index: number): void {
    this.#states[index] = { kind: "running", hasItems: true };
    this.#advance();
  }

  #end(index: number, outcome: DependentOutcome): void {
    const { hasItems = false } = this.#states[index]!;
    this.#outcomes[index] = withConditions(outcome, this.#targets[index]!);
    this.#states[index] = { ...stateOf(outcome), hasItems };
  }

  // An unwanted dependency may exist until this dependent stopped using it.
  #hideMissing(index: number): void {
    const { plan } = this.#options;
    const missing = missingOf(plan, this.#states, index).map((each) => plan.nodes[each]!.definition);
    if (missing.length > 0)
      this.#runs[index] = { ...this.#runs[index]!, secondary: createSecondary(this.#seen, missing) };
  }
}

function stateOf(outcome: DependentOutcome): NodeState {
  switch (outcome.kind) {
    case "failed":
    case "inactive":
      return { kind: outcome.kind };
    case "left":
      return { kind: "deleted", isGone: true };
    case "deleted":
      return { kind: "deleted", isGone: outcome.isGone };
    case "waiting":
      return { kind: "reconciled", isReady: false };
    default:
      return { kind: "reconciled", isReady: outcome.isReady };
  }
}
