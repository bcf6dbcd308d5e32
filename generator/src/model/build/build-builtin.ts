import type { UntypedKindSpec } from "../../input/workflow-spec.js";
import type { BuiltinModel, ResourceModel } from "../project-model.js";
import type { StatedBuiltin } from "./stated-condition.js";

/** Builds the model of a condition that the runtime ships. */
export function buildBuiltin(builtin: StatedBuiltin, findKind: FindKind): BuiltinModel {
  const stated = argumentsOf(builtin);
  const { of = undefined, isNegated = undefined } = builtin.name === "crdPresent" ? builtin : {};
  return Object.freeze({
    kind: "builtin",
    name: builtin.name,
    ...(stated === undefined ? {} : { arguments: stated }),
    ...(of === undefined ? {} : { of: findKind(of) }),
    ...(isNegated === undefined ? {} : { isNegated }),
  });
}

/** Returns a kind that a rule has found. */
export type FindKind = (kind: string | UntypedKindSpec) => ResourceModel;

function argumentsOf(builtin: StatedBuiltin): readonly unknown[] | undefined {
  switch (builtin.name) {
    case "condition":
      return [{ type: builtin.status.type, status: builtin.status.status ?? "True" }];
    case "fieldEquals":
      return [builtin.field.path, builtin.field.value];
    default:
      return undefined;
  }
}
