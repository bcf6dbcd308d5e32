import { compareQuantities } from "@gen-operator/schema";
import { textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkDomain, checkLabelSelector } from "../../validation/fields.js";
import { checkSelectorKept, checkTextKept } from "../../validation/immutable-fields.js";
import { expressionWarnings, labelMapWarnings } from "../shared/node-selectors.js";
import type { Strategy } from "../strategy.js";

export const csiStorageCapacityStrategy: Strategy = {
  allowsUnconditionalUpdate: false,
  checksMetadata: ["object", "change"],
  validate: checkStorageCapacity,
  warnings: capacityWarnings,
};

/** Validates a CSIStorageCapacity; its topology and storage class are immutable. */
function checkStorageCapacity(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const className = textAt(object, "storageClassName");
  const capacity = memberOf(object, "capacity");
  const isNegative = capacity !== undefined && (compareQuantities(String(capacity), "0") ?? 0) < 0;
  return [
    ...checkLabelSelector("nodeTopology", objectAt(object, "nodeTopology")),
    ...checkDomain("storageClassName", className),
    ...(isNegative ? [invalidError("capacity", capacity, "must be greater than or equal to 0")] : []),
    ...(old === undefined
      ? []
      : [...checkSelectorKept("nodeTopology", object, old), ...checkTextKept("storageClassName", object, old)]),
  ];
}

/** Warns about deprecated labels in the topology of a CSIStorageCapacity. */
function capacityWarnings(capacity: JsonObject): string[] {
  const topology = objectAt(capacity, "nodeTopology");
  if (topology === undefined) return [];
  return [
    ...expressionWarnings("nodeTopology", topology),
    ...labelMapWarnings(objectAt(topology, "matchLabels"), (label) => `nodeTopology.matchLabels.${label}`),
  ];
}
