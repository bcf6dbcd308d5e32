// Prunes the objects of a primary that no dependent claims after a run, because their dependent was removed from the workflow or renamed, like
// `kubectl apply --prune`.
//
// An object is deleted only after its successor is written and ready, and after everything that depends on the successor has run. Any object in the
// workflow may be the successor of a removed dependent's object, so the latter stays while the workflow is not ready.
import {
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  compareResourceVersions,
  describeObject,
  isTerminating,
  memberOf,
  refOfKey,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { DEPENDENT_ITEM, isOwnedBy } from "../base/primary-link.js";
import { type DependentRun, type Live, type ReconcileNotes, placeOf } from "./dependent-reconciler.js";
import { type Plan, type PlanNode, endsOf, isGone, isReady } from "./plan.js";
import {
  type DependentOutcome,
  type RunOptions,
  type SeenDependent,
  type WorkflowResult,
  createWorkflowResult,
  hasRun,
  isPostponed,
} from "./run.js";
import {
  type Deletion,
  type DependentDefinition,
  type KindInCluster,
  type KubernetesDependent,
  type RemovedDependent,
  hasName,
  isKubernetes,
} from "./workflow-definition.js";

const BECAUSE = "the workflow no longer has it";

/** How objects are pruned. Objects left to the garbage collector are not. */
type PruneDeletion = Exclude<Deletion, "garbageCollected">;

/** Deletes objects of a kind. */
interface Remover {
  remove(run: DependentRun, live: Live): Promise<void>;
}

/** Finds the linked objects of one kind, of any dependent, and deletes them. */
interface KindReconciler extends Remover {
  readonly objects: {
    /** Returns the objects that are linked to a primary and not claimed, with the names of the dependents under which they were written. */
    leftovers(
      primary: KubernetesObject,
      isTaken: (key: ObjectKey) => boolean,
    ): readonly { readonly name: string; readonly live: KubernetesObject }[];
    /** Returns the keys of objects that refer to a primary without a proof and are not claimed; reported once per primary. */
    takeUnproven(primary: KubernetesObject, isTaken: (key: ObjectKey) => boolean): readonly ObjectKey[];
  };
}

/** The objects of one kind in one cluster that the controller watches by its label. */
export interface WatchedKind extends KindInCluster {
  /** These find the objects of all dependents. They delete or orphan them, depending on the key. */
  readonly reconcilers: { readonly [Deletion in PruneDeletion]: KindReconciler };
}

/** The kinds of which a controller may have objects that no dependent claims. */
export interface RemovedKinds {
  /** The kinds of the dependents of all workflows. */
  readonly watched: readonly WatchedKind[];
  /** Watches the kind of a removed dependent; undefined if it is not served. Throws if the objects that a primary may have cannot be watched. */
  open(name: string, removed: RemovedDependent, primary: KubernetesObject): Promise<WatchedKind | undefined>;
}

/** The pruning settings of a workflow. */
interface Prunable {
  readonly pruning?: boolean;
  readonly removed?: { readonly [name: string]: RemovedDependent };
}

/** What to prune after a run. */
interface PruneOptions {
  readonly run: RunOptions;
  readonly result: WorkflowResult;
  readonly isCleanup: boolean;
  readonly workflow: Prunable;
  readonly kinds: RemovedKinds;
}

/** What a finished run knows about the objects of its primary. */
interface PruneFacts {
  readonly primary: KubernetesObject;
  readonly plan: Plan;
  /** The dependents of the controller's other workflows. */
  readonly others: readonly SeenDependent[];
  readonly claims: ReconcileNotes;
  readonly result: WorkflowResult;
  readonly removed: { readonly [name: string]: RemovedDependent };
  /** The kinds of which every unclaimed object is pruned. Of other kinds, only objects of dependents in `removed` are. */
  readonly searched: readonly WatchedKind[];
  /** In a cleanup, no object is claimed. */
  readonly isCleanup: boolean;
}

/** An object that no dependent claims. */
interface Unclaimed {
  readonly kind: WatchedKind;
  readonly live: KubernetesObject;
  /** The name of the dependent under which it was written. */
  readonly name: string;
  /** The entry in `removed` for this name. */
  readonly removal: RemovedDependent | undefined;
}

interface PruneCandidate extends Unclaimed {
  /** The dependent that now has the name, if it no longer claims the object. */
  readonly node: PlanNode | undefined;
  readonly reconciler: Remover;
}

type Verdict = "kept" | "removed" | "renamed" | "unhandled";

/** What happens to an unclaimed object: the first matching row decides. */
const VERDICTS: readonly (readonly [Verdict, holds: (object: Unclaimed, facts: PruneFacts) => boolean])[] = [
  ["kept", ({ live }, { claims }) => claims.kept.has(live.metadata.uid)],
  ["kept", ({ removal }) => removal?.deletion === "garbageCollected"],
  ["removed", (each, facts) => each.removal !== undefined && (facts.isCleanup || !mayBeClaimed(each, facts))],
  ["kept", ({ kind }, { searched }) => !searched.includes(kind)],
  ["kept", (each, { others }) => others.some((other) => hasWritten(other, each))],
  ["renamed", (each, { plan }) => plan.some((node) => hasWritten(node, each))],
  ["unhandled", () => true],
];

/** Objects that are deleted together: those that a dependent of the workflow (`node`) no longer claims, or all of a removed one. */
interface PruneStep {
  readonly name: string;
  readonly node: PlanNode | undefined;
}

/** Prunes what no dependent claims after a run, and adds the outcomes to the result. Never rejects. */
export async function pruneWorkflow(options: PruneOptions): Promise<WorkflowResult> {
  const { run, result, isCleanup, workflow } = options;
  const dependents = Object.entries(result.dependents);
  const facts = factsOf(options);
  const removed: { [name: string]: DependentOutcome } = {};
  const kinds = await openKinds(options, removed);
  const errors = new Map<string, unknown>();
  for (const [name, outcome] of Object.entries(removed)) if (outcome.kind === "failed") errors.set(name, outcome.error);
  // A kind that cannot be watched may have an object that has to be deleted first.
  const blockers = [...errors.keys()];
  reportUnproven(kinds, run);
  const candidates = listCandidates(kinds, facts);
  try {
    // Candidates may have to stay for a while. Without the finalizer, nothing would clean them up if the primary were deleted in the meantime.
    if (!isCleanup && candidates.some((each) => needsFinalizer(each, facts))) await run.reconcile.ensureFinalizer?.();
  } catch (error) {
    errors.set("finalizer", error);
    return createWorkflowResult(dependents, { removed, errors, isReady: false });
  }
  if (candidates.length === 0 && workflow.removed === undefined) return result;
  const renamed: DependentOutcome[] = [];
  for (const step of pruneOrder(candidates, facts)) {
    const { name, node } = step;
    const outcome = await prune(step, { run, kinds, facts, blockers });
    if (outcome.kind === "failed") errors.set(name, outcome.error);
    if (node !== undefined) renamed.push(outcome);
    else {
      removed[name] = outcome;
      if (!isGone(outcome)) blockers.push(name);
    }
  }
  const isReady = [...renamed, ...Object.values(removed)].every(isGone);
  return createWorkflowResult(dependents, { removed, errors, isReady });
}

function factsOf({ run, result, isCleanup, workflow, kinds }: PruneOptions): PruneFacts {
  const { primary, plan, others = [], reconcile } = run;
  const { notes: claims } = reconcile;
  const { pruning = true, removed = {} } = workflow;
  return { primary, plan, others, claims, result, removed, searched: pruning ? kinds.watched : [], isCleanup };
}

/** Returns all kinds to search. Adds the outcomes of removed dependents that are decided here to `removed`. */
async function openKinds(
  { workflow, kinds, run }: PruneOptions,
  removed: { [name: string]: DependentOutcome },
): Promise<ReadonlySet<WatchedKind>> {
  const opened = new Set(kinds.watched);
  for (const [name, removal] of Object.entries(workflow.removed ?? {})) {
    if (removal.deletion === "garbageCollected") {
      removed[name] = { kind: "left" };
      continue;
    }
    try {
      const kind = await kinds.open(name, removal, run.primary);
      if (kind !== undefined) opened.add(kind);
    } catch (error) {
      removed[name] = failureOf({ name, node: undefined }, error);
    }
  }
  return opened;
}

// Any client can write an unproven link, so such an object is neither read nor deleted; a user has to check it.
function reportUnproven(kinds: Iterable<WatchedKind>, { primary, reconcile, context }: RunOptions): void {
  for (const kind of kinds) {
    const place = placeOf(kind);
    const isClaimed = (key: ObjectKey) => reconcile.notes.claimOf(place, key) !== undefined;
    const [first, ...others] = kind.reconcilers.ordered.objects.takeUnproven(primary, isClaimed);
    if (first === undefined) continue;
    const more = others.length === 0 ? "" : ` and ${others.length} more objects`;
    const note =
      `${describeObject(kind.resource, refOfKey(first))}${more} names this primary, but has no valid proof that the operator linked it: ` +
      "ignoring it. Delete it, or remove its gen-operator.dev annotations";
    context.logger.warn({}, note);
    context.events.record({ type: "Warning", reason: "UnprovenLink", action: "Reconcile", note });
  }
}

/** Returns the current prune candidates that are linked to the primary. */
function listCandidates(kinds: Iterable<WatchedKind>, facts: PruneFacts): PruneCandidate[] {
  const { primary, claims, removed, isCleanup } = facts;
  const candidates = new Map<string | undefined, PruneCandidate>();
  for (const kind of kinds) {
    const place = placeOf(kind);
    const isClaimed = (key: ObjectKey) => !isCleanup && claims.claimOf(place, key) !== undefined;
    for (const { name, live } of kind.reconcilers.ordered.objects.leftovers(primary, isClaimed)) {
      const stated = memberOf(removed, name);
      const removal = stated !== undefined && isAbout(stated, kind, live) ? stated : undefined;
      const candidate = candidateOf({ kind, live, name, removal }, facts);
      // Two watches may contain the same object.
      if (candidate !== undefined) candidates.set(live.metadata.uid, candidate);
    }
  }
  return [...candidates.values()];
}

function candidateOf(object: Unclaimed, facts: PruneFacts): PruneCandidate | undefined {
  const { kind, removal } = object;
  const [verdict] = VERDICTS.find(([, holds]) => holds(object, facts))!;
  switch (verdict) {
    case "kept":
      return undefined;
    case "removed":
      return { ...object, node: undefined, reconciler: kind.reconcilers[removal!.deletion as PruneDeletion] };
    case "renamed": {
      const node = facts.plan.find((each) => hasWritten(each, object))!;
      return { ...object, node, reconciler: node.reconciler };
    }
    case "unhandled":
      return { ...object, node: undefined, reconciler: kind.reconcilers.ordered };
  }
}

function isAbout(
  { resource, cluster, namespace }: RemovedDependent,
  kind: WatchedKind,
  live: KubernetesObject,
): boolean {
  const isThere = namespace === undefined || live.metadata.namespace === namespace;
  return isThere && cluster === kind.cluster && isSameKind(resource, kind.resource);
}

/** Reports whether a dependent has the name under which an object was written, and writes objects of its kind. */
function hasWritten({ definition }: SeenDependent, { name, kind }: Unclaimed): boolean {
  return hasName(definition, name) && isWritten(definition, kind);
}

/** Reports whether a dependent that now has the name has not run, so that it may still claim the object. */
function mayBeClaimed(object: Unclaimed, { plan, others, claims, result }: PruneFacts): boolean {
  const isSilent = (each: SeenDependent) => {
    const { name } = each.definition;
    const { kind = "inactive" } = result.dependents[name] ?? {};
    return hasWritten(each, object) && kind === "inactive" && !claims.hasClaim(name);
  };
  return plan.some(isSilent) || others.some(isSilent);
}

/** Reports whether an object has to be deleted or orphaned before the primary is deleted, because the garbage collector does not do so. */
function needsFinalizer({ removal, live }: PruneCandidate, { primary }: PruneFacts): boolean {
  return removal?.deletion === "orphan" || !isOwnedBy(live.metadata, primary.metadata);
}

/**
 * Returns the steps in order: first renamed dependents in reverse topological order, so that dependents are deleted before their dependencies; then
 * removed ones, youngest first, because they may need older ones.
 */
function pruneOrder(candidates: readonly PruneCandidate[], facts: PruneFacts): PruneStep[] {
  const renamed = new Set(candidates.map(({ node }) => node));
  const isNext = (node: PlanNode) =>
    renamed.has(node) && node.reconciler.capabilities.remove && isReplaced(node, facts);
  const removed = candidates.filter(({ node }) => node === undefined).sort(byAge);
  return [
    ...facts.plan.toReversed().flatMap((node) => (isNext(node) ? { name: node.definition.name, node } : [])),
    ...[...new Set(removed.map(({ name }) => name))].map((name) => ({ name, node: undefined })),
  ];
}

interface Pruning {
  readonly run: RunOptions;
  readonly kinds: ReadonlySet<WatchedKind>;
  readonly facts: PruneFacts;
  /** The removed dependents whose objects have to be deleted first. */
  readonly blockers: readonly string[];
}

/** Deletes the objects of a step, unless a removed dependent has to wait. */
async function prune(step: PruneStep, { run, kinds, facts, blockers }: Pruning): Promise<DependentOutcome> {
  const { name, node } = step;
  const { reconcile, primary, context } = run;
  const { isCleanup } = facts;
  try {
    const candidates = candidatesOf(step, kinds, facts);
    if (node === undefined) {
      const ofWorkflow = isCleanup ? [] : [...facts.result.notReady, ...silentRivals(candidates, facts)];
      const all = new Set([...ofWorkflow, ...blockers]);
      if (all.size > 0) return { kind: "waiting", for: [...all] };
      if (isCleanup && candidates.length === 0) return { kind: "left" };
    }
    for (const { live, reconciler } of candidates) {
      if (isTerminating(live) || reconcile.notes.removals.has(live.metadata.uid ?? "")) continue;
      context.signal.throwIfAborted();
      await reconciler.remove({ reconcile, primary, secondary: {}, context, dependent: name }, { object: live });
    }
    return { kind: "deleted", isGone: candidatesOf(step, kinds, facts).length === 0, because: BECAUSE };
  } catch (error) {
    return failureOf(step, error);
  }
}

function failureOf({ name, node }: PruneStep, cause: unknown): DependentOutcome {
  const what = node === undefined ? "removed dependent" : "dependent";
  return { kind: "failed", error: new Error(`${what} "${name}": ${messageOf(cause)}`, { cause }) };
}

function candidatesOf({ name, node }: PruneStep, kinds: Iterable<WatchedKind>, facts: PruneFacts): PruneCandidate[] {
  const all = listCandidates(kinds, facts).filter((each) => !isLeftToCollector(each, facts));
  if (node === undefined) return all.filter((each) => each.node === undefined && each.name === name);
  const own = all.filter((each) => each.node === node);
  if (haveAllClaimed(node.definition as KubernetesDependent, facts)) return own;
  // While not all claims are known, only delete objects of deleted items: the next run would delete these as items.
  return own.filter(({ live }) => isOfDeletedItem(live, facts.result.dependents[name]));
}

// The garbage collector only acts once the primary is deleted.
function isLeftToCollector(
  { node, live, removal }: PruneCandidate,
  { primary, result, isCleanup }: PruneFacts,
): boolean {
  const isLeft =
    node === undefined
      ? isCleanup && removal?.deletion !== "orphan"
      : result.dependents[node.definition.name]?.kind === "left";
  return isLeft && isOwnedBy(live.metadata, primary.metadata);
}

function byAge({ live: { metadata: a } }: PruneCandidate, { live: { metadata: b } }: PruneCandidate): number {
  const [first = "", second = ""] = [a.creationTimestamp, b.creationTimestamp];
  if (first !== second) return first < second ? 1 : -1;
  return compareResourceVersions(b.resourceVersion ?? "0", a.resourceVersion ?? "0");
}

// Dependents of other workflows that have not run, and so may claim an object under another name.
function silentRivals(candidates: readonly PruneCandidate[], { others, claims }: PruneFacts): string[] {
  const kinds = candidates.flatMap(({ removal, kind }) => (removal === undefined ? kind : []));
  return others.flatMap(({ definition }) => {
    const isRival = kinds.some((kind) => isWritten(definition, kind));
    return isRival && !claims.hasClaim(definition.name) ? definition.name : [];
  });
}

// Whether the successors of a dependent's objects are written and ready, and everything that depends on them has run.
function isReplaced(node: PlanNode, { result }: PruneFacts): boolean {
  const outcomeOf = ({ definition }: PlanNode) => result.dependents[definition.name]!;
  const outcome = outcomeOf(node);
  if (outcome.kind === "deleted" || outcome.kind === "left") return true;
  if (!isReady(outcome)) return false;
  const seen = new Set([node]);
  for (const each of seen) for (const next of endsOf(each.neededBy, "required", "items")) seen.add(next);
  return [...seen].every((each) => hasRun(outcomeOf(each)) && !isPostponed(outcomeOf(each)));
}

/** Reports whether all dependents with a kind have claimed their objects. */
function haveAllClaimed(kind: KindInCluster, { plan, claims, result, isCleanup }: PruneFacts): boolean {
  const hasClaimed = ({ definition }: PlanNode): boolean => {
    const outcome = result.dependents[definition.name];
    if (!isWritten(definition, kind) || outcome?.kind === "inactive" || outcome?.kind === "deleted") return true;
    // A bulk dependent may claim nothing. If one of its items is missing, it may claim more than it did.
    return definition.bulk === undefined ? claims.hasClaim(definition.name) : outcome !== undefined && hasRun(outcome);
  };
  return isCleanup || plan.every(hasClaimed);
}

function isOfDeletedItem({ metadata }: KubernetesObject, outcome: DependentOutcome | undefined): boolean {
  const item = metadata.annotations?.[DEPENDENT_ITEM];
  return item !== undefined && outcome?.items?.[item]?.kind === "deleted";
}

/** Reports whether a dependent writes objects of a kind. */
function isWritten(
  definition: DependentDefinition,
  { resource, cluster }: KindInCluster,
): definition is KubernetesDependent {
  if (!isKubernetes(definition) || definition.mode === "readOnly") return false;
  return definition.cluster === cluster && isSameKind(definition.resource, resource);
}

/** Reports whether a dependent watches the objects of a removed one, according to its namespace and selectors. */
export function seesRemoved(dependent: DependentDefinition, removed: RemovedDependent): boolean {
  const isThere = isWritten(dependent, removed) && dependent.namespace === removed.namespace;
  return isThere && dependent.labelSelector === undefined && dependent.fieldSelector === undefined;
}

// In any version.
function isSameKind(a: ResourceDefinition, b: ResourceDefinition): boolean {
  return a.kind === b.kind && a.group === b.group;
}
