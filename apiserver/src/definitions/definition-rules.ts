import { arrayAt, objectAt } from "../json.js";
import type { TypeRules } from "../registry/type-rules.js";
import { completeStatus, crdWarnings, defaultCrd, validateCrd, validateCrdStatus } from "./registration.js";

/** Returns the rules of CustomResourceDefinitions, given what they have in common with other built-in kinds. */
export function definitionRules(common: TypeRules): TypeRules {
  return {
    ...common,
    fillDefaults(object, live) {
      // Normalising drops it, but an empty list is refused in other words than none.
      const hasNoVersion = arrayAt(objectAt(object, "spec"), "versions")?.length === 0;
      common.fillDefaults(object, live);
      const spec = objectAt(object, "spec");
      if (hasNoVersion && spec !== undefined) spec["versions"] = [];
      defaultCrd(object);
    },
    finish(object, _live, { subresource }) {
      completeStatus(object, { isStatusWrite: subresource === "status" });
      return undefined;
    },
    validate: validateCrd,
    validateStatus: validateCrdStatus,
    warnings: (object, live, subresource) => [
      ...common.warnings(object, live, subresource),
      ...(subresource === "status" ? [] : crdWarnings(object, live)),
    ],
  };
}
