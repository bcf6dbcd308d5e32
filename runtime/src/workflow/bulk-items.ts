// The items that `desired` of a bulk dependent returns, and the outcome that they give the dependent.
import { TerminalError } from "../base/errors.js";
import { messageOf } from "../base/logger.js";
import { isGone, isReady } from "./plan.js";
import type { DependentOutcome } from "./workflow-result.js";

// What else failed can be read in the result; a message has to fit into a status.
const MOST_ITEMS = 5;

/** Returns the items that `desired` of a bulk dependent returned, by their keys; throws if it returned anything else. */
export function desiredItemsOf(desired: unknown): ReadonlyMap<string, unknown> {
  const fail = (found: string) =>
    new TerminalError(`desired() of a bulk dependent has to return its items by their keys, and returned ${found}`);
  if (desired instanceof Map) {
    const stranger: unknown = [...desired.keys()].find((key) => typeof key !== "string");
    if (stranger !== undefined) throw fail(`a Map with the key ${String(stranger)}, which is no text`);
    return desired as Map<string, unknown>;
  }
  if (typeof desired !== "object") throw fail(typeof desired);
  if (desired === null) throw fail("null");
  // The prototype of a plain object has none itself, in whichever realm.
  const prototype: unknown = Object.getPrototypeOf(desired);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return new Map(Object.entries(desired));
  // What has no items by keys, such as a Set, must not be taken for no items: all items would be deleted.
  throw fail(Array.isArray(desired) ? "a list" : `a ${desired.constructor?.name ?? "strange object"}`);
}

/** Returns the outcome of a bulk dependent: failed if an item failed; ready, or gone, if all items are. */
export function bulkOutcome(
  items: ReadonlyMap<string, DependentOutcome>,
  wanted: ReadonlySet<string>,
  { name, because }: { readonly name: string; readonly because: string | undefined },
): DependentOutcome {
  const outcomes = [...items.values()];
  const parts = { items: Object.fromEntries(items) };
  const errors = outcomes.flatMap((each) => (each.kind === "failed" ? [each.error] : []));
  if (errors.length > 0) {
    const messages = errors.slice(0, MOST_ITEMS).map(messageOf);
    if (errors.length > MOST_ITEMS) messages.push(`${errors.length - MOST_ITEMS} more items of dependent "${name}"`);
    return { kind: "failed", error: new AggregateError(errors, messages.join("; ")), ...parts };
  }
  const blockers = outcomes.map((each) => (each.kind === "waiting" ? each.for : undefined));
  if (outcomes.length > 0 && blockers.every((each) => each !== undefined))
    return { kind: "waiting", for: [...new Set(blockers.flat())], ...parts };
  if (because !== undefined) {
    if (outcomes.length > 0 && outcomes.every(({ kind }) => kind === "left")) return { kind: "left", ...parts };
    return { kind: "deleted", isGone: outcomes.every(isGone), because, ...parts };
  }
  const isAllReady = [...wanted].every((key) => isReady(items.get(key)!));
  return { kind: kindOf(outcomes), isReady: isAllReady, ...parts };
}

function kindOf(outcomes: readonly DependentOutcome[]): "created" | "updated" | "unchanged" {
  if (outcomes.some(({ kind }) => kind === "created")) return "created";
  return outcomes.some(({ kind }) => kind === "updated" || kind === "deleted") ? "updated" : "unchanged";
}
