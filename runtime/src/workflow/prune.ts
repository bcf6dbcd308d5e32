// Deletes the objects of the controller that no dependent wants: of dependents that the workflow no longer has, or under a former name.
//
// An object goes only after its successor is written and ready, and after everything that depends on the successor has run. The successor
// of an object of a removed dependent may be anything in the workflow, so such an object stays while the workflow is not ready.
import {
  compareResourceVersions,
  describeObject,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { DEPENDENT_NAME, isOwnedBy } from "../base/primary-link.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import {
  isKubernetes,
  type DependentDefinition,
  type RemovedDependent,
  type WorkflowDefinition,
} from "./definition/workflow-definition.js";
import type { DependentDriver, DriverRun, Live } from "./dependents/driver.js";
import type { RunOptions } from "./run.js";
import { removalOf, wantedBy } from "./wanted-objects.js";
import { withAddition, type DependentOutcome, type WorkflowResult } from "./workflow-result.js";

/** The objects of one kind in one cluster that the controller watches by its label. */
export interface WatchedKind {
  readonly resource: ResourceDefinition;
  /** The name of another cluster, if they live there. */
  readonly cluster?: string | undefined;
  /** Returns what finds the objects of all dependents, and removes them as the policy says. */
  driverFor(policy: "delete" | "orphan"): DependentDriver;
}

/** The kinds in which objects of the controller may be that no dependent wants. */
export interface RemovedKinds {
  /** The kinds that the dependents of all workflows have. */
  readonly watched: readonly WatchedKind[];
  /** Watches a kind that the workflow names as removed; undefined if it is not served. Throws if it cannot be watched now. */
  open(name: string, removed: RemovedDependent): Promise<WatchedKind | undefined>;
}

/** What is pruned after a run. */
export interface PruneOptions {
  readonly run: RunOptions;
  readonly result: WorkflowResult;
  readonly isCleanup: boolean;
  readonly workflow: Pick<WorkflowDefinition, "inventory" | "removed">;
  readonly kinds: RemovedKinds;
}

/** The objects that are left of one removed dependent. */
interface RemovedGroup {
  readonly name: string;
  readonly policy: "delete" | "orphan";
  readonly objects: { readonly kind: WatchedKind; readonly live: KubernetesObject }[];
}

interface Pruned {
  readonly removed: { [name: string]: DependentOutcome };
  readonly errors: Map<string, unknown>;
  /** Whether nothing is left that has to go. */
  isGone: boolean;
}

const BECAUSE = "the workflow no longer has it";

/** Deletes what is left after a run, and completes the result by that; never rejects. */
export async function pruneWorkflow(options: PruneOptions): Promise<WorkflowResult> {
  const { result, isCleanup, workflow } = options;
  const { inventory: findsLeftovers = true } = workflow;
  const pruned: Pruned = { removed: {}, errors: new Map(), isGone: true };
  if (findsLeftovers) await pruneFormerNames(options, pruned);
  await pruneRemoved(options, pruned);
  const { removed, errors, isGone } = pruned;
  const hasRemoved = Object.keys(removed).length > 0;
  if (!hasRemoved && errors.size === 0 && isGone) return result;
  return withAddition(result, { ...(hasRemoved ? { removed } : {}), errors, isReady: isGone || !isCleanup });
}

// In reverse order: what depends on an object goes before it.
async function pruneFormerNames(options: PruneOptions, pruned: Pruned): Promise<void> {
  const { plan, drivers } = options.run;
  for (const [index, { definition }] of [...plan.nodes.entries()].reverse()) {
    const driver = drivers[index]!;
    if (driver.findLeftovers === undefined || !isReplaced(index, options)) continue;
    const claims = claimsOnKindOf(definition, options);
    if (claims === undefined) continue;
    const { name } = definition;
    const find = () =>
      driver.findLeftovers!(options.run, (dependent, id) => dependent === name && !claims.has(id)).map((live) => ({
        driver,
        live,
      }));
    try {
      if (!(await removeAll(name, find, options))) pruned.isGone = false;
    } catch (error) {
      pruned.isGone = false;
      pruned.errors.set(name, new Error(`dependent "${name}": ${messageOf(error)}`, { cause: error }));
    }
  }
}

async function pruneRemoved(options: PruneOptions, pruned: Pruned): Promise<void> {
  const { result, isCleanup, workflow } = options;
  const kinds = await openKinds(options, pruned);
  const find = (name?: string) => findRemoved(options, kinds, name);
  const { removed: stated = {} } = workflow;
  for (const [name, { policy }] of Object.entries(stated))
    pruned.removed[name] ??= policy === "keep" ? { kind: "left" } : { kind: "deleted", isGone: true, because: BECAUSE };
  // A kind that cannot be watched may have the object that has to go first.
  let before = [...pruned.errors.keys()].filter((name) => stated[name] !== undefined);
  for (const { name, policy } of find()) {
    const blockers = isCleanup ? before : [...result.notReady, ...before, ...silentRivals(name, options, find(name))];
    const outcome: DependentOutcome =
      blockers.length > 0
        ? { kind: "waiting", for: [...new Set(blockers)] }
        : await removeGroup({ name, policy }, () => find(name), options);
    pruned.removed[name] = outcome;
    if (outcome.kind === "failed") pruned.errors.set(name, outcome.error);
    if (outcome.kind === "left" || (outcome.kind === "deleted" && outcome.isGone)) continue;
    pruned.isGone = false;
    before = [name];
  }
}

