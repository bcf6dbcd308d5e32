import type { EventFilters } from "../cache/resource-view.js";
import type { ControllerDefinition, PrimaryIndexFunction } from "../reconcile/controller-definition.js";
import type { PrimaryPatch, Reconciler } from "../reconcile/reconciler.js";
import type { ChainTypes } from "./define-workflow.js";

/** Options of a controller in generated code; the functions of the user keep their own types. */
export interface ControllerOptions<
  Primary,
  Secondary,
  Status,
  Input = PrimaryPatch<Primary>,
  Details = Record<never, never>,
> extends Omit<ControllerDefinition, "reconciler" | "filters" | "indexes"> {
  // The compiler infers from `Primary & {}` last, so that it reports the reconciler if the primaries differ.
  readonly reconciler?: Reconciler<Primary & {}, Secondary, Status, Input, Details>;
  readonly filters?: Omit<EventFilters<NoInfer<Primary>>, "onDelete">;
  readonly indexes?: { readonly [name: string]: PrimaryIndexFunction<NoInfer<Primary>> };
}

/** Defines a controller. An inline reconciler gets the types of the workflow: `Known` dependents, and `Found` details of conditions. */
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

/** The arguments of a reconciler that invokes its workflow itself: there is no result yet, and `context.workflow` runs it. */
export type Explicit<Arguments extends { readonly context: unknown }, Workflow> = Omit<
  Arguments,
  "context" | "workflow"
> & { readonly context: { readonly workflow: Workflow } & Arguments["context"]; readonly workflow: never };

/** A reconciler that invokes its workflow itself. */
export type ExplicitReconciler<Reconciler, Workflow> = {
  [Name in keyof Reconciler]: Name extends "reconcile" | "cleanup"
    ? Reconciler[Name] extends
        ((args: infer Arguments extends { readonly context: unknown }) => infer Result) | undefined
      ? (args: Explicit<Arguments, Workflow>) => Result
      : never
    : Reconciler[Name];
};
