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

/** Turns a filter into one that lets pass what it does not. */
export function not<Args extends readonly unknown[]>(filter: Filter<Args>): Filter<Args> {
  return (...args) => !filter(...args);
}

/** Creates the gate of an event source; a filter that throws lets the event pass, for an event must not be lost. */
export function createEventGate<Resource>(
  { onAdd, onUpdate, onDelete, generic }: EventFilters<Resource> = {},
  health: HealthRecord,
) {
  const passes = <Args extends readonly unknown[]>(part: string, filter: Filter<Args> | undefined, ...args: Args) =>
    filter === undefined || health.guard(part, () => filter(...args), true);
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
