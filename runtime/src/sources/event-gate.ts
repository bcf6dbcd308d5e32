import type { HealthRecord } from "./health-record.js";
import type { EventFilters } from "../cache/resource-change.js";

/** Tells what passes the filters of an event source. */
export interface EventGate<Resource> {
  /** Passes what the filter lets pass that is for every event. */
  passesGeneric(resource: Resource): boolean;
  passesAdd(resource: Resource): boolean;
  passesUpdate(resource: Resource, old: Resource): boolean;
  passesDelete(resource: Resource, isFinalStateUnknown: boolean): boolean;
}

/** Creates the gate of an event source; a filter that throws lets the event pass, for an event must not be lost. */
export function createEventGate<Resource>(
  { onAdd, onUpdate, onDelete, generic }: EventFilters<Resource> = {},
  health: HealthRecord,
): EventGate<Resource> {
  const passes = <Arguments extends readonly unknown[]>(
    part: string,
    filter: ((...args: Arguments) => boolean) | undefined,
    ...args: Arguments
  ) => filter === undefined || health.guard(part, () => filter(...args), true);
  const passesGeneric = (resource: Resource) => passes("the generic filter", generic, resource);
  return {
    passesGeneric,
    passesAdd: (resource) => passesGeneric(resource) && passes("the filter onAdd", onAdd, resource),
    passesUpdate: (resource, old) => passesGeneric(resource) && passes("the filter onUpdate", onUpdate, resource, old),
    passesDelete: (resource, isFinalStateUnknown) =>
      passesGeneric(resource) && passes("the filter onDelete", onDelete, resource, isFinalStateUnknown),
  };
}
