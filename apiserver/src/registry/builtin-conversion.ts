import { normalise } from "../builtin/normal-form.js";
import { resourceNameOf } from "../builtin/resource-name.js";
import { goSelector } from "../validation/fields.js";
import type { ServedType } from "../builtin/served-type.js";
import { formatValue } from "../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, clone, isObject, objectAt, setMember, stringAt } from "../json.js";
import { metadataOf, normalForm } from "../object/object-meta.js";
import type { Conversion, TypeRules } from "./registry.js";

/** Returns the resource name that objects of a type are stored under; core and events.k8s.io Events share one storage. */
export function storageNameOf(type: ServedType): string {
  return type.group === "events.k8s.io" ? "events" : resourceNameOf(type);
}

/** Returns the conversion of a built-in type whose stored form differs from the served version; undefined for other types. */
export function builtinConversion(type: ServedType): Conversion | undefined {
  if (type.group === "events.k8s.io") {
    return {
      toStored: (object) => ({ ...renamed(object, EVENT_TO_CORE), apiVersion: "v1" }),
      fromStored: (object) => normalForm(type, withoutEmptyReporter(renamed(object, EVENT_FROM_CORE))),
    };
  }
  return type.group === "autoscaling" ? scalerConversion(type) : undefined;
}

const EVENT_TO_CORE: Record<string, string> = {
  regarding: "involvedObject",
  note: "message",
  reportingController: "reportingComponent",
  deprecatedSource: "source",
  deprecatedFirstTimestamp: "firstTimestamp",
  deprecatedLastTimestamp: "lastTimestamp",
  deprecatedCount: "count",
};
const EVENT_FROM_CORE = Object.fromEntries(Object.entries(EVENT_TO_CORE).map(([event, core]) => [core, event]));

// events.k8s.io/v1 Events have no such fields when they are empty, but core Events do.
function withoutEmptyReporter(event: JsonObject): JsonObject {
  for (const key of ["reportingController", "reportingInstance"]) if (event[key] === "") delete event[key];
  return event;
}

function renamed(object: JsonObject, names: Record<string, string>): JsonObject {
  const result: JsonObject = {};
  for (const key of Object.keys(object)) setMember(result, names[key] ?? key, object[key] as JsonObject);
  return result;
}

// A HorizontalPodAutoscaler is stored as autoscaling/v2. autoscaling/v1 has a field for the CPU utilization only; the other metrics are kept in
// annotations, encoded as kube-apiserver does.

const PREFIX = "autoscaling.alpha.kubernetes.io/";
const HELD = ["metrics", "behavior", "scale-down-tolerance", "scale-up-tolerance", "current-metrics", "conditions"];
const DEFAULT_UTILIZATION = 80;

/** Returns the conversion between a version of HorizontalPodAutoscaler and the stored form. */
function scalerConversion(type: ServedType): Conversion {
  if (type.version !== "v1") return { toStored: withoutHeld, fromStored: (object) => object };
  return {
    toStored: (object) => storedForm(versionTwoOf(type), object),
    fromStored: (object) => normalForm(type, scalerToV1(object)),
  };
}

/** Adapts the rules for autoscaling/v1: objects are defaulted and validated in the stored form. */
export function scalerRules(rules: TypeRules): TypeRules {
  return {
    ...rules,
    fillDefaults(object, live) {
      rules.fillDefaults(object, live);
      const { metadata, spec, status } = scalerToV1(scalerToV2(object));
      Object.assign(object, { metadata, spec }, status === undefined ? {} : { status });
    },
    validate: (object, live) => rules.validate(scalerToV2(object), live === undefined ? undefined : scalerToV2(live)),
    validateStatus: (object, live) => rules.validateStatus(scalerToV2(object), scalerToV2(live)),
  };
}