async function openKinds({ workflow, kinds }: PruneOptions, pruned: Pruned): Promise<readonly WatchedKind[]> {
  const { inventory: findsLeftovers = true, removed = {} } = workflow;
  const opened: WatchedKind[] = findsLeftovers ? [...kinds.watched] : [];
  for (const [name, each] of Object.entries(removed)) {
    if (each.policy === "keep") continue;
    try {
      const kind = await kinds.open(name, each);
      if (kind !== undefined && !opened.includes(kind)) opened.push(kind);
    } catch (cause) {
      const error = new Error(`removed dependent "${name}": ${messageOf(cause)}`, { cause });
      pruned.removed[name] = { kind: "failed", error };
      pruned.errors.set(name, error);
      pruned.isGone = false;
    }
  }
  return opened;
}

async function removeGroup(
  { name, policy }: Pick<RemovedGroup, "name" | "policy">,
  find: () => readonly RemovedGroup[],
  options: PruneOptions,
): Promise<DependentOutcome> {
  const { run, isCleanup } = options;
  // The garbage collector acts only when the primary is gone.
  const isCollected = (live: KubernetesObject) =>
    isCleanup && policy === "delete" && isOwnedBy(live.metadata, run.primary.metadata);
  const findFree = () =>
    find().flatMap(({ objects }) =>
      objects.flatMap(({ kind, live }) =>
        isCollected(live) ? [] : [{ driver: kind.driverFor(policy), live: { object: live } }],
      ),
    );
  if (findFree().length === 0) return { kind: "left" };
  try {
    return { kind: "deleted", isGone: await removeAll(name, findFree, options), because: BECAUSE };
  } catch (error) {
    return {
      kind: "failed",
      error: new Error(`removed dependent "${name}": ${messageOf(error)}`, { cause: error }),
    };
  }
}

// Returns whether all are gone.
async function removeAll(
  name: string,
  find: () => readonly { readonly driver: DependentDriver; readonly live: Live }[],
  { run }: PruneOptions,
): Promise<boolean> {
  const { context } = run;
  for (const { driver, live } of find()) {
    const { metadata, apiVersion, kind } = live.object as KubernetesObject;
    if (metadata.deletionTimestamp !== undefined || removalOf(context, metadata.uid) !== undefined) continue;
    context.signal.throwIfAborted();
    await driver.remove({ ...run, secondary: {} } as unknown as DriverRun, live);
    const object = describeObject({ apiVersion, kind } as never, metadata);
    context.logger.info({ dependent: name }, `removed ${object}, which is not wanted any more`);
  }
  return find().length === 0;
}

// What is left of removed dependents, what was made last first: others may need what was made before.
function findRemoved(options: PruneOptions, kinds: readonly WatchedKind[], only?: string): readonly RemovedGroup[] {
  const { run, workflow } = options;
  const { inventory: findsLeftovers = true, removed = {} } = workflow;
  const groups = new Map<string, RemovedGroup>();
  const seen = new Set<string | undefined>();
  for (const kind of kinds) {
    const present = namesOfKind(kind, options);
    // In a kind that only `removed` names, nothing else is meant.
    const isSearched = findsLeftovers && options.kinds.watched.includes(kind);
    let claims: ReadonlySet<string> | undefined;
    const statedFor = (dependent: string, id: ObjectKey) => {
      const stated = removed[dependent];
      return stated !== undefined && isPlaceOf(stated, kind, id) ? stated : undefined;
    };
    const isMeant = (dependent: string, id: ObjectKey) => {
      if (only !== undefined && dependent !== only) return false;
      const stated = statedFor(dependent, id);
      const isLeft = stated === undefined ? isSearched && !present.has(dependent) : stated.policy !== "keep";
      return isLeft && !(claims ??= claimedIn(kind, options)).has(id);
    };
    for (const { object } of kind.driverFor("delete").findLeftovers?.(run, isMeant) ?? []) {
      const live = object as KubernetesObject;
      // A kind that is watched may be stated as removed as well.
      if (seen.has(live.metadata.uid)) continue;
      seen.add(live.metadata.uid);
      const name = live.metadata.annotations![DEPENDENT_NAME]!;
      const policy = statedFor(name, keyOf(live.metadata))?.policy === "orphan" ? "orphan" : "delete";
      const group = groups.get(name) ?? { name, policy, objects: [] };
      groups.set(name, group);
      group.objects.push({ kind, live });
    }
  }
  const ordered = [...groups.values()];
  for (const { objects } of ordered) objects.sort((a, b) => byAge(a.live, b.live));
  return ordered.sort((a, b) => byAge(a.objects[0]!.live, b.objects[0]!.live));
}

