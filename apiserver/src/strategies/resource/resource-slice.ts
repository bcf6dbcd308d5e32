import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, duplicateError, invalidError, requiredError } from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import { type JsonObject, arrayAt, isObject, memberOf, objectAt } from "../../json.js";
import {
  checkDomain,
  checkGivenDomain,
  checkImmutable,
  checkLabel,
  checkLabelName,
  checkLimited,
  checkOnce,
  checkQualifiedName,
} from "../../validation/fields.js";
import { checkDriverName, checkPoolName } from "../shared/driver-names.js";
import { checkNodeSelector } from "../shared/node-selectors.js";
import type { Strategy } from "../strategy.js";
import { checkDeviceMembers } from "./attributes.js";
import { checkNamesOnce, checkTaint } from "./devices.js";

export const resourceSliceStrategy: Strategy = {
  generation: "spec",
  returnsDeletedObject: true,
  countsDropped: true,
  dropFields: (slice) => objectsAt(slice, "spec.devices").forEach(dropOfDevice),
  validate: checkResourceSlice,
  warnings: sliceWarnings,
};

const SCOPES = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
const ONE_SCOPE = `exactly one of ${SCOPES.map((key) => `\`${key}\``).join(", ")} is required`;

const ONE_SCOPE_EACH =
  "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in " +
  "the ResourceSlice spec";

const NO_SCOPE_EACH =
  "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the " +
  "ResourceSlice spec";

function checkResourceSlice(slice: JsonObject, old: JsonObject | undefined): FieldError[] {
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
    ...checkLimited("spec.devices", { items: devices, max: devices.some(isElaborate) ? 64 : 128 }, (items) => [
      ...items.flatMap((device, index) => checkDevice(`spec.devices[${index}]`, device, spec)),
      ...checkNamesOnce("spec.devices", devices),
    ]),
    ...checkLimited("spec.sharedCounters", { items: counters, max: MAX.counterSets }, (sets) => [
      ...sets.flatMap((set, index) => checkCounterSet(`spec.sharedCounters[${index}]`, set)),
      ...checkNamesOnce("spec.sharedCounters", counters),
    ]),
  ];
}

const MAX = { counterSets: 8, counters: 32, consumed: 2, taints: 16, members: 32, values: 48, conditions: 4 };
const LISTED = ["bools", "ints", "strings", "versions"];

function attributesOf(device: JsonObject): JsonObject[] {
  return Object.values(objectAt(device, "attributes") ?? {}).filter(isObject);
}

// A slice can contain fewer devices with these fields.
function isElaborate(device: JsonObject): boolean {
  const lists = attributesOf(device).flatMap((attribute) => LISTED.map((list) => arrayAt(attribute, list)));
  const hasMore = ["taints", "consumesCounters"].some((list) => objectsAt(device, list).length > 0);
  return hasMore || lists.some((list) => list !== undefined);
}

function checkMemberCounts(path: string, device: JsonObject): FieldError[] {
  const attributes = attributesOf(device);
  const members = attributes.length + Object.keys(objectAt(device, "capacity") ?? {}).length;
  const values = attributes
    .map((attribute) => LISTED.reduce((sum, list) => sum + (arrayAt(attribute, list) ?? []).length, 0))
    .reduce((sum, count) => sum + Math.max(count, 1), 0);
  const most = (count: number, max: number, what: string) =>
    count > max ? [invalidError(path, count, `the total number of ${what} must not exceed ${max}`)] : [];
  return [...most(members, MAX.members, "attributes and capacities"), ...most(values, MAX.values, "attribute values")];
}

function checkScope(spec: JsonObject): FieldError[] {
  const given = SCOPES.filter((key) => isScope(spec, key)).map((key) => `\`${key}\``);
  const [node, selector] = [memberOf(spec, "nodeName") ?? null, objectAt(spec, "nodeSelector")];
  const terms = objectsAt(selector ?? {}, "nodeSelectorTerms");
  const isNone = terms.length === 0 && !wasGivenEmpty(selector, "nodeSelectorTerms");
  const shown = terms.map((term) => ({
    MatchExpressions: memberOf(term, "matchExpressions") ?? (wasGivenEmpty(term, "matchExpressions") ? [] : null),
    MatchFields: memberOf(term, "matchFields") ?? (wasGivenEmpty(term, "matchFields") ? [] : null),
  }));
  return [
    ...(node === "" ? [invalidError("spec.nodeName", node, "must be either unset or set to a non-empty string")] : []),
    ...(node === null || node === "" ? [] : checkDomain("spec.nodeName", String(node))),
    ...(selector === undefined ? [] : checkNodeSelector("spec.nodeSelector", selector)),
    ...(selector === undefined || terms.length === 1
      ? []
      : [
          invalidError(
            "spec.nodeSelector.nodeSelectorTerms",
            isNone ? null : shown,
            "must have exactly one node selector term",
          ),
        ]),
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
  const consumed = objectsAt(device, "consumesCounters");
  const names = consumed.map((one) => textAt(one, "counterSet"));
  const at = `${path}.consumesCounters`;
  return [
    ...checkLabel(`${path}.name`, textAt(device, "name")),
    ...checkMemberCounts(path, device),
    ...checkDeviceMembers(path, device),
    ...checkLimited(`${path}.taints`, { items: objectsAt(device, "taints"), max: MAX.taints }, (taints) =>
      taints.flatMap((taint, index) => checkTaint(`${path}.taints[${index}]`, taint)),
    ),
    ...checkLimited(at, { items: consumed, max: MAX.consumed }, (items) =>
      items.flatMap((one, index) => [
        ...checkLabelName(`${at}[${index}].counterSet`, textAt(one, "counterSet")),
        ...checkCounters(`${at}[${index}].counters`, one),
        ...(names.indexOf(names[index] ?? "") < index ? [duplicateError(`${at}[${index}]`, names[index] ?? "")] : []),
      ]),
    ),
    ...checkDeviceScope(path, device, spec),
    ...checkBinding(path, device),
  ];
}

