// Deletes the objects of a primary that no dependent claims after a run: of dependents that were removed from the workflow or renamed, as
// `kubectl apply --prune` does.
//
// An object goes only after its successor is written and ready, and after everything that depends on the successor has run. The successor
// of an object of a removed dependent may be anything in the workflow, so such an object stays while the workflow is not ready.
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

/** How objects are pruned; what the garbage collector deletes is not. */
type PruneDeletion = Exclude<Deletion, "garbageCollected">;

/** Removes objects of a kind. */
interface Remover {
  remove(run: DependentRun, live: Live): Promise<void>;
}

/** Finds the linked objects of one kind, of whichever dependent, and removes them. */
interface KindReconciler extends Remover {
  readonly objects: {
    /** Returns the objects that are linked to a primary and not taken, with the names of the dependents that they were written as. */
    leftovers(
      primary: KubernetesObject,
      isTaken: (key: ObjectKey) => boolean,
    ): readonly { readonly name: string; readonly live: KubernetesObject }[];
    /** Returns the keys of the objects that name a primary without a proof and are not taken; once for each primary. */
    takeUnproven(primary: KubernetesObject, isTaken: (key: ObjectKey) => boolean): readonly ObjectKey[];
  };
}

/** The objects of one kind in one cluster that the controller watches by its label. */
export interface WatchedKind extends KindInCluster {
  /** Find the objects of all dependents, and remove them in the way that their key says. */
  readonly reconcilers: { readonly [Deletion in PruneDeletion]: KindReconciler };
}

/** The kinds in which a controller may have objects that no dependent claims. */
export interface RemovedKinds {
  /** The kinds that the dependents of all workflows have. */
  readonly watched: readonly WatchedKind[];
  /**
   * Watches a kind that the workflow names as removed; undefined if it is not served. Throws if the objects that a primary may have cannot be
   * watched now.
   */
  open(name: string, removed: RemovedDependent, primary: KubernetesObject): Promise<WatchedKind | undefined>;
}

/** What a workflow says about objects that no dependent claims. */
interface Prunable {
  readonly pruning?: boolean;
  readonly removed?: { readonly [name: string]: RemovedDependent };
}

/** What is pruned after a run. */
interface PruneOptions {
  readonly run: RunOptions;
  readonly result: WorkflowResult;
  readonly isCleanup: boolean;
  readonly workflow: Prunable;
  readonly kinds: RemovedKinds;
}

/** What a run that has ended says about the objects of its primary. */
interface PruneFacts {
  readonly primary: KubernetesObject;
  readonly plan: Plan;
  /** The dependents of the other workflows of the controller. */
  readonly others: readonly SeenDependent[];
  readonly claims: ReconcileNotes;
  readonly result: WorkflowResult;
  readonly removed: { readonly [name: string]: RemovedDependent };
  /** The kinds in which every unclaimed object is pruned. In others, only those that `removed` names are. */
  readonly searched: readonly WatchedKind[];
  /** A cleanup claims nothing. */
  readonly isCleanup: boolean;
}

/** An object that no dependent claims. */
interface Unclaimed {
  readonly kind: WatchedKind;
  readonly live: KubernetesObject;
  /** The name of the dependent that it was written as. */
  readonly name: string;
  /** What the workflow says about the objects of a removed dependent of this name. */
  readonly removal: RemovedDependent | undefined;
}

interface PruneCandidate extends Unclaimed {
  /** The dependent that has the name now, if the object is one that it no longer claims. */
  readonly node: PlanNode | undefined;
  readonly reconciler: Remover;
}

type Verdict = "kept" | "removed" | "renamed" | "unhandled";

/** What becomes of an unclaimed object: the first line decides that holds. */
const VERDICTS: readonly (readonly [Verdict, holds: (object: Unclaimed, facts: PruneFacts) => boolean])[] = [
  ["kept", ({ live }, { claims }) => claims.kept.has(live.metadata.uid)],
  ["kept", ({ removal }) => removal?.deletion === "garbageCollected"],
  ["removed", (each, facts) => each.removal !== undefined && (facts.isCleanup || !mayBeClaimed(each, facts))],
  ["kept", ({ kind }, { searched }) => !searched.includes(kind)],
  ["kept", (each, { others }) => others.some((other) => hasWritten(other, each))],
  ["renamed", (each, { plan }) => plan.some((node) => hasWritten(node, each))],
  ["unhandled", () => true],
];

/** The objects that are deleted together: those that a dependent of the workflow no longer claims (`node`), or all of a removed one. */
interface PruneStep {
  readonly name: string;
  readonly node: PlanNode | undefined;
}