function byAge({ metadata: a }: KubernetesObject, { metadata: b }: KubernetesObject): number {
  const [first = "", second = ""] = [a.creationTimestamp, b.creationTimestamp];
  if (first !== second) return first < second ? 1 : -1;
  return compareResourceVersions(b.resourceVersion ?? "0", a.resourceVersion ?? "0");
}

// The dependents of other workflows that may want an object under another name, and did not run to say so.
function silentRivals(name: string, { run, workflow }: PruneOptions, groups: readonly RemovedGroup[]): string[] {
  if (workflow.removed?.[name] !== undefined) return [];
  const kinds = groups.flatMap(({ objects }) => objects.map(({ kind }) => kind));
  return (run.others ?? []).flatMap(({ definition }) => {
    const isRival = kinds.some((kind) => isWritten(definition, kind));
    return isRival && wantedBy(run.context, definition.name) === undefined ? definition.name : [];
  });
}

// Whether the successors of the objects of a dependent are written and ready, and all that depends on them has run.
function isReplaced(index: number, { run, result }: PruneOptions): boolean {
  const { plan, drivers } = run;
  const { definition } = plan.nodes[index]!;
  const outcome = result.dependents[definition.name];
  if (outcome === undefined || !isWritable(definition)) return false;
  if (outcome.kind === "deleted") return true;
  if (outcome.kind === "left") return !drivers[index]!.isGarbageCollected;
  if (!("isReady" in outcome) || !outcome.isReady || !hasRun(outcome)) return false;
  const seen = new Set([index]);
  for (const each of seen) {
    const { dependents, itemDependents } = plan.nodes[each]!;
    for (const next of [...dependents, ...itemDependents]) seen.add(next);
  }
  return [...seen].every((each) => hasRun(result.dependents[plan.nodes[each]!.definition.name]));
}

function hasRun(outcome: DependentOutcome | undefined): boolean {
  if (outcome === undefined || outcome.kind === "failed" || outcome.kind === "waiting") return false;
  return Object.values(outcome.items ?? {}).every(hasRun);
}

// What the dependents of a kind want; undefined if one of them did not say so.
function claimsOnKindOf(definition: DependentDefinition, options: PruneOptions): ReadonlySet<string> | undefined {
  const { run, result, isCleanup } = options;
  const claims = new Set<string>();
  if (isCleanup || !isKubernetes(definition)) return claims;
  for (const { definition: rival } of run.plan.nodes) {
    const outcome = result.dependents[rival.name];
    if (!isWritten(rival, definition) || outcome?.kind === "inactive" || outcome?.kind === "deleted") continue;
    const wanted = wantedBy(run.context, rival.name);
    // A bulk dependent may want nothing. One of which an item is missing may want more than it said.
    if (rival.bulk !== undefined ? !hasRun(outcome) : wanted === undefined) return undefined;
    for (const id of wanted ?? []) claims.add(id);
  }
  return claims;
}

function claimedIn(kind: WatchedKind, { run, isCleanup }: PruneOptions): ReadonlySet<string> {
  if (isCleanup) return new Set();
  const all = [...run.plan.nodes, ...(run.others ?? [])].filter(({ definition }) => isWritten(definition, kind));
  return new Set(all.flatMap(({ definition }) => [...(wantedBy(run.context, definition.name) ?? [])]));
}

function namesOfKind(kind: WatchedKind, { run }: PruneOptions): ReadonlySet<string> {
  const all = [...run.plan.nodes, ...(run.others ?? [])].filter(({ definition }) => isWritten(definition, kind));
  return new Set(all.map(({ definition }) => definition.name));
}

function isPlaceOf({ resource, cluster, namespace }: RemovedDependent, kind: WatchedKind, id: ObjectKey): boolean {
  const isPlace = namespace === undefined || id.startsWith(`${namespace}/`);
  return isPlace && cluster === kind.cluster && isSameKind(resource, kind.resource);
}

function isWritten(
  definition: DependentDefinition,
  { resource, cluster }: Pick<WatchedKind, "resource" | "cluster">,
): boolean {
  if (!isKubernetes(definition) || !isWritable(definition)) return false;
  return definition.cluster === cluster && isSameKind(definition.resource, resource);
}

function isWritable(definition: DependentDefinition): boolean {
  return isKubernetes(definition) && definition.mode !== "readOnly";
}

/** Tells whether two definitions are of one kind, in whichever versions. */
export function isSameKind(a: ResourceDefinition, b: ResourceDefinition): boolean {
  return a.kind === b.kind && a.group === b.group;
}
