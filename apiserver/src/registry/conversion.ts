import type { ServedType } from "../builtin/served-type.js";
import { setMember, type JsonObject } from "../json.js";
import { resourceNameOf } from "../object/object-key.js";
import { normalForm, type Conversion } from "./served-resource.js";

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
  const { metrics, behavior: _behavior, ...spec } = (object["spec"] ?? {}) as JsonObject & ScalerV2Spec;
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
