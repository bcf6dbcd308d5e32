import { at } from "../../builtin/read-path.js";
import { type FieldError, forbiddenError, invalidError, notSupportedError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkImmutable, checkIntOrPercent, checkNotNegative } from "../../validation/fields.js";
import { dropPodFields, podTemplateDefaults } from "../pod-template/defaults.js";
import { POD_NAMES, nameWarnings, templateWarnings } from "../pod-template/warnings.js";
import type { Strategy } from "../strategy.js";
import {
  type StatusRule,
  checkSelectorAndTemplate,
  checkWorkloadStatus,
  defaultRollingUpdate,
  goRollingUpdate,
  isZero,
} from "./workload.js";

export const deploymentStrategy: Strategy = {
  generation: "spec-and-annotations",
  resetOnStatus: [".spec", ".metadata.labels"],
  structDefaults: { ...podTemplateDefaults, "apps.v1.DeploymentStrategy": defaultRollingUpdate },
  dropFields: (object) => dropPodFields(at(object, "spec.template.spec")),

  validate: checkDeployment,
  validateStatus: (object, old) => checkWorkloadStatus(STATUS_RULE, object, old),
  warnings: (object, old) => [
    ...nameWarnings(POD_NAMES, object, old),
    ...templateWarnings("spec.template", object, old),
  ],
};

const STATUS_RULE: StatusRule = {
  counts: [
    ...["observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"],
    ...["unavailableReplicas", "terminatingReplicas", "collisionCount"],
  ],
  ofReplicas: ["updatedReplicas", "readyReplicas", "availableReplicas"],
  ready: "readyReplicas",
};

function checkDeployment(deployment: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(deployment, "spec") ?? {};
  return [
    ...checkNotNegative("spec.replicas", memberOf(spec, "replicas")),
    ...checkSelectorAndTemplate("Deployment", spec),
    ...checkStrategy(objectAt(spec, "strategy")),
    ...checkNotNegative("spec.minReadySeconds", memberOf(spec, "minReadySeconds")),
    ...checkNotNegative("spec.revisionHistoryLimit", memberOf(spec, "revisionHistoryLimit")),
    ...checkDeadline(spec),
    ...checkImmutable("spec", { spec, old: objectAt(old, "spec"), keys: ["selector"] }),
  ];
}

function checkStrategy(strategy: JsonObject | undefined): FieldError[] {
  const [type, rolling] = [memberOf(strategy, "type"), objectAt(strategy, "rollingUpdate")];
  const path = "spec.strategy.rollingUpdate";
  if (type === "RollingUpdate") return checkRollingUpdate(path, rolling ?? {});
  if (type === undefined) return [];
  if (type !== "Recreate") {
    const unknown = { Type: type, RollingUpdate: rolling === undefined ? null : goRollingUpdate(rolling) };
    return [notSupportedError("spec.strategy", unknown, ["Recreate", "RollingUpdate"])];
  }
  if (memberOf(strategy, "rollingUpdate") === undefined) return [];
  return [forbiddenError(path, "may not be specified when strategy `type` is 'Recreate'")];
}

function checkDeadline(spec: JsonObject): FieldError[] {
  const deadline = memberOf(spec, "progressDeadlineSeconds");
  const ready = memberOf(spec, "minReadySeconds") ?? 0;
  const isTooShort = typeof deadline === "number" && typeof ready === "number" && deadline <= ready;
  return [
    ...checkNotNegative("spec.progressDeadlineSeconds", deadline),
    ...(isTooShort
      ? [invalidError("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")]
      : []),
  ];
}

function checkRollingUpdate(path: string, parameters: JsonObject): FieldError[] {
  const [unavailable, surge] = ["maxUnavailable", "maxSurge"].map((key) => memberOf(parameters, key) ?? 0);
  return [
    ...checkIntOrPercent(`${path}.maxUnavailable`, unavailable, { max: 100 }),
    ...checkIntOrPercent(`${path}.maxSurge`, surge),
    ...(isZero(unavailable) && isZero(surge)
      ? [invalidError(`${path}.maxUnavailable`, unavailable ?? 0, "may not be 0 when `maxSurge` is 0")]
      : []),
  ];
}
