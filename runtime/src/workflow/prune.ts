// Deletes what a run leaves: objects of dependents that the workflow no longer has, and those that a dependent made under another name.
//
// Nothing is touched that could still be wanted: as long as a dependent that has not come to say what it wants could claim an object, that
// object stays. It is done after the run, so that what depends on an object has been changed before it goes, and in reverse order.
import { keyOf, type KubernetesObject, type ObjectKey, describeObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import type { DependentDriver, DriverRun, Live } from "./dependents/driver.js";
import { isOfKind, type InventoryEntry } from "./inventory.js";
import type { Plan, PlanNode } from "./plan.js";
import { removalOf, wantedBy } from "./wanted-objects.js";
import { isKubernetes, type KubernetesDependent, type RemovedDependent } from "./definition/workflow-definition.js";
import type { DependentOutcome, WorkflowResult } from "./workflow-result.js";

/** A dependent that the workflow no longer has, and what becomes of its objects. */
export interface RemovedEntry {
  readonly entry: InventoryEntry;
  readonly policy: RemovedDependent["policy"];
  /** Whether the workflow says that it is removed; a failure to look for its objects then fails the reconcile. */
  readonly isDeclared: boolean;
}

/** Finds and deletes the objects of dependents that the workflow no longer has. */
export interface RemovedDrivers {
  /**
   * Returns the driver of one for a primary, which watches what may be left of it; undefined if its kind is not served any more. Throws
   * if it cannot be known now.
   */
  open(removed: RemovedEntry, primary: ObjectKey): Promise<DependentDriver | undefined>;
  /** Says that nothing of it is left of a primary; with the last one the watch ends. */
  close(removed: RemovedEntry, primary: ObjectKey): void;
}

/** What is pruned after a run. */
export interface PruneOptions {
  readonly plan: Plan;
  readonly drivers: readonly DependentDriver[];
  readonly run: DriverRun;
  readonly result: WorkflowResult;
  readonly isCleanup: boolean;
  /** Whether objects that a dependent made under another name are deleted. */
  readonly findsLeftovers: boolean;
  /** In the order in which they were created. */
  readonly removed: readonly RemovedEntry[];
  readonly removedDrivers: RemovedDrivers;
}

/** What pruning did. */
export interface Pruned {
  readonly removed: { readonly [name: string]: DependentOutcome };
  readonly errors: ReadonlyMap<string, unknown>;
  /** The removed dependents of which something may be left. */
  readonly left: readonly InventoryEntry[];
  /** Whether nothing is left that has to go. */
  readonly isGone: boolean;
}

const NOTHING: ReadonlySet<string> = new Set();
const BECAUSE = "the workflow no longer has it";

/** Deletes what is left after a run; never rejects. */
export async function pruneWorkflow(options: PruneOptions): Promise<Pruned> {
  const errors = new Map<string, unknown>();
  let isGone = true;
  for (const [index, node] of [...options.plan.nodes.entries()].reverse()) {
    const wanted = wantedOf(node, options);
    const driver = options.drivers[index]!;
    if (!options.findsLeftovers || wanted === undefined || driver.findLeftovers === undefined) continue;
    const { name } = node.definition;
    try {
      isGone =
        (await removeAll(driver, { name, find: () => driver.findLeftovers!(options.run, wanted), options })) && isGone;
    } catch (error) {
      isGone = false;
      errors.set(name, new Error(`dependent "${name}": ${messageOf(error)}`, { cause: error }));
    }
  }
  const ofRemoved = await pruneRemoved(options);
  for (const [name, error] of ofRemoved.errors) errors.set(name, error);
  return { ...ofRemoved, errors, isGone: isGone && ofRemoved.isGone };
}

async function pruneRemoved(options: PruneOptions): Promise<Pruned> {
  const { removed: all, removedDrivers, run } = options;
  const removed: { [name: string]: DependentOutcome } = {};
  const errors = new Map<string, unknown>();
  const left: InventoryEntry[] = [];
  // An order was kept when they were made; what stands before one that is not gone yet stays.
  let isHeld = false;
  for (const each of [...all].reverse()) {
    const { entry, isDeclared } = each;
    const outcome: DependentOutcome = isHeld
      ? { kind: "waiting", for: [left[0]!.name] }
      : await pruneOne(each, options).catch((error: unknown) => ({ kind: "failed" as const, error }));
    removed[entry.name] = outcome;
    if (outcome.kind === "deleted" && outcome.isGone) removedDrivers.close(each, keyOf(run.primary.metadata));
    if (isSettled(outcome)) continue;
    left.unshift(entry);
    isHeld = true;
    if (outcome.kind !== "failed") continue;
    const { error } = outcome;
    const failure = new Error(`removed dependent "${entry.name}": ${messageOf(error)}`, { cause: error });
    removed[entry.name] = { kind: "failed", error: failure };
    // A workflow that does not know of it cannot have the rights to look for it; but nothing must be lost without a word.
    if (isDeclared || options.isCleanup) errors.set(entry.name, failure);
  }
  return { removed, errors, left, isGone: left.length === 0 };
}

async function pruneOne(each: RemovedEntry, options: PruneOptions): Promise<DependentOutcome> {
  const { entry, policy } = each;
  const { run, isCleanup, removedDrivers } = options;
  const isLeftToCollector = isCleanup && policy === "delete" && entry.ordered !== true;
  if (policy === "keep" || isLeftToCollector) return { kind: "left" };
  const claims = claimsOn(entry, options);
  if (claims === undefined) return { kind: "waiting", for: [] };
  const driver = await removedDrivers.open(each, keyOf(run.primary.metadata));
  const findAll = () => driver?.findLeftovers?.(run, NOTHING) ?? [];
  const findFree = () =>
    findAll().filter(({ object }) => {
      const live = object as KubernetesObject;
      // The garbage collector acts only when the primary is gone.
      const isCollected = isCleanup && policy === "delete" && isOwnedBy(live, run.primary);
      return !isCollected && !claims.has(keyOf(live.metadata));
    });
  if (driver !== undefined) await removeAll(driver, { name: entry.name, find: findFree, options });
  const isGone = isCleanup ? findFree().length === 0 : findAll().length === 0;
  return { kind: "deleted", isGone, because: BECAUSE };
}

// Returns whether all are gone.
async function removeAll(
  driver: DependentDriver,
  { name, find, options }: { name: string; find: () => readonly Live[]; options: PruneOptions },
): Promise<boolean> {
  const { run } = options;
  for (const live of find()) {
    const { metadata, apiVersion, kind } = live.object as KubernetesObject;
    if (metadata.deletionTimestamp !== undefined || removalOf(run.context, metadata.uid) !== undefined) continue;
    run.context.signal.throwIfAborted();
    await driver.remove(run, live);
    const object = describeObject({ apiVersion, kind } as never, metadata);
    run.context.logger.info({ dependent: name }, `removed ${object}, which is not wanted any more`);
  }
  return find().length === 0;
}

// What a dependent wants; undefined if it did not come to say so, or does not count.
function wantedOf(
  { definition }: PlanNode,
  { run, result, drivers, plan }: PruneOptions,
): ReadonlySet<string> | undefined {
  const outcome = result.dependents[definition.name];
  const driver = drivers[plan.nodes.findIndex((node) => node.definition === definition)];
  switch (outcome?.kind) {
    case "deleted":
      return NOTHING;
    case "left":
      return driver?.isGarbageCollected === true ? undefined : NOTHING;
    case "created":
    case "updated":
    case "unchanged": {
      const isComplete = Object.values(outcome.items ?? {}).every(
        ({ kind }) => kind !== "failed" && kind !== "waiting",
      );
      if (!isComplete) return undefined;
      return wantedBy(run.context, definition.name) ?? (definition.bulk === undefined ? undefined : NOTHING);
    }
    case "waiting":
    case "failed":
      return definition.bulk === undefined ? wantedBy(run.context, definition.name) : undefined;
    default:
      return undefined;
  }
}

// The objects of a removed dependent that others want now, because it got another name; undefined if one could not say so yet.
function claimsOn(entry: InventoryEntry, options: PruneOptions): ReadonlySet<string> | undefined {
  if (options.isCleanup) return NOTHING;
  const { plan, result } = options;
  const claims = new Set<string>();
  for (const node of plan.nodes) {
    if (!isRival(node, entry) || result.dependents[node.definition.name]?.kind === "inactive") continue;
    const wanted = wantedOf(node, options);
    if (wanted === undefined) return undefined;
    for (const id of wanted) claims.add(id);
  }
  return claims;
}

function isRival({ definition }: PlanNode, entry: InventoryEntry): boolean {
  if (!isKubernetes(definition)) return false;
  const { mode, cluster, resource }: KubernetesDependent = definition;
  return mode !== "readOnly" && cluster === entry.cluster && isOfKind(entry, resource);
}

function isOwnedBy(live: KubernetesObject, { metadata }: KubernetesObject): boolean {
  return live.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) === true;
}

function isSettled(outcome: DependentOutcome): boolean {
  return outcome.kind === "left" || (outcome.kind === "deleted" && outcome.isGone);
}
