// The graph of a workflow, and which dependents can be reconciled or deleted next: pure functions of the immutable plan and the state of a run.
import { checkCounts, checkNumbers, requireNumbers } from "../base/validation.js";
import type { DependentReconciler } from "./dependent-reconciler.js";
import type { DependentOutcome } from "./run.js";
import type { DependentDefinition, WorkflowDefinition } from "./workflow-definition.js";

// `required`: a dependent cannot exist without the other. `optional`: it only waits for the other if that is active and not excluded. `items`: its
// items wait for the items with the same keys.
type EdgeKind = "required" | "optional" | "items";

// An edge, as seen from one of its ends; `node` is the other end.
interface Edge {
  readonly node: PlanNode;
  readonly kind: EdgeKind;
}

/** A dependent in the graph, with its reconciler. */
export interface PlanNode {
  /** The position in the plan. */
  readonly index: number;
  readonly definition: DependentDefinition;
  readonly reconciler: DependentReconciler;
  readonly needs: readonly Edge[];
  readonly neededBy: readonly Edge[];
}

interface NewNode extends PlanNode {
  readonly neededBy: Edge[];
}

/** The dependents of a workflow in topological order. */
export type Plan = readonly PlanNode[];

/** The state of a dependent in a run. */
export type NodeState =
  | { readonly kind: "pending" }
  | { readonly kind: "running" }
  /** It must not exist, and is deleted as soon as everything that depends on it has been deleted. */
  | { readonly kind: "condemned"; readonly because: string }
  | DependentOutcome;

/** A dependent in a run. Lists of them are in the order of the plan. */
export interface Standing {
  readonly node: PlanNode;
  readonly state: NodeState;
  /** Whether the items of a bulk dependent are known, so that dependents with `itemsDependOn` can continue. */
  readonly hasItems: boolean;
}

/** Builds the graph. Throws for unknown names, duplicates, cycles, and invalid numbers, which only handwritten definitions can contain. */
export function buildPlan(
  { dependents }: WorkflowDefinition,
  reconcilerOf: (dependent: DependentDefinition) => DependentReconciler,
): Plan {
  dependents.forEach(checkLimits);
  const definitions = new Map(dependents.map((each) => [each.name, each]));
  const twice = dependents.find((each) => definitions.get(each.name) !== each);
  if (twice !== undefined) throw new Error(`the workflow has two dependents named "${twice.name}"`);
  const nodes = new Map<string, NewNode>();
  const visit = (definition: DependentDefinition, path: readonly string[]): NewNode => {
    const { name } = definition;
    if (path.includes(name))
      throw new Error(`the workflow has a cycle: ${[...path.slice(path.indexOf(name)), name].join(" → ")}`);
    const known = nodes.get(name);
    if (known !== undefined) return known;
    const needs = edgesOf(definition, definitions).map(({ needed, kind }) => {
      return { node: visit(needed, [...path, name]), kind };
    });
    const node = { index: nodes.size, definition, reconciler: reconcilerOf(definition), needs, neededBy: [] };
    for (const { node: needed, kind } of needs) needed.neededBy.push({ node, kind });
    nodes.set(name, node);
    return node;
  };
  for (const definition of dependents) visit(definition, []);
  return [...nodes.values()];
}

function checkLimits({ name, timeoutMs, retry, bulk }: DependentDefinition): void {
  const owner = `dependent "${name}"`;
  if (retry !== undefined) requireNumbers(owner, { "retry.maxRetries": [retry.maxRetries, 0] });
  checkNumbers(owner, {
    timeoutMs: [timeoutMs, 1],
    "retry.initialIntervalMs": [retry?.initialIntervalMs, 0],
    "retry.multiplier": [retry?.multiplier, 1],
    "retry.maxIntervalMs": [retry?.maxIntervalMs, 0],
  });
  checkCounts(owner, { "bulk.maxConcurrency": [bulk?.maxConcurrency, 1] });
}

