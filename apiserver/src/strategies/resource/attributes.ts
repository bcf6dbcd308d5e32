// Attributes and capacity of devices.
import { compareQuantities, parseVersion } from "@gen-operator/schema";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt } from "../../json.js";
import { checkDriverName } from "../shared/driver-names.js";

const MAX_ID = 32;
const MAX_TEXT = 64;
const IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*";
const IDENTIFIER_RULE =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' " +
  `(e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '${IDENTIFIER}')`;
const VALUES = ["int", "bool", "string", "version"];

/** Validates the name of an attribute or capacity: an identifier with an optional domain. */
export function checkDeviceMember(field: string, name: string): FieldError[] {
  const parts = name.split("/");
  const [domain = "", id = ""] = parts;
  if (parts.length === 1) return checkIdentifier(field, domain);
  if (parts.length > 2) return [];
  return [
    ...(domain === "" ? [invalidError(field, "", "the domain must not be empty")] : checkDriverName(field, domain)),
    ...(id === "" ? [invalidError(field, "", "the name must not be empty")] : checkIdentifier(field, id)),
  ];
}

/** Validates the name of an attribute or capacity with a mandatory domain. */
export function checkFullDeviceMember(field: string, name: string): FieldError[] {
  const detail = "a fully qualified name must be a domain and a name separated by a slash";
  return [...checkDeviceMember(field, name), ...(name.includes("/") ? [] : [invalidError(field, name, detail)])];
}

function checkIdentifier(field: string, id: string): FieldError[] {
  return [
    ...(Buffer.byteLength(id) > MAX_ID ? [tooLongError(field, MAX_ID)] : []),
    ...(new RegExp(`^${IDENTIFIER}$`).test(id) ? [] : [invalidError(field, id, IDENTIFIER_RULE)]),
  ];
}

/** Validates the attributes and capacity of a device. */
export function checkDeviceMembers(path: string, device: JsonObject): FieldError[] {
  const isShared = memberOf(device, "allowMultipleAllocations") === true;
  return [
    ...Object.entries(objectAt(device, "attributes") ?? {}).flatMap(([name, attribute]) => [
      ...checkDeviceMember(`${path}.attributes`, name),
      ...checkAttribute(`${path}.attributes[${name}]`, isObject(attribute) ? attribute : {}),
    ]),
    ...Object.entries(objectAt(device, "capacity") ?? {}).flatMap(([name, capacity]) => [
      ...checkDeviceMember(`${path}.capacity`, name),
      ...checkCapacity(`${path}.capacity[${name}]`, isObject(capacity) ? capacity : {}, isShared),
    ]),
  ];
}

// An attribute has exactly one value. kube-apiserver prints the struct, whose list fields belong to a disabled feature.
function checkAttribute(path: string, attribute: JsonObject): FieldError[] {
  const [int, bool, string, version] = VALUES.map((key) => memberOf(attribute, key) ?? null) as [
    JsonValue,
    JsonValue,
    JsonValue,
    JsonValue,
  ];
  const count = VALUES.filter((key) => (memberOf(attribute, key) ?? null) !== null).length;
  const shown = {
    ...{ IntValue: int, BoolValue: bool, StringValue: string, VersionValue: version },
    ...{ IntValues: null, BoolValues: null, StringValues: null, VersionValues: null },
  };
  return [
    ...checkText(`${path}.string`, string),
    ...checkVersion(`${path}.version`, version),
    ...(count === 1 ? [] : [invalidError(path, count === 0 ? "" : shown, "exactly one value must be specified")]),
  ];
}

function checkText(field: string, text: JsonValue): FieldError[] {
  return typeof text === "string" && Buffer.byteLength(text) > MAX_TEXT ? [tooLongError(field, MAX_TEXT)] : [];
}

function checkVersion(field: string, text: JsonValue): FieldError[] {
  if (typeof text !== "string") return [];
  const detail = "must be a string compatible with semver.org spec 2.0.0";
  return [...(parseVersion(text) !== undefined ? [] : [invalidError(field, text, detail)]), ...checkText(field, text)];
}

function checkCapacity(path: string, capacity: JsonObject, isShared: boolean): FieldError[] {
  const [policy, at] = [objectAt(capacity, "requestPolicy"), `${path}.requestPolicy`];
  if (policy === undefined) return [];
  if (!isShared) return [forbiddenError(at, "allowMultipleAllocations must be true")];
  const [values, range] = [arrayAt(policy, "validValues") ?? [], objectAt(policy, "validRange")];
  const both = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time';
  if (values.length > 0 && range !== undefined) return [forbiddenError(at, both)];
  if (values.length === 0 && range === undefined) return [];
  const kind = range === undefined ? "validValues" : "validRange";
  const [most, usual] = [String(memberOf(capacity, "value") ?? "0"), memberOf(policy, "default")];
  if (usual === undefined) return [requiredError(`${at}.default`, `required when ${kind} is defined`)];
  return range === undefined
    ? checkValues(`${at}.${kind}`, values.map(String), { most, usual: String(usual) })
    : checkRange(`${at}.${kind}`, range, { most, usual: String(usual) });
}

/** Capacity of a device, and the default amount of a request. */
interface Amounts {
  readonly most: string;
  readonly usual: string;
}

function exceeds(one: string, other: string): boolean {
  return (compareQuantities(one, other) ?? 0) > 0;
}

function checkValues(path: string, values: string[], { most, usual }: Amounts): FieldError[] {
  const isAmong = values.some((value) => compareQuantities(value, usual) === 0);
  return [
    ...values.flatMap((value, index) => {
      const before = values[index - 1];
      const at = `${path}[${index}]`;
      return [
        ...(before !== undefined && exceeds(before, value)
          ? [invalidError(at, value, "values must be sorted in ascending order")]
          : []),
        ...(exceeds(value, most) ? [invalidError(at, value, `option is larger than capacity value: ${most}`)] : []),
        ...(values.slice(0, index).some((other) => compareQuantities(other, value) === 0)
          ? [duplicateError(at, value)]
          : []),
      ];
    }),
    ...(isAmong ? [] : [invalidError(path, usual, "default value is not valid according to the requestPolicy")]),
  ];
}

function checkRange(path: string, range: JsonObject, { most, usual }: Amounts): FieldError[] {
  const [min, max] = ["min", "max"].map((key) => memberOf(range, key));
  if (min === undefined) return [requiredError(`${path}.min`, "required when validRange is defined")];
  const least = String(min);
  const problems: [key: string, value: string, isSo: boolean, detail: string][] = [
    ["min", least, exceeds(least, most), `min is larger than capacity value: ${most}`],
    ["min", usual, exceeds(least, usual), `default is less than min: ${least}`],
  ];
  if (max !== undefined)
    problems.push(
      ["max", least, exceeds(least, String(max)), `min is larger than max: ${String(max)}`],
      ["max", String(max), exceeds(String(max), most), `max is larger than capacity value: ${most}`],
      ["max", usual, exceeds(usual, String(max)), `default is more than max: ${String(max)}`],
    );
  return problems
    .filter(([, , isSo]) => isSo)
    .map(([key, value, , detail]) => invalidError(`${path}.${key}`, value, detail));
}
