import type { ControllerDefinition } from "../reconcile/controller-definition.js";
import type { Reconciler } from "../reconcile/reconciler.js";

/** What generated code states about a controller; the reconciler keeps its own types. */
export interface ControllerOptions<Primary, Secondary, Status> extends Omit<ControllerDefinition, "reconciler"> {
  readonly reconciler?: Reconciler<Primary, Secondary, Status>;
}

/** Defines a controller. */
export function defineController<Primary, Secondary, Status>(
  options: ControllerOptions<Primary, Secondary, Status>,
): ControllerDefinition {
  return Object.freeze(options) as ControllerDefinition;
}
