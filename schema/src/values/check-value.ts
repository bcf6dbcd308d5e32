// Validates a value against its schema as the API server does after defaulting. The schemas of kinds omit ObjectMeta, so its schema and validation
// are defined here.
import { isDeepStrictEqual } from "node:util";
import { followRef, memberSchema, type Definitions, type Schema } from "./schema.js";
import { isJsonObject, isRoundedInt64, MAX_DEPTH } from "../json/json.js";
import { comparedLimit, fitsFormat, isInt64, isMultipleOf } from "./numbers.js";
import {
  dns1035Problems,
  labelNameProblems,
  labelValueProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
} from "../strings/names.js";
import { hasFormat } from "../strings/formats.js";
import { hasMatch } from "../strings/pattern.js";

/** A validation error; `path` is in the notation of Kubernetes, such as `spec.ports[0].name`. */
export interface SchemaProblem {
  readonly path: string;
  readonly message: string;
}

/** The context of a validation. */
export interface Place {
  readonly path: string;
  readonly definitions: Definitions;
  readonly problems: SchemaProblem[];
  /** Whether undeclared fields are allowed, as in a branch of allOf, anyOf, oneOf, or not, which is an incomplete schema. */
  readonly isBranch?: boolean;
  /** The nesting depth of the value. Recursive schemas have no limit of their own. Default: 0 */
  readonly depth?: number;
}

/** Validates a value against its schema, as the API server does after defaulting. */
export function checkValue(value: unknown, given: Schema, place: Place): void {
  if (value === undefined) return;
  const schema = followRef(given, place.definitions);
  const { depth = 0 } = place;
  const fail = failAt(place);
  if (depth > MAX_DEPTH) return fail(`must not be nested more than ${MAX_DEPTH} levels deep`);
  if (!hasType(value, schema)) fail(`must be ${typeOf(schema)}, is ${kindOf(value)}`);
  else {
    if (typeof value === "number") checkNumber(value, schema, fail);
    if (typeof value === "string") checkText(value, schema, fail);
    if (Array.isArray(value)) checkList(value, schema, { ...place, depth: depth + 1 });
    else if (isJsonObject(value)) checkObject(value, schema, { ...place, depth: depth + 1 });
    if (value !== null) checkJunctors(value, schema, place);
  }
  checkEnum(value, schema, fail);
}

function failAt({ path, problems }: Place): Fail {
  return (message) => void problems.push({ path: path === "" ? "<root>" : path, message });
}

function hasType(value: unknown, schema: Schema): boolean {
  if (value === null) return schema.nullable === true || typeOf(schema) === undefined;
  if (typeof value === "number" && !Number.isFinite(value)) return false;
  if (schema["x-kubernetes-int-or-string"] === true) return typeof value === "string" || Number.isInteger(value);
  if (schema.format === "quantity" && schema.type === undefined) return ["string", "number"].includes(typeof value);
  if (schema.type === "integer") return Number.isInteger(value);
  return schema.type === undefined || kindOf(value) === schema.type;
}

function typeOf(schema: Schema): string | undefined {
  if (schema["x-kubernetes-int-or-string"] === true) return "an integer or a string";
  return schema.format === "quantity" && schema.type === undefined ? "a number or a string" : schema.type;
}

// The API server truncates fractions before comparing a number with an integer of the enum. null never matches, even if it is nullable.
function checkEnum(value: unknown, { enum: allowed = [] }: Schema, fail: Fail): void {
  if (allowed.length === 0) return;
  const isAllowed = (option: unknown) =>
    option !== null &&
    isDeepStrictEqual(typeof value === "number" && Number.isInteger(option) ? Math.trunc(value) : value, option);
  if (allowed.some(isAllowed)) return;
  const is = typeof value === "object" && value !== null ? "another value" : JSON.stringify(value);
  fail(`must be one of ${allowed.map((option) => JSON.stringify(option)).join(", ")}, is ${is}`);
}

function checkList(items: readonly unknown[], schema: Schema, place: Place): void {
  checkCount(items.length, [schema.minItems, schema.maxItems, "items"], failAt(place));
  const { items: itemSchema } = schema;
  if (itemSchema === undefined) return;
  const pathOf = (index: number) => `${place.path}[${index}]`;
  items.forEach((item, index) => checkValue(item ?? null, itemSchema, { ...place, path: pathOf(index) }));
  if (place.isBranch !== true)
    checkUnique(items, schema, (index, what) =>
      place.problems.push({ path: pathOf(index), message: `must not repeat ${what}` }),
    );
}

