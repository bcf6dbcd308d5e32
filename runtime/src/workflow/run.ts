// One run of a workflow: starts every step as soon as nothing holds it back, and collects what became of it.
import { systemClock } from "../base/clock.js";
import type { StepTiming, Tracing } from "../base/activity.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { Semaphore } from "../base/semaphore.js";
import type { SecondarySources } from "../sources/controller-sources.js";
import { BulkRun } from "./bulk.js";
import {
  blockersOf,
  condemn,
  endsOf,
  isReady,
  nextSteps,
  type ReconciledNode,
  type NodeState,
  type Plan,
} from "./plan.js";
import { takeStep, type Run } from "./step.js";
import { Target } from "./target.js";
import { createWorkflowResult, type DependentOutcome, type WorkflowResult } from "./workflow-result.js";

const INACTIVE = "its activation condition does not hold";
const DELETED = "the primary is being deleted";
const CLEANED_UP = "the reconciler cleaned up";
const UNWANTED = "its reconcile precondition does not hold";
const UNNAMED = "its primary names no object";

/** Why a dependent must not exist. */
type Refusal = typeof INACTIVE | typeof UNWANTED | typeof UNNAMED;

/** How many steps are done at once. Default of `maxConcurrency` of a workflow. */
export const MOST_STEPS_AT_ONCE = 50;

/** Everything that one run needs. */
export interface RunOptions extends Omit<Run, "secondary" | "clock" | "slots"> {
  readonly plan: Plan<ReconciledNode>;
  readonly secondaries?: SecondarySources | undefined;
  /** The dependents of the other workflows of the controller, which functions of the user see as well. */
  readonly others?: readonly SeenDependent[];
  /** The slots for steps that all runs of the workflow share. */
  readonly slots: Semaphore;
  readonly clock?: Run["clock"] | undefined;
  /** Told of every step that has ended. */
  readonly onStep?: ((step: StepTiming) => void) | undefined;
  readonly tracing?: Pick<Tracing, "dependent" | "changed"> | undefined;
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
  readonly #plan: RunOptions["plan"];
  readonly #clock: Run["clock"];
  readonly #seen: SecondaryFacts;
  readonly #targets: readonly Target[];
  /** The run as each dependent sees it. */
  readonly #runs: Run[];
  readonly #bulks: readonly (BulkRun | undefined)[];
  #states: NodeState[];
  readonly #outcomes: DependentOutcome[] = [];
  #running = 0;
  #onIdle: () => void = () => {};

  constructor(options: RunOptions, state: NodeState) {
    const { plan, primary, secondaries: sources, others = [], slots, clock = systemClock } = options;
    this.#options = options;
    this.#plan = plan;
    this.#clock = clock;
    this.#states = plan.nodes.map(() => state);
    this.#targets = plan.nodes.map((node) => new Target(node));
    this.#seen = { primary, dependents: [...this.#targets, ...others], sources };
    const own = { secondary: createSecondary(this.#seen), clock, slots: [slots] };
    const run: Run = Object.assign({}, options, own);
    this.#runs = plan.nodes.map(() => run);
    this.#bulks = plan.nodes.map((node, index) => {
      if (node.definition.bulk === undefined) return undefined;
      return new BulkRun(this.#targets[index]!, {
        run: () => this.#runs[index]!,
        edges: (end) => endsOf(node[end], "items").map((each) => this.#bulks[each]!),
      });
    });
  }

