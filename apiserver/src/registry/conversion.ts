import type { ServedType } from "../builtin/served-type.js";
import { clone, deepEqual, setMember, type JsonObject } from "../json.js";
import { apiVersionOf, resourceNameOf } from "../object/object-key.js";
import { normalForm, type Conversion } from "./served-resource.js";
import type { TypeRules } from "./type-rules.js";

/** Returns under which name the objects of a type are stored; a few types are two views of one storage. */
export function storageNameOf(type: ServedType): string {
  return type.group === "events.k8s.io" ? "events" : resourceNameOf(type);
}

/** Returns how a built-in type that is not stored as it is served is converted. */
export function builtinConversion(type: ServedType): Conversion | undefined {
  if (type.group === "events.k8s.io") {
    return {
      toStored: (object) => ({ ...renamed(object, EVENT_TO_CORE), apiVersion: "v1" }),
      fromStored: (object) => normalForm(type, withoutEmptyReporter(renamed(object, EVENT_FROM_CORE))),
    };
  }
  if (type.group === "autoscaling" && type.version === "v1") {
    return { toStored: scalerToV2, fromStored: (object) => normalForm(type, scalerFromV2(object)) };
  }
  return undefined;
}

/**
 * Returns how a version of a custom resource is read from its storage: through the schema, as it is now, of the version that an object
 * is stored in. Defaults come by that schema alone; unknown fields go by it and by that of the version that is asked for.
 */
export function customConversion(type: ServedType, rulesOf: (type: ServedType) => TypeRules): Conversion {
  const apiVersion = apiVersionOf(type);
  const versions = versionsOf(type);
  const stored = apiVersionOf({ group: type.group, version: versions.find(isStorage)?.name ?? type.version });
  const rules = new Map<string, TypeRules>();
  const rulesOfStored = (storedVersion: string): TypeRules => {
    let found = rules.get(storedVersion);
    if (found === undefined) {
      const version = versions.find(({ name }) => apiVersionOf({ group: type.group, version: name }) === storedVersion);
      rules.set(storedVersion, (found = rulesOf(version === undefined ? type : inVersion(type, version))));
    }
    return found;
  };
  return {
    toStored: (object) => (stored === apiVersion ? object : { ...object, apiVersion: stored }),
    fromStored(object) {
      const view = { ...clone(object), apiVersion };
      const { decode, fillDefaults } = rulesOfStored(String(object["apiVersion"]));
      decode(view);
      fillDefaults(view);
      if (object["apiVersion"] !== apiVersion) rulesOfStored(apiVersion).decode(view);
      return deepEqual(view, object) ? object : view;
    },
  };
}

interface CustomVersion {
  name: string;
  storage: boolean;
  schema?: { openAPIV3Schema?: JsonObject };
}

function versionsOf({ custom }: ServedType): CustomVersion[] {
  return (custom?.crd["spec"] as unknown as { versions: CustomVersion[] }).versions;
}

function isStorage({ storage }: CustomVersion): boolean {
  return storage;
}

function inVersion(type: ServedType, { name, schema }: CustomVersion): ServedType {
  if (type.custom === undefined) return type;
  return { ...type, version: name, custom: { ...type.custom, schema: schema?.openAPIV3Schema ?? {} } };
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

// The old form shows these even when they are empty.
function withoutEmptyReporter(event: JsonObject): JsonObject {
  for (const key of ["reportingController", "reportingInstance"]) if (event[key] === "") delete event[key];
  return event;
}

function renamed(object: JsonObject, names: Record<string, string>): JsonObject {
  const result: JsonObject = {};
  for (const key of Object.keys(object)) setMember(result, names[key] ?? key, object[key] as JsonObject);
  return result;
}

interface ScalerV2Spec {
  metrics?: { type: string; resource?: { name: string; target: { type: string; averageUtilization?: number } } }[];
}

// Version 1 knows one metric: the utilisation of the processor.
function scalerToV2(object: JsonObject): JsonObject {
  const { targetCPUUtilizationPercentage: utilization, ...spec } = (object["spec"] ?? {}) as JsonObject;
  const target = { type: "Utilization", averageUtilization: utilization ?? null };
  const metrics =
    utilization === undefined ? {} : { metrics: [{ type: "Resource", resource: { name: "cpu", target } }] };
  return { ...object, apiVersion: "autoscaling/v2", spec: { ...spec, ...metrics } };
}

function scalerFromV2(object: JsonObject): JsonObject {
  const { metrics, ...spec } = (object["spec"] ?? {}) as JsonObject & ScalerV2Spec;
  const cpu = metrics?.find(({ type, resource }) => type === "Resource" && resource?.name === "cpu");
  const utilization = cpu?.resource?.target.averageUtilization;
  const only = utilization === undefined ? {} : { targetCPUUtilizationPercentage: utilization };
  const { currentMetrics: _, conditions: __, ...status } = (object["status"] ?? {}) as JsonObject;
  return {
    ...object,
    spec: { ...(spec as JsonObject), ...only },
    status: { currentReplicas: 0, desiredReplicas: 0, ...status },
  };
}
