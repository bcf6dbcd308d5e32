import { messageOf } from "../base/logger.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource } from "../cluster/decode-resource.js";
import type { ResourceView } from "../cluster/resource-view.js";
import type { SecondarySources } from "../cluster/secondary-sources.js";
import type { Writer, Written } from "../write/apply.js";
import { completeDesired, findLive, keyOfDesired } from "./dependent-object.js";
import {
  blockersOf,
  condemn,
  condemnAll,
  nextSteps,
  pendAll,
  type NodeState,
  type Plan,
  type PlanNode,
} from "./plan.js";
import type { Condition, ConditionArguments, Context } from "./workflow-definition.js";
import type { DependentOutcome, WorkflowResult } from "./workflow-result.js";

/** Where the objects of a dependent are known. */
export interface DependentSource {
  readonly cache: ResourceView;
  /**
   * Starts watching, where an activation condition decides about that; resolves when the state is known. Throws if it cannot be known
   * now; then the primary is reconciled again when it is.
   */
  activate(primary: ObjectKey): Promise<void>;
  /** Says that a primary does not need the dependent; with the last one the watch ends. */
  deactivate(primary: ObjectKey): Promise<void>;
}

/** Everything that one run needs. */
export interface RunOptions {
  readonly plan: Plan;
  /** As many as the plan has nodes, in its order. */
  readonly sources: readonly DependentSource[];
  readonly definition: ResourceDefinition;
  /** The namespaces that the controller watches; all of them if absent. */
  readonly namespaces?: readonly string[] | undefined;
  readonly primary: KubernetesObject;
  readonly writer: Writer;
  readonly context: Context;
  /** Calls a function of the user under a name, so that it can be said which one does not return. */
  readonly track: <Result>(what: string, task: () => Result | Promise<Result>) => Promise<Result>;
  /** The event sources of the user, whose resources stand beside the dependents. */
  readonly secondaries?: SecondarySources | undefined;
}

type SecondaryFacts = Pick<RunOptions, "plan" | "sources" | "primary" | "secondaries">;

/** Thrown when dependents failed; the errors are its parts, each with the name of the dependent. */
export class WorkflowError extends AggregateError {
  override readonly name = "WorkflowError";
}

/** Makes all dependents of a primary as they should be; independent ones at once, each as soon as what it depends on is ready. */
export function reconcileWorkflow(options: RunOptions): Promise<WorkflowResult> {
  return new WorkflowRun(options, pendAll(options.plan)).finish();
}

/** Deletes the dependents of a primary in reverse order; garbage-collected ones are left to Kubernetes. */
export function cleanupWorkflow(options: RunOptions): Promise<WorkflowResult> {
  return new WorkflowRun(options, condemnAll(options.plan), { isCleanup: true }).finish();
}

/** Returns the live dependents by name, and lists of what each event source of the user has; read when they are asked for. */
export function secondaryOf(options: SecondaryFacts): object {
  return createSecondary(options, []);
}

/** The state of one run, which is thrown away with it. */
class WorkflowRun {
  readonly #options: RunOptions;
  readonly #isCleanup: boolean;
  #states: NodeState[];
  readonly #desiredKeys: (ObjectKey | undefined)[] = [];
  readonly #written: (Written["kind"] | undefined)[] = [];
  readonly #secondary: object;
  readonly #isLeft: boolean[] = [];

  constructor(options: RunOptions, states: NodeState[], { isCleanup = false }: { isCleanup?: boolean } = {}) {
    this.#options = options;
    this.#states = states;
    this.#isCleanup = isCleanup;
    this.#secondary = createSecondary(options, this.#desiredKeys);
  }

  async finish(): Promise<WorkflowResult> {
    await this.#advance();
    return this.#result();
  }

