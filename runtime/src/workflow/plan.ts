// Which dependent of a workflow may be reconciled or deleted next: pure decisions over an immutable plan and the state of one run
// (JOSDK's WorkflowReconcileExecutor and WorkflowCleanupExecutor, without their locks).
import { checkCounts, checkNumbers, requireNumbers } from "../base/checks.js";
import type { DependentDefinition, WorkflowDefinition } from "./definition/workflow-definition.js";
import type { DependentReconciler } from "./dependents/dependent-reconciler.js";
import type { DependentOutcome } from "./workflow-result.js";

// A dependent cannot exist without another, waits for it only if that is wanted, or its items wait for the items of the same keys.
type EdgeKind = "required" | "optional" | "items";

// An edge of the graph, as one of its two ends sees it; `node` is the index of the other end.
interface Edge {
  readonly node: number;
  readonly kind: EdgeKind;
}

/** A dependent in the graph. */
export interface PlanNode {
  readonly definition: DependentDefinition;
  readonly needs: readonly Edge[];
  readonly neededBy: readonly Edge[];
}

/** A dependent in the graph, and what finds and writes its objects. */
export interface ReconciledNode extends PlanNode {
  readonly reconciler: DependentReconciler;
}

/** The graph of a workflow. */
export interface Plan<Node extends PlanNode = PlanNode> {
  readonly nodes: readonly Node[];
  /** The bulk dependents whose items others need, each after those that need them. */
  readonly sweepOrder: readonly number[];
}

/** Where a dependent stands in a run. `hasItems`: its items are known, so items of other dependents that need one of them can go on. */
export type NodeState = { readonly hasItems?: boolean } & (
  | { readonly kind: "pending" | "running" }
  /** It must not exist; it is deleted as soon as all that depends on it is gone. */
  | { readonly kind: "condemned"; readonly because: string }
  | DependentOutcome
);

/** Builds the graph; throws for unknown names, duplicates, cycles and impossible numbers, which only a hand-written definition can have. */
export function buildPlan({ dependents }: WorkflowDefinition): Plan {
  const indexes = new Map<string, number>();
  for (const [index, definition] of dependents.entries()) {
    const { name } = definition;
    checkLimits(definition);
    if (indexes.has(name)) throw new Error(`the workflow has two dependents named "${name}"`);
    indexes.set(name, index);
  }
  const needs = dependents.map((definition) => edgesOf(definition, dependents, indexes));
  const sweepOrder = sorted(dependents, needs).reverse();
  const nodes = dependents.map((definition, index) => ({
    definition,
    needs: needs[index]!,
    neededBy: needs.flatMap((edges, node) => edges.flatMap((edge) => (edge.node === index ? { ...edge, node } : []))),
  }));
  return { nodes, sweepOrder: sweepOrder.filter((index) => endsOf(nodes[index]!.neededBy, "items").length > 0) };
}

/** Returns the graph with a reconciler for each dependent. */
export function withReconcilers(
  plan: Plan,
  reconcilerOf: (node: PlanNode) => DependentReconciler,
): Plan<ReconciledNode> {
  return { ...plan, nodes: plan.nodes.map((node) => ({ ...node, reconciler: reconcilerOf(node) })) };
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
  dependents: readonly DependentDefinition[],
  indexes: ReadonlyMap<string, number>,
): Edge[] {
  const edgeTo = (needed: string, kind: EdgeKind): Edge => {
    const node = indexes.get(needed);
    if (node !== undefined) return { node, kind };
    throw new Error(`dependent "${name}" depends on "${needed}", which the workflow does not have`);
  };
  const edges = [...new Set(dependsOn)].flatMap((each) => {
    if (typeof each === "string") return edgeTo(each, "required");
    return dependsOn.includes(each.name) ? [] : edgeTo(each.name, "optional");
  });
  const ofItems = itemsDependOn.map((needed) => edgeTo(needed, "items"));
  const single = bulk === undefined ? name : itemsDependOn.find((_, at) => !dependents[ofItems[at]!.node]!.bulk);
  if (ofItems.length > 0 && single !== undefined)
    throw new Error(
      `dependent "${name}" has itemsDependOn (${itemsDependOn.join(", ")}), and "${single}" is no bulk dependent; use dependsOn`,
    );
  return [...edges, ...ofItems];
}

