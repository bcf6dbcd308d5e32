// Which dependent of a workflow may be reconciled or deleted next: pure decisions over an immutable plan and the state of one run
// (JOSDK's WorkflowReconcileExecutor and WorkflowCleanupExecutor, without their locks).
import { checkStepNumbers } from "./definition/check-step-numbers.js";
import {
  nameOfDependency,
  type DependentDefinition,
  type WorkflowDefinition,
} from "./definition/workflow-definition.js";

/** A dependent in the graph; neighbours are indexes into the plan. */
export interface PlanNode<Definition extends DependentDefinition = DependentDefinition> {
  readonly definition: Definition;
  /** What it depends on. */
  readonly dependsOn: readonly number[];
  /** What depends on it. */
  readonly dependents: readonly number[];
  /** What it waits for if that is wanted, and goes on without if not. */
  readonly optional: readonly number[];
  /** What goes on without it if it is not wanted. */
  readonly optionalDependents: readonly number[];
  /** The bulk dependents of which its items need the item of their key. */
  readonly itemsDependOn: readonly number[];
  /** The bulk dependents whose items need its item of their key. */
  readonly itemDependents: readonly number[];
}

/** The graph of a workflow. */
export interface Plan {
  readonly nodes: readonly PlanNode[];
  /** The bulk dependents whose items others need, each after those that need them. */
  readonly sweepOrder: readonly number[];
}

/** Where a dependent stands in a run. */
export type NodeState =
  | { readonly kind: "pending" | "inactive" }
  /** It must not exist; it is deleted as soon as all that depends on it is gone. */
  | { readonly kind: "condemned"; readonly because: string }
  /** `hasItems`: it is known which items it has, so that those of others that need one of them go on, each by itself. */
  | { readonly kind: "running" | "failed"; readonly hasItems?: boolean }
  | { readonly kind: "reconciled"; readonly isReady: boolean; readonly hasItems?: boolean }
  | { readonly kind: "deleted"; readonly isGone: boolean; readonly hasItems?: boolean };

/** What may be done now, at once with everything else that may. */
export interface Steps {
  readonly reconcile: readonly number[];
  readonly delete: readonly number[];
}

/** Builds the graph; throws for unknown names, duplicates and cycles, which only a hand-written definition can have. */
export function buildPlan({ dependents }: WorkflowDefinition): Plan {
  checkStepNumbers(dependents);
  const indexes = new Map<string, number>();
  for (const [index, { name }] of dependents.entries()) {
    if (indexes.has(name)) throw new Error(`the workflow has two dependents named "${name}"`);
    indexes.set(name, index);
  }
  const find = (name: string, needed: string): number => {
    const index = indexes.get(needed);
    if (index === undefined)
      throw new Error(`dependent "${name}" depends on "${needed}", which the workflow does not have`);
    return index;
  };
  const edges = dependents.map(({ name, dependsOn: all }) => {
    const required = all.filter((each) => typeof each === "string").map((needed) => find(name, needed));
    const optional = all.map((needed) => find(name, nameOfDependency(needed)));
    return { required, optional: optional.filter((needed) => !required.includes(needed)) };
  });
  const itemsDependOn = dependents.map((definition) => neededItemsOf(definition, dependents, find));
  checkForCycle(
    dependents,
    edges.map(({ required, optional }, index) => [...required, ...optional, ...itemsDependOn[index]!]),
  );
  const reverse = (lists: readonly (readonly number[])[], index: number) =>
    lists.flatMap((needed, other) => (needed.includes(index) ? [other] : []));
  const [required, optional] = [edges.map((each) => each.required), edges.map((each) => each.optional)];
  const nodes = dependents.map((definition, index) => ({
    definition,
    dependsOn: required[index]!,
    dependents: reverse(required, index),
    optional: optional[index]!,
    optionalDependents: reverse(optional, index),
    itemsDependOn: itemsDependOn[index]!,
    itemDependents: reverse(itemsDependOn, index),
  }));
  return { nodes, sweepOrder: sweepOrderOf(nodes) };
}

function neededItemsOf(
  { name, itemsDependOn = [], bulk }: DependentDefinition,
  dependents: readonly DependentDefinition[],
  find: (name: string, needed: string) => number,
): readonly number[] {
  const needed = itemsDependOn.map((each) => find(name, each));
  const single = bulk === undefined ? name : needed.map((each) => dependents[each]!).find((each) => !each.bulk)?.name;
  if (needed.length > 0 && single !== undefined)
    throw new Error(
      `dependent "${name}" has itemsDependOn (${itemsDependOn.join(", ")}), and "${single}" is no bulk dependent; use dependsOn`,
    );
  return needed;
}

