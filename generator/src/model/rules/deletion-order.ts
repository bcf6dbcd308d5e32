import { quote, type Diagnostic } from "../../diagnostic.js";
import { ruleOfController } from "../resolved-project.js";

/**
 * Finds dependents that would be deleted after what they depend on.
 *
 * The operator deletes what is not garbage-collected while the primary still exists; the garbage collector acts only afterwards.
 */
export const checkDeletionOrder = ruleOfController(({ spec: { document, dependents } }) =>
  [...dependents].flatMap(([name, { dependsOn = [], garbageCollected = true }]) =>
    dependsOn.flatMap((other, index): Diagnostic[] => {
      if (!garbageCollected || dependents.get(other)?.garbageCollected !== false) return [];
      return [
        {
          severity: "error",
          rule: "deletion-order",
          message: `${quote(name)} would be deleted after ${quote(other)}, which it depends on: only ${quote(name)} is garbage-collected`,
          ...document.valueAt(["spec", "dependents", name, "dependsOn", index]),
          hint: `state garbageCollected: false for ${quote(name)}, too; the operator then deletes it first`,
        },
      ];
    }),
  ),
);
