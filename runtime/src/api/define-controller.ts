import type { EventFilters } from "../cache/resource-view.js";
import type { ControllerDefinition, PrimaryIndexFunction } from "../reconcile/controller-definition.js";
import type { PrimaryPatch, Reconciler } from "../reconcile/reconciler.js";
import type { ChainTypes } from "./define-workflow.js";

/** Options of a controller in generated code. Unlike in a ControllerDefinition, the functions keep the types of the user. */
export interface ControllerOptions<
  Primary,
  Secondary,
  Status,
  Input = PrimaryPatch<Primary>,
  Details = Record<never, never>,
> extends Omit<ControllerDefinition, "reconciler" | "filters" | "indexes"> {
  // TypeScript infers from `Primary & {}` last, so that a mismatch between the primaries is reported at the reconciler.
  readonly reconciler?: Reconciler<Primary & {}, Secondary, Status, Input, Details>;
  readonly filters?: Omit<EventFilters<NoInfer<Primary>>, "onDelete">;
  readonly indexes?: { readonly [name: string]: PrimaryIndexFunction<NoInfer<Primary>> };
}

/** Defines a controller. An inline reconciler is typed by the workflow: `Known` are its dependents, `Found` the details of its conditions. */
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

/** Arguments of a reconciler with `invocation: explicit`: it runs the workflow with `context.workflow`, so there is no workflow result yet. */
export type Explicit<Arguments extends { readonly context: unknown }, Workflow> = Omit<
  Arguments,
  "context" | "workflow"
> & { readonly context: { readonly workflow: Workflow } & Arguments["context"]; readonly workflow: never };

/** A reconciler of a workflow with `invocation: explicit`. */
export type ExplicitReconciler<Reconciler, Workflow> = {
  [Name in keyof Reconciler]: Name extends "reconcile" | "cleanup"
    ? Reconciler[Name] extends
        ((args: infer Arguments extends { readonly context: unknown }) => infer Result) | undefined
      ? (args: Explicit<Arguments, Workflow>) => Result
      : never
    : Reconciler[Name];
};