function checkForCycle(dependents: readonly DependentDefinition[], dependsOn: readonly (readonly number[])[]): void {
  const done = new Set<number>();
  const visit = (index: number, path: readonly number[]): void => {
    if (path.includes(index)) {
      const names = [...path.slice(path.indexOf(index)), index].map((each) => dependents[each]!.name);
      throw new Error(`the workflow has a cycle: ${names.join(" → ")}`);
    }
    if (done.has(index)) return;
    for (const needed of dependsOn[index]!) visit(needed, [...path, index]);
    done.add(index);
  };
  for (const index of dependents.keys()) visit(index, []);
}

/** Returns what may be done now; everything that is not held back by something else. */
export function nextSteps({ nodes }: Plan, states: readonly NodeState[]): Steps {
  const reconcile: number[] = [];
  const remove: number[] = [];
  nodes.forEach((node, index) => {
    const { kind } = states[index]!;
    if (kind === "pending" && waitedFor(node, states).length === 0) reconcile.push(index);
    if (kind === "condemned" && keepersOf(node, states).length === 0) remove.push(index);
  });
  return { reconcile, delete: remove };
}

/** Returns the states after it turned out that a dependent must not exist: all that depends on it must not exist either. */
export function condemn(
  { nodes }: Plan,
  states: readonly NodeState[],
  { index, because, isActive }: { index: number; because: string; isActive: boolean },
): NodeState[] {
  const next = [...states];
  const visit = (each: number, reason: string): void => {
    // A dependent that does not wait any more is being deleted, or was, for another reason: once is enough.
    if (each !== index && next[each]!.kind !== "pending") return;
    next[each] = { kind: "condemned", because: reason };
    const { definition, dependents, itemDependents } = nodes[each]!;
    for (const dependent of [...dependents, ...itemDependents]) visit(dependent, `"${definition.name}" must not exist`);
  };
  visit(index, because);
  // An inactive dependent counts as absent: only what depends on it is deleted.
  if (!isActive) next[index] = { kind: "inactive" };
  return next;
}

/** Returns the states with which a cleanup starts: everything must go. */
export function condemnAll({ nodes }: Plan, because: string): NodeState[] {
  return nodes.map(() => ({ kind: "condemned", because }));
}

/** Returns the states with which a reconcile starts. */
export function pendAll({ nodes }: Plan): NodeState[] {
  return nodes.map(() => ({ kind: "pending" }));
}

/** Returns what a dependent goes on without: of its optional dependencies those that are not wanted. */
export function missingOf({ nodes }: Plan, states: readonly NodeState[], index: number): readonly number[] {
  return nodes[index]!.optional.filter((each) => !isReady(states[each]!));
}

/** Returns the names of what holds a dependent back. */
export function blockersOf({ nodes }: Plan, states: readonly NodeState[], index: number): string[] {
  const node = nodes[index]!;
  const blockers = states[index]!.kind === "condemned" ? keepersOf(node, states) : waitedFor(node, states);
  return [...new Set(blockers)].map((blocker) => nodes[blocker]!.definition.name);
}

/** Returns what a dependent waits for before it is reconciled. */
function waitedFor({ dependsOn, optional, itemsDependOn }: PlanNode, states: readonly NodeState[]): number[] {
  return [
    ...dependsOn.filter((needed) => !isReady(states[needed]!)),
    ...optional.filter((needed) => !isReady(states[needed]!) && !isUnwanted(states[needed]!)),
    ...itemsDependOn.filter((each) => !hasItems(states[each]!)),
  ];
}

/** Returns what a dependent waits for before it is deleted: what needs it is gone, and what goes on without it is ready. */
function keepersOf(
  { dependents, optionalDependents, itemDependents }: PlanNode,
  states: readonly NodeState[],
): number[] {
  return [
    ...dependents.filter((each) => !isGone(states[each]!)),
    ...optionalDependents.filter((each) => !isGone(states[each]!) && !isReady(states[each]!)),
    ...itemDependents.filter((each) => !isGone(states[each]!) && !hasItems(states[each]!)),
  ];
}

function sweepOrderOf(nodes: readonly PlanNode[]): number[] {
  const order: number[] = [];
  const visit = (index: number): void => {
    if (order.includes(index)) return;
    nodes[index]!.itemDependents.forEach(visit);
    order.push(index);
  };
  nodes.forEach((node, index) => node.itemDependents.length > 0 && visit(index));
  return order.filter((index) => nodes[index]!.itemDependents.length > 0);
}

function isReady(state: NodeState): boolean {
  return state.kind === "reconciled" && state.isReady;
}

// What must not exist is deleted only when what goes on without it is ready, so no deletion of it runs or has failed before.
function isUnwanted(state: NodeState): boolean {
  return state.kind === "condemned" || state.kind === "inactive";
}

function isGone(state: NodeState): boolean {
  return state.kind === "inactive" || (state.kind === "deleted" && state.isGone);
}

function hasItems(state: NodeState): boolean {
  return "hasItems" in state && state.hasItems === true;
}
