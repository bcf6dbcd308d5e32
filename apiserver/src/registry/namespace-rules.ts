import { qualifiedNameProblems } from "../builtin/rules/name-syntax.js";
import { invalidError, type FieldError } from "../errors/field-error.js";
import { arrayAt, objectAt, stringAt, type JsonObject } from "../json.js";
import { isStandardFinalizer, isTerminating } from "../object/object-meta.js";
import type { TypeRules } from "./type-rules.js";

/** Returns the rules of Namespaces, given what they have in common with other built-in kinds. */
export function namespaceRules(common: TypeRules): TypeRules {
  return {
    ...common,
    validate: (object, live) => [...common.validate(object, live), ...checkFinalizers(object, () => FINALIZERS)],
    validatePart: (object, _live, subresource) =>
      subresource === "finalize" ? checkFinalizers(object, (index) => `${FINALIZERS}[${index}]`) : undefined,
    validateStatus: (object) => checkPhase(object),
  };
}

const FINALIZERS = "spec.finalizers";

function checkFinalizers(object: JsonObject, pathOf: (index: number) => string): FieldError[] {
  const finalizers = (arrayAt(objectAt(object, "spec"), "finalizers") ?? []).map(String);
  return finalizers.flatMap((name, index) => {
    const path = pathOf(index);
    const errors = qualifiedNameProblems(name).map((detail) => invalidError(path, name, detail));
    if (name.includes("/") || isStandardFinalizer(name)) return errors;
    const detail = "name is neither a standard finalizer name nor is it fully qualified";
    return [...errors, invalidError(path, name, detail)];
  });
}

function checkPhase(object: JsonObject): FieldError[] {
  const phase = stringAt(objectAt(object, "status"), "phase") ?? "";
  const wanted = isTerminating(object) ? "Terminating" : "Active";
  if (phase === "" || phase === wanted) return [];
  const state = isTerminating(object) ? "not empty" : "empty";
  return [invalidError("status.Phase", phase, `may only be '${wanted}' if \`deletionTimestamp\` is ${state}`)];
}
