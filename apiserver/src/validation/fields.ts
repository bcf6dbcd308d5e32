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

/** Validates that an optional number is not negative. */
export function checkNotNegative(field: string, value: JsonValue | undefined): FieldError[] {
  return typeof value === "number" && value < 0
    ? [invalidError(field, value, "must be greater than or equal to 0")]
    : [];
}

/** Validates a DNS subdomain. */
export function checkDomain(field: string, name: string): FieldError[] {
  return subdomainProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Validates an optional DNS subdomain. */
export function checkGivenDomain(field: string, name: string): FieldError[] {
  return name === "" ? [] : checkDomain(field, name);
}

/** Validates a required DNS subdomain. */
export function checkRequiredDomain(field: string, name: string): FieldError[] {
  return name === "" ? [requiredError(field)] : checkDomain(field, name);
}

/** Validates a qualified name, such as a label key: `[prefix/]name`. */
export function checkQualifiedName(field: string, name: string): FieldError[] {
  return qualifiedNameProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Validates a label value. */
export function checkLabelValue(field: string, value: string): FieldError[] {
  return labelValueProblems(value).map((problem) => invalidError(field, value, problem));
}

/** Validates a name that is used as path segment. */
export function checkPathSegment(field: string, name: string): FieldError[] {
  return pathSegmentProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Validates a required name that is used as path segment. */
export function checkRequiredSegment(field: string, name: string): FieldError[] {
  return name === "" ? [requiredError(field)] : checkPathSegment(field, name);
}

/** Validates an IP. */
export function checkIp(field: string, address: string): FieldError[] {
  return addressProblems(address).map((problem) => invalidError(field, address, problem));
}

/** Validates a list of at most `max` items; the items of a longer list are not validated. */
export function checkLimited<T>(
  field: string,
  { items, max }: { items: readonly T[]; max: number },
  check: (items: readonly T[]) => FieldError[],
): FieldError[] {
  return items.length > max ? [tooManyError(field, items.length, max)] : check(items);
}

/** Validates that values are unique in a list at `path`; `member` is the path of the value in an item. */
export function checkOnce(path: string, values: readonly string[], member = ""): FieldError[] {
  return values.flatMap((value, index) =>
    values.indexOf(value) < index ? [duplicateError(`${path}[${index}]${member}`, value)] : [],
  );
}

/** Validates an optional number or percentage, which must not be negative. `max` limits percentages to 100. */
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

/** Validates that fields are unchanged. */
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

/** Validates labels at `path`. */
export function checkLabels(labels: JsonObject, path: string): FieldError[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...checkQualifiedName(path, key),
    ...labelValueProblems(String(value)).map((detail) => invalidError(path, value, detail)),
  ]);
}

/** Validates annotations at `path`. */
export function checkAnnotations(annotations: JsonObject, path: string): FieldError[] {
  const keys = Object.keys(annotations);
  const bytes = keys.reduce(
    (sum, key) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(annotations[key])),
    0,
  );
  return [
    // Annotation keys may contain uppercase letters in their prefix.
    ...keys.flatMap((key) => qualifiedNameProblems(key.toLowerCase()).map((detail) => invalidError(path, key, detail))),
    ...(bytes > MAX_ANNOTATION_BYTES ? [tooLongError(path, MAX_ANNOTATION_BYTES)] : []),
  ];
}

/** Validates an optional label selector. */
export function checkLabelSelector(path: string, selector: JsonObject | undefined): FieldError[] {
  const expressions = memberOf(selector, "matchExpressions");
  return [
    ...checkLabels(objectAt(selector, "matchLabels") ?? {}, `${path}.matchLabels`),
    ...(Array.isArray(expressions) ? expressions.filter(isObject) : []).flatMap((expression, index) =>
      checkExpression(`${path}.matchExpressions[${index}]`, expression),
    ),
  ];
}

/** Validates a requirement of a label selector. */
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

/** True for an operator of label selectors. */
export function isSelectorOperator(operator: JsonValue): boolean {
  return NEEDING_VALUES.includes(operator) || WITHOUT_VALUES.includes(operator);
}

/** Validates that values are present or absent as the operator requires. */
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

/** Formats a map as Go does, sorted by key. */
export function goMap(map: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(map).sort(([one], [other]) => compareText(one, other)));
}

/** Formats a label selector as Go does, with the fields in the order of the struct. */
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

/** Validates a port number. */
export function checkPort(field: string, value: JsonValue): FieldError[] {
  return typeof value === "number" && value >= 1 && value <= 65535
    ? []
    : [invalidError(field, value, "must be between 1 and 65535, inclusive")];
}

/** Validates a port name. */
export function checkPortName(field: string, name: string): FieldError[] {
  return portNameProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Validates a required DNS label, as for names of containers, volumes, and Service ports. */
export function checkLabelName(field: string, value: JsonValue | undefined): FieldError[] {
  if (value === undefined || value === "") return [requiredError(field)];
  return checkLabel(field, String(value));
}

/** Validates a DNS label. */
export function checkLabel(field: string, name: string): FieldError[] {
  return labelNameProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Validates a key of a ConfigMap or Secret, which must be usable as file name. */
export function checkConfigKey(field: string, key: string): FieldError[] {
  return configKeyProblems(key).map((detail) => invalidError(field, key, detail));
}

/** Validates the keys of a ConfigMap or Secret. */
export function checkConfigKeys(object: JsonObject, member: string): FieldError[] {
  return Object.keys(objectAt(object, member) ?? {}).flatMap((key) => checkConfigKey(`${member}[${key}]`, key));
}

/** Evaluates a label selector with matchLabels and matchExpressions. */
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

/** Validates a domain-prefixed path of at most `limit` characters. */
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

/** Validates a CIDR. */
export function checkCidr(path: string, cidr: string): FieldError[] {
  return cidrProblems(cidr).map((detail) => invalidError(path, cidr, detail));
}

/** Maximum length of the name of a field manager. */
export const MAX_MANAGER_BYTES = 128;

const MAX_SUBRESOURCE_BYTES = 256;

/** Characters that Go's unicode.IsPrint rejects: the only printable whitespace is the ASCII space. */
export const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/gu;

/** Validates the name of a field manager. */
export function checkManager(field: string, manager: string): FieldError[] {
  const isTooLong = Buffer.byteLength(manager) > MAX_MANAGER_BYTES;
  const odd = [...manager.matchAll(UNPRINTABLE)].map(({ 0: character, index }) => {
    const code = (character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0");
    const position = Buffer.byteLength(manager.slice(0, index));
    return invalidError(field, manager, `invalid character U+${code} (at position ${position})`);
  });
  return [...(isTooLong ? [tooLongError(field, MAX_MANAGER_BYTES)] : []), ...odd];
}

/** Validates managers and subresources in `metadata.managedFields`. */
export function checkManagers(field: string, managedFields: readonly JsonValue[]): FieldError[] {
  return managedFields.filter(isObject).flatMap((entry, index) => {
    const isTooLong = Buffer.byteLength(stringAt(entry, "subresource") ?? "") > MAX_SUBRESOURCE_BYTES;
    return [
      ...checkManager(`${field}[${index}].manager`, stringAt(entry, "manager") ?? ""),
      ...(isTooLong ? [tooLongError(`${field}[${index}].subresource`, MAX_SUBRESOURCE_BYTES)] : []),
    ];
  });
}
