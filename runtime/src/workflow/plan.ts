// Which dependent of a workflow may be reconciled or deleted next: pure decisions over an immutable plan and the state of one run
// (JOSDK's WorkflowReconcileExecutor and WorkflowCleanupExecutor, without their locks).
import { isKubernetes, type DependentDefinition, type WorkflowDefinition } from "./workflow-definition.js";

/** A dependent in the graph; neighbours are indexes into the plan. */
export interface PlanNode<Definition extends DependentDefinition = DependentDefinition> {
  readonly definition: Definition;
  /** What it depends on. */
  readonly dependsOn: readonly number[];
  /** What depends on it. */
  readonly dependents: readonly number[];
  /** Whether the workflow has another dependent of the same kind. */
  readonly sharesKind: boolean;
}

/** The graph of a workflow. */
export interface Plan {
  readonly nodes: readonly PlanNode[];
}

/** Where a dependent stands in a run. */
export type NodeState =
  | { readonly kind: "pending" }
  | { readonly kind: "running" }
  | { readonly kind: "reconciled"; readonly isReady: boolean }
  /** It must not exist; it is deleted as soon as all that depends on it is gone. */
  | { readonly kind: "condemned"; readonly because: string }
  | { readonly kind: "deleted"; readonly isGone: boolean; readonly because: string }
  | { readonly kind: "inactive" }
  | { readonly kind: "failed"; readonly error: unknown };

/** What may be done now, at once with everything else that may. */
export interface Steps {
  readonly reconcile: readonly number[];
  readonly delete: readonly number[];
}

/** Builds the graph; throws for unknown names, duplicates and cycles, which only a hand-written definition can have. */
export function buildPlan({ dependents }: WorkflowDefinition): Plan {
  const indexes = new Map<string, number>();
  for (const [index, { name }] of dependents.entries()) {
    if (indexes.has(name)) throw new Error(`the workflow has two dependents named "${name}"`);
    indexes.set(name, index);
  }
  const dependsOn = dependents.map(({ name, dependsOn: names }) =>
    names.map((needed) => {
      const index = indexes.get(needed);
      if (index === undefined)
        throw new Error(`dependent "${name}" depends on "${needed}", which the workflow does not have`);
      return index;
    }),
  );
  checkForCycle(dependents, dependsOn);
  const nodes = dependents.map((definition, index) => ({
    definition,
    dependsOn: dependsOn[index]!,
    dependents: dependsOn.flatMap((needed, other) => (needed.includes(index) ? [other] : [])),
    sharesKind: dependents.some((other) => other !== definition && isSameKind(other, definition)),
  }));
  return { nodes };
}

function isSameKind(a: DependentDefinition, b: DependentDefinition): boolean {
  if (!isKubernetes(a) || !isKubernetes(b)) return false;
  return a.resource.apiVersion === b.resource.apiVersion && a.resource.kind === b.resource.kind;
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
  nodes.forEach(({ dependsOn, dependents }, index) => {
    const state = states[index]!;
    if (state.kind === "pending" && dependsOn.every((needed) => isReady(states[needed]!))) reconcile.push(index);
    if (state.kind === "condemned" && dependents.every((dependent) => isGone(states[dependent]!))) remove.push(index);
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
    for (const dependent of nodes[each]!.dependents)
      visit(dependent, `"${nodes[each]!.definition.name}" must not exist`);
  };
  visit(index, because);
  // An inactive dependent counts as absent: only what depends on it is deleted.
  if (!isActive) next[index] = { kind: "inactive" };
  return next;
}

/** Returns the states with which a cleanup starts: everything must go. */
export function condemnAll({ nodes }: Plan): NodeState[] {
  return nodes.map(() => ({ kind: "condemned", because: "the primary is being deleted" }));
}

/** Returns the states with which a reconcile starts. */
export function pendAll({ nodes }: Plan): NodeState[] {
  return nodes.map(() => ({ kind: "pending" }));
}

/** Returns the names of what holds a dependent back. */
export function blockersOf({ nodes }: Plan, states: readonly NodeState[], index: number): string[] {
  const { dependsOn, dependents } = nodes[index]!;
  const blockers =
    states[index]!.kind === "condemned"
      ? dependents.filter((dependent) => !isGone(states[dependent]!))
      : dependsOn.filter((needed) => !isReady(states[needed]!));
  return blockers.map((blocker) => nodes[blocker]!.definition.name);
}

function isReady(state: NodeState): boolean {
  return state.kind === "reconciled" && state.isReady;
}

function isGone(state: NodeState): boolean {
  return state.kind === "inactive" || (state.kind === "deleted" && state.isGone);
}