  // Starts whatever may start now; every end of a step looks again, so a step never waits for another that it does not depend on.
  async #advance(): Promise<void> {
    const steps = nextSteps(this.#options.plan, this.#states);
    const start = (index: number, body: (index: number) => Promise<void>) => {
      this.#states[index] = { kind: "running" };
      return body(index)
        .catch(
          (error: unknown) => void (this.#states[index] = { kind: "failed", error: named(this.#node(index), error) }),
        )
        .then(() => this.#advance());
    };
    const reasons = steps.delete.map((index) => (this.#states[index] as { because: string }).because);
    await Promise.all([
      ...steps.reconcile.map((index) => start(index, () => this.#reconcile(index))),
      ...steps.delete.map((index, each) => start(index, () => this.#delete(index, reasons[each]!))),
    ]);
  }

  async #reconcile(index: number): Promise<void> {
    const { plan, primary, definition, namespaces, writer, context, sources, track } = this.#options;
    const node = this.#node(index);
    const source = sources[index]!;
    const { activationCondition, reconcilePrecondition, readyPostcondition, desired } = node.definition;
    if (!(await this.#holds(activationCondition, index))) {
      await source.deactivate(keyOf(primary.metadata));
      this.#states = condemn(plan, this.#states, {
        index,
        because: "its activation condition does not hold",
        isActive: false,
      });
      return;
    }
    if (activationCondition !== undefined) await this.#activate(index);
    if (!(await this.#holds(reconcilePrecondition, index))) {
      this.#states = condemn(plan, this.#states, {
        index,
        because: "its reconcile precondition does not hold",
        isActive: true,
      });
      return;
    }
    const args = { primary, secondary: this.#secondary, context } as never;
    const wanted = await track(`desired() of dependent "${node.definition.name}"`, () => desired(args));
    const complete = completeDesired(wanted, { node, primary, definition, namespaces });
    this.#desiredKeys[index] = keyOfDesired(complete);
    const live = this.#live(index);
    context.signal.throwIfAborted();
    const target = { definition: node.definition.resource, cache: source.cache };
    const written = await writer.apply(target, complete, { live });
    this.#written[index] = written.kind;
    if (written.verdict !== undefined && live !== undefined)
      context.logger.debug(
        { dependent: node.definition.name, ...written.verdict },
        "the live object was not as desired",
      );
    this.#states[index] = { kind: "reconciled", isReady: await this.#holds(readyPostcondition, index) };
  }

  async #delete(index: number, because: string): Promise<void> {
    const { writer, sources } = this.#options;
    const { activationCondition, deletePostcondition, isGarbageCollected, resource } = this.#node(index).definition;
    if (activationCondition !== undefined) {
      if (!(await this.#holds(activationCondition, index))) {
        this.#states[index] = { kind: "inactive" };
        return;
      }
      await this.#activate(index);
    }
    const live = this.#live(index);
    const isLeft = this.#isCleanup && isGarbageCollected;
    if (live !== undefined && !isLeft && live.object.metadata.deletionTimestamp === undefined)
      await writer.delete({ definition: resource, cache: sources[index]!.cache }, live.object);
    this.#isLeft[index] = isLeft;
    // The garbage collector acts when the primary is gone: waiting for it here would be for ever.
    const isGone = isLeft || (await this.#holds(deletePostcondition, index));
    this.#states[index] = { kind: "deleted", because, isGone };
  }

  #activate(index: number): Promise<void> {
    const { sources, primary, track } = this.#options;
    const what = `the watch of dependent "${this.#node(index).definition.name}"`;
    return track(what, () => sources[index]!.activate(keyOf(primary.metadata)));
  }

  async #holds(condition: Condition<never, never> | undefined, index: number): Promise<boolean> {
    if (condition === undefined) return true;
    const { primary, context, track } = this.#options;
    const { name, resource } = this.#node(index).definition;
    const args: ConditionArguments<KubernetesObject, object> = {
      primary,
      secondary: this.#secondary,
      context,
      dependent: { name, definition: resource, live: this.#live(index)?.object },
    };
    return track(`a condition of dependent "${name}"`, () => condition(args as never));
  }

  #live(index: number): DecodedResource | undefined {
    const { sources, primary } = this.#options;
    const options = {
      node: this.#node(index),
      primaryKey: keyOf(primary.metadata),
      desiredKey: this.#desiredKeys[index],
    };
    return findLive(sources[index]!.cache, options);
  }

  #node(index: number): PlanNode {
    return this.#options.plan.nodes[index]!;
  }

  #result(): WorkflowResult {
    const { plan } = this.#options;
    const outcomes = plan.nodes.map((node, index) => [node.definition.name, this.#outcome(index)] as const);
    const errors = new Map(
      outcomes.flatMap(([name, outcome]) => (outcome.kind === "failed" ? [[name, outcome.error]] : [])),
    );
    const isReady = outcomes.every(([, outcome]) => ("isReady" in outcome ? outcome.isReady : isSettled(outcome)));
    return { dependents: Object.fromEntries(outcomes), isReady, errors };
  }

  #outcome(index: number): DependentOutcome {
    const state = this.#states[index]!;
    switch (state.kind) {
      case "reconciled":
        return { kind: this.#written[index] ?? "unchanged", isReady: state.isReady };
      case "deleted":
        if (this.#isLeft[index] === true) return { kind: "left" };
        return { kind: "deleted", isGone: state.isGone, because: state.because };
      case "inactive":
      case "failed":
        return state;
      default:
        return { kind: "waiting", for: blockersOf(this.#options.plan, this.#states, index) };
    }
  }
}

// What must not exist does not keep a workflow from being ready, once it is gone.
function isSettled(outcome: DependentOutcome): boolean {
  return outcome.kind === "inactive" || outcome.kind === "left" || (outcome.kind === "deleted" && outcome.isGone);
}

function createSecondary(
  { plan, sources, primary, secondaries }: SecondaryFacts,
  desiredKeys: (ObjectKey | undefined)[],
): object {
  const primaryKey = keyOf(primary.metadata);
  const secondary = {};
  plan.nodes.forEach((node, index) => {
    const get = () => findLive(sources[index]!.cache, { node, primaryKey, desiredKey: desiredKeys[index] })?.object;
    Object.defineProperty(secondary, node.definition.name, { enumerable: true, get });
  });
  for (const name of secondaries?.names() ?? []) {
    if (Object.hasOwn(secondary, name)) continue;
    const get = () => secondaries?.get(name)?.secondariesOf(primary) ?? [];
    Object.defineProperty(secondary, name, { enumerable: true, get });
  }
  return secondary;
}

function named({ definition: { name } }: PlanNode, error: unknown): Error {
  return new Error(`dependent "${name}": ${messageOf(error)}`, { cause: error });
}
