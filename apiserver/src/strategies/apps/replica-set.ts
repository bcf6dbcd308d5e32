import { at } from "../../builtin/read-path.js";
import type { FieldError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkImmutable, checkNotNegative } from "../../validation/fields.js";
import { dropPodFields, podTemplateDefaults } from "../pod-template/defaults.js";
import { POD_NAMES, nameWarnings, templateWarnings } from "../pod-template/warnings.js";
import type { Strategy } from "../strategy.js";
import { type StatusRule, checkSelectorAndTemplate, checkWorkloadStatus } from "./workload.js";

export const replicaSetStrategy: Strategy = {
  generation: "spec",
  structDefaults: podTemplateDefaults,
  dropFields: (object) => dropPodFields(at(object, "spec.template.spec")),

  validate: checkReplicaSet,
  validateStatus: (object, old) => checkWorkloadStatus(STATUS_RULE, object, old),
  warnings: (object, old) => [
    ...nameWarnings(POD_NAMES, object, old),
    ...templateWarnings("spec.template", object, old, "spec"),
  ],
};

const STATUS_RULE: StatusRule = {
  counts: [
    ...["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas"],
    "observedGeneration",
  ],
  ofReplicas: ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
  ready: "readyReplicas",
};

function checkReplicaSet(set: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(set, "spec") ?? {};
  return [
    ...checkNotNegative("spec.replicas", memberOf(spec, "replicas")),
    ...checkSelectorAndTemplate("ReplicaSet", spec),
    ...checkNotNegative("spec.minReadySeconds", memberOf(spec, "minReadySeconds")),
    ...checkImmutable("spec", { spec, old: objectAt(old, "spec"), keys: ["selector"] }),
  ];
}