function checkUnique(items: readonly unknown[], schema: Schema, fail: (index: number, what: string) => void): void {
  const listType = schema["x-kubernetes-list-type"];
  if (listType !== "set" && listType !== "map") return;
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const seen = new Set<string>();
  items.forEach((item, index) => {
    const isKeyed = listType === "map";
    if (isKeyed && !isJsonObject(item)) return;
    const identified = isKeyed ? keys.map((key) => (item as Record<string, unknown>)[key]) : item;
    const identity = canonicalOf(identified, 0);
    if (seen.has(identity) && !hasRounded(identified))
      fail(index, isKeyed ? `the ${keys.join(" and ")} of another item` : "another item");
    seen.add(identity);
  });
}

/** Returns whether a value contains a rounded integer, in which case values that look equal may differ. */
function hasRounded(value: unknown, depth = 0): boolean {
  if (typeof value === "number") return isRoundedInt64(value);
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return false;
  return Object.values(value).some((member) => hasRounded(member, depth + 1));
}

function canonicalOf(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) return "…";
  if (Array.isArray(value)) return `[${value.map((item) => canonicalOf(item, depth + 1)).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value) ?? "";
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalOf(value[name], depth + 1)}`).join()}}`;
}

function checkObject(object: Record<string, unknown>, schema: Schema, place: Place): void {
  const { properties = {}, additionalProperties } = schema;
  const { path, problems } = place;
  const isEmbedded = schema["x-kubernetes-embedded-resource"] === true;
  const names = Object.keys(object).filter((name) => object[name] !== undefined);
  checkCount(names.length, [schema.minProperties, schema.maxProperties, "fields"], failAt(place));
  for (const name of new Set([...(schema.required ?? []), ...(isEmbedded ? ["apiVersion", "kind"] : [])]))
    if (!names.includes(name)) problems.push({ path: join(path, name), message: "is required" });
  if (isEmbedded) checkIdentity(object, place);
  const isOpen =
    place.isBranch === true ||
    additionalProperties === true ||
    schema["x-kubernetes-preserve-unknown-fields"] === true ||
    (schema.properties === undefined && additionalProperties === undefined && path !== "");
  for (const name of names) {
    const member = memberSchema(schema, name);
    if (isEmbedded && IMPLIED.has(name) && !Object.hasOwn(properties, name)) continue;
    if (member !== undefined) checkValue(object[name], member, { ...place, path: join(path, name) });
    else if (!isOpen) problems.push({ path: join(path, name), message: "is not a field of the schema" });
  }
}

const IMPLIED: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

function checkIdentity(object: Record<string, unknown>, place: Place): void {
  const { path, problems } = place;
  const { apiVersion, kind, metadata } = object;
  for (const [name, text] of Object.entries({ apiVersion, kind }))
    if (text !== undefined && (typeof text !== "string" || text === ""))
      problems.push({ path: join(path, name), message: "must be a non-empty string" });
  if (typeof apiVersion === "string" && apiVersion.split("/").length > 2)
    problems.push({ path: join(path, "apiVersion"), message: "must be VERSION or GROUP/VERSION" });
  if (typeof kind === "string" && kind !== "")
    for (const message of dns1035Problems(kind.toLowerCase())) problems.push({ path: join(path, "kind"), message });
  if (metadata !== undefined && metadata !== null) checkMetadata(metadata, { ...place, path: join(path, "metadata") });
}

/** Validates the metadata of an object or embedded resource, which the schemas of kinds do not describe. */
export function checkMetadata(metadata: unknown, { path, problems }: Pick<Place, "path" | "problems">): void {
  checkValue(metadata, METADATA_SCHEMA, { path, definitions: {}, problems });
  if (isJsonObject(metadata))
    checkMetadataNames(metadata, (member, message) => problems.push({ path: `${path}.${member}`, message }));
}

// Branches are incomplete schemas: they constrain fields that the surrounding schema declares.
function checkJunctors(value: unknown, schema: Schema, place: Place): void {
  const fail = failAt(place);
  const problemsIn = (branch: Schema): readonly SchemaProblem[] => {
    const problems: SchemaProblem[] = [];
    checkValue(value, branch, { ...place, problems, isBranch: true, depth: (place.depth ?? 0) + 1 });
    return problems;
  };
  const { allOf = [], anyOf = [], oneOf = [], not } = schema;
  for (const branch of allOf) place.problems.push(...problemsIn(branch));
  const any = anyOf.map(problemsIn);
  const one = oneOf.map(problemsIn);
  if (any.length > 0 && any.every((problems) => problems.length > 0))
    fail(`must match at least one schema in anyOf: ${describe(any)}`);
  const met = one.filter((problems) => problems.length === 0).length;
  if (one.length > 0 && met === 0) fail(`must match one schema in oneOf: ${describe(one)}`);
  if (met > 1) fail(`must match only one schema in oneOf, matches ${met}`);
  if (not !== undefined && problemsIn(not).length === 0) fail("must not match the schema in not");
}

type Results = readonly (readonly SchemaProblem[])[];

function describe(results: Results): string {
  const texts = results.map((problems) => problems.map(({ path, message }) => `${path} ${message}`).join(" and "));
  return [...new Set(texts)].join(", or ");
}

/** Returns the path of a member in the notation of Kubernetes. */
export function join(path: string, name: string): string {
  if (path === "") return name;
  return /^[\w-]+$/.test(name) ? `${path}.${name}` : `${path}[${name}]`;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value)
    ? "array"
    : typeof value === "number" && !Number.isFinite(value)
      ? String(value)
      : typeof value;
}

type Fail = (message: string) => void;

/** The limits of a count, and the plural noun for the error message. */
type Limits = readonly [min: number | undefined, max: number | undefined, what: string];

/** Validates a number. A rounded int64 is rejected only if all int64 values that are rounded to it would be. */
function checkNumber(value: number, schema: Schema, fail: Fail): void {
  const { minimum, maximum, multipleOf, format, type } = schema;
  const isRounded = isRoundedInt64(value);
  const fits = fitsFormat(value, schema) || (isRounded && format !== "int32");
  if (!fits) fail(`must fit into ${format ?? (type === "integer" ? "int64" : "double")}, is ${value}`);
  else if (schema["x-kubernetes-int-or-string"] === true && !isInt64(value) && !isRounded)
    fail(`must fit into int64, is ${value}`);
  for (const [keyword, limit] of Object.entries({ minimum, maximum }))
    if (limit !== undefined && !fitsFormat(limit, schema))
      fail(`is always rejected: the ${keyword} ${limit} of the schema is not of type ${format ?? type ?? "number"}`);
  if (minimum !== undefined) {
    const least = comparedLimit(value, minimum, schema);
    if (value < least || (schema.exclusiveMinimum === true && value === least && !isRounded))
      fail(`must be ${schema.exclusiveMinimum === true ? "greater than" : "at least"} ${least}, is ${value}`);
  }
  if (maximum !== undefined) {
    const most = comparedLimit(value, maximum, schema);
    if (value > most || (schema.exclusiveMaximum === true && value === most && !isRounded))
      fail(`must be ${schema.exclusiveMaximum === true ? "less than" : "at most"} ${most}, is ${value}`);
  }
  const mayBeMultiple = isRounded && (multipleOf ?? 0) >= 1;
  if (multipleOf !== undefined && !mayBeMultiple && isMultipleOf(value, multipleOf) !== true)
    fail(`must be a multiple of ${multipleOf}, is ${value}`);
}

/** Validates the length, pattern, and format of a string. The API server counts code points. */
function checkText(value: string, { minLength, maxLength, pattern, format }: Schema, fail: Fail): void {
  const isCounted = minLength !== undefined || maxLength !== undefined;
  if (isCounted) checkCount([...value].length, [minLength, maxLength, "characters"], fail);
  if (pattern !== undefined && hasMatch(value, pattern) === false) fail(`must match ${pattern}`);
  if (format !== undefined && hasFormat(value, format) === false) fail(`must be of format ${format}`);
}

function checkCount(count: number, [min, max, what]: Limits, fail: Fail): void {
  if (min !== undefined && count < min) fail(`must have at least ${min} ${what}, has ${count}`);
  if (max !== undefined && count > max) fail(`must have at most ${max} ${what}, has ${count}`);
}

/** The maximum total size of the keys and values of annotations. */
const MAX_ANNOTATION_BYTES = 256 * 1024;

const STRING: Schema = { type: "string", nullable: true };
const BOOLEAN: Schema = { type: "boolean", nullable: true };
const INTEGER: Schema = { type: "integer", nullable: true };
const STRING_MAP: Schema = { type: "object", nullable: true, additionalProperties: { type: "string" } };
const REQUIRED_STRING: Schema = { type: "string" };
/** Fields that a newer API server may have added are allowed. */
const OPEN = { type: "object", "x-kubernetes-preserve-unknown-fields": true } as const;

/** The schema of ObjectMeta, which the schemas of kinds omit. */
const METADATA_SCHEMA: Schema = {
  ...OPEN,
  properties: {
    ...{
      name: STRING,
      generateName: STRING,
      namespace: STRING,
      uid: STRING,
      resourceVersion: STRING,
      selfLink: STRING,
    },
    ...{ creationTimestamp: STRING, deletionTimestamp: STRING },
    ...{ generation: { ...INTEGER, minimum: 0 }, deletionGracePeriodSeconds: INTEGER },
    ...{ labels: STRING_MAP, annotations: STRING_MAP },
    finalizers: { type: "array", nullable: true, items: REQUIRED_STRING },
    ownerReferences: {
      type: "array",
      nullable: true,
      items: {
        ...OPEN,
        required: ["apiVersion", "kind", "name", "uid"],
        properties: {
          ...{ apiVersion: REQUIRED_STRING, kind: REQUIRED_STRING, name: REQUIRED_STRING, uid: REQUIRED_STRING },
          ...{ controller: BOOLEAN, blockOwnerDeletion: BOOLEAN },
        },
      },
    },
    managedFields: {
      type: "array",
      nullable: true,
      items: {
        ...OPEN,
        properties: {
          ...{
            manager: STRING,
            operation: STRING,
            apiVersion: STRING,
            time: STRING,
            fieldsType: STRING,
            subresource: STRING,
          },
          fieldsV1: { ...OPEN, nullable: true },
        },
      },
    },
  },
};

/** Validates names, keys and values of labels and annotations, finalizers, and owner references, which the schema does not cover. */
function checkMetadataNames(metadata: object, fail: (member: string, message: string) => void): void {
  const { name, generateName, namespace, labels, annotations, finalizers, ownerReferences } = metadata as {
    readonly [member: string]: unknown;
  };
  const failAll = (member: string, problems: readonly string[]) => problems.forEach((each) => fail(member, each));
  if (typeof name === "string") failAll("name", pathSegmentProblems(name));
  if (typeof generateName === "string") failAll("generateName", pathSegmentProblems(generateName, { isPrefix: true }));
  if (typeof namespace === "string" && namespace !== "") failAll("namespace", labelNameProblems(namespace));
  for (const [key, value] of Object.entries(isJsonObject(labels) ? labels : {})) {
    failAll(`labels[${key}]`, qualifiedNameProblems(key));
    if (typeof value === "string") failAll(`labels[${key}]`, labelValueProblems(value));
  }
  let size = 0;
  for (const [key, value] of Object.entries(isJsonObject(annotations) ? annotations : {})) {
    // The API server accepts upper-case letters in the prefix of an annotation key.
    failAll(`annotations[${key}]`, qualifiedNameProblems(key.toLowerCase()));
    size += Buffer.byteLength(key) + Buffer.byteLength(String(value));
  }
  if (size > MAX_ANNOTATION_BYTES) fail("annotations", `must have at most ${MAX_ANNOTATION_BYTES} bytes`);
  for (const [index, each] of (Array.isArray(finalizers) ? finalizers : []).entries())
    if (typeof each === "string") failAll(`finalizers[${index}]`, qualifiedNameProblems(each));
  checkOwners(Array.isArray(ownerReferences) ? ownerReferences : [], fail);
}

function checkOwners(references: readonly unknown[], fail: (member: string, message: string) => void): void {
  let controllers = 0;
  for (const [index, reference] of references.entries()) {
    // The API server drops duplicate owner references.
    if (!isJsonObject(reference) || references.findIndex((each) => isDeepStrictEqual(each, reference)) < index)
      continue;
    const at = `ownerReferences[${index}]`;
    const { apiVersion, kind, controller } = reference;
    for (const name of ["kind", "name", "uid"]) if (reference[name] === "") fail(`${at}.${name}`, "must not be empty");
    if (typeof apiVersion === "string" && !/^(?:[^/]*\/)?[^/]+$/.test(apiVersion))
      fail(`${at}.apiVersion`, "must be VERSION or GROUP/VERSION");
    if (apiVersion === "v1" && kind === "Event") fail(at, "must not be an Event, which cannot own objects");
    if (controller === true && ++controllers > 1) fail(`${at}.controller`, "must be true for at most one owner");
  }
}