  async finish(): Promise<WorkflowResult> {
    const { signal } = this.#options.context;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      this.#advance();
    });
    // The items that needed an unwanted item may be gone by now.
    for (const index of this.#plan.sweepOrder) {
      const bulk = this.#bulks[index]!;
      if (bulk.isReconciled && !signal.aborted) this.#end(index, await bulk.sweep());
    }
    signal.throwIfAborted();
    const outcomes = this.#targets.map((target, index) => {
      const waiting = () => ({ kind: "waiting", for: blockersOf(this.#plan, this.#states, index) }) as const;
      return [target.definition.name, this.#outcomes[index] ?? target.withConditions(waiting())] as const;
    });
    return createWorkflowResult(outcomes);
  }

  // Every end of a step looks again, so a step never waits for another that it does not depend on.
  #advance(): void {
    if (!this.#options.context.signal.aborted) {
      const steps = nextSteps(this.#plan, this.#states);
      for (const index of steps.reconcile) void this.#settle(index, () => this.#reconcile(index));
      for (const index of steps.delete) void this.#settle(index, () => this.#delete(index));
    }
    if (this.#running === 0) this.#onIdle();
  }

  async #settle(index: number, step: () => Promise<DependentOutcome | Refusal>): Promise<void> {
    const { tracing, onStep } = this.#options;
    const dependent = this.#targets[index]!.definition.name;
    this.#running++;
    const startedAt = this.#clock.now();
    try {
      const outcome = await (tracing?.dependent(dependent, step) ?? step());
      if (typeof outcome !== "string") {
        if (outcome.kind !== "failed") await this.#targets[index]!.reconciler.finishRemovals?.(this.#options);
        this.#end(index, outcome);
      } else {
        const isActive = outcome !== INACTIVE;
        this.#states = condemn(this.#plan, this.#states, { index, because: outcome, isActive });
        if (!isActive) this.#end(index, { kind: "inactive" });
      }
    } catch (error) {
      this.#end(index, this.#targets[index]!.failure(error));
    }
    const { kind: outcome } = this.#outcomes[index] ?? {};
    // A dependent that is not wanted is told of when it has been deleted.
    if (outcome !== undefined) onStep?.({ dependent, startedAt, durationMs: this.#clock.now() - startedAt, outcome });
    this.#running--;
    this.#advance();
  }

  async #reconcile(index: number): Promise<DependentOutcome | Refusal> {
    const target = this.#targets[index]!;
    const bulk = this.#bulks[index];
    this.#states[index] = { kind: "running" };
    this.#hideMissing(index);
    const outcome = await takeStep(target.definition, this.#runs[index]!, async (run) => {
      if (!(await target.activate(run))) return INACTIVE;
      if (target.reconciler.isNamed?.(run) === false) return UNNAMED;
      if (!(await target.ask("reconcilePrecondition", run))) return UNWANTED;
      await target.desire(run);
      return bulk === undefined ? target.reconcile(run) : undefined;
    });
    return outcome ?? bulk!.reconcile(() => this.#goOn(index));
  }

  async #delete(index: number): Promise<DependentOutcome> {
    const target = this.#targets[index]!;
    const bulk = this.#bulks[index];
    const { because } = this.#states[index] as NodeState & { readonly kind: "condemned" };
    this.#states[index] = { kind: "running" };
    // The garbage collector acts only after the primary is gone: waiting for it here would never end.
    if (because === DELETED && target.reconciler.isCollected?.(this.#runs[index]!) === true) return { kind: "left" };
    const step = takeStep(target.definition, this.#runs[index]!, async (run): Promise<DependentOutcome | undefined> => {
      if (!(await target.activate(run))) return { kind: "inactive" };
      return bulk === undefined ? target.delete(run, because) : undefined;
    });
    const deletion = step.then((outcome) => outcome ?? bulk!.delete(because, () => this.#goOn(index)));
    return deletion.catch((error: unknown) => target.release(this.#runs[index]!, error));
  }

  // Others may go on with the items of a dependent as soon as its items are known.
  #goOn(index: number): void {
    this.#states[index] = { kind: "running", hasItems: true };
    this.#advance();
  }

  #end(index: number, outcome: DependentOutcome): void {
    const { hasItems = false } = this.#states[index]!;
    this.#outcomes[index] = this.#targets[index]!.withConditions(outcome);
    this.#states[index] = { hasItems, ...outcome };
  }

  // A dependent that goes on without an optional dependency does not see that, which may exist until it stopped using it.
  #hideMissing(index: number): void {
    const optional = endsOf(this.#plan.nodes[index]!.needs, "optional");
    const missing = optional.filter((each) => !isReady(this.#states[each]!)).map((each) => this.#targets[each]!);
    if (missing.length > 0)
      this.#runs[index] = { ...this.#runs[index]!, secondary: createSecondary(this.#seen, missing) };
  }
}

/** A dependent as it is looked for: a `wanted` object says which of several is meant. */
export type SeenDependent = Readonly<Pick<Target, "definition" | "reconciler" | "wanted">>;

/** What functions of the user can see besides a primary. */
export interface SecondaryFacts {
  readonly primary: KubernetesObject;
  readonly dependents: readonly SeenDependent[];
  /** The event sources of the user, whose resources stand beside the dependents. */
  readonly sources?: SecondarySources | undefined;
}

/** Returns the live dependents and lists of what event sources know, by name, read when they are asked for; nothing of `hidden` dependents. */
export function createSecondary(
  { primary, dependents, sources }: SecondaryFacts,
  hidden: readonly SeenDependent[] = [],
): object {
  const secondary = {};
  const add = (name: string, get: () => unknown) => Object.defineProperty(secondary, name, { enumerable: true, get });
  for (const dependent of dependents) {
    const { definition, reconciler } = dependent;
    const isHidden = hidden.includes(dependent);
    const single = () => (isHidden ? undefined : reconciler.find({ primary }, dependent.wanted)?.object);
    const live = () => (isHidden ? [] : [...reconciler.findItems({ primary })]);
    const items = () => Object.freeze(Object.fromEntries(live().map(([key, { object }]) => [key, object])));
    add(definition.name, definition.bulk === undefined ? single : items);
  }
  for (const name of sources?.names() ?? [])
    if (!Object.hasOwn(secondary, name)) add(name, () => sources?.get(name)?.secondariesOf(primary) ?? []);
  return secondary;
}