function edgesOf(
  { name, dependsOn, itemsDependOn = [], bulk }: DependentDefinition,
  definitions: ReadonlyMap<string, DependentDefinition>,
) {
  const edgeTo = (other: string, kind: EdgeKind) => {
    const needed = definitions.get(other);
    if (needed !== undefined) return { needed, kind };
    throw new Error(`dependent "${name}" depends on "${other}", which the workflow does not have`);
  };
  const edges = [...new Set(dependsOn)].flatMap((each) => {
    if (typeof each === "string") return edgeTo(each, "required");
    return dependsOn.includes(each.name) ? [] : edgeTo(each.name, "optional");
  });
  const ofItems = itemsDependOn.map((each) => edgeTo(each, "items"));
  const single = bulk === undefined ? name : ofItems.find(({ needed }) => needed.bulk === undefined)?.needed.name;
  if (ofItems.length > 0 && single !== undefined)
    throw new Error(
      `dependent "${name}" has itemsDependOn (${itemsDependOn.join(", ")}), and "${single}" is no bulk dependent; use dependsOn`,
    );
  return [...edges, ...ofItems];
}

/** Returns the other ends of edges of these kinds. */
export function endsOf(edges: readonly Edge[], ...kinds: readonly EdgeKind[]): PlanNode[] {
  return edges.flatMap(({ node, kind }) => (kinds.includes(kind) ? node : []));
}

/** Returns all dependents that can be reconciled or deleted now. */
export function nextSteps<Each extends Standing>(all: readonly Each[]): { reconcile: Each[]; delete: Each[] } {
  // Hot path: called after every step with every node, so it builds no lists of waiting nodes.
  const steps: ReturnType<typeof nextSteps<Each>> = { reconcile: [], delete: [] };
  for (const each of all) {
    const { kind } = each.state;
    if (kind === "pending" && isFree(all, each)) steps.reconcile.push(each);
    if (kind === "condemned" && isFree(all, each)) steps.delete.push(each);
  }
  return steps;
}

function isFree(all: readonly Standing[], each: Standing): boolean {
  const { edges, lets } = edgesThatHold(each);
  return edges.every(({ node, kind }) => lets[kind](all[node.index]!));
}

/** Returns all dependents that must not exist if `one` must not, with the reasons: `one` itself, and everything pending that depends on it. */
export function condemnedBy<Each extends Standing>(
  all: readonly Each[],
  one: Each,
  because: string,
): Map<Each, string> {
  const condemned = new Map<Each, string>();
  const visit = (each: Each, reason: string): void => {
    // A dependent that is not pending is being deleted, or was deleted, for another reason.
    if (condemned.has(each) || (each !== one && each.state.kind !== "pending")) return;
    condemned.set(each, reason);
    const { definition, neededBy } = each.node;
    for (const next of endsOf(neededBy, "required", "items"))
      visit(all[next.index]!, `"${definition.name}" must not exist`);
  };
  visit(one, because);
  return condemned;
}

// The state that a dependency must reach before a dependent is reconciled.
const LETS_START: { readonly [Kind in EdgeKind]: (other: Standing) => boolean } = {
  required: ({ state }) => isReady(state),
  // An excluded dependency is only deleted after the dependents that continue without it are ready.
  optional: ({ state }) => isReady(state) || state.kind === "condemned" || state.kind === "inactive",
  items: ({ hasItems }) => hasItems,
};

// The state that a dependent must reach before its dependency is deleted.
const LETS_GO: typeof LETS_START = {
  required: ({ state }) => isGone(state),
  optional: ({ state }) => isGone(state) || isReady(state),
  items: ({ state, hasItems }) => isGone(state) || hasItems,
};

/** Returns the names of the dependents that block a dependent. */
export function blockersOf(all: readonly Standing[], each: Standing): string[] {
  const { edges, lets } = edgesThatHold(each);
  const blockers = edges.filter(({ node, kind }) => !lets[kind](all[node.index]!));
  return [...new Set(blockers.map(({ node }) => node.definition.name))];
}

function edgesThatHold({ node, state }: Standing) {
  return state.kind === "condemned" ? { edges: node.neededBy, lets: LETS_GO } : { edges: node.needs, lets: LETS_START };
}

export function isReady(state: NodeState): boolean {
  return "isReady" in state && state.isReady;
}

/** Reports whether a dependent or item was deleted, is inactive, or is left to the garbage collector, so that its dependencies can be deleted. */
export function isGone(state: NodeState): boolean {
  return ["inactive", "left"].includes(state.kind) || (state.kind === "deleted" && state.isGone);
}
