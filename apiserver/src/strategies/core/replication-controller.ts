import { at } from "../../builtin/read-path.js";
import { type FieldError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, clone, memberOf, objectAt } from "../../json.js";
import { checkNotNegative, selectorMatches } from "../../validation/fields.js";
import { type StatusRule, checkLasting, checkWorkloadStatus, mismatchError } from "../apps/workload.js";
import { copyTemplateLabels, dropPodFields, podTemplateDefaults } from "../pod-template/defaults.js";
import { checkPodTemplate } from "../pod-template/pod-spec.js";
import { POD_NAMES, nameWarnings, templateWarnings } from "../pod-template/warnings.js";
import type { Strategy } from "../strategy.js";

export const replicationControllerStrategy: Strategy = {
  nameRule: "long-name",
  generation: "spec",
  defaultPropagation: "Orphan",
  defaults: defaultReplicationController,
  structDefaults: podTemplateDefaults,
  dropFields: (controller) => dropPodFields(at(controller, "spec.template.spec")),
  validate: checkReplicationController,
  validateStatus: (controller, old) => checkWorkloadStatus(STATUS_RULE, controller, old),
  warnings: (controller, old) => [
    ...nameWarnings(POD_NAMES, controller, old),
    ...templateWarnings("spec.template", controller, old),
  ],
};

const STATUS_RULE: StatusRule = {
  counts: ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"],
  ofReplicas: ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
  ready: "readyReplicas",
};

function checkReplicationController(object: JsonObject): FieldError[] {
  const spec = objectAt(object, "spec") ?? {};
  const template = objectAt(spec, "template");
  const selector = objectAt(spec, "selector") ?? {};
  const metadata = objectAt(template, "metadata");
  const isMatched = selectorMatches({ matchLabels: selector }, objectAt(metadata, "labels") ?? {});
  return [
    ...checkNotNegative("spec.minReadySeconds", memberOf(spec, "minReadySeconds")),
    ...(Object.keys(selector).length === 0 ? [requiredError("spec.selector")] : []),
    ...checkNotNegative("spec.replicas", memberOf(spec, "replicas")),
    ...(template === undefined
      ? [requiredError("spec.template")]
      : [
          ...(isMatched ? [] : [mismatchError(metadata)]),
          ...checkPodTemplate("spec.template", template),
          ...checkLasting("ReplicationController", template),
        ]),
  ];
}

/** Defaults the selector and labels of a ReplicationController to the labels of its Pod template. */
function defaultReplicationController(controller: JsonObject): void {
  const spec = objectAt(controller, "spec");
  const labels = objectAt(objectAt(objectAt(spec, "template"), "metadata"), "labels");
  if (spec === undefined || labels === undefined) return;
  spec["selector"] ??= clone(labels);
  copyTemplateLabels(controller, spec);
}
