import type { ControllerDefinition, PrimaryIndexFunction } from "../reconcile/controller-definition.js";
import type { PrimaryPatch, Reconciler } from "../reconcile/reconciler.js";
import type { EventFilters } from "../cache/resource-change.js";

/** What generated code states about a controller; the functions of the user keep their own types. */
export interface ControllerOptions<
  Primary,
  Secondary,
  Status,
  Input = PrimaryPatch<Primary>,
  Details = Record<never, never>,
> extends Omit<ControllerDefinition, "reconciler" | "filters" | "indexes"> {
  readonly reconciler?: Reconciler<Primary, Secondary, Status, Input, Details>;
  readonly filters?: Omit<EventFilters<NoInfer<Primary>>, "onDelete">;
  readonly indexes?: { readonly [name: string]: PrimaryIndexFunction<NoInfer<Primary>> };
}

/** Defines a controller. */
export function defineController<
  Primary,
  Secondary,
  Status,
  Input = PrimaryPatch<Primary>,
  Details = Record<never, never>,
>(options: ControllerOptions<Primary, Secondary, Status, Input, Details>): ControllerDefinition {
  return Object.freeze(options) as unknown as ControllerDefinition;
}
