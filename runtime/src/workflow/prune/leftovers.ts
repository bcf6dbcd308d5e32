// The objects of the controller that no dependent wants.
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import {
  hasName,
  isKubernetes,
  type Deletion,
  type DependentDefinition,
  type KubernetesDependent,
  type RemovedDependent,
  type WorkflowDefinition,
} from "../definition/workflow-definition.js";
import type { DependentReconciler } from "../dependents/dependent-reconciler.js";
import type { KubernetesReconciler } from "../dependents/kubernetes-reconciler.js";
import type { PlanNode } from "../plan.js";
import { placeOf } from "../reconcile-notes.js";
import type { RunOptions } from "../run.js";
import type { DependentOutcome, WorkflowResult } from "../workflow-result.js";

/** The objects of one kind in one cluster that the controller watches by its label. */
export interface WatchedKind {
  readonly resource: ResourceDefinition;
  readonly cluster?: string | undefined;
  /** Returns the reconciler that finds the objects of all dependents, and removes them as `deletion` says. */
  reconcilerFor(deletion: Exclude<Deletion, "garbageCollected">): Pick<KubernetesReconciler, "objects" | "remove">;
}

/** The kinds in which objects of the controller may be that no dependent wants. */
export interface RemovedKinds {
  /** The kinds that the dependents of all workflows have. */
  readonly watched: readonly WatchedKind[];
  /**
   * Watches a kind that the workflow names as removed; undefined if it is not served. Throws if the objects that a primary may have cannot be
   * watched now.
   */
  open(name: string, removed: RemovedDependent, primary: KubernetesObject): Promise<WatchedKind | undefined>;
}

/** What is pruned after a run. */
export interface PruneOptions {
  readonly run: RunOptions;
  readonly result: WorkflowResult;
  readonly isCleanup: boolean;
  readonly workflow: Pick<WorkflowDefinition, "pruning" | "removed">;
  readonly kinds: RemovedKinds;
}

/** An object of the controller that its dependent does not want, or whose dependent the workflow no longer has. */
export interface Leftover {
  readonly kind: WatchedKind;
  readonly live: KubernetesObject;
  readonly name: string;
  /** The dependent that has the name now; absent if it is removed. */
  readonly node: PlanNode | undefined;
  readonly stated: RemovedDependent | undefined;
  readonly reconciler: Pick<DependentReconciler, "remove">;
}

/** Returns the objects of the controller that are tied to the primary of a run, and that no dependent wants. */
export function findLeftovers(
  { run, result, workflow, kinds, isCleanup }: PruneOptions,
  opened: Iterable<WatchedKind>,
): Leftover[] {
  const { pruning: findsAll = true, removed = {} } = workflow;
  const { plan, notes, others = [] } = run;
  const found = new Map<string | undefined, Leftover>();
  for (const kind of opened) {
    // In a kind that only `removed` names, nothing else is meant.
    const isSearched = findsAll && kinds.watched.includes(kind);
    const judge = (name: string, id: ObjectKey): Omit<Leftover, "live"> | undefined => {
      const stated = statedFor(removed[name], kind, id);
      if (stated?.deletion === "garbageCollected") return undefined;
      const isNamed = ({ definition }: Pick<PlanNode, "definition">) =>
        hasName(definition, name) && isWritten(definition, kind);
      // A dependent that has the name now may want the object, and did not run to say so.
      const isSilent = (each: Pick<PlanNode, "definition">) => {
        const { kind: outcome = "inactive" } = result.dependents[each.definition.name] ?? {};
        return isNamed(each) && outcome === "inactive" && !notes.hasWish(each.definition.name);
      };
      if (stated !== undefined && (isCleanup || ![...plan, ...others].some(isSilent)))
        return { kind, name, stated, node: undefined, reconciler: kind.reconcilerFor(stated.deletion) };
      if (!isSearched || others.some(isNamed)) return undefined;
      const node = plan.find(isNamed);
      return { kind, name, stated, node, reconciler: node?.reconciler ?? kind.reconcilerFor("ordered") };
    };
    // A cleanup wants nothing.
    const place = placeOf(kind);
    const isTaken = (id: ObjectKey) => !isCleanup && notes.wishFor(place, id) !== undefined;
    for (const { name, live } of kind.reconcilerFor("ordered").objects.leftovers(run.primary, isTaken)) {
      const judged = judge(name, keyOf(live.metadata));
      // Two watches may show one object.
      if (judged !== undefined && !notes.kept.has(live.metadata.uid)) found.set(live.metadata.uid, { ...judged, live });
    }
  }
  return [...found.values()];
}

/** Tells whether all dependents of a kind have said which objects they want. A cleanup wants nothing. */
export function haveAllSaid(
  kind: Pick<WatchedKind, "resource" | "cluster">,
  { run, result, isCleanup }: PruneOptions,
): boolean {
  const hasSaid = ({ definition }: PlanNode): boolean => {
    const outcome = result.dependents[definition.name];
    if (!isWritten(definition, kind) || outcome?.kind === "inactive" || outcome?.kind === "deleted") return true;
    // A bulk dependent may want nothing. One of which an item is missing may want more than it said.
    return definition.bulk === undefined ? run.notes.hasWish(definition.name) : hasRun(outcome);
  };
  return isCleanup || run.plan.every(hasSaid);
}

function statedFor(
  removed: RemovedDependent | undefined,
  kind: WatchedKind,
  id: ObjectKey,
): RemovedDependent | undefined {
  if (removed === undefined) return undefined;
  const { resource, cluster, namespace } = removed;
  const isPlace = namespace === undefined || id.startsWith(`${namespace}/`);
  return isPlace && cluster === kind.cluster && isSameKind(resource, kind.resource) ? removed : undefined;
}

/** Tells whether a dependent writes objects of a kind. */
export function isWritten(
  definition: DependentDefinition,
  { resource, cluster }: Pick<WatchedKind, "resource" | "cluster">,
): definition is KubernetesDependent {
  if (!isKubernetes(definition) || definition.mode === "readOnly") return false;
  return definition.cluster === cluster && isSameKind(definition.resource, resource);
}

/** Tells whether a dependent sees the objects of a removed one, as far as its namespace and its selectors say. */
export function seesRemoved(dependent: DependentDefinition, removed: RemovedDependent): boolean {
  const isThere = isWritten(dependent, removed) && dependent.namespace === removed.namespace;
  return isThere && dependent.labelSelector === undefined && dependent.fieldSelector === undefined;
}

// In whichever versions.
function isSameKind(a: ResourceDefinition, b: ResourceDefinition): boolean {
  return a.kind === b.kind && a.group === b.group;
}

/** Tells whether a dependent, with all of its items, has neither failed nor waits. */
export function hasRun(outcome: DependentOutcome | undefined): boolean {
  if (outcome === undefined || outcome.kind === "failed" || outcome.kind === "waiting") return false;
  return Object.values(outcome.items ?? {}).every(hasRun);
}
