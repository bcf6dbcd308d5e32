import type { ConditionModel, ConditionName, DependentModel } from "../../model/project-model.js";

const CONDITIONS = [
  "activationCondition",
  "reconcilePrecondition",
  "existing",
  "readyPostcondition",
  "deletePostcondition",
] as const satisfies readonly ConditionName[];

/** Returns the conditions of a dependent in the order of a reconcile. */
export function conditionsOf({ conditions }: DependentModel): (readonly [ConditionName, ConditionModel])[] {
  return CONDITIONS.flatMap((name) => {
    const condition = conditions[name];
    return condition === undefined ? [] : [[name, condition] as const];
  });
}
