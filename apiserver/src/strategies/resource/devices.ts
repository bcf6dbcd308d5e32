import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type VariableType, type Variables, checkText } from "../../errors/expression-problem.js";
import {
  type FieldError,
  duplicateError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, isObject, memberOf, objectAt } from "../../json.js";
import {
  checkLabel,
  checkLabelValue,
  checkLimited,
  checkOnce,
  checkOneOf,
  checkQualifiedName,
  checkRequiredDomain,
  checkRequiredOneOf,
} from "../../validation/fields.js";
import { checkDriverName } from "../shared/driver-names.js";
import type { StructDefaults } from "../strategy.js";
import { checkFullDeviceMember } from "./attributes.js";

/** Struct defaults of device requests. */
export const deviceRequestDefaults: StructDefaults = {
  "resource.v1.ExactDeviceRequest": defaultDeviceCount,
  "resource.v1.DeviceSubRequest": defaultDeviceCount,
};

const ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required";

const NO_REQUEST =
  "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

export const MAX_ITEMS = 32;
const MAX_OPTIONS = 8;

export function checkDeviceClaim(path: string, devices: JsonObject): FieldError[] {
  const requests = objectsAt(devices, "requests");
  const known = new Set(requests.flatMap(namesOf));
  const references = (field: string, part: JsonObject) =>
    checkLimited(field, { items: (arrayAt(part, "requests") ?? []).map(String), max: MAX_ITEMS }, (names) =>
      names.flatMap((name, index) => [
        ...checkReference(`${field}[${index}]`, name, known),
        ...(names.indexOf(name) < index ? [duplicateError(`${field}[${index}]`, name)] : []),
      ]),
    );
  const parts = (list: string, check: (field: string, part: JsonObject) => FieldError[]) =>
    checkLimited(`${path}.${list}`, { items: objectsAt(devices, list), max: MAX_ITEMS }, (items) =>
      items.flatMap((one, index) => {
        const field = `${path}.${list}[${index}]`;
        return [...references(`${field}.requests`, one), ...check(field, one)];
      }),
    );
  return [
    ...checkLimited(`${path}.requests`, { items: requests, max: MAX_ITEMS }, (items) => [
      ...items.flatMap((request, index) => checkRequest(`${path}.requests[${index}]`, request)),
      ...checkNamesOnce(`${path}.requests`, requests),
    ]),
    ...parts("constraints", checkConstraint),
    ...parts("config", checkConfig),
  ];
}

function checkConstraint(path: string, constraint: JsonObject): FieldError[] {
  const given = ["matchAttribute", "distinctAttribute"].find((key) => (memberOf(constraint, key) ?? null) !== null);
  const detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set';
  return given === undefined
    ? [requiredError(path, detail)]
    : checkFullDeviceMember(`${path}.${given}`, textAt(constraint, given));
}

/** Lists the names of a request and its subrequests. */
export function namesOf(request: JsonObject): string[] {
  const name = textAt(request, "name");
  return [name, ...objectsAt(request, "firstAvailable").map((one) => `${name}/${textAt(one, "name")}`)];
}

/** Validates that names are unique. */
export function checkNamesOnce(path: string, items: JsonObject[]): FieldError[] {
  return checkOnce(
    path,
    items.map((item) => textAt(item, "name")),
  );
}

/** Validates a reference to a request or subrequest. */
export function checkReference(field: string, name: string, known: Set<string>): FieldError[] {
  const segments = name.split("/");
  return [
    ...(segments.length > 2 ? [] : segments.flatMap((segment) => checkLabel(field, segment))),
    ...(known.has(name) ? [] : [invalidError(field, name, NO_REQUEST)]),
  ];
}

function checkRequest(path: string, request: JsonObject): FieldError[] {
  const [exactly, options] = [objectAt(request, "exactly"), objectsAt(request, "firstAvailable")];
  const isTwice = exactly !== undefined && options.length > 0;
  return [
    ...checkLabel(`${path}.name`, textAt(request, "name")),
    ...(exactly === undefined && options.length === 0 ? [requiredError(path, ONE_KIND)] : []),
    ...(isTwice ? [invalidError(path, null, `${ONE_KIND}, but multiple fields are set`)] : []),
    ...(exactly !== undefined && !isTwice ? checkWanted(`${path}.exactly`, exactly) : []),
    ...checkLimited(`${path}.firstAvailable`, { items: isTwice ? [] : options, max: MAX_OPTIONS }, (items) => [
      ...items.flatMap((one, index) => {
        const field = `${path}.firstAvailable[${index}]`;
        return [...checkLabel(`${field}.name`, textAt(one, "name")), ...checkWanted(field, one)];
      }),
      ...checkNamesOnce(`${path}.firstAvailable`, [...items]),
    ]),
  ];
}

