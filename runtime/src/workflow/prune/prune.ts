// Deletes the objects of the controller that no dependent wants: of dependents that the workflow no longer has, or under a former name.
//
// An object goes only after its successor is written and ready, and after everything that depends on the successor has run. The successor
// of an object of a removed dependent may be anything in the workflow, so such an object stays while the workflow is not ready.
import { compareResourceVersions, describeObject, keyOf } from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import { isOwnedBy } from "../../base/primary-link.js";
import type { KubernetesDependent } from "../definition/workflow-definition.js";
import type { DependentDriver, DriverRun } from "../dependents/driver.js";
import {
  claimsOn,
  findLeftovers,
  hasRun,
  isPostponed,
  isClaimed,
  isWritten,
  type Leftover,
  type PruneOptions,
  type WatchedKind,
} from "./leftovers.js";
import { removalOf, wantedBy } from "../wanted-objects.js";
import { withAddition, type DependentOutcome, type WorkflowResult } from "../workflow-result.js";

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
  const pruned: Pruned = { removed: {}, errors: new Map(), isGone: true };
  const kinds = await openKinds(options, pruned);
  const find = () => findLeftovers(options, kinds);
  const leftovers = find();
  if (leftovers.length === 0 && workflow.removed === undefined) return result;
  await pruneFormerNames(options, { leftovers, find }, pruned);
  await pruneRemoved(options, { leftovers, find }, pruned);
  const { removed, errors, isGone } = pruned;
  const hasRemoved = Object.keys(removed).length > 0;
  if (!hasRemoved && errors.size === 0 && isGone) return result;
  return withAddition(result, { ...(hasRemoved ? { removed } : {}), errors, isReady: isGone || !isCleanup });
}

async function openKinds({ workflow, kinds }: PruneOptions, pruned: Pruned): Promise<readonly WatchedKind[]> {
  const opened = new Set(kinds.watched);
  for (const [name, removed] of Object.entries(workflow.removed ?? {})) {
    const isKept = removed.policy === "keep";
    pruned.removed[name] = isKept ? { kind: "left" } : { kind: "deleted", isGone: true, because: BECAUSE };
    if (isKept) continue;
    try {
      const kind = await kinds.open(name, removed);
      if (kind !== undefined) opened.add(kind);
    } catch (error) {
      fail(pruned, name, new Error(`removed dependent "${name}": ${messageOf(error)}`, { cause: error }));
    }
  }
  return [...opened];
}

interface Found {
  readonly leftovers: readonly Leftover[];
  /** Looks again. */
  readonly find: () => readonly Leftover[];
}

// In reverse order: what depends on an object goes before it.
async function pruneFormerNames(options: PruneOptions, { leftovers, find }: Found, pruned: Pruned): Promise<void> {
  const { run } = options;
  const indexes = new Set(leftovers.flatMap(({ index }) => index ?? []));
  for (const index of [...indexes].sort((a, b) => b - a)) {
    const { definition } = run.plan.nodes[index]!;
    const { name } = definition;
    const claims = isReplaced(index, options) ? claimsOn(definition as KubernetesDependent, options) : undefined;
    if (claims === undefined || !run.drivers[index]!.capabilities.remove) continue;
    const findAll = () => find().filter((each) => each.index === index && !claims.has(keyOf(each.live.metadata)));
    try {
      const isGone = await removeAll(options, { name, find: findAll, driverOf: () => run.drivers[index]! });
      if (!isGone) pruned.isGone = false;
    } catch (error) {
      fail(pruned, name, new Error(`dependent "${name}": ${messageOf(error)}`, { cause: error }));
    }
  }
}

