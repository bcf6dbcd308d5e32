import type { Diagnostic } from "../../../diagnostic.js";
import { resolveRef } from "../../definitions.js";
import type { ResourceModel } from "../../project-model.js";
import { ownSchema, schemasOf, takesStatusCondition } from "../../schema/raw-schema.js";
import { ruleOfController } from "../../build/resolved-project.js";

/** Finds primaries that cannot have the conditions that the runtime is to keep. */
export const checkStatusConditions = ruleOfController(
  ({ spec: { statusConditions, document }, primary }): Diagnostic[] => {
    if (statusConditions === undefined || primary === undefined) return [];
    const problem = problemOf(primary);
    if (problem === undefined) return [];
    return [
      {
        severity: "error",
        rule: "status-conditions",
        message: `${primary.kind} ${problem}`,
        ...document.valueAt(["spec", "statusConditions"]),
        hint:
          "give its CRD status.conditions: a list of objects with type, status (one of True, False and Unknown), reason, message,\n" +
          "lastTransitionTime and observedGeneration, which has x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [type]",
      },
    ];
  },
);

function problemOf({ schema, definitions, hasStatusSubresource }: ResourceModel): string | undefined {
  if (!hasStatusSubresource) return "has no status subresource";
  const status = schemasOf(resolveRef(schema, definitions).schema, "properties").get("status");
  const fields = status === undefined ? new Map() : schemasOf(resolveRef(status, definitions).schema, "properties");
  const conditions = fields.get("conditions");
  if (conditions === undefined) return "has no status.conditions";
  const list = resolveRef(conditions, definitions).schema;
  const items = ownSchema(list, "items");
  if (items === undefined || !takesStatusCondition(resolveRef(items, definitions).schema))
    return "has status.conditions that cannot be those of metav1.Condition";
  const keys = list["x-kubernetes-list-map-keys"];
  const isShared = list["x-kubernetes-list-type"] === "map" && Array.isArray(keys) && keys.join() === "type";
  return isShared
    ? undefined
    : "has status.conditions that only one field manager can write, as the list has no x-kubernetes-list-type: map";
}