function checkWanted(path: string, wanted: JsonObject): FieldError[] {
  return [
    ...checkRequiredDomain(`${path}.deviceClassName`, textAt(wanted, "deviceClassName")),
    ...checkSelectors(`${path}.selectors`, wanted),
    ...objectsAt(wanted, "tolerations").flatMap((one, index) => checkToleration(`${path}.tolerations[${index}]`, one)),
    ...checkCount(path, memberOf(wanted, "allocationMode") ?? "", Number(memberOf(wanted, "count") ?? 0)),
  ];
}

function checkCount(path: string, mode: unknown, count: number): FieldError[] {
  const field = `${path}.count`;
  if (mode === "All")
    return count === 0 ? [] : [invalidError(field, count, "must not be specified when allocationMode is 'All'")];
  if (mode === "ExactCount") return count > 0 ? [] : [invalidError(field, count, "must be greater than zero")];
  return [notSupportedError(`${path}.allocationMode`, String(mode), ["All", "ExactCount"])];
}

const EFFECTS = ["NoExecute", "NoSchedule", "None"];

export function checkTaint(path: string, taint: JsonObject): FieldError[] {
  return [
    ...checkQualifiedName(`${path}.key`, textAt(taint, "key")),
    ...checkLabelValue(`${path}.value`, textAt(taint, "value")),
    ...checkRequiredOneOf(`${path}.effect`, memberOf(taint, "effect"), EFFECTS),
  ];
}

function checkToleration(path: string, toleration: JsonObject): FieldError[] {
  const [key, operator, value] = ["key", "operator", "value"].map((name) => textAt(toleration, name)) as [
    string,
    string,
    string,
  ];
  return [
    ...(key === "" ? [] : checkQualifiedName(`${path}.key`, key)),
    ...checkRequiredOneOf(`${path}.operator`, operator, ["Equal", "Exists"]),
    ...(operator === "Exists" && value !== ""
      ? [invalidError(`${path}.value`, value, "must be empty for operator `Exists`")]
      : []),
    ...(operator === "Equal" ? checkLabelValue(`${path}.value`, value) : []),
    ...checkOneOf(`${path}.effect`, memberOf(toleration, "effect"), EFFECTS),
  ];
}

/** Validates opaque device configuration. */
export function checkConfig(path: string, config: JsonObject): FieldError[] {
  const opaque = objectAt(config, "opaque");
  if (opaque === undefined) return [requiredError(`${path}.opaque`)];
  const [parameters, field] = [memberOf(opaque, "parameters") ?? null, `${path}.opaque.parameters`];
  return [
    ...checkDriverName(`${path}.opaque.driver`, textAt(opaque, "driver")),
    ...(parameters === null ? [requiredError(field)] : []),
    ...(parameters === null || isObject(parameters)
      ? []
      : [invalidError(field, "<value omitted>", "must be a valid JSON object")]),
  ];
}

// CEL selectors of devices and their variables.

const MAX_LENGTH = 10 * 1024;

const MAX_SELECTORS = 32;
const TEXT: VariableType = { kind: "string" };

function byDomain(element: VariableType): VariableType {
  return { kind: "map", key: TEXT, element: { kind: "map", key: TEXT, element } };
}

const FIELDS: { readonly [name: string]: VariableType } = {
  driver: TEXT,
  allowMultipleAllocations: { kind: "bool" },
  attributes: byDomain({ kind: "dyn" }),
  capacity: byDomain({ kind: "opaque", name: "kubernetes.Quantity" }),
};

const VARIABLES: Variables = {
  device: {
    kind: "object",
    name: "kubernetes.DRADevice",
    field: (name) => (Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined),
  },
};

/** Validates the CEL selectors of a device class or request. */
export function checkSelectors(path: string, holder: JsonObject): FieldError[] {
  return checkLimited(path, { items: objectsAt(holder, "selectors"), max: MAX_SELECTORS }, (selectors) =>
    selectors.flatMap((selector, index) => {
      const at = `${path}[${index}].cel`;
      const cel = objectAt(selector, "cel");
      return cel === undefined ? [requiredError(at)] : checkSelector(`${at}.expression`, textAt(cel, "expression"));
    }),
  );
}

function checkSelector(field: string, text: string): FieldError[] {
  if (Buffer.byteLength(text) > MAX_LENGTH) return [tooLongError(field, MAX_LENGTH)];
  const checked = checkText(text, VARIABLES);
  if ("unread" in checked) return [];
  if ("problem" in checked) return [invalidError(field, text, checked.problem)];
  if (checked.type === "bool" || checked.type === "dyn") return [];
  return [invalidError(field, text, `must evaluate to bool or the unknown type, not ${checked.type}`)];
}

/** Sets the default count of 1 for allocationMode ExactCount. */
function defaultDeviceCount(request: JsonObject): void {
  if ((request["allocationMode"] ?? "ExactCount") === "ExactCount") request["count"] ??= 1;
}
