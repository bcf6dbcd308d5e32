import type { ServedType } from "../builtin/served-type.js";
import { setMember, type JsonObject } from "../json.js";
import { resourceNameOf } from "../object/object-key.js";
import { scalerConversion } from "./scaler-conversion.js";
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