function storedForm(type: ServedType, object: JsonObject): JsonObject {
  const form = clone(scalerToV2(object));
  if (type.schemaName !== undefined) normalise(type.schemaName, form);
  // These fields of the status are encoded even if they are unset.
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

/** Replaces the annotations that hold fields of autoscaling/v2. */
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

function scalerToV2(object: JsonObject): JsonObject {
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

function scalerToV1(object: JsonObject): JsonObject {
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

// Kubernetes encodes its internal struct here, whose fields have no JSON tags.
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

// Metrics in the annotations of autoscaling/v1 and in the fields of autoscaling/v2.

/** A metric source: the fields of v1 and their paths in v2, in the order in which v1 is encoded. */
interface Source {
  readonly key: string;
  readonly fields: readonly Field[];
}

interface Field {
  readonly one: string;
  /** The path in v2. */
  readonly two: readonly [string, ...string[]];
  /** The value in v1 if v2 has none; absent for optional fields. */
  readonly empty?: JsonValue;
}

const name: Field = { one: "metricName", two: ["metric", "name"], empty: "" };
const selector = (one: string): Field => ({ one, two: ["metric", "selector"] });
const target: Field = { one: "target", two: ["describedObject"], empty: { kind: "", name: "" } };
const resource: Field = { one: "name", two: ["name"], empty: "" };
const container: Field = { one: "container", two: ["container"], empty: "" };
const at = (one: string, ...two: [string, ...string[]]): Field => ({ one, two });
const filled = (one: string, ...two: [string, ...string[]]): Field => ({ one, two, empty: "0" });

const OF_RESOURCES = [
  at("targetAverageUtilization", "target", "averageUtilization"),
  at("targetAverageValue", "target", "averageValue"),
];
const SOURCES: readonly Source[] = [
  {
    key: "object",
    fields: [
      ...[target, name, filled("targetValue", "target", "value"), selector("selector")],
      at("averageValue", "target", "averageValue"),
    ],
  },
  { key: "pods", fields: [name, filled("targetAverageValue", "target", "averageValue"), selector("selector")] },
  { key: "resource", fields: [resource, ...OF_RESOURCES] },
  { key: "containerResource", fields: [resource, ...OF_RESOURCES, container] },
  {
    key: "external",
    fields: [
      ...[name, selector("metricSelector"), at("targetValue", "target", "value")],
      at("targetAverageValue", "target", "averageValue"),
    ],
  },
];

const USED_RESOURCES = [
  at("currentAverageUtilization", "current", "averageUtilization"),
  filled("currentAverageValue", "current", "averageValue"),
];
const STATUSES: readonly Source[] = [
  {
    key: "object",
    fields: [
      ...[target, name, filled("currentValue", "current", "value"), selector("selector")],
      at("averageValue", "current", "averageValue"),
    ],
  },
  { key: "pods", fields: [name, filled("currentAverageValue", "current", "averageValue"), selector("selector")] },
  { key: "resource", fields: [resource, ...USED_RESOURCES] },
  { key: "containerResource", fields: [resource, ...USED_RESOURCES, container] },
  {
    key: "external",
    fields: [
      ...[name, selector("metricSelector"), filled("currentValue", "current", "value")],
      at("currentAverageValue", "current", "averageValue"),
    ],
  },
];

/** Converts a metric spec to v1. */
function metricToV1(metric: JsonObject): JsonObject {
  return sourceToV1(metric, SOURCES);
}

/** Converts a metric status to v1. */
function statusToV1(status: JsonObject): JsonObject {
  return sourceToV1(status, STATUSES);
}

/** Converts a metric status from v1. */
function statusFromV1(status: JsonObject): JsonObject {
  return fromV1(status, STATUSES);
}

/** Converts a metric spec from v1, which does not contain the type of the target. */
function metricFromV1(metric: JsonObject): JsonObject {
  const read = fromV1(metric, SOURCES);
  for (const { key } of SOURCES) {
    const source = objectAt(read, key);
    const goal = objectAt(source, "target") ?? {};
    if (source !== undefined) source["target"] = { type: typeOf(key, goal), ...withoutEmptyValue(key, goal) };
  }
  return read;
}

function typeOf(key: string, goal: JsonObject): string {
  if (key === "resource" || key === "containerResource")
    return goal["averageUtilization"] === undefined ? "AverageValue" : "Utilization";
  if (key === "object") return goal["averageValue"] === undefined ? "Value" : "AverageValue";
  return key === "external" && goal["value"] !== undefined ? "Value" : "AverageValue";
}

// This field is required in v1, so "0" stands for an absent value.
function withoutEmptyValue(key: string, goal: JsonObject): JsonObject {
  const { value, ...rest } = goal;
  return key === "object" && value === "0" && goal["averageValue"] !== undefined ? rest : goal;
}

function sourceToV1(metric: JsonObject, sources: readonly Source[]): JsonObject {
  const shown: JsonObject = { type: metric["type"] ?? "" };
  for (const { key, fields } of sources) {
    const source = objectAt(metric, key);
    if (source === undefined) continue;
    const members = fields.map(({ one, two, empty }) => [one, inOrder(one, valueAt(source, two) ?? empty)] as const);
    shown[key] = Object.fromEntries(members.filter(([, value]) => value !== undefined)) as JsonObject;
  }
  return shown;
}

function inOrder(one: string, value: JsonValue | undefined): JsonValue | undefined {
  if (!isObject(value)) return value;
  if (one !== "target") return goSelector(value);
  const { kind = "", name: called = "", apiVersion } = value;
  return { kind, name: called, ...(apiVersion === undefined ? {} : { apiVersion }) };
}

function fromV1(metric: JsonObject, sources: readonly Source[]): JsonObject {
  const read: JsonObject = { type: metric["type"] ?? "" };
  for (const { key, fields } of sources) {
    const source = objectAt(metric, key);
    if (source === undefined) continue;
    const form: JsonObject = {};
    for (const { one, two, empty } of fields) {
      const value = source[one] ?? empty;
      if (value !== undefined) setAt(form, two, value);
    }
    read[key] = form;
  }
  return read;
}

function valueAt(object: JsonObject, path: readonly string[]): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>((value, key) => (isObject(value) ? value[key] : undefined), object);
}

function setAt(object: JsonObject, [first, ...rest]: readonly [string, ...string[]], value: JsonValue): void {
  if (rest.length === 0) object[first] = value;
  else setAt((object[first] ??= {}) as JsonObject, rest as [string, ...string[]], value);
}
