import type { EventFilters } from "../cluster/event-filters.js";
import type { ControllerDefinition, PrimaryIndexFunction } from "../reconcile/controller-definition.js";
import type { PrimaryPatch, Reconciler } from "../reconcile/reconciler.js";

/** What generated code states about a controller; the functions of the user keep their own types. */
export interface ControllerOptions<Primary, Secondary, Status, Input = PrimaryPatch<Primary>> extends Omit<
  ControllerDefinition,
  "reconciler" | "filters" | "indexes"
> {
  readonly reconciler?: Reconciler<Primary, Secondary, Status, Input>;
  readonly filters?: Omit<EventFilters<NoInfer<Primary>>, "onDelete">;
  readonly indexes?: { readonly [name: string]: PrimaryIndexFunction<NoInfer<Primary>> };
}

/** Defines a controller. */
export function defineController<Primary, Secondary, Status, Input = PrimaryPatch<Primary>>(
  options: ControllerOptions<Primary, Secondary, Status, Input>,
): ControllerDefinition {
  return Object.freeze(options) as unknown as ControllerDefinition;
}