function checkDeviceScope(path: string, device: JsonObject, spec: JsonObject): FieldError[] {
  const keys = SCOPES.slice(0, 3);
  const given = keys.filter((key) => isScope(device, key)).map((key) => `\`${key}\``);
  const isScoped = keys.some((key) => (memberOf(device, key) ?? null) !== null);
  if (memberOf(spec, "perDeviceNodeSelection") !== true)
    return isScoped ? [invalidError(path, null, NO_SCOPE_EACH)] : [];
  const [node, selector] = [memberOf(device, "nodeName"), objectAt(device, "nodeSelector")];
  const all = `${path}.allNodes`;
  return [
    ...(node === "" ? [invalidError(`${path}.nodeName`, node, "must not be empty")] : []),
    ...(typeof node === "string" ? checkGivenDomain(`${path}.nodeName`, node) : []),
    ...(selector === undefined ? [] : checkNodeSelector(`${path}.nodeSelector`, selector)),
    ...(memberOf(device, "allNodes") === false
      ? [invalidError(all, false, "must be either unset or set to true")]
      : []),
    ...(given.length === 0 ? [requiredError(path, ONE_SCOPE_EACH)] : []),
    ...(given.length > 1 ? [invalidError(path, `{${given.join(", ")}}`, ONE_SCOPE_EACH)] : []),
  ];
}

// Binding conditions and failure conditions require each other and must not overlap.
function checkBinding(path: string, device: JsonObject): FieldError[] {
  const [met, failed] = ["bindingConditions", "bindingFailureConditions"] as const;
  const lists = { [met]: namesAt(device, met), [failed]: namesAt(device, failed) };
  const overlap = "bindingFailureConditions must not overlap with bindingConditions";
  const shown = (list: string) => (wasGivenEmpty(device, list) ? [] : null);
  const needs = (list: string, other: string) =>
    namesAt(device, list).length === 0 && namesAt(device, other).length > 0
      ? [invalidError(`${path}.${list}`, shown(list), `${list} are required to use ${other}`)]
      : [];
  return [
    ...Object.entries(lists).flatMap(([list, names]) => [
      ...checkLimited(`${path}.${list}`, { items: names, max: MAX.conditions }, (items) =>
        items.flatMap((name, index) => checkQualifiedName(`${path}.${list}[${index}]`, name)),
      ),
      ...checkOnce(`${path}.${list}`, names),
    ]),
    ...namesAt(device, failed).flatMap((name, index) =>
      namesAt(device, met).includes(name) ? [invalidError(`${path}.${failed}[${index}]`, name, overlap)] : [],
    ),
    ...needs(met, failed),
    ...needs(failed, met),
  ];
}

function namesAt(device: JsonObject, list: string): string[] {
  return (arrayAt(device, list) ?? []).map(String);
}

function checkCounterSet(path: string, set: JsonObject): FieldError[] {
  return [...checkLabelName(`${path}.name`, textAt(set, "name")), ...checkCounters(`${path}.counters`, set)];
}

function checkCounters(path: string, holder: JsonObject): FieldError[] {
  const names = Object.keys(objectAt(holder, "counters") ?? {});
  if (names.length === 0) return [requiredError(path)];
  return checkLimited(path, { items: names, max: MAX.counters }, (all) =>
    all.flatMap((name) => checkLabel(path, name)),
  );
}

function dropOfDevice(device: JsonObject): void {
  delete device["nodeAllocatableResourceMappings"];
  for (const attribute of Object.values(objectAt(device, "attributes") ?? {}))
    if (isObject(attribute)) for (const list of ["bools", "ints", "strings", "versions"]) delete attribute[list];
}

function sliceWarnings(slice: JsonObject): string[] {
  const driver = textAt(slice, "spec.driver");
  if (driver === driver.toLowerCase()) return [];
  return [`spec.driver: driver names should be lowercase; ${quote(driver)} contains uppercase characters`];
}
