import { messageOf } from "../base/logger.js";
import { keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { SecondarySources } from "../cluster/secondary-sources.js";
import type { DependentDriver, DriverRun, Live, Wanted, WriteOutcome } from "./driver.js";
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
import {
  isKubernetes,
  type Condition,
  type ConditionArguments,
  type Conditions,
  type Context,
} from "./workflow-definition.js";
import type { DependentOutcome, WorkflowResult } from "./workflow-result.js";

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
  /** Calls a function of the user under a name, so that it can be said which one does not return. */
  readonly track: <Result>(what: string, task: () => Result | Promise<Result>) => Promise<Result>;
  /** The event sources of the user, whose resources stand beside the dependents. */
  readonly secondaries?: SecondarySources | undefined;
}

type SecondaryFacts = Pick<RunOptions, "plan" | "drivers" | "primary" | "secondaries">;

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
  readonly #wanted: (Wanted | undefined)[] = [];
  readonly #written: (WriteOutcome | undefined)[] = [];
  readonly #driverRun: DriverRun;
  readonly #isLeft: boolean[] = [];

  constructor(options: RunOptions, states: NodeState[], { isCleanup = false }: { isCleanup?: boolean } = {}) {
    const { primary, context, definition, namespaces } = options;
    this.#options = options;
    this.#states = states;
    this.#isCleanup = isCleanup;
    this.#driverRun = {
      primary,
      secondary: createSecondary(options, this.#wanted),
      context: context as DriverRun["context"],
      definition,
      namespaces,
    };
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
    const { plan, primary, context, drivers, track } = this.#options;
    const { definition } = this.#node(index);
    const driver = drivers[index]!;
    if (!(await this.#isMet("activationCondition", index))) {
      await driver.deactivate(keyOf(primary.metadata));
      const because = "its activation condition does not hold";
      this.#states = condemn(plan, this.#states, { index, because, isActive: false });
      return;
    }
    if (definition.activationCondition !== undefined) await this.#activate(index);
    if (!(await this.#isMet("reconcilePrecondition", index))) {
      const because = "its reconcile precondition does not hold";
      this.#states = condemn(plan, this.#states, { index, because, isActive: true });
      return;
    }
    const run = this.#driverRun;
    const { desired } = definition;
    if (!driver.capabilities.write) {
      this.#states[index] = { kind: "reconciled", isReady: await this.#isReadReady(index) };
      return;
    }
    if (desired === undefined) throw new Error("it has no desired()");
    const what = `desired() of dependent "${definition.name}"`;
    const wanted = driver.complete(run, await track(what, () => desired(run as never)));
    this.#wanted[index] = wanted;
    const live = this.#live(index);
    context.signal.throwIfAborted();
    const written = await driver.write(run, wanted, live);
    this.#written[index] = written;
    const isReady = written !== "waiting" && (await this.#isMet("readyPostcondition", index));
    this.#states[index] = { kind: "reconciled", isReady };
  }

  // What is only read is ready when it is there, and its condition holds.
  async #isReadReady(index: number): Promise<boolean> {
    return this.#live(index) !== undefined && (await this.#isMet("readyPostcondition", index));
  }

  async #delete(index: number, because: string): Promise<void> {
    const driver = this.#options.drivers[index]!;
    if (this.#node(index).definition.activationCondition !== undefined) {
      if (!(await this.#isMet("activationCondition", index))) {
        this.#states[index] = { kind: "inactive" };
        return;
      }
      await this.#activate(index);
    }
    const live = this.#live(index);
    const { capabilities, isGarbageCollected } = driver;
    const isLeft = !capabilities.remove || (this.#isCleanup && isGarbageCollected);
    if (live !== undefined && !isLeft) await driver.remove(this.#driverRun, live);
    this.#isLeft[index] = isLeft;
    // The garbage collector acts when the primary is gone: waiting for it here would be for ever.
    const isGone = isLeft || (await this.#isMet("deletePostcondition", index));
    this.#states[index] = { kind: "deleted", because, isGone };
  }

  #activate(index: number): Promise<void> {
    const { drivers, primary, track } = this.#options;
    const what = `the watch of dependent "${this.#node(index).definition.name}"`;
    return track(what, () => drivers[index]!.activate(keyOf(primary.metadata)));
  }

  async #isMet(name: keyof Conditions, index: number): Promise<boolean> {
    const { definition } = this.#node(index);
    const condition: Condition<never, never> | undefined = definition[name];
    if (condition === undefined) return true;
    const kind = isKubernetes(definition) ? { definition: definition.resource } : {};
    const { client } = this.#options.drivers[index]!;
    const cluster = client === undefined ? {} : { client };
    const dependent = { name: definition.name, ...kind, ...cluster, live: this.#live(index)?.object };
    const args: ConditionArguments<KubernetesObject, object> = { ...this.#driverRun, dependent };
    const result = await this.#options.track(`a condition of dependent "${definition.name}"`, () =>
      condition(args as never),
    );
    return typeof result === "object" ? result.isMet : result;
  }

  #live(index: number): Live | undefined {
    return this.#options.drivers[index]!.find(this.#driverRun, this.#wanted[index]);
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
      case "reconciled": {
        const written = this.#written[index] ?? "unchanged";
        if (written === "waiting") return { kind: "waiting", for: [], because: "the object is being deleted" };
        return { kind: written, isReady: state.isReady };
      }
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
  { plan, drivers, primary, secondaries }: SecondaryFacts,
  wanted: readonly (Wanted | undefined)[],
): object {
  const secondary = {};
  plan.nodes.forEach((node, index) => {
    const get = () => drivers[index]!.find({ primary }, wanted[index])?.object;
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
