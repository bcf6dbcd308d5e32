// Deletes the objects of the controller that no dependent wants: of dependents that the workflow no longer has, or under a former name.
//
// An object goes only after its successor is written and ready, and after everything that depends on the successor has run. The successor
// of an object of a removed dependent may be anything in the workflow, so such an object stays while the workflow is not ready.
import {
  compareResourceVersions,
  describeObject,
  refOfKey,
  type KubernetesObject,
  type ObjectKey,
} from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import { DEPENDENT_ITEM, isOwnedBy } from "../../base/primary-link.js";
import type { KubernetesDependent } from "../definition/workflow-definition.js";
import { endsOf, isGone, isReady, type PlanNode } from "../plan.js";
import { placeOf } from "../reconcile-notes.js";
import { createWorkflowResult, type DependentOutcome, type WorkflowResult } from "../workflow-result.js";
import {
  findLeftovers,
  haveAllSaid,
  hasRun,
  isWritten,
  type Leftover,
  type PruneOptions,
  type WatchedKind,
} from "./leftovers.js";

const BECAUSE = "the workflow no longer has it";

/** Deletes what is left after a run, and completes the result by that; never rejects. */
export function pruneWorkflow(options: PruneOptions): Promise<WorkflowResult> {
  return new Pruning(options).finish();
}

type Test = (leftover: Leftover) => boolean;

/** What is pruned after one run, which is thrown away with it. */
class Pruning {
  readonly #options: PruneOptions;
  readonly #kinds: Set<WatchedKind>;
  readonly #removed: { [name: string]: DependentOutcome } = {};
  readonly #errors = new Map<string, unknown>();

  constructor(options: PruneOptions) {
    this.#options = options;
    this.#kinds = new Set(options.kinds.watched);
  }

