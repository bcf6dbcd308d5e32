import { at } from "../../builtin/read-path.js";
import { type FieldError, invalidError, notSupportedError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, deepEqual, memberOf, objectAt, stringAt } from "../../json.js";
import { checkImmutable, checkIntOrPercent, checkNotNegative } from "../../validation/fields.js";
import { dropPodFields, podTemplateDefaults } from "../pod-template/defaults.js";
import { templateWarnings } from "../pod-template/warnings.js";
import type { Strategy } from "../strategy.js";
import {
  type StatusRule,
  checkSelectorAndTemplate,
  checkWorkloadStatus,
  defaultRollingUpdate,
  goRollingUpdate,
  isZero,
} from "./workload.js";

export const daemonSetStrategy: Strategy = {
  generation: "spec",
  defaults: (set, { old }) => keepTemplateCount(set, old),
  structDefaults: { ...podTemplateDefaults, "apps.v1.DaemonSetUpdateStrategy": defaultDaemonUpdate },
  dropFields: (object) => dropPodFields(at(object, "spec.template.spec")),
  prepareForUpdate: countTemplate,
  validate: checkDaemonSet,
  validateStatus: (object, old) => checkWorkloadStatus(STATUS_RULE, object, old),
  warnings: (object, old) => [...templateWarnings("spec.template", object, old)],
};

const STATUS_RULE: StatusRule = {
  counts: [
    ...["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"],
    ...["observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"],
  ],
};

function checkDaemonSet(set: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(set, "spec") ?? {};
  return [
    ...checkSelectorAndTemplate("DaemonSet", spec),
    ...checkStrategy(objectAt(spec, "updateStrategy")),
    ...checkNotNegative("spec.minReadySeconds", memberOf(spec, "minReadySeconds")),
    ...checkNotNegative("spec.revisionHistoryLimit", memberOf(spec, "revisionHistoryLimit")),
    ...checkImmutable("spec", { spec, old: objectAt(old, "spec"), keys: ["selector"] }),
  ];
}

function checkStrategy(strategy: JsonObject | undefined): FieldError[] {
  const [type, rolling] = [memberOf(strategy, "type"), objectAt(strategy, "rollingUpdate")];
  if (type === "RollingUpdate") return checkDaemonUpdate(rolling ?? {});
  if (type === undefined || type === "OnDelete") return [];
  const unknown = { Type: type, RollingUpdate: rolling === undefined ? null : goRollingUpdate(rolling) };
  return [notSupportedError("spec.updateStrategy", unknown, ["RollingUpdate", "OnDelete"])];
}

function checkDaemonUpdate(parameters: JsonObject): FieldError[] {
  const path = "spec.updateStrategy.rollingUpdate";
  const [unavailable, surge] = ["maxUnavailable", "maxSurge"].map((key) => memberOf(parameters, key) ?? 0);
  return [
    ...checkIntOrPercent(`${path}.maxUnavailable`, unavailable, { max: 100 }),
    ...checkIntOrPercent(`${path}.maxSurge`, surge, { max: 100 }),
    ...(isZero(unavailable) && isZero(surge)
      ? [requiredError(`${path}.maxUnavailable`, "cannot be 0 when maxSurge is 0")]
      : []),
    ...(isZero(unavailable) || isZero(surge)
      ? []
      : [invalidError(`${path}.maxSurge`, surge ?? 0, "may not be set when maxUnavailable is non-zero")]),
  ];
}

/** Sets the defaults of an update strategy; with OnDelete, missing rollingUpdate parameters default to 0. */
function defaultDaemonUpdate(strategy: JsonObject): void {
  defaultRollingUpdate(strategy);
  const parameters = objectAt(strategy, "rollingUpdate");
  if (parameters !== undefined && strategy["type"] !== "RollingUpdate") {
    parameters["maxUnavailable"] ??= 0;
    parameters["maxSurge"] ??= 0;
  }
}

const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

/** Keeps the template generation in an annotation, which clients cannot change on an update. */
function keepTemplateCount(daemonSet: JsonObject, old: JsonObject | undefined): void {
  const metadata = objectAt(daemonSet, "metadata") ?? {};
  const given = objectAt(metadata, "annotations");
  // While managedFields are computed, an update that omits the annotation has the value 0.
  metadata["annotations"] = { [TEMPLATE_GENERATION]: old === undefined ? "1" : "0", ...given };
}

/** Increments the template generation if the template has changed. */
export function countTemplate(daemonSet: JsonObject, old: JsonObject): void {
  const before = stringAt(objectAt(objectAt(old, "metadata"), "annotations"), TEMPLATE_GENERATION) ?? "0";
  const isSame = deepEqual(templateOf(daemonSet), templateOf(old));
  const metadata = objectAt(daemonSet, "metadata") ?? {};
  metadata["annotations"] = {
    ...objectAt(metadata, "annotations"),
    [TEMPLATE_GENERATION]: isSame ? before : String(Number(before) + 1),
  };
}

function templateOf(object: JsonObject | undefined): JsonObject {
  return objectAt(objectAt(object, "spec"), "template") ?? {};
}
