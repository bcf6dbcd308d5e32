import type { EventSourceModel } from "../model/project-model.js";
import type { AddChange } from "./change.js";
import { compareFacts, kindOf } from "./compare-facts.js";

/** Compares what a controller reads. Nothing that runs is changed by it: what becomes of code that reads it is told line by line. */
export function compareEventSources(
  before: readonly EventSourceModel[],
  after: readonly EventSourceModel[],
  add: AddChange,
): void {
  const current = new Map(after.map((each) => [each.name, each]));
  const former = new Set(before.map(({ name }) => name));
  for (const source of before) {
    const path = `eventSources.${source.name}`;
    const now = current.get(source.name);
    if (now === undefined) add("compatible", path, "removed; its changes cause no reconcile any more");
    else compareFacts(factsOf(source), factsOf(now), (field, text) => add("compatible", `${path}.${field}`, text));
  }
  for (const source of after)
    if (!former.has(source.name)) add("compatible", `eventSources.${source.name}`, `added: ${describe(source)}`);
}

function factsOf(source: EventSourceModel): object {
  if (source.kind !== "informer") return source;
  const { resource, filters, cache: kept, ...others } = source;
  const conditions = Object.entries(filters).map(([name, filter]) => [
    name,
    filter.kind === "when" ? filter.expression.trim() : filter.name,
  ]);
  const cache = kept.kind === "paths" ? kept.paths.join(", ") : kept.kind;
  return { ...others, resource: kindOf(resource), filters: Object.fromEntries(conditions) as object, cache };
}

function describe(source: EventSourceModel): string {
  return source.kind === "informer"
    ? `${kindOf(source.resource)} is watched; the operator needs the rights for it`
    : source.kind;
}