  async finish(): Promise<WorkflowResult> {
    const { result, workflow } = this.#options;
    await this.#openKinds();
    this.#reportUnproven();
    const leftovers = this.#find();
    const problem = await this.#ensureFinalizer(leftovers);
    if (problem !== undefined) return problem;
    if (leftovers.length === 0 && workflow.removed === undefined) return result;
    const former = await this.#pruneFormerNames(leftovers);
    await this.#pruneRemoved(leftovers);
    const isReady = [...former, ...Object.values(this.#removed)].every(isGone);
    const addition = { removed: this.#removed, errors: this.#errors, isReady };
    return createWorkflowResult(Object.entries(result.dependents), addition);
  }

  // They may have to stay for a while, and nobody else would clean them up if the primary went meanwhile.
  async #ensureFinalizer(leftovers: readonly Leftover[]): Promise<WorkflowResult | undefined> {
    const { run, result, isCleanup } = this.#options;
    const { metadata } = run.primary;
    const needsCleanup = ({ stated, live }: Leftover) =>
      stated?.deletion === "orphan" || !isOwnedBy(live.metadata, metadata);
    if (isCleanup || !leftovers.some(needsCleanup)) return undefined;
    try {
      await run.ensureFinalizer?.();
      return undefined;
    } catch (error) {
      const errors = new Map([...this.#errors, ["finalizer", error] as const]);
      const facts = { removed: this.#removed, errors, isReady: false };
      return createWorkflowResult(Object.entries(result.dependents), facts);
    }
  }

  #find(isMeant: Test = () => true): readonly Leftover[] {
    return findLeftovers(this.#options, this.#kinds).filter(isMeant);
  }

  // What anyone can write proves nothing: such an object is neither read nor deleted, and a person has to look at it.
  #reportUnproven(): void {
    const { run } = this.#options;
    for (const kind of this.#kinds) {
      const isTaken = (id: ObjectKey) => run.notes.wishFor(placeOf(kind), id) !== undefined;
      const [first, ...others] = kind.reconcilerFor("ordered").objects.takeUnproven(run.primary, isTaken);
      if (first === undefined) continue;
      const more = others.length === 0 ? "" : ` and ${others.length} more objects`;
      const note =
        `${describeObject(kind.resource, refOfKey(first))}${more} names this primary, and nothing proves that the operator linked it: it is ` +
        "ignored. Delete it, or take its gen-operator.dev annotations off";
      run.context.logger.warn({}, note);
      run.context.events.record({ type: "Warning", reason: "UnprovenLink", action: "Reconcile", note });
    }
  }

  async #openKinds(): Promise<void> {
    const { workflow, kinds, run } = this.#options;
    for (const [name, removed] of Object.entries(workflow.removed ?? {})) {
      if (removed.deletion === "garbageCollected") {
        this.#removed[name] = { kind: "left" };
        continue;
      }
      try {
        const kind = await kinds.open(name, removed, run.primary);
        if (kind !== undefined) this.#kinds.add(kind);
      } catch (error) {
        this.#removed[name] = this.#failure("removed dependent", name, error);
      }
    }
  }

  // In reverse order: what depends on an object goes before it.
  async #pruneFormerNames(leftovers: readonly Leftover[]): Promise<DependentOutcome[]> {
    const { plan, primary } = this.#options.run;
    const outcomes: DependentOutcome[] = [];
    for (const node of plan.toReversed()) {
      const { definition, reconciler } = node;
      const isFound = reconciler.capabilities.remove && leftovers.some((each) => each.node === node);
      if (!isFound || !isReplaced(node, this.#options)) continue;
      const isKnown = haveAllSaid(definition as KubernetesDependent, this.#options);
      const outcome = this.#options.result.dependents[definition.name];
      // Where others have not said what they want, what has an item goes that is deleted: its next run would delete that as the item.
      const isUnwanted = (live: KubernetesObject) => isKnown || isOfDeletedItem(live, outcome);
      const isCollected = ({ metadata }: KubernetesObject) =>
        outcome?.kind === "left" && isOwnedBy(metadata, primary.metadata);
      const isMeant = ({ node: of, live }: Leftover) => of === node && isUnwanted(live) && !isCollected(live);
      outcomes.push(await this.#remove("dependent", definition.name, isMeant));
    }
    return outcomes;
  }

  // One dependent after the other, the youngest first: others may need what is older.
  async #pruneRemoved(leftovers: readonly Leftover[]): Promise<void> {
    const { isCleanup, result } = this.#options;
    const isRemoved = ({ node }: Leftover) => node === undefined;
    const youngest = leftovers.filter(isRemoved).sort(byAge);
    // A kind that cannot be watched may have the object that has to go first.
    const before = Object.entries(this.#removed).flatMap(([name, { kind }]) => (kind === "failed" ? name : []));
    for (const name of new Set(youngest.map((each) => each.name))) {
      const isMeant = (each: Leftover) => each.name === name && isRemoved(each);
      const ofWorkflow = isCleanup ? [] : [...result.notReady, ...silentRivals(this.#find(isMeant), this.#options)];
      const blockers = new Set([...ofWorkflow, ...before]);
      const outcome: DependentOutcome =
        blockers.size > 0 ? { kind: "waiting", for: [...blockers] } : await this.#removeDependent(name, isMeant);
      this.#removed[name] = outcome;
      if (!isGone(outcome)) before.push(name);
    }
  }

  async #removeDependent(name: string, isMeant: Test): Promise<DependentOutcome> {
    const { isCleanup, run } = this.#options;
    // The garbage collector acts only when the primary is gone.
    const isCollected = ({ live, stated }: Leftover) =>
      isCleanup && stated?.deletion !== "orphan" && isOwnedBy(live.metadata, run.primary.metadata);
    const isOurs = (each: Leftover) => isMeant(each) && !isCollected(each);
    if (isCleanup && this.#find(isOurs).length === 0) return { kind: "left" };
    return this.#remove("removed dependent", name, isOurs);
  }

  async #remove(what: string, name: string, isMeant: Test): Promise<DependentOutcome> {
    const { run } = this.#options;
    const { context, notes } = run;
    try {
      for (const { live, reconciler } of this.#find(isMeant)) {
        const { deletionTimestamp, uid = "" } = live.metadata;
        if (deletionTimestamp !== undefined || notes.removals.has(uid)) continue;
        context.signal.throwIfAborted();
        await reconciler.remove({ ...run, secondary: {}, dependent: name }, { object: live });
      }
      return { kind: "deleted", isGone: this.#find(isMeant).length === 0, because: BECAUSE };
    } catch (error) {
      return this.#failure(what, name, error);
    }
  }

  #failure(what: string, name: string, cause: unknown): DependentOutcome {
    const error = new Error(`${what} "${name}": ${messageOf(cause)}`, { cause });
    this.#errors.set(name, error);
    return { kind: "failed", error };
  }
}

function byAge({ live: { metadata: a } }: Leftover, { live: { metadata: b } }: Leftover): number {
  const [first = "", second = ""] = [a.creationTimestamp, b.creationTimestamp];
  if (first !== second) return first < second ? 1 : -1;
  return compareResourceVersions(b.resourceVersion ?? "0", a.resourceVersion ?? "0");
}

// The dependents of other workflows that may want an object under another name, and did not run to say so.
function silentRivals(leftovers: readonly Leftover[], { run }: PruneOptions): string[] {
  const kinds = leftovers.flatMap(({ stated, kind }) => (stated === undefined ? kind : []));
  return (run.others ?? []).flatMap(({ definition }) => {
    const isRival = kinds.some((kind) => isWritten(definition, kind));
    return isRival && !run.notes.hasWish(definition.name) ? definition.name : [];
  });
}

// Whether the successors of the objects of a dependent are written and ready, and all that depends on them has run.
function isReplaced(node: PlanNode, { result }: PruneOptions): boolean {
  const outcomeOf = ({ definition }: PlanNode) => result.dependents[definition.name]!;
  const outcome = outcomeOf(node);
  if (outcome.kind === "deleted" || outcome.kind === "left") return true;
  if (!isReady(outcome)) return false;
  const seen = new Set([node]);
  for (const each of seen) for (const next of endsOf(each.neededBy, "required", "items")) seen.add(next);
  return [...seen].every((each) => hasRun(outcomeOf(each)) && !isPostponed(outcomeOf(each)));
}

function isOfDeletedItem({ metadata }: KubernetesObject, outcome: DependentOutcome | undefined): boolean {
  const item = metadata.annotations?.[DEPENDENT_ITEM];
  return item !== undefined && outcome?.items?.[item]?.kind === "deleted";
}

function isPostponed(outcome: DependentOutcome): boolean {
  return "postponed" in outcome || Object.values(outcome.items ?? {}).some(isPostponed);
}
