// The metrics of autoscalers in autoscaling/v1, where they stand in annotations, and in autoscaling/v2.
import { goSelector } from "../builtin/rules/field-rules.js";
import { isObject, objectAt, type JsonObject, type JsonValue } from "../json.js";

/** A source of metrics: where version 1 has what version 2 has, in the order in which version 1 is written. */
interface Source {
  readonly key: string;
  readonly fields: readonly Field[];
}

interface Field {
  readonly one: string;
  /** The path in version 2. */
  readonly two: readonly [string, ...string[]];
  /** What version 1 has where version 2 has nothing; absent for a field that may be missing. */
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

/** Writes a metric as version 1 does. */
export function metricToV1(metric: JsonObject): JsonObject {
  return toV1(metric, SOURCES);
}

/** Writes what a metric is at as version 1 does. */
export function statusToV1(status: JsonObject): JsonObject {
  return toV1(status, STATUSES);
}

/** Reads what a metric is at from version 1. */
export function statusFromV1(status: JsonObject): JsonObject {
  return fromV1(status, STATUSES);
}

/** Reads a metric from version 1, which does not say what type its target is of. */
export function metricFromV1(metric: JsonObject): JsonObject {
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

// Version 1 cannot leave it out.
function withoutEmptyValue(key: string, goal: JsonObject): JsonObject {
  const { value, ...rest } = goal;
  return key === "object" && value === "0" && goal["averageValue"] !== undefined ? rest : goal;
}

function toV1(metric: JsonObject, sources: readonly Source[]): JsonObject {
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
