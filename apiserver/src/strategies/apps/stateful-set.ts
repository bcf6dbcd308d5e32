import { at, objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, forbiddenError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, deepEqual, isObject, memberOf, objectAt } from "../../json.js";
import { checkLabel, checkNotNegative, checkOneOf } from "../../validation/fields.js";
import { checkClaimSpec, claimSpecWarnings } from "../core/persistent-volume-claim.js";
import { dropPodFields, podTemplateDefaults } from "../pod-template/defaults.js";
import { templateWarnings } from "../pod-template/warnings.js";
import type { Strategy } from "../strategy.js";
import { type StatusRule, checkSelectorAndTemplate, checkWorkloadStatus } from "./workload.js";

export const statefulSetStrategy: Strategy = {
  generation: "spec",
  nameRule: "label",
  structDefaults: {
    ...podTemplateDefaults,
    "apps.v1.StatefulSetUpdateStrategy": defaultStatefulStrategy,
    "apps.v1.StatefulSetSpec": (spec) => {
      spec["persistentVolumeClaimRetentionPolicy"] ??= {};
    },
  },
  dropFields(set) {
    const rolling = at(set, "spec.updateStrategy.rollingUpdate");
    if (isObject(rolling)) delete rolling["maxUnavailable"];
    dropPodFields(at(set, "spec.template.spec"));
  },
  validate: checkStatefulSet,
  validateStatus: (object, old) => checkWorkloadStatus(STATUS_RULE, object, old),
  warnings: (object, old) => [...templateWarnings("spec.template", object, old), ...statefulSetWarnings(object, old)],
};

const STATUS_RULE: StatusRule = {
  counts: [
    ...["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
    ...["observedGeneration", "collisionCount"],
  ],
  ofReplicas: ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
  ready: "status.readyReplicas",
};

const MUTABLE = [
  ...["replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"],
  ...["persistentVolumeClaimRetentionPolicy", "minReadySeconds"],
];

const IMMUTABLE_RULE =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', " +
  "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

function checkStatefulSet(set: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(set, "spec") ?? {};
  const checked = withoutNames(objectAt(spec, "template") ?? {});
  return [
    ...checkNotNegative("spec.replicas", memberOf(spec, "replicas")),
    ...(old === undefined ? checkClaimTemplates(spec) : []),
    ...checkIdentity(spec, { isNew: old === undefined }),
    ...checkSelectorAndTemplate("StatefulSet", spec, { checked, claims: claimVolumesOf(spec) }),
    ...checkStrategy(objectAt(spec, "updateStrategy")),
    ...checkNotNegative("spec.minReadySeconds", memberOf(spec, "minReadySeconds")),
    ...checkPodManagement(memberOf(spec, "podManagementPolicy")),
    ...checkUpdate(spec, objectAt(old, "spec")),
  ];
}

function checkStrategy(strategy: JsonObject | undefined): FieldError[] {
  const [type, rolling] = [memberOf(strategy, "type"), objectAt(strategy, "rollingUpdate")];
  if (type === undefined) return [];
  const path = "spec.updateStrategy";
  if (type === "RollingUpdate")
    return checkNotNegative(`${path}.rollingUpdate.partition`, memberOf(rolling, "partition"));
  const shown = rolling && {
    Partition: memberOf(rolling, "partition") ?? 0,
    MaxUnavailable: memberOf(rolling, "maxUnavailable") ?? null,
  };
  if (type !== "OnDelete") {
    const unknown = { Type: type, RollingUpdate: shown ?? null };
    return [invalidError(path, unknown, "must be 'RollingUpdate' or 'OnDelete'")];
  }
  if (shown === undefined) return [];
  return [invalidError(`${path}.rollingUpdate`, shown, "only allowed for updateStrategy 'RollingUpdate'")];
}

function checkUpdate(spec: JsonObject, old: JsonObject | undefined): FieldError[] {
  if (old === undefined) return [];
  const fixed = (of: JsonObject) => Object.fromEntries(Object.entries(of).filter(([key]) => !MUTABLE.includes(key)));
  return deepEqual(fixed(spec), fixed(old)) ? [] : [forbiddenError("spec", IMMUTABLE_RULE)];
}

function statefulSetWarnings(set: JsonObject, old: JsonObject | undefined): string[] {
  return [
    ...objectsAt(set, "spec.volumeClaimTemplates").flatMap((claim, index) => {
      // kube-apiserver prints `.Spec` in the warnings of an update.
      const path = `spec.volumeClaimTemplates[${index}]${old === undefined ? "" : ".Spec"}`;
      return claimSpecWarnings(path, objectAt(claim, "spec") ?? {});
    }),
    ...(Number(memberOf(objectAt(set, "spec"), "revisionHistoryLimit") ?? 0) < 0
      ? ["spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"]
      : []),
  ];
}

function checkPodManagement(policy: JsonValue | undefined): FieldError[] {
  if (policy === undefined || policy === "OrderedReady" || policy === "Parallel") return [];
  return [invalidError("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")];
}

// The StatefulSet controller sets these fields of its Pods.
function withoutNames(template: JsonObject): JsonObject {
  const { subdomain: _subdomain, hostname: _hostname, ...spec } = objectAt(template, "spec") ?? {};
  return { ...template, spec };
}

// Validates the service name and the claim retention policy. The stored service name is not validated again.
function checkIdentity(spec: JsonObject, { isNew }: { isNew: boolean }): FieldError[] {
  const name = textAt(spec, "serviceName");
  const retention = objectAt(spec, "persistentVolumeClaimRetentionPolicy");
  return [
    ...["whenDeleted", "whenScaled"].flatMap((key) =>
      checkOneOf(`spec.persistentVolumeClaimRetentionPolicy.${key}`, memberOf(retention, key), ["Retain", "Delete"]),
    ),
    ...checkNotNegative("spec.ordinals.start", memberOf(objectAt(spec, "ordinals"), "start")),
    ...(isNew && name !== "" ? checkLabel("spec.serviceName", name) : []),
  ];
}

// Only called on create, as the templates are immutable.
function checkClaimTemplates(spec: JsonObject): FieldError[] {
  return objectsAt(spec, "volumeClaimTemplates").flatMap((claim, index) =>
    checkClaimSpec(`spec.volumeClaimTemplates[${index}].spec`, objectAt(claim, "spec") ?? {}),
  );
}

/** Returns the volumes that the controller adds to the Pods for the claim templates. */
function claimVolumesOf(spec: JsonObject): JsonObject[] {
  const names = objectsAt(spec, "volumeClaimTemplates").map((claim) => textAt(claim, "metadata.name"));
  return [...new Set(names)].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
}

/** Sets the default type, and the rollingUpdate parameters only if the type was absent. */
function defaultStatefulStrategy(strategy: JsonObject): void {
  if (memberOf(strategy, "type") === undefined) strategy["rollingUpdate"] ??= {};
  strategy["type"] ??= "RollingUpdate";
}
