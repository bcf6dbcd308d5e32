// What kinds that few write by hand cannot be without.
import {
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  type FieldError,
} from "../../../errors/field-error.js";
import { arrayAt, deepEqual, memberOf, objectAt, type JsonObject } from "../../../json.js";
import { textAt } from "../../read-path.js";
import { checkNotNegative, checkRequired, selectorMatches } from "../field-rules.js";
import { subdomainProblems } from "../name-syntax.js";
import { checkPodTemplate } from "../workload/pod-rules.js";
import { checkLasting, mismatchError } from "../workload/workload-rules.js";

// Everything else in the spec of a volume says where it is.
const OF_EVERY_VOLUME = new Set([
  ...["accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"],
  ...["storageClassName", "volumeAttributesClassName", "volumeMode"],
]);
const SLICE_SCOPES = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];

/** Checks a PersistentVolume. */
export function checkVolume(volume: JsonObject): FieldError[] {
  const spec = objectAt(volume, "spec") ?? {};
  const capacity = objectAt(spec, "capacity") ?? {};
  const names = Object.keys(capacity);
  const isSized = names.length === 1 && names[0] === "storage";
  const sources = Object.keys(spec).filter((key) => !OF_EVERY_VOLUME.has(key));
  return [
    ...((arrayAt(spec, "accessModes") ?? []).length === 0 ? [requiredError("spec.accessModes")] : []),
    ...(names.length === 0 ? [requiredError("spec.capacity")] : []),
    ...(isSized ? [] : [notSupportedError("spec.capacity", memberOf(spec, "capacity") ?? null, ["storage"])]),
    ...(sources.length === 0 ? [requiredError("spec", "must specify a volume type")] : []),
  ];
}

/** Checks a VolumeAttachment. */
export function checkVolumeAttachment(attachment: JsonObject): FieldError[] {
  const spec = objectAt(attachment, "spec") ?? {};
  const node = textAt(spec, "nodeName");
  const source = objectAt(spec, "source");
  const given = ["inlineVolumeSpec", "persistentVolumeName"].filter((key) => memberOf(source, key) !== undefined);
  const detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  return [
    ...checkRequired("spec.attacher", memberOf(spec, "attacher")),
    ...subdomainProblems(node).map((problem) => invalidError("spec.nodeName", node, problem)),
    ...(given.length === 0 ? [requiredError("spec.source", detail)] : []),
    ...(given.length === 2 ? [forbiddenError("spec.source", detail)] : []),
  ];
}

/** Checks a VolumeAttributesClass, whose parameters stay. */
export function checkAttributesClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const parameters = objectAt(object, "parameters") ?? {};
  if (old !== undefined) {
    return ["driverName", "parameters"]
      .filter((key) => !deepEqual(memberOf(object, key) ?? null, memberOf(old, key) ?? null))
      .map((key) => forbiddenError(key, `updates to ${key} are forbidden.`));
  }
  return [
    ...checkRequired("driverName", memberOf(object, "driverName")),
    ...(Object.keys(parameters).length === 0
      ? [requiredError("parameters", "must contain at least one key/value pair")]
      : []),
  ];
}

/** Checks a PodTemplate. */
export function checkTemplate(object: JsonObject): FieldError[] {
  return checkPodTemplate("template", objectAt(object, "template") ?? {});
}

/** Checks a ReplicationController. */
export function checkReplicationController(object: JsonObject): FieldError[] {
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

/** Checks a ResourceSlice. */
export function checkResourceSlice(object: JsonObject): FieldError[] {
  const spec = objectAt(object, "spec") ?? {};
  const pool = objectAt(spec, "pool");
  const count = memberOf(pool, "resourceSliceCount") ?? 0;
  const scopes = SLICE_SCOPES.filter((key) => (memberOf(spec, key) ?? false) !== false && memberOf(spec, key) !== "");
  const detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  return [
    ...checkRequired("spec.driver", memberOf(spec, "driver")),
    ...checkRequired("spec.pool.name", memberOf(pool, "name")),
    ...(Number(count) > 0 ? [] : [invalidError("spec.pool.resourceSliceCount", count, "must be greater than zero")]),
    ...(scopes.length === 0 ? [requiredError("spec", detail)] : []),
  ];
}

/** Checks that data of a ControllerRevision are there. */
export function checkRevisionData(object: JsonObject): FieldError[] {
  return [
    ...((memberOf(object, "data") ?? null) === null ? [requiredError("data", "data is mandatory")] : []),
    ...checkNotNegative("revision", memberOf(object, "revision")),
  ];
}

/** Returns the check that one member is given, with these words. */
export function needs(path: string, detail = ""): (object: JsonObject) => FieldError[] {
  const names = path.split(".");
  return (object) => {
    const at = names.reduce<unknown>(
      (value, name) => (typeof value === "object" && value !== null ? (value as JsonObject)[name] : undefined),
      object,
    );
    const isThere = Array.isArray(at) ? at.length > 0 : at !== undefined && at !== null && at !== "";
    return isThere ? [] : [requiredError(path, detail)];
  };
}
