// A HorizontalPodAutoscaler is stored as autoscaling/v2. Version 1 has a field for the utilisation of the processor alone: annotations hold
// the rest, in the form that Kubernetes gives them.
import { normalise } from "../builtin/normal-form.js";
import { validateBuiltin } from "../builtin/rules/validate.js";
import { validateBuiltinStatus } from "../builtin/rules/status/status-rules.js";
import type { ServedType } from "../builtin/served-type.js";
import { formatValue } from "../errors/field-error.js";
import { arrayAt, clone, isObject, objectAt, stringAt, type JsonObject, type JsonValue } from "../json.js";
import { metadataOf } from "../object/object-meta.js";
import { metricFromV1, metricToV1, statusFromV1, statusToV1 } from "./scaler-metrics.js";
import { normalForm, type Conversion } from "./served-resource.js";
import type { TypeRules } from "./type-rules.js";

const PREFIX = "autoscaling.alpha.kubernetes.io/";
const HELD = ["metrics", "behavior", "scale-down-tolerance", "scale-up-tolerance", "current-metrics", "conditions"];
const DEFAULT_UTILIZATION = 80;

/** Returns how a version of the HorizontalPodAutoscaler is converted to what is stored, and back. */
export function scalerConversion(type: ServedType): Conversion {
  if (type.version !== "v1") return { toStored: withoutHeld, fromStored: (object) => object };
  return {
    toStored: (object) => storedForm(versionTwoOf(type), object),
    fromStored: (object) => normalForm(type, toV1(object)),
  };
}

/** Returns the rules of version 1: what is checked, and what is missing, is that of the form that is stored. */
export function scalerRules(type: ServedType, rules: TypeRules): TypeRules {
  const stored = versionTwoOf(type);
  return {
    ...rules,
    fillDefaults(object, live) {
      rules.fillDefaults(object, live);
      const { metadata, spec, status } = toV1(toV2(object));
      Object.assign(object, { metadata, spec }, status === undefined ? {} : { status });
    },
    validate: (object, live) => validateBuiltin(stored, toV2(object), live === undefined ? undefined : toV2(live)),
    validateStatus: (object, live) => validateBuiltinStatus(stored, toV2(object), toV2(live)),
  };
}

function storedForm(type: ServedType, object: JsonObject): JsonObject {
  const form = clone(toV2(object));
  if (type.schemaName !== undefined) normalise(type.schemaName, form);
  // The status is written with these even where there is nothing to say.
  form["status"] = { desiredReplicas: 0, currentMetrics: null, ...objectAt(form, "status") };
  return normalForm(type, form);
}

