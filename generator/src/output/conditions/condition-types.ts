import type { ConditionModel, ConditionName, DependentModel } from "../../model/project-model.js";
import { dependentNamesOf } from "../controller-names.js";

/** What the types of a condition are called. */
export interface ConditionTypeNames {
  /** The type of a function. */
  readonly condition: string;
  /** The type of its arguments, which expressions see. */
  readonly arguments: string;
}

/**
 * Names the types of a condition of a dependent.
 *
 * A deletePostcondition sees less than the others: what the dependent waits for may be gone in a cleanup. It has types of its own if others
 * have to be told from it.
 */
export function conditionTypesOf(dependent: DependentModel, name: ConditionName): ConditionTypeNames {
  const types = dependentNamesOf(dependent);
  if (name === "existing") return { condition: types.existing, arguments: types.existingArguments };
  return name === "deletePostcondition" && hasOwnDeletionTypes(dependent)
    ? { condition: types.deletionCondition, arguments: types.deletionArguments }
    : { condition: types.condition, arguments: types.conditionArguments };
}

/** Tells whether the deletePostcondition of a dependent has types of its own. */
export function hasOwnDeletionTypes(dependent: DependentModel): boolean {
  return waitsInCleanup(dependent) && othersOf(dependent).some(isTyped);
}

/** Tells whether the types of the conditions of a dependent are about its deletePostcondition alone, which may see less than all it waits for. */
export function isAboutDeletionAlone(dependent: DependentModel): boolean {
  return waitsInCleanup(dependent) && !othersOf(dependent).some(isTyped);
}

function waitsInCleanup({ waitsFor, conditions: { deletePostcondition } }: DependentModel): boolean {
  return waitsFor.length > 0 && deletePostcondition !== undefined && isTyped(deletePostcondition);
}

function othersOf({ conditions: { existing: _existing, deletePostcondition: _deleted, ...others } }: DependentModel) {
  return Object.values(others);
}

function isTyped(condition: ConditionModel): boolean {
  return condition.kind === "function" || (condition.kind === "when" && condition.names.length > 0);
}