// One dependent after the other, the youngest first: others may need what is older.
async function pruneRemoved(options: PruneOptions, { leftovers, find }: Found, pruned: Pruned): Promise<void> {
  const { isCleanup } = options;
  const isRemoved = ({ index, kind, live }: Leftover) =>
    index === undefined && (isCleanup || !isClaimed(live, kind, options));
  const names = new Set(
    leftovers
      .filter(isRemoved)
      .sort(byAge)
      .map(({ name }) => name),
  );
  // A kind that cannot be watched may have the object that has to go first.
  let before = Object.entries(pruned.removed).flatMap(([name, { kind }]) => (kind === "failed" ? name : []));
  for (const name of names) {
    const findAll = () => find().filter((each) => each.name === name && isRemoved(each));
    const blockers = isCleanup ? before : [...options.result.notReady, ...before, ...silentRivals(findAll(), options)];
    const isHeld = blockers.length > 0;
    const outcome: DependentOutcome = isHeld
      ? { kind: "waiting", for: [...new Set(blockers)] }
      : await removeDependent(options, name, findAll);
    pruned.removed[name] = outcome;
    if (outcome.kind === "failed") fail(pruned, name, outcome.error);
    if (outcome.kind === "left" || (outcome.kind === "deleted" && outcome.isGone)) continue;
    pruned.isGone = false;
    before = [...before, name];
  }
}

async function removeDependent(
  options: PruneOptions,
  name: string,
  findAll: () => readonly Leftover[],
): Promise<DependentOutcome> {
  const { isCleanup, run } = options;
  // The garbage collector acts only when the primary is gone.
  const isCollected = ({ live, stated }: Leftover) =>
    isCleanup && stated?.policy !== "orphan" && isOwnedBy(live.metadata, run.primary.metadata);
  const find = () => findAll().filter((each) => !isCollected(each));
  const driverOf = ({ kind, stated }: Leftover) => kind.driverFor(stated?.policy === "orphan" ? "orphan" : "delete");
  if (isCleanup && find().length === 0) return { kind: "left" };
  try {
    return { kind: "deleted", isGone: await removeAll(options, { name, find, driverOf }), because: BECAUSE };
  } catch (error) {
    return { kind: "failed", error: new Error(`removed dependent "${name}": ${messageOf(error)}`, { cause: error }) };
  }
}

interface Removal {
  readonly name: string;
  readonly find: () => readonly Leftover[];
  readonly driverOf: (leftover: Leftover) => DependentDriver;
}

// Returns whether all are gone.
async function removeAll({ run }: PruneOptions, { name, find, driverOf }: Removal): Promise<boolean> {
  const { context } = run;
  for (const leftover of find()) {
    const { metadata, apiVersion, kind } = leftover.live;
    if (metadata.deletionTimestamp !== undefined || removalOf(context, metadata.uid) !== undefined) continue;
    context.signal.throwIfAborted();
    const driverRun = { ...run, secondary: {} } as unknown as DriverRun;
    await driverOf(leftover).remove(driverRun, { object: leftover.live });
    const object = describeObject({ apiVersion, kind } as never, metadata);
    context.logger.info({ dependent: name }, `removed ${object}, which is not wanted any more`);
  }
  return find().length === 0;
}

function byAge({ live: { metadata: a } }: Leftover, { live: { metadata: b } }: Leftover): number {
  const [first = "", second = ""] = [a.creationTimestamp, b.creationTimestamp];
  if (first !== second) return first < second ? 1 : -1;
  return compareResourceVersions(b.resourceVersion ?? "0", a.resourceVersion ?? "0");
}

function fail(pruned: Pruned, name: string, error: unknown): void {
  if (pruned.removed[name] !== undefined) pruned.removed[name] = { kind: "failed", error };
  pruned.errors.set(name, error);
  pruned.isGone = false;
}

// The dependents of other workflows that may want an object under another name, and did not run to say so.
function silentRivals(leftovers: readonly Leftover[], { run }: PruneOptions): string[] {
  const kinds = leftovers.flatMap(({ stated, kind }) => (stated === undefined ? kind : []));
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
  if (outcome === undefined) return false;
  if (outcome.kind === "deleted") return true;
  if (outcome.kind === "left") return !drivers[index]!.isGarbageCollected;
  if (!("isReady" in outcome) || !outcome.isReady || !hasRun(outcome)) return false;
  const seen = new Set([index]);
  for (const each of seen) {
    const { dependents, itemDependents } = plan.nodes[each]!;
    for (const next of [...dependents, ...itemDependents]) seen.add(next);
  }
  return [...seen].every((each) => {
    const next = result.dependents[plan.nodes[each]!.definition.name];
    return hasRun(next) && !isPostponed(next);
  });
}
