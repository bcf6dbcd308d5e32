// One run of a workflow (JOSDK WorkflowReconcileExecutor and WorkflowCleanupExecutor): starts each step as soon as its dependencies allow, and
// collects the outcomes.
import { type KubernetesObject, isTerminating } from "../base/kubernetes-object.js";
import { isWritten } from "../base/logger.js";
import { type Clock, type Semaphore, systemClock } from "../base/wait.js";
import type { SecondarySources } from "../sources/controller-sources.js";
import { BulkRun } from "./bulk.js";
import type { Context } from "./context.js";
import type {
  DependentReconciler,
  DiscoveredObjects,
  FindRun,
  Live,
  Reconcile,
  Wanted,
} from "./dependent-reconciler.js";
import {
  type NodeState,
  type Plan,
  type Standing,
  blockersOf,
  condemnedBy,
  endsOf,
  isReady,
  nextSteps,
} from "./plan.js";
import { type Run, Target, takeStep } from "./step.js";
import { type DependentDefinition, isHeldForCleanup, needsCleanup } from "./workflow-definition.js";
import { type DependentOutcome, type WorkflowResult, createWorkflowResult, logOutcome } from "./workflow-result.js";

const INACTIVE = "its activationCondition is false";
const DELETED = "the primary is being deleted";
const CLEANED_UP = "the reconciler cleaned up";
const UNWANTED = "its reconcilePrecondition is false";
const UNNAMED = "ref names no object for this primary";

/** Why a dependent must not exist. */
type Refusal = typeof INACTIVE | typeof UNWANTED | typeof UNNAMED;

/** How many steps of a workflow run at once. Default of `maxConcurrency` */
export const MOST_STEPS_AT_ONCE = 50;

/** A workflow as it runs, for all primaries. */
export interface RunnableWorkflow {
  readonly plan: Plan;
  /** The dependents of the other workflows of the controller, which `secondary` shows as well. */
  readonly others?: readonly SeenDependent[];
  /** Limits the concurrent steps of all runs of the workflow. */
  readonly slots: Semaphore;
}

/** One run of a workflow in a reconcile. */
export interface RunOptions extends RunnableWorkflow {
  readonly reconcile: Reconcile;
  /** As functions of the user get it in this run. */
  readonly primary: KubernetesObject;
  readonly context: Context;
}

/** Reconciles all dependents of a primary, each as soon as its dependencies are ready. */
export function reconcileWorkflow(options: RunOptions): Promise<WorkflowResult> {
  return new WorkflowRun(options, { kind: "pending" }).finish();
}

/** Deletes the dependents of a primary in reverse order. If the primary is being deleted, garbage-collected ones are left. */
export function cleanupWorkflow(options: RunOptions): Promise<WorkflowResult> {
  const isDeleted = isTerminating(options.primary);
  return new WorkflowRun(options, { kind: "condemned", because: isDeleted ? DELETED : CLEANED_UP }).finish();
}

/**
 * Deletes objects that have to be cleaned up and that the watches do not show, because another client removed their label; in reverse order, one
 * dependent at a time. Returns whether there are any.
 */
export async function removeUnseen(options: RunOptions): Promise<boolean> {
  const { plan, primary, reconcile, others = [], context } = options;
  const targets = plan.map((node) => new Target(node));
  const { notes, secondaries: sources, track } = reconcile;
  const { discovered } = notes;
  const secondary = createSecondary({ primary, dependents: [...targets, ...others], sources, discovered });
  const run: Run = { reconcile, primary, secondary, context, track, slots: [] };
  for (const { definition, reconciler } of targets.toReversed()) {
    if (!needsCleanup(definition) || !reconciler.capabilities.remove) continue;
    await new Target({ definition, reconciler }).discover(run, { isConfirming: true });
    const found = discovered.entriesOf(definition.name);
    for (const entry of found) if (!isTerminating(entry.object)) await reconciler.remove(run, entry);
    if (found.length > 0) return true;
  }
  return false;
}

/** The state of a dependent in one run. */
interface Step extends Standing {
  readonly target: Target;
  /** The items of a bulk dependent. */
  bulk: BulkRun | undefined;
  /** The run as the dependent sees it. */
  run: Run;
  state: NodeState;
  hasItems: boolean;
}

class WorkflowRun {
  readonly #options: RunOptions;
  readonly #clock: Clock;
  readonly #seen: SecondaryFacts;
  readonly #steps: Step[] = [];
  #running = 0;
  #onIdle: () => void = () => {};

