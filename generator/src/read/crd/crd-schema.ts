import { quote } from "../../diagnostic.js";
import { describeValue, isRecord, parseInteger } from "../yaml/values.js";
import type { YamlDocument, YamlPath } from "../yaml/yaml-document.js";

/** Something that a structural schema must not contain. */
interface SchemaProblem {
  readonly path: YamlPath;
  readonly message: string;
}

// Keywords that apiextensions.k8s.io/v1 rejects. Rejecting them here ensures that no library resolves references to files or addresses.
const FORBIDDEN = ["$ref", "$schema", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];
const TYPES = ["array", "boolean", "integer", "number", "object", "string"];
const LISTS_OF_SCHEMAS = ["allOf", "anyOf", "oneOf"];
const SCHEMAS = ["not", "additionalProperties"];
const SINGLE_SCHEMAS = ["items", ...SCHEMAS];
/** Maximum depth of a schema, to limit the recursion. Deeper than any schema that a cluster stores. */
const MAX_DEPTH = 200;

/**
 * Removes the keywords of a schema that the API server treats as absent: those with the value null, and an empty type. An example, and the default of
 * a nullable field, may be null. Names of properties are not keywords.
 */
export function withoutNulls(schema: unknown): unknown {
  if (!isRecord(schema) || !hasNulls(schema)) return schema;
  const clean: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    const mayBeNull = keyword === "example" || (keyword === "default" && schema["nullable"] === true);
    if ((value === null && !mayBeNull) || isNoType(keyword, value)) continue;
    clean[keyword] = cleanBelow(keyword, value);
  }
  return clean;
}

// Avoid a copy, because few schemas contain nulls.
function hasNulls(value: unknown): boolean {
  return value === null || (typeof value === "object" && Object.entries(value).some(isAbsent));
}

function isAbsent([key, value]: readonly [string, unknown]): boolean {
  return isNoType(key, value) || hasNulls(value);
}

// Go programs that write CRDs serialize an absent type as an empty string.
function isNoType(keyword: string, value: unknown): boolean {
  return keyword === "type" && value === "";
}

function cleanBelow(keyword: string, value: unknown): unknown {
  if (keyword === "properties" && isRecord(value))
    return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, withoutNulls(child)]));
  if (LISTS_OF_SCHEMAS.includes(keyword) && Array.isArray(value)) return value.map(withoutNulls);
  return keyword === "items" || SCHEMAS.includes(keyword) ? withoutNulls(value) : value;
}

/** Checks that a schema has the shape on which later stages rely. */
export function checkSchema(schema: unknown): SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  checkBelow(schema, [], problems);
  return problems;
}

/** `path` is mutated during the walk; copy it before storing it. */
function checkBelow(schema: unknown, path: (string | number)[], problems: SchemaProblem[]): void {
  const fail = (message: string) => void problems.push({ path: [...path], message });
  if (!isRecord(schema)) return fail(`must be a schema, found ${describeValue(schema)}`);
  if (path.length > MAX_DEPTH) return fail("the schema is nested too deeply");
  if (Object.entries(schema).some(isWrong))
    problems.push(...forbiddenKeywords(schema, path), ...checkKeywords(schema, path));
  visitSchemasIn(schema, path, (child) => checkBelow(child, path, problems));
}

/** Fast path: returns whether a keyword needs a closer check. */
function isWrong([keyword, value]: readonly [string, unknown]): boolean {
  if (FORBIDDEN.includes(keyword)) return true;
  return value !== undefined && EXPECTATIONS.get(keyword)?.[1](value) === false;
}

function forbiddenKeywords(schema: { readonly [keyword: string]: unknown }, path: YamlPath): SchemaProblem[] {
  return FORBIDDEN.filter((keyword) => Object.hasOwn(schema, keyword)).map((keyword) => ({
    path: [...path, keyword],
    message: `${quote(keyword)} is not allowed in the schema of a CustomResourceDefinition`,
  }));
}

