// Devices that nodes offer.
import { invalidError, requiredError, type FieldError } from "../../../errors/field-error.js";
import { isObject, memberOf, objectAt, type JsonObject } from "../../../json.js";
import { objectsAt, textAt } from "../../read-path.js";
import { checkDomain, checkImmutable, checkLabel, checkLabelName } from "../field-rules.js";
import { checkNamesOnce } from "./device-rules.js";
import { checkDriverName, checkPoolName } from "./name-rules.js";
import { checkNodeSelector } from "./node-selector-rules.js";

const SCOPES = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
const ONE_SCOPE = `exactly one of ${SCOPES.map((key) => `\`${key}\``).join(", ")} is required`;
const ONE_SCOPE_EACH =
  "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in " +
  "the ResourceSlice spec";
const NO_SCOPE_EACH =
  "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the " +
  "ResourceSlice spec";

/** Checks a ResourceSlice. */
export function checkResourceSlice(slice: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(slice, "spec") ?? {};
  const [pool, oldSpec] = [objectAt(spec, "pool") ?? {}, objectAt(old, "spec")];
  const [count, generation] = [memberOf(pool, "resourceSliceCount") ?? 0, memberOf(pool, "generation") ?? 0];
  const [devices, counters] = [objectsAt(spec, "devices"), objectsAt(spec, "sharedCounters")];
  const isBoth = devices.length > 0 && counters.length > 0;
  return [
    ...checkDriverName("spec.driver", textAt(spec, "driver")),
    ...checkPoolName("spec.pool.name", textAt(pool, "name")),
    ...(Number(count) > 0 ? [] : [invalidError("spec.pool.resourceSliceCount", count, "must be greater than zero")]),
    ...(Number(generation) < 0
      ? [invalidError("spec.pool.generation", generation, "must be greater than or equal to zero")]
      : []),
    ...checkImmutable("spec.pool", { spec: pool, old: objectAt(oldSpec, "pool"), keys: ["name"] }),
    ...checkImmutable("spec", { spec, old: oldSpec, keys: ["driver", "nodeName"] }),
    ...checkScope(spec),
    ...(isBoth ? [invalidError("spec", "", "only one of `sharedCounters` or `devices` is allowed")] : []),
    ...devices.flatMap((device, index) => checkDevice(`spec.devices[${index}]`, device, spec)),
    ...checkNamesOnce("spec.devices", devices),
    ...counters.flatMap((set, index) => checkCounterSet(`spec.sharedCounters[${index}]`, set)),
    ...checkNamesOnce("spec.sharedCounters", counters),
  ];
}

function checkScope(spec: JsonObject): FieldError[] {
  const given = SCOPES.filter((key) => isScope(spec, key)).map((key) => `\`${key}\``);
  const [node, selector] = [memberOf(spec, "nodeName") ?? null, objectAt(spec, "nodeSelector")];
  const terms = objectsAt(selector ?? {}, "nodeSelectorTerms");
  const shown = terms.map((term) => ({
    MatchExpressions: memberOf(term, "matchExpressions") ?? null,
    MatchFields: memberOf(term, "matchFields") ?? null,
  }));
  return [
    ...(node === "" ? [invalidError("spec.nodeName", node, "must be either unset or set to a non-empty string")] : []),
    ...(node === null || node === "" ? [] : checkDomain("spec.nodeName", String(node))),
    ...(selector === undefined ? [] : checkNodeSelector("spec.nodeSelector", selector)),
    ...(selector === undefined || terms.length === 1
      ? []
      : [invalidError("spec.nodeSelector.nodeSelectorTerms", shown, "must have exactly one node selector term")]),
    ...["allNodes", "perDeviceNodeSelection"]
      .filter((key) => memberOf(spec, key) === false)
      .map((key) => invalidError(`spec.${key}`, false, "must be either unset or set to true")),
    ...(given.length === 0 ? [requiredError("spec", ONE_SCOPE)] : []),
    ...(given.length > 1
      ? [invalidError("spec", `{${given.join(", ")}}`, `${ONE_SCOPE}, but multiple fields are set`)]
      : []),
  ];
}

function isScope(holder: JsonObject, key: string): boolean {
  const value = memberOf(holder, key);
  return isObject(value) || value === true || (typeof value === "string" && value !== "");
}

function checkDevice(path: string, device: JsonObject, spec: JsonObject): FieldError[] {
  const keys = SCOPES.slice(0, 3);
  const given = keys.filter((key) => isScope(device, key)).map((key) => `\`${key}\``);
  const isScoped = keys.some((key) => (memberOf(device, key) ?? null) !== null);
  const name = checkLabel(`${path}.name`, textAt(device, "name"));
  if (memberOf(spec, "perDeviceNodeSelection") !== true)
    return [...name, ...(isScoped ? [invalidError(path, null, NO_SCOPE_EACH)] : [])];
  return [
    ...name,
    ...(given.length === 0 ? [requiredError(path, ONE_SCOPE_EACH)] : []),
    ...(given.length > 1 ? [invalidError(path, `{${given.join(", ")}}`, ONE_SCOPE_EACH)] : []),
  ];
}

function checkCounterSet(path: string, set: JsonObject): FieldError[] {
  const [name, counters] = [textAt(set, "name"), Object.keys(objectAt(set, "counters") ?? {})];
  return [
    ...checkLabelName(`${path}.name`, name),
    ...(counters.length === 0 ? [requiredError(`${path}.counters`)] : []),
    ...counters.flatMap((key) => checkLabel(`${path}.counters`, key)),
  ];
}