  constructor(options: RunOptions, state: NodeState) {
    const { plan, primary, reconcile, others = [], slots, context } = options;
    const { notes, secondaries: sources, clock = systemClock, track } = reconcile;
    this.#options = options;
    this.#clock = clock;
    const targets = plan.map((node) => new Target(node));
    const { discovered } = notes;
    this.#seen = { primary, dependents: [...targets, ...others], sources, discovered };
    const present = isTerminating(primary) ? createSecondary(this.#seen, { isPresent: true }) : undefined;
    const secondary = createSecondary(this.#seen);
    const run: Run = { reconcile, primary, secondary, present, context, track, slots: [slots] };
    for (const node of plan) {
      const step: Step = { node, target: targets[node.index]!, bulk: undefined, run, state, hasItems: false };
      const needs = endsOf(node.needs, "items").map((each) => this.#steps[each.index]!.bulk!);
      if (node.definition.bulk !== undefined) step.bulk = new BulkRun(step, needs);
      this.#steps.push(step);
    }
  }

  async finish(): Promise<WorkflowResult> {
    const { signal } = this.#options.context;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      this.#advance();
    });
    // Items that needed an undesired item may be gone by now.
    for (const step of this.#steps.toReversed())
      if (step.bulk?.isUnswept === true && !signal.aborted) this.#end(step, await step.bulk.sweep());
    signal.throwIfAborted();
    const outcomes = this.#steps.map((step) => {
      const { target, state } = step;
      const isOver = state.kind !== "pending" && state.kind !== "running" && state.kind !== "condemned";
      const waiting = () => ({ kind: "waiting", for: blockersOf(this.#steps, step) }) as const;
      return [target.definition.name, isOver ? state : target.withConditions(waiting())] as const;
    });
    const { logger } = this.#options.context;
    if (isWritten(logger, "debug")) for (const [name, outcome] of outcomes) logOutcome(logger, name, outcome);
    return createWorkflowResult(outcomes);
  }

  // Called after every step, so that no step waits for another one that it does not depend on.
  #advance(): void {
    if (!this.#options.context.signal.aborted) {
      const next = nextSteps(this.#steps);
      for (const step of next.reconcile) void this.#settle(step, () => this.#reconcile(step));
      for (const step of next.delete) void this.#settle(step, () => this.#delete(step));
    }
    if (this.#running === 0) this.#onIdle();
  }

  async #settle(step: Step, work: () => Promise<DependentOutcome | Refusal>): Promise<void> {
    const { reconcile } = this.#options;
    const { tracing } = reconcile;
    const { target } = step;
    const { name: dependent } = target.definition;
    this.#running++;
    const startedAt = this.#clock.now();
    try {
      const outcome = await (tracing?.dependent(dependent, work) ?? work());
      if (typeof outcome !== "string") {
        if (outcome.kind !== "failed") await target.reconciler.finishRemovals?.(this.#options);
        this.#end(step, outcome);
      } else {
        step.bulk?.fail(new Error(outcome));
        const condemned = condemnedBy(this.#steps, step, outcome);
        for (const [each, because] of condemned) each.state = { kind: "condemned", because };
        // An inactive dependent counts as absent: only what depends on it is deleted.
        if (outcome === INACTIVE) this.#end(step, { kind: "inactive" });
      }
    } catch (error) {
      step.bulk?.fail(error);
      this.#end(step, target.failure(error));
    }
    const { kind: outcome } = step.state;
    // Unwanted dependents are reported after their deletion.
    if (outcome !== "condemned")
      reconcile.onStep?.({ dependent, startedAt, durationMs: this.#clock.now() - startedAt, outcome });
    this.#running--;
    this.#advance();
  }

  async #reconcile(step: Step): Promise<DependentOutcome | Refusal> {
    const { target, bulk } = step;
    step.state = { kind: "running" };
    this.#hideMissing(step);
    for (;;) {
      const outcome = await takeStep(target.definition, step.run, async (run) => {
        if (!(await target.activate(run))) return INACTIVE;
        if (target.reconciler.isNamed?.(run) === false) return UNNAMED;
        if (!(await target.ask("reconcilePrecondition", run))) return UNWANTED;
        await target.guardCleanup(run);
        await target.desire(run);
        const waiting = await target.waitForKnown(run);
        if (waiting !== undefined) return waiting;
        return bulk === undefined ? target.reconcile(run) : undefined;
      });
      const result = outcome ?? (await bulk!.reconcile(() => this.#goOn(step)));
      if (result !== "unseen") return result;
      target.restart(step.run);
    }
  }

  async #delete(step: Step): Promise<DependentOutcome> {
    const { target, bulk, run } = step;
    const { because } = step.state as NodeState & { readonly kind: "condemned" };
    step.state = { kind: "running" };
    const activate = (run: Run) => target.activate(run, { isDeletion: true });
    // The object is held until the end of the cleanup, which releases it by the watch.
    if (because === DELETED && isHeldForCleanup(target.definition)) await takeStep(target.definition, run, activate);
    // The garbage collector acts only after the primary is gone, so waiting for it here would never end.
    if (because === DELETED && target.reconciler.isCollected?.(run) === true) return { kind: "left" };
    const deletion = takeStep(target.definition, run, async (run): Promise<DependentOutcome | undefined> => {
      if (because === DELETED) await this.#activateInputs(step, run);
      if (!(await activate(run))) return { kind: "inactive" };
      // Nothing may be left when the primary is deleted.
      const waiting = because === DELETED ? await target.waitForKnown(run) : undefined;
      if (waiting !== undefined) return waiting;
      return bulk === undefined ? target.delete(run, because) : undefined;
    }).then((outcome) => outcome ?? bulk!.delete(because, () => this.#goOn(step)));
    return deletion.catch((error: unknown) => target.release(run, error));
  }

  // Functions that run in a cleanup read the dependencies, whose watches do not run yet after a restart of the operator.
  async #activateInputs({ node }: Step, run: Run): Promise<void> {
    const inputs = new Set(node.needs);
    for (const { node } of inputs) for (const edge of node.needs) inputs.add(edge);
    const targets = [...inputs].map(({ node: { index } }) => this.#steps[index]!.target);
    await Promise.all(targets.map((target) => target.activate(run, { isDeletion: true })));
  }

  // Dependents with itemsDependOn continue as soon as the items are known.
  #goOn(step: Step): void {
    step.hasItems = true;
    this.#advance();
  }

  #end(step: Step, outcome: DependentOutcome): void {
    step.state = step.target.withConditions(outcome);
  }

  // A dependent that continues without an optional dependency does not see it in `secondary`, though it may still exist.
  #hideMissing(step: Step): void {
    const optional = endsOf(step.node.needs, "optional").map((each) => this.#steps[each.index]!);
    const missing = optional.filter(({ state }) => !isReady(state)).map(({ target }) => target);
    if (missing.length === 0) return;
    const { reconcile, primary, present, context, track, slots } = step.run;
    const secondary = createSecondary(this.#seen, { hidden: missing });
    step.run = { reconcile, primary, secondary, present, context, track, slots };
  }
}

/** A dependent that `secondary` shows; `wanted` tells which of several objects. */
export interface SeenDependent {
  readonly definition: DependentDefinition;
  readonly reconciler: DependentReconciler;
  readonly wanted?: Wanted | undefined;
}

/** What `secondary` shows. */
export interface SecondaryFacts {
  readonly primary: KubernetesObject;
  readonly dependents: readonly SeenDependent[];
  /** The event sources of the user. */
  readonly sources?: SecondarySources | undefined;
  /** Objects that the watches do not show. */
  readonly discovered?: DiscoveredObjects | undefined;
}

interface SecondaryOptions {
  readonly hidden?: readonly SeenDependent[];
  /** Whether the last states of deleted objects are left out while the primary is being deleted. */
  readonly isPresent?: boolean;
}

/**
 * Creates `secondary`: the live objects of dependents and of event sources by name, which are looked up on access. While the primary is being
 * deleted, an object that another client deleted is shown in its last state, as the cleanup may need it.
 */
export function createSecondary(
  { primary, dependents, sources, discovered }: SecondaryFacts,
  { hidden = [], isPresent = !isTerminating(primary) }: SecondaryOptions = {},
): object {
  const secondary = {};
  const run = { primary, ...(discovered && { discovered }) };
  const add = (name: string, get: () => unknown) => Object.defineProperty(secondary, name, { enumerable: true, get });
  for (const dependent of dependents) {
    const isHidden = hidden.includes(dependent);
    add(dependent.definition.name, () => visibleOf(dependent, run, { isHidden, isPresent }));
  }
  for (const name of sources?.names() ?? [])
    if (!Object.hasOwn(secondary, name)) add(name, () => sources?.get(name)?.secondariesOf(primary) ?? []);
  return secondary;
}

function visibleOf(
  { definition, reconciler, wanted }: SeenDependent,
  run: FindRun,
  { isHidden, isPresent }: { readonly isHidden: boolean; readonly isPresent: boolean },
): unknown {
  if (definition.bulk === undefined) {
    if (isHidden) return undefined;
    return reconciler.find(run, wanted)?.object ?? (isPresent ? undefined : reconciler.lastSeen?.(run)?.object);
  }
  if (isHidden) return itemsOf([]);
  const lastSeen = isPresent ? [] : (reconciler.lastSeenItems?.(run) ?? []);
  return itemsOf([...lastSeen, ...reconciler.findItems(run)]);
}

/** Returns the items sorted by key. A later entry replaces an earlier one, such as the last state of an item that exists again. */
function itemsOf(entries: readonly (readonly [string, Live])[]): object {
  const byKey = new Map(entries.map(([key, { object }]) => [key, object]));
  return Object.freeze(Object.fromEntries([...byKey.keys()].sort().map((key) => [key, byKey.get(key)])));
}