function versionTwoOf(type: ServedType): ServedType {
  return { ...type, version: "v2", schemaName: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler" };
}

function withoutHeld(object: JsonObject): JsonObject {
  const annotations = objectAt(metadataOf(object), "annotations");
  if (annotations === undefined || !HELD.some((key) => Object.hasOwn(annotations, PREFIX + key))) return object;
  return withAnnotations(object, {});
}

/** Replaces what annotations hold of the other version. */
function withAnnotations(object: JsonObject, held: Record<string, JsonValue>): JsonObject {
  const { annotations, ...metadata } = metadataOf(object);
  const given = isObject(annotations) ? Object.entries(annotations) : [];
  const kept = given.filter(([key]) => !HELD.some((name) => key === PREFIX + name));
  const added = Object.entries(held).map(([key, value]) => [PREFIX + key, formatValue(value)] as const);
  const all = Object.fromEntries([...kept, ...added]);
  return { ...object, metadata: Object.keys(all).length === 0 ? metadata : { ...metadata, annotations: all } };
}

function heldIn(object: JsonObject, key: string): JsonValue | undefined {
  const text = stringAt(objectAt(metadataOf(object), "annotations"), PREFIX + key);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function listIn(object: JsonObject, key: string): JsonObject[] | undefined {
  const value = heldIn(object, key);
  return Array.isArray(value) ? value.filter(isObject) : undefined;
}

function cpuTarget(utilization: JsonValue): JsonObject {
  return {
    type: "Resource",
    resource: { name: "cpu", target: { type: "Utilization", averageUtilization: utilization } },
  };
}

function toV2(object: JsonObject): JsonObject {
  const { targetCPUUtilizationPercentage: utilization, ...spec } = objectAt(object, "spec") ?? {};
  const own = utilization === undefined ? [] : [cpuTarget(utilization)];
  const metrics = [...(listIn(object, "metrics") ?? []).map(metricFromV1), ...own];
  const behavior = behaviorFromV1(heldIn(object, "behavior"));
  const status = objectAt(object, "status");
  return {
    ...withAnnotations(object, {}),
    apiVersion: "autoscaling/v2",
    spec: {
      ...spec,
      metrics: metrics.length === 0 ? [cpuTarget(DEFAULT_UTILIZATION)] : metrics,
      ...(behavior === undefined ? {} : { behavior }),
    },
    ...(status === undefined ? {} : { status: statusToV2(object, status) }),
  };
}

function statusToV2(object: JsonObject, { currentCPUUtilizationPercentage: used, ...status }: JsonObject): JsonObject {
  const own = { type: "Resource", resource: { name: "cpu", current: { averageUtilization: used ?? null } } };
  const held = listIn(object, "current-metrics")?.map(statusFromV1);
  const conditions = listIn(object, "conditions");
  const current = held ?? (used === undefined ? undefined : [own]);
  return {
    ...status,
    ...(current === undefined ? {} : { currentMetrics: current }),
    ...(conditions === undefined ? {} : { conditions }),
  };
}

function toV1(object: JsonObject): JsonObject {
  const { metrics: _metrics, behavior, ...spec } = objectAt(object, "spec") ?? {};
  const { currentMetrics: _current, conditions: _conditions, ...status } = objectAt(object, "status") ?? {};
  const metrics = listOf(objectAt(object, "spec"), "metrics");
  const current = listOf(objectAt(object, "status"), "currentMetrics");
  const conditions = listOf(objectAt(object, "status"), "conditions");
  const others = metrics.filter((metric) => utilizationOf(metric) === undefined);
  const utilization = metrics.map(utilizationOf).find((one) => one !== undefined);
  const used = current.flatMap((metric) => usedOf(metric) ?? []).at(-1);
  const held = {
    ...(others.length === 0 ? {} : { metrics: others.map(metricToV1) }),
    ...(current.length === 0 ? {} : { "current-metrics": current.map(statusToV1) }),
    ...(isObject(behavior) ? { behavior: behaviorToV1(behavior) } : {}),
    ...(conditions.length === 0 ? {} : { conditions: conditions.map(conditionInOrder) }),
  };
  return {
    ...withAnnotations(object, held),
    apiVersion: "autoscaling/v1",
    spec: { ...spec, ...(utilization === undefined ? {} : { targetCPUUtilizationPercentage: utilization }) },
    status: {
      ...{ currentReplicas: 0, desiredReplicas: 0, ...status },
      ...(used === undefined ? {} : { currentCPUUtilizationPercentage: used }),
    },
  };
}

function listOf(object: JsonObject | undefined, key: string): JsonObject[] {
  return (arrayAt(object, key) ?? []).filter(isObject);
}

function utilizationOf(metric: JsonObject): JsonValue | undefined {
  const resource = objectAt(metric, "resource");
  if (metric["type"] !== "Resource" || resource?.["name"] !== "cpu") return undefined;
  return objectAt(resource, "target")?.["averageUtilization"];
}

function usedOf(metric: JsonObject): JsonValue | undefined {
  const resource = objectAt(metric, "resource");
  if (metric["type"] !== "Resource" || resource?.["name"] !== "cpu") return undefined;
  return objectAt(resource, "current")?.["averageUtilization"];
}

function conditionInOrder({ type, status, lastTransitionTime = null, reason, message }: JsonObject): JsonObject {
  return {
    ...{ type: type ?? "", status: status ?? "", lastTransitionTime },
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
}

// Kubernetes writes the struct of its own, whose fields have no names in JSON.
function behaviorToV1(behavior: JsonObject): JsonObject {
  const rulesOf = (key: string): JsonValue => {
    const rules = objectAt(behavior, key);
    if (rules === undefined) return null;
    const policies = listOf(rules, "policies").map(({ type, value, periodSeconds }) => ({
      ...{ Type: type ?? "", Value: value ?? 0, PeriodSeconds: periodSeconds ?? 0 },
    }));
    return {
      StabilizationWindowSeconds: rules["stabilizationWindowSeconds"] ?? null,
      SelectPolicy: rules["selectPolicy"] ?? null,
      Policies: arrayAt(rules, "policies") === undefined ? null : policies,
      Tolerance: rules["tolerance"] ?? null,
    };
  };
  return { ScaleUp: rulesOf("scaleUp"), ScaleDown: rulesOf("scaleDown") };
}

function behaviorFromV1(held: JsonValue | undefined): JsonObject | undefined {
  if (!isObject(held)) return undefined;
  const members = Object.entries(withSmallKeys(held) as JsonObject).filter(([, rules]) => isObject(rules));
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

function withSmallKeys(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withSmallKeys);
  if (!isObject(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(
    members.map(([key, member]) => [key[0]?.toLowerCase() + key.slice(1), withSmallKeys(member)]),
  );
}
