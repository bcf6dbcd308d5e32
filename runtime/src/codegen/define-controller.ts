import type { ControllerDefinition, PrimaryIndexFunction } from "../reconcile/controller-definition.js";
import type { PrimaryPatch, Reconciler } from "../reconcile/reconciler.js";
import type { EventFilters } from "../cache/resource-change.js";
import type { ChainTypes } from "./define-workflow.js";

/** What generated code states about a controller; the functions of the user keep their own types. */
export interface ControllerOptions<
  Primary,
  Secondary,
  Status,
  Input = PrimaryPatch<Primary>,
  Details = Record<never, never>,
> extends Omit<ControllerDefinition, "reconciler" | "filters" | "indexes"> {
  // Of another primary than the workflow's, it is the reconciler that does not fit: the compiler infers from `Primary & {}` last.
  readonly reconciler?: Reconciler<Primary & {}, Secondary, Status, Input, Details>;
  readonly filters?: Omit<EventFilters<NoInfer<Primary>>, "onDelete">;
  readonly indexes?: { readonly [name: string]: PrimaryIndexFunction<NoInfer<Primary>> };
}

/** Defines a controller. A reconciler that is written in place is called with what the workflow knows: `Known`, and `Found` by its conditions. */
export function defineController<
  Primary,
  Known,
  Found,
  Status,
  Secondary = Known,
  Input = PrimaryPatch<Primary>,
  Details = Found,
>(
  options: ControllerOptions<Primary, Secondary, Status, Input, Details> & {
    readonly workflow: ChainTypes<Primary, Known, Found>;
  },
): ControllerDefinition {
  return Object.freeze(options) as unknown as ControllerDefinition;
}
