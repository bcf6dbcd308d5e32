import type { JsonObject } from "../json.js";
import type { TypeRules } from "../registry/type-rules.js";
import { crdWarnings, defaultCrd, validateCrd } from "./registration.js";

/** Returns the rules of CustomResourceDefinitions, given what they have in common with other built-in kinds. */
export function definitionRules(common: TypeRules): TypeRules {
  return {
    ...common,
    fillDefaults(object, live) {
      common.fillDefaults(object, live);
      assignMember("spec", { from: defaultCrd(object), to: object });
    },
    finish: (object) => assignMember("status", { from: defaultCrd(object), to: object }),
    validate: validateCrd,
    warnings: (object, live) => [...common.warnings(object, live), ...crdWarnings(object)],
  };
}

function assignMember(name: string, { from, to }: { from: JsonObject; to: JsonObject }): void {
  const value = from[name];
  if (value !== undefined) to[name] = value;
}
