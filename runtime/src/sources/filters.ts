import type { EventFilters } from "../cache/resource-change.js";
import type { HealthRecord } from "./health-record.js";

/** Any of the filters of an event source, or a part of one. */
export type Filter<Args extends readonly unknown[]> = (...args: Args) => boolean;

/** Combines filters into one that lets pass what all of them let pass. */
export function allOf<Args extends readonly unknown[]>(...filters: readonly Filter<Args>[]): Filter<Args> {
  return (...args) => filters.every((filter) => filter(...args));
}

/** Combines filters into one that lets pass what at least one of them lets pass. */
export function anyOf<Args extends readonly unknown[]>(...filters: readonly Filter<Args>[]): Filter<Args> {
  return (...args) => filters.some((filter) => filter(...args));
}

/**
 * Turns a filter into one that lets pass what it does not, or a condition into one that is met when it is not.
 *
 * @example { reconcilePrecondition: not(crdPresent(Route)) }
 */
export function not<Args extends readonly unknown[]>(filter: Filter<Args>): Filter<Args>;
export function not<Args extends readonly unknown[], Result>(
  condition: (...args: Args) => Result,
): (...args: Args) => Result;
export function not<Args extends readonly unknown[]>(decide: (...args: Args) => unknown): (...args: Args) => unknown {
  // What a condition says about itself stays true of its negation.
  return Object.assign((...args: Args) => negated(decide(...args)), decide);
}

function negated(result: unknown): unknown {
  if (result instanceof Promise) return result.then(negated);
  if (typeof result !== "object" || result === null || !("isMet" in result)) return !(result as boolean);
  return { ...result, isMet: !(result.isMet as boolean) };
}

/** Creates the gate of an event source; a filter that throws lets the event pass, for an event must not be lost. */
export function createEventGate<Resource>(
  { onAdd, onUpdate, onDelete, generic }: EventFilters<Resource> = {},
  health: HealthRecord,
) {
  const passes = <Args extends readonly unknown[]>(part: string, filter: Filter<Args> | undefined, ...args: Args) =>
    filter === undefined || health.guard(part, () => filter(...args), true, args[0]);
  const passesGeneric = (resource: Resource) => passes("the generic filter", generic, resource);
  return {
    passesGeneric,
    passesAdd: (resource: Resource) => passesGeneric(resource) && passes("the filter onAdd", onAdd, resource),
    passesUpdate: (resource: Resource, old: Resource) =>
      passesGeneric(resource) && passes("the filter onUpdate", onUpdate, resource, old),
    passesDelete: (resource: Resource, isFinalStateUnknown: boolean) =>
      passesGeneric(resource) && passes("the filter onDelete", onDelete, resource, isFinalStateUnknown),
  };
}

/** Tells what passes the filters of an event source; `passesGeneric` asks the filter alone that is for every event. */
export type EventGate<Resource> = ReturnType<typeof createEventGate<Resource>>;
