import { createBulkError } from "./workflow-error.js";
import type { DependentOutcome } from "./workflow-result.js";

/** The outcomes of the items of a bulk dependent. */
export interface BulkFacts {
  readonly items: ReadonlyMap<string, DependentOutcome>;
  /** The keys of the wanted items. */
  readonly wanted: ReadonlySet<string>;
  /** Why no item must exist; absent if there are wanted items. */
  readonly because?: string | undefined;
}

/** Returns the outcome of a bulk dependent: failed if an item failed; ready, or gone, if all items are. */
export function bulkOutcome(name: string, { items, wanted, because }: BulkFacts): DependentOutcome {
  const outcomes = [...items.values()];
  const parts = { items: Object.fromEntries(items) };
  const errors = outcomes.flatMap((each) => (each.kind === "failed" ? [each.error] : []));
  if (errors.length > 0) return { kind: "failed", error: createBulkError(name, errors), ...parts };
  const blockers = outcomes.map((each) => (each.kind === "waiting" ? each.for : undefined));
  if (outcomes.length > 0 && blockers.every((each) => each !== undefined))
    return { kind: "waiting", for: [...new Set(blockers.flat())], ...parts };
  if (because !== undefined) {
    if (outcomes.length > 0 && outcomes.every(({ kind }) => kind === "left")) return { kind: "left", ...parts };
    return { kind: "deleted", isGone: outcomes.every(isGoneItem), because, ...parts };
  }
  const isReady = [...wanted].every((key) => isReadyItem(items.get(key)));
  return { kind: kindOf(outcomes), isReady, ...parts };
}

/** Tells whether an item exists and is ready. */
export function isReadyItem(outcome: DependentOutcome | undefined): boolean {
  return outcome !== undefined && "isReady" in outcome && outcome.isReady;
}

/** Tells whether an item is gone, or left to the garbage collector, so that the items that it needs can be deleted. */
export function isGoneItem(outcome: DependentOutcome): boolean {
  return outcome.kind === "left" || (outcome.kind === "deleted" && outcome.isGone);
}

function kindOf(outcomes: readonly DependentOutcome[]): "created" | "updated" | "unchanged" {
  if (outcomes.some(({ kind }) => kind === "created")) return "created";
  return outcomes.some(({ kind }) => kind === "updated" || kind === "deleted") ? "updated" : "unchanged";
}
