import type { Diagnostic } from "../../diagnostic.js";
import { resolveRef } from "../definitions.js";
import type { ResourceModel } from "../project-model.js";
import { isStatusCondition, ownSchema, schemasOf } from "../raw-schema.js";
import { ruleOfController } from "../resolved-project.js";

/** Finds primaries that cannot have the conditions that the runtime is to keep. */
export const checkStatusConditions = ruleOfController(({ spec: { status, document }, primary }): Diagnostic[] => {
  if (status !== "conditions" || primary === undefined) return [];
  const problem = problemOf(primary);
  if (problem === undefined) return [];
  return [
    {
      severity: "error",
      rule: "status-conditions",
      message: `${primary.kind} ${problem}`,
      ...document.valueAt(["spec", "status"]),
      hint:
        "give its CRD status.conditions: a list of objects with type, status (one of True, False and Unknown), reason, message,\n" +
        "lastTransitionTime and, not required, observedGeneration",
    },
  ];
});

function problemOf({ schema, definitions, hasStatusSubresource }: ResourceModel): string | undefined {
  if (!hasStatusSubresource) return "has no status subresource";
  const status = schemasOf(resolveRef(schema, definitions).schema, "properties").get("status");
  const fields = status === undefined ? new Map() : schemasOf(resolveRef(status, definitions).schema, "properties");
  const conditions = fields.get("conditions");
  if (conditions === undefined) return "has no status.conditions";
  const items = ownSchema(resolveRef(conditions, definitions).schema, "items");
  const isStandard = items !== undefined && isStatusCondition(resolveRef(items, definitions).schema);
  return isStandard ? undefined : "has status.conditions that are not those of metav1.Condition";
}
