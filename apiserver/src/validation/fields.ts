import { checkOneOf, checkRequired, checkRequiredOneOf } from "@gen-operator/schema/definitions";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
  tooLongError,
  tooManyError,
} from "../errors/field-error.js";
import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  compareText,
  deepEqual,
  isObject,
  memberOf,
  objectAt,
  stringAt,
} from "../json.js";
import { addressProblems, cidrProblems } from "./addresses.js";
import {
  configKeyProblems,
  labelNameProblems,
  labelValueProblems,
  pathSegmentProblems,
  portNameProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "./names.js";

export { checkOneOf, checkRequired, checkRequiredOneOf };

const PERCENT_RULE =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

const MAX_ANNOTATION_BYTES = 256 * 1024;

/** Demands that a number, if given, is not negative. */
export function checkNotNegative(field: string, value: JsonValue | undefined): FieldError[] {
  return typeof value === "number" && value < 0
    ? [invalidError(field, value, "must be greater than or equal to 0")]
    : [];
}

/** Demands a DNS subdomain. */
export function checkDomain(field: string, name: string): FieldError[] {
  return subdomainProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Demands a DNS subdomain, if there is any name. */
export function checkGivenDomain(field: string, name: string): FieldError[] {
  return name === "" ? [] : checkDomain(field, name);
}

/** Demands a DNS subdomain where there is to be a name. */
export function checkRequiredDomain(field: string, name: string): FieldError[] {
  return name === "" ? [requiredError(field)] : checkDomain(field, name);
}

/** Demands the name of a label or of what is named like one: `[prefix/]name`. */
export function checkQualifiedName(field: string, name: string): FieldError[] {
  return qualifiedNameProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Demands the value of a label. */
export function checkLabelValue(field: string, value: string): FieldError[] {
  return labelValueProblems(value).map((problem) => invalidError(field, value, problem));
}

/** Demands a name that fits into a path. */
export function checkPathSegment(field: string, name: string): FieldError[] {
  return pathSegmentProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Demands such a name where there is to be one. */
export function checkRequiredSegment(field: string, name: string): FieldError[] {
  return name === "" ? [requiredError(field)] : checkPathSegment(field, name);
}

/** Demands an IP address. */
export function checkIp(field: string, address: string): FieldError[] {
  return addressProblems(address).map((problem) => invalidError(field, address, problem));
}

/** Demands a list of at most `max` items; those of a longer one are not looked at. */
export function checkLimited<T>(
  field: string,
  { items, max }: { items: readonly T[]; max: number },
  check: (items: readonly T[]) => FieldError[],
): FieldError[] {
  return items.length > max ? [tooManyError(field, items.length, max)] : check(items);
}

/** Demands values that occur once in a list at `path`; `member` is where an item has its value. */
export function checkOnce(path: string, values: readonly string[], member = ""): FieldError[] {
  return values.flatMap((value, index) =>
    values.indexOf(value) < index ? [duplicateError(`${path}[${index}]${member}`, value)] : [],
  );
}

/** Demands that a number or percentage, if given, is not negative, and a percentage at most 100. */
export function checkIntOrPercent(
  field: string,
  value: JsonValue | undefined,
  { max }: { max?: 100 } = {},
): FieldError[] {
  if (value === undefined || value === null) return [];
  if (typeof value === "number") return checkNotNegative(field, value);
  const percent = /^([0-9]+)%$/.exec(String(value))?.[1];
  if (percent === undefined) return [invalidError(field, value, PERCENT_RULE)];
  return max !== undefined && Number(percent) > max
    ? [invalidError(field, value, "must not be greater than 100%")]
    : [];
}

/** Demands that some members of an object are as they were. */
export function checkImmutable(
  path: string,
  { spec, old, keys }: { spec: JsonObject; old: JsonObject | undefined; keys: string[] },
): FieldError[] {
  if (old === undefined) return [];
  return keys
    .filter((key) => !deepEqual(memberOf(spec, key), memberOf(old, key)))
    .map((key) => invalidError(path === "" ? key : `${path}.${key}`, shownAs(key, spec), "field is immutable"));
}

function shownAs(key: string, spec: JsonObject): JsonValue {
  const value = memberOf(spec, key) ?? null;
  return key === "selector" && isObject(value) ? goSelector(value) : value;
}

/** Demands labels that can be, found at `path`. */
export function checkLabels(labels: JsonObject, path: string): FieldError[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...checkQualifiedName(path, key),
    ...labelValueProblems(String(value)).map((detail) => invalidError(path, value, detail)),
  ]);
}

/** Demands annotations that can be, found at `path`. */
export function checkAnnotations(annotations: JsonObject, path: string): FieldError[] {
  const keys = Object.keys(annotations);
  const bytes = keys.reduce(
    (sum, key) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(annotations[key])),
    0,
  );
  return [
    // Keys of annotations may have capitals in their prefix.
    ...keys.flatMap((key) => qualifiedNameProblems(key.toLowerCase()).map((detail) => invalidError(path, key, detail))),
    ...(bytes > MAX_ANNOTATION_BYTES ? [tooLongError(path, MAX_ANNOTATION_BYTES)] : []),
  ];
}

/** Demands that the expressions and labels of a selector, if given, make sense. */
export function checkLabelSelector(path: string, selector: JsonObject | undefined): FieldError[] {
  const expressions = memberOf(selector, "matchExpressions");
  return [
    ...checkLabels(objectAt(selector, "matchLabels") ?? {}, `${path}.matchLabels`),
    ...(Array.isArray(expressions) ? expressions.filter(isObject) : []).flatMap((expression, index) =>
      checkExpression(`${path}.matchExpressions[${index}]`, expression),
    ),
  ];
}

/** Demands that an expression of a selector makes sense. */
export function checkExpression(path: string, expression: JsonObject, { takesAnyOperator = false } = {}): FieldError[] {
  const operator = memberOf(expression, "operator") ?? "";
  const values = arrayAt(expression, "values") ?? [];
  const key = memberOf(expression, "key") ?? "";
  const isKnown = takesAnyOperator || isSelectorOperator(operator);
  return [
    ...checkValueCount(`${path}.values`, operator, values),
    ...(isKnown ? [] : [invalidError(`${path}.operator`, operator, "not a valid selector operator")]),
    ...qualifiedNameProblems(String(key)).map((detail) => invalidError(`${path}.key`, key, detail)),
    ...values.flatMap((value, index) =>
      labelValueProblems(String(value)).map((detail) => invalidError(`${path}.values[${index}]`, value, detail)),
    ),
  ];
}

const NEEDING_VALUES: readonly JsonValue[] = ["In", "NotIn"];
const WITHOUT_VALUES: readonly JsonValue[] = ["Exists", "DoesNotExist"];

/** True for an operator that selectors of labels have. */
export function isSelectorOperator(operator: JsonValue): boolean {
  return NEEDING_VALUES.includes(operator) || WITHOUT_VALUES.includes(operator);
}

/** Demands values where an operator of a selector needs them, and none where it takes none. */
export function checkValueCount(
  field: string,
  operator: JsonValue | undefined,
  values: readonly JsonValue[],
): FieldError[] {
  if (NEEDING_VALUES.includes(operator ?? "") && values.length === 0)
    return [requiredError(field, "must be specified when `operator` is 'In' or 'NotIn'")];
  if (WITHOUT_VALUES.includes(operator ?? "") && values.length > 0)
    return [forbiddenError(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")];
  return [];
}

/** Writes a map as Kubernetes prints it: in the order of its keys. */
export function goMap(map: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(map).sort(([one], [other]) => compareText(one, other)));
}

/** Writes a selector as Kubernetes prints it: with the fields of its structs in their order. */
export function goSelector(selector: JsonObject): JsonObject {
  const labels = objectAt(selector, "matchLabels") ?? {};
  const expressions = arrayAt(selector, "matchExpressions") ?? [];
  const shown = expressions.filter(isObject).map(({ key, operator, values }) => ({
    ...{ key: key ?? "", operator: operator ?? "" },
    ...(values === undefined ? {} : { values }),
  }));
  return {
    ...(Object.keys(labels).length === 0 ? {} : { matchLabels: goMap(labels) }),
    ...(shown.length === 0 ? {} : { matchExpressions: shown }),
  };
}

/** Demands that a number is that of a port. */
export function checkPort(field: string, value: JsonValue): FieldError[] {
  return typeof value === "number" && value >= 1 && value <= 65535
    ? []
    : [invalidError(field, value, "must be between 1 and 65535, inclusive")];
}

/** Demands the name of a port. */
export function checkPortName(field: string, name: string): FieldError[] {
  return portNameProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Demands a DNS label, as the names of containers, volumes and ports of services are. */
export function checkLabelName(field: string, value: JsonValue | undefined): FieldError[] {
  if (value === undefined || value === "") return [requiredError(field)];
  return checkLabel(field, String(value));
}

/** Demands a DNS label, which "" is not. */
export function checkLabel(field: string, name: string): FieldError[] {
  return labelNameProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Demands a key that can be the name of a file. */
export function checkConfigKey(field: string, key: string): FieldError[] {
  return configKeyProblems(key).map((detail) => invalidError(field, key, detail));
}

/** Demands keys that can be names of files. */
export function checkConfigKeys(object: JsonObject, member: string): FieldError[] {
  return Object.keys(objectAt(object, member) ?? {}).flatMap((key) => checkConfigKey(`${member}[${key}]`, key));
}

/** True if labels meet a selector with matchLabels and matchExpressions. */
export function selectorMatches(selector: JsonObject, labels: JsonObject): boolean {
  const required = Object.entries(objectAt(selector, "matchLabels") ?? {});
  if (!required.every(([key, value]) => memberOf(labels, key) === value)) return false;
  const expressions = memberOf(selector, "matchExpressions");
  return !Array.isArray(expressions) || expressions.filter(isObject).every((one) => meetsExpression(one, labels));
}

function meetsExpression(expression: JsonObject, labels: JsonObject): boolean {
  const value = memberOf(labels, String(expression["key"]));
  const values = memberOf(expression, "values");
  const isListed = value !== undefined && Array.isArray(values) && values.includes(value);
  switch (expression["operator"]) {
    case "In":
      return isListed;
    case "NotIn":
      return !isListed;
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      return true;
  }
}

const HTTP_PATH = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;
const HTTP_PATH_RULE = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";

/** Checks a path behind the name of a domain, which is of so many letters at most. */
export function checkPrefixedPath(path: string, text: string, limit: number): FieldError[] {
  if (text === "") return [requiredError(path)];
  const [, host, rest] = /^([^/]*)\/(.*)$/s.exec(text) ?? [];
  const tooLong = text.length > limit ? [tooLongError(path, limit)] : [];
  if (!host || !rest)
    return [...tooLong, invalidError(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  return [
    ...tooLong,
    ...checkDomain(path, host),
    ...(HTTP_PATH.test(rest) ? [] : [invalidError(path, rest, HTTP_PATH_RULE)]),
  ];
}

/** Demands a range of addresses. */
export function checkCidr(path: string, cidr: string): FieldError[] {
  return cidrProblems(cidr).map((detail) => invalidError(path, cidr, detail));
}

/** How long the name of a field manager may be. */
export const MAX_MANAGER_BYTES = 128;

const MAX_SUBRESOURCE_BYTES = 256;

/** What Go prints as a code: of what separates words it prints the plain blank alone. */
export const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/gu;

/** Checks the name of a field manager. */
export function checkManager(field: string, manager: string): FieldError[] {
  const isTooLong = Buffer.byteLength(manager) > MAX_MANAGER_BYTES;
  const odd = [...manager.matchAll(UNPRINTABLE)].map(({ 0: character, index }) => {
    const code = (character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0");
    const position = Buffer.byteLength(manager.slice(0, index));
    return invalidError(field, manager, `invalid character U+${code} (at position ${position})`);
  });
  return [...(isTooLong ? [tooLongError(field, MAX_MANAGER_BYTES)] : []), ...odd];
}

/** Checks the names in `metadata.managedFields`. */
export function checkManagers(field: string, managedFields: readonly JsonValue[]): FieldError[] {
  return managedFields.filter(isObject).flatMap((entry, index) => {
    const isTooLong = Buffer.byteLength(stringAt(entry, "subresource") ?? "") > MAX_SUBRESOURCE_BYTES;
    return [
      ...checkManager(`${field}[${index}].manager`, stringAt(entry, "manager") ?? ""),
      ...(isTooLong ? [tooLongError(`${field}[${index}].subresource`, MAX_SUBRESOURCE_BYTES)] : []),
    ];
  });
}
