// Which dependent of a workflow may be reconciled or deleted next: pure decisions over an immutable plan and the state of one run
// (JOSDK's WorkflowReconcileExecutor and WorkflowCleanupExecutor, without their locks).
import { checkCounts, checkNumbers, requireNumbers } from "../base/checks.js";
import type { DependentDefinition, WorkflowDefinition } from "./definition/workflow-definition.js";
import type { DependentReconciler } from "./dependents/dependent-reconciler.js";
import type { DependentOutcome } from "./workflow-result.js";

// A dependent cannot exist without another, waits for it only if that is wanted, or its items wait for the items of the same keys.
type EdgeKind = "required" | "optional" | "items";

// An edge of the graph, as one of its two ends sees it; `node` is the other end.
interface Edge {
  readonly node: PlanNode;
  readonly kind: EdgeKind;
}

/** A dependent in the graph, and what finds and writes its objects. */
export interface PlanNode {
  /** Its place in the plan. */
  readonly index: number;
  readonly definition: DependentDefinition;
  readonly reconciler: DependentReconciler;
  readonly needs: readonly Edge[];
  readonly neededBy: readonly Edge[];
}

// Others may still turn out to need it.
interface NewNode extends PlanNode {
  readonly neededBy: Edge[];
}

/** The graph of a workflow: its dependents, each after those that it needs. */
export type Plan = readonly PlanNode[];

/** What has become of a dependent in a run so far. */
export type NodeState =
  | { readonly kind: "pending" }
  | { readonly kind: "running" }
  /** It must not exist; it is deleted as soon as all that depends on it is gone. */
  | { readonly kind: "condemned"; readonly because: string }
  | DependentOutcome;

/** Where a dependent stands in a run, which has them all in the order of the plan. */
export interface Standing {
  readonly node: PlanNode;
  readonly state: NodeState;
  /** Whether its items are known, so that items of other dependents that need one of them can go on. */
  readonly hasItems: boolean;
}

/** Builds the graph; throws for unknown names, duplicates, cycles and impossible numbers, which only a hand-written definition can have. */
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

/** Returns the dependents that may be reconciled or deleted now, all at once. */
export function nextSteps<Each extends Standing>(all: readonly Each[]): { reconcile: Each[]; delete: Each[] } {
  // Every end of a step looks at every node again, so no list is made of those that go on waiting.
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

/** Returns all that must not exist because a dependent must not, with the reasons: it, and what depends on it and still waits. */
export function condemnedBy<Each extends Standing>(
  all: readonly Each[],
  one: Each,
  because: string,
): Map<Each, string> {
  const condemned = new Map<Each, string>();
  const visit = (each: Each, reason: string): void => {
    // A dependent that no longer waits is being deleted, or was, for another reason: once is enough.
    if (condemned.has(each) || (each !== one && each.state.kind !== "pending")) return;
    condemned.set(each, reason);
    const { definition, neededBy } = each.node;
    for (const next of endsOf(neededBy, "required", "items"))
      visit(all[next.index]!, `"${definition.name}" must not exist`);
  };
  visit(one, because);
  return condemned;
}

// What a dependent that an edge leads to must have reached before a dependent is reconciled.
const LETS_START: { readonly [Kind in EdgeKind]: (other: Standing) => boolean } = {
  required: ({ state }) => isReady(state),
  // The deletion of an unwanted dependency starts only after what goes on without it is ready.
  optional: ({ state }) => isReady(state) || state.kind === "condemned" || state.kind === "inactive",
  items: ({ hasItems }) => hasItems,
};

// What a dependent that depends on another must have reached before the other is deleted.
const LETS_GO: typeof LETS_START = {
  required: ({ state }) => isGone(state),
  optional: ({ state }) => isGone(state) || isReady(state),
  items: ({ state, hasItems }) => isGone(state) || hasItems,
};

/** Returns the names of the dependents that hold a dependent back. */
export function blockersOf(all: readonly Standing[], each: Standing): string[] {
  const { edges, lets } = edgesThatHold(each);
  const blockers = edges.filter(({ node, kind }) => !lets[kind](all[node.index]!));
  return [...new Set(blockers.map(({ node }) => node.definition.name))];
}

function edgesThatHold({ node, state }: Standing) {
  return state.kind === "condemned" ? { edges: node.neededBy, lets: LETS_GO } : { edges: node.needs, lets: LETS_START };
}

/** Tells whether a dependent, or an item of one, exists and is ready. */
export function isReady(state: NodeState): boolean {
  return "isReady" in state && state.isReady;
}

/** Tells whether a dependent, or an item of one, is gone, or left to whoever deletes it, so that what it needs can be deleted. */
export function isGone(state: NodeState): boolean {
  return ["inactive", "left"].includes(state.kind) || (state.kind === "deleted" && state.isGone);
}