/** Reports the defaults and enums of a schema with an integer that JavaScript rounds. */
export function findInexactNumbers(schema: unknown): SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const visit = (node: unknown, path: (string | number)[]): void => {
    if (!isRecord(node)) return;
    for (const keyword of ["default", "enum"])
      if (node["type"] !== "number" && Object.hasOwn(node, keyword) && hasInexactNumber(node[keyword]))
        problems.push({
          path: [...path, keyword],
          message: `${keyword} has an integer beyond 2^53, which JavaScript rounds: an operator reads and writes another number`,
        });
    visitSchemasIn(node, path, (child) => visit(child, path));
  };
  visit(schema, []);
  return problems;
}

/** Returns whether a number is an integer that JavaScript cannot represent exactly. */
function isRounded(value: number): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}

function hasInexactNumber(value: unknown): boolean {
  if (typeof value === "number") return isRounded(value);
  return typeof value === "object" && value !== null && Object.values(value).some(hasInexactNumber);
}

/** A description of the valid values of a keyword, and a predicate. */
type Expectation = readonly [words: string, isRight: (value: unknown) => boolean];

const TEXT: Expectation = ["a string", (value) => typeof value === "string"];
const BOOLEAN: Expectation = ["true or false", (value) => typeof value === "boolean"];
const NUMBER: Expectation = ["a number", (value) => typeof value === "number"];
const COUNT: Expectation = ["an integer", (value) => Number.isInteger(value)];
const NAMES: Expectation = ["a list of strings", isTexts];
const SCHEMA: Expectation = ["a schema", isRecord];
const SCHEMA_LIST: Expectation = ["a list of schemas", Array.isArray];

/** Valid values of each keyword in apiextensions.k8s.io/v1. */
const EXPECTED: { readonly [keyword: string]: Expectation } = {
  // An absent type may be an empty string, as written by Go programs.
  type: [`one of ${TYPES.join(", ")}`, (type) => type === "" || TYPES.includes(type as string)],
  description: TEXT,
  title: TEXT,
  format: TEXT,
  pattern: TEXT,
  nullable: BOOLEAN,
  uniqueItems: BOOLEAN,
  minimum: NUMBER,
  maximum: NUMBER,
  multipleOf: NUMBER,
  exclusiveMinimum: BOOLEAN,
  exclusiveMaximum: BOOLEAN,
  minLength: COUNT,
  maxLength: COUNT,
  minItems: COUNT,
  maxItems: COUNT,
  minProperties: COUNT,
  maxProperties: COUNT,
  required: NAMES,
  enum: ["a list of values", Array.isArray],
  properties: ["an object", isRecord],
  items: ["one schema", isRecord],
  additionalProperties: ["a schema or a boolean", (value) => typeof value === "boolean" || isRecord(value)],
  not: SCHEMA,
  allOf: SCHEMA_LIST,
  anyOf: SCHEMA_LIST,
  oneOf: SCHEMA_LIST,
  externalDocs: ["an object", isRecord],
  "x-kubernetes-preserve-unknown-fields": BOOLEAN,
  "x-kubernetes-embedded-resource": BOOLEAN,
  "x-kubernetes-int-or-string": BOOLEAN,
  "x-kubernetes-list-type": oneOf("atomic", "set", "map"),
  "x-kubernetes-map-type": oneOf("atomic", "granular"),
  "x-kubernetes-list-map-keys": NAMES,
  "x-kubernetes-validations": ["a list of rules, each with a rule", isRules],
};

/** All keywords of a schema, including those that the API server rejects. */
export const SCHEMA_KEYWORDS: readonly string[] = [...Object.keys(EXPECTED), ...FORBIDDEN, "default", "example"];

const EXPECTATIONS: ReadonlyMap<string, Expectation> = new Map(Object.entries(EXPECTED));

function oneOf(...texts: readonly string[]): Expectation {
  return [`one of ${texts.join(", ")}`, (value) => texts.includes(value as string)];
}

function isRules(value: unknown): boolean {
  return Array.isArray(value) && value.every((rule) => isRecord(rule) && typeof rule["rule"] === "string");
}