/** Deletes what no dependent claims after a run, and adds that to the result; never rejects. */
export async function pruneWorkflow(options: PruneOptions): Promise<WorkflowResult> {
  const { run, result, isCleanup, workflow } = options;
  const dependents = Object.entries(result.dependents);
  const facts = factsOf(options);
  const removed: { [name: string]: DependentOutcome } = {};
  const kinds = await openKinds(options, removed);
  const errors = new Map<string, unknown>();
  for (const [name, outcome] of Object.entries(removed)) if (outcome.kind === "failed") errors.set(name, outcome.error);
  // A kind that cannot be watched may have the object that has to go first.
  const blockers = [...errors.keys()];
  reportUnproven(kinds, run);
  const candidates = listCandidates(kinds, facts);
  try {
    // They may have to stay for a while, and nobody else would clean them up if the primary went meanwhile.
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

/** Returns all kinds to look into; the outcomes of removed dependents that this decides are added to `removed`. */
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

// What anyone can write proves nothing: such an object is neither read nor deleted, and a person has to look at it.
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

/** Returns the objects to prune that are linked to the primary, as they are now. */
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
      // Two watches may show one object.
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

/** Tells whether a dependent has the name that an object was written as, and writes objects of its kind. */
function hasWritten({ definition }: SeenDependent, { name, kind }: Unclaimed): boolean {
  return hasName(definition, name) && isWritten(definition, kind);
}

/** Tells whether a dependent that has the name now did not run, and so may still claim the object. */
function mayBeClaimed(object: Unclaimed, { plan, others, claims, result }: PruneFacts): boolean {
  const isSilent = (each: SeenDependent) => {
    const { name } = each.definition;
    const { kind = "inactive" } = result.dependents[name] ?? {};
    return hasWritten(each, object) && kind === "inactive" && !claims.hasClaim(name);
  };
  return plan.some(isSilent) || others.some(isSilent);
}

/** Tells whether the primary must not go before an object is deleted or orphaned: the garbage collector does not do that. */
function needsFinalizer({ removal, live }: PruneCandidate, { primary }: PruneFacts): boolean {
  return removal?.deletion === "orphan" || !isOwnedBy(live.metadata, primary.metadata);
}

/**
 * Returns the steps in their order: renamed dependents in reverse order of the graph, as what depends on an object goes before it; then removed
 * ones, the youngest first, as they may need what is older.
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
  /** The removed dependents whose objects have to go first. */
  readonly blockers: readonly string[];
}

/** Deletes the objects of a step, unless something holds a removed dependent back. */
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
  // Before all claims are known, only objects of items that were deleted go: the next run would delete these as the items.
  return own.filter(({ live }) => isOfDeletedItem(live, facts.result.dependents[name]));
}

// The garbage collector acts only when the primary is gone.
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

// The dependents of other workflows that may claim an object under another name, and did not run to say so.
function silentRivals(candidates: readonly PruneCandidate[], { others, claims }: PruneFacts): string[] {
  const kinds = candidates.flatMap(({ removal, kind }) => (removal === undefined ? kind : []));
  return others.flatMap(({ definition }) => {
    const isRival = kinds.some((kind) => isWritten(definition, kind));
    return isRival && !claims.hasClaim(definition.name) ? definition.name : [];
  });
}

// Whether the successors of the objects of a dependent are written and ready, and all that depends on them has run.
function isReplaced(node: PlanNode, { result }: PruneFacts): boolean {
  const outcomeOf = ({ definition }: PlanNode) => result.dependents[definition.name]!;
  const outcome = outcomeOf(node);
  if (outcome.kind === "deleted" || outcome.kind === "left") return true;
  if (!isReady(outcome)) return false;
  const seen = new Set([node]);
  for (const each of seen) for (const next of endsOf(each.neededBy, "required", "items")) seen.add(next);
  return [...seen].every((each) => hasRun(outcomeOf(each)) && !isPostponed(outcomeOf(each)));
}

/** Tells whether all dependents of a kind have claimed their objects. */
function haveAllClaimed(kind: KindInCluster, { plan, claims, result, isCleanup }: PruneFacts): boolean {
  const hasClaimed = ({ definition }: PlanNode): boolean => {
    const outcome = result.dependents[definition.name];
    if (!isWritten(definition, kind) || outcome?.kind === "inactive" || outcome?.kind === "deleted") return true;
    // A bulk dependent may claim nothing. One of which an item is missing may claim more than it did.
    return definition.bulk === undefined ? claims.hasClaim(definition.name) : outcome !== undefined && hasRun(outcome);
  };
  return isCleanup || plan.every(hasClaimed);
}

function isOfDeletedItem({ metadata }: KubernetesObject, outcome: DependentOutcome | undefined): boolean {
  const item = metadata.annotations?.[DEPENDENT_ITEM];
  return item !== undefined && outcome?.items?.[item]?.kind === "deleted";
}

/** Tells whether a dependent writes objects of a kind. */
function isWritten(
  definition: DependentDefinition,
  { resource, cluster }: KindInCluster,
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