/** Returns the nodes, each after those it needs. */
function sorted(dependents: readonly DependentDefinition[], needs: readonly (readonly Edge[])[]): number[] {
  const done = new Set<number>();
  const visit = (index: number, path: readonly number[]): void => {
    if (path.includes(index)) {
      const names = [...path.slice(path.indexOf(index)), index].map((each) => dependents[each]!.name);
      throw new Error(`the workflow has a cycle: ${names.join(" → ")}`);
    }
    if (done.has(index)) return;
    for (const { node } of needs[index]!) visit(node, [...path, index]);
    done.add(index);
  };
  for (const index of dependents.keys()) visit(index, []);
  return [...done];
}

/** Returns the other ends of edges of these kinds. */
export function endsOf(edges: readonly Edge[], ...kinds: readonly EdgeKind[]): number[] {
  return edges.flatMap(({ node, kind }) => (kinds.includes(kind) ? node : []));
}

/** Returns the dependents that may be reconciled or deleted now, all at once. */
export function nextSteps(plan: Plan, states: readonly NodeState[]): { reconcile: number[]; delete: number[] } {
  // Every end of a step looks at every node again, so nothing is made for those that go on waiting.
  const steps: ReturnType<typeof nextSteps> = { reconcile: [], delete: [] };
  for (let index = 0; index < states.length; index++) {
    const { kind } = states[index]!;
    if (kind === "pending" && isFree(plan, states, index)) steps.reconcile.push(index);
    if (kind === "condemned" && isFree(plan, states, index)) steps.delete.push(index);
  }
  return steps;
}

function isFree(plan: Plan, states: readonly NodeState[], index: number): boolean {
  const { edges, lets } = edgesThatHold(plan, states, index);
  return edges.every(({ node, kind }) => lets[kind](states[node]!));
}

/** Returns the states after it turned out that a dependent must not exist: all that depends on it must not exist either. */
export function condemn(
  { nodes }: Plan,
  states: readonly NodeState[],
  { index, because, isActive }: { index: number; because: string; isActive: boolean },
): NodeState[] {
  const next = [...states];
  const visit = (each: number, reason: string): void => {
    // A dependent that no longer waits is being deleted, or was, for another reason: once is enough.
    if (each !== index && next[each]!.kind !== "pending") return;
    next[each] = { kind: "condemned", because: reason };
    const { definition, neededBy } = nodes[each]!;
    for (const next of endsOf(neededBy, "required", "items")) visit(next, `"${definition.name}" must not exist`);
  };
  visit(index, because);
  // An inactive dependent counts as absent: only what depends on it is deleted.
  if (!isActive) next[index] = { kind: "inactive" };
  return next;
}

// What a dependent that an edge leads to must have reached before a dependent is reconciled.
const LETS_START: { readonly [Kind in EdgeKind]: (state: NodeState) => boolean } = {
  required: isReady,
  // The deletion of an unwanted dependency starts only after what goes on without it is ready.
  optional: (state) => isReady(state) || state.kind === "condemned" || state.kind === "inactive",
  items: ({ hasItems = false }) => hasItems,
};

// What a dependent that depends on another must have reached before the other is deleted.
const LETS_GO: typeof LETS_START = {
  required: isGone,
  optional: (state) => isGone(state) || isReady(state),
  items: (state) => isGone(state) || state.hasItems === true,
};

/** Returns the names of the dependents that hold a dependent back. */
export function blockersOf(plan: Plan, states: readonly NodeState[], index: number): string[] {
  const { edges, lets } = edgesThatHold(plan, states, index);
  const blockers = edges.filter(({ node, kind }) => !lets[kind](states[node]!));
  return [...new Set(blockers.map(({ node }) => plan.nodes[node]!.definition.name))];
}

function edgesThatHold({ nodes }: Plan, states: readonly NodeState[], index: number) {
  const isDeleted = states[index]!.kind === "condemned";
  return isDeleted
    ? { edges: nodes[index]!.neededBy, lets: LETS_GO }
    : { edges: nodes[index]!.needs, lets: LETS_START };
}

/** Tells whether a dependent, or an item of one, exists and is ready. */
export function isReady(state: NodeState): boolean {
  return "isReady" in state && state.isReady;
}

/** Tells whether a dependent, or an item of one, is gone, or left to whoever deletes it, so that what it needs can be deleted. */
export function isGone(state: NodeState): boolean {
  return ["inactive", "left"].includes(state.kind) || (state.kind === "deleted" && state.isGone);
}