function checkKeywords(schema: { readonly [keyword: string]: unknown }, path: YamlPath): SchemaProblem[] {
  return [...EXPECTATIONS].flatMap(([keyword, [words, isRight]]) => {
    const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
    if (value === undefined || isRight(value)) return [];
    const found = Array.isArray(value) && /^a list/.test(words) ? "a list of other items" : describeValue(value);
    return [{ path: [...path, keyword], message: `${keyword} must be ${words}, found ${found}` }];
  });
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Visits the direct subschemas of a schema. During each visit, `path` is the path of the subschema. */
export function visitSchemasIn(
  schema: { readonly [keyword: string]: unknown },
  path: (string | number)[],
  visit: (child: unknown) => void,
): void {
  const visitAt = (child: unknown, keyword: string, step?: string | number): void => {
    const { length } = path;
    path.push(keyword);
    if (step !== undefined) path.push(step);
    visit(child);
    path.length = length;
  };
  const own = (keyword: string) => (Object.hasOwn(schema, keyword) ? schema[keyword] : undefined);
  const properties = own("properties");
  if (isRecord(properties)) for (const [name, child] of Object.entries(properties)) visitAt(child, "properties", name);
  for (const keyword of SINGLE_SCHEMAS) {
    const child = own(keyword);
    if (isRecord(child)) visitAt(child, keyword);
  }
  for (const keyword of LISTS_OF_SCHEMAS) {
    const children = own(keyword);
    if (Array.isArray(children)) for (const [index, child] of children.entries()) visitAt(child, keyword, index);
  }
}

// The API server preserves the integers of objects, and of defaults, enums, and examples in CRDs, even if JavaScript cannot represent them exactly.

/** An integer of a document that JavaScript rounds. */
export interface ExactInteger {
  readonly path: YamlPath;
  readonly value: bigint;
}

const INT64_LIMIT = 2n ** 63n;

/** Returns the paths of the numbers in defaults, enums, and examples of a schema that JavaScript may have rounded. */
export function findRoundedNumbers(schema: unknown): YamlPath[] {
  const paths: YamlPath[] = [];
  const visit = (node: unknown, path: (string | number)[]): void => {
    if (!isRecord(node)) return;
    for (const keyword of ["default", "enum", "example"])
      if (Object.hasOwn(node, keyword)) paths.push(...findRoundedIn(node[keyword], [...path, keyword]));
    visitSchemasIn(node, path, (child) => visit(child, path));
  };
  visit(schema, []);
  return paths;
}

/** Returns whether a value contains a number that JavaScript may have rounded. */
export function hasRounded(value: unknown): boolean {
  return findRoundedIn(value, []).length > 0;
}

function findRoundedIn(value: unknown, path: YamlPath): YamlPath[] {
  if (typeof value === "number") return isRounded(value) ? [path] : [];
  if (Array.isArray(value)) return value.flatMap((item, index) => findRoundedIn(item, [...path, index]));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, member]) => findRoundedIn(member, [...path, key]));
}

/** Returns the object of a document, in which integers that JavaScript would round are bigints. */
export function exactObjectOf<Value extends object>(document: YamlDocument, value: Value): Value {
  const integers = findRoundedIn(value, []).flatMap((path) => {
    const integer = parseInt64(document.plainTextAt(path));
    return integer === undefined ? [] : [{ path, value: integer }];
  });
  return withIntegers(value, integers, (integer) => integer);
}

/** Parses an integer; undefined for other text, and for integers outside of int64, which the API server reads as floats. */
export function parseInt64(text: string | undefined): bigint | undefined {
  const value = text === undefined ? undefined : parseInteger(text);
  return value !== undefined && value >= -INT64_LIMIT && value < INT64_LIMIT ? value : undefined;
}

/** Returns a copy of a value with the given integers replaced; the value itself if there are none. */
export function withIntegers<Value extends object>(
  value: Value,
  integers: readonly ExactInteger[],
  formOf: (value: bigint) => unknown,
): Value {
  if (integers.length === 0) return value;
  const copy = structuredClone(value);
  for (const { path, value: integer } of integers) setAt(copy, path, formOf(integer));
  return copy;
}

function setAt(root: object, path: YamlPath, value: unknown): void {
  const holder = path
    .slice(0, -1)
    .reduce<unknown>((at, step) => (at as { [step: string | number]: unknown })[step], root);
  (holder as { [step: string | number]: unknown })[path.at(-1)!] = value;
}
