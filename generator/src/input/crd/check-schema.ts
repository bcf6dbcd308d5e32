import { isRecord } from "../yaml/json.js";
import { describeValue } from "../yaml/describe-value.js";
import { quote } from "../../diagnostic.js";
import type { YamlPath } from "../yaml/yaml-document.js";

/** Something in a schema that no structural schema may have. */
export interface SchemaProblem {
  readonly path: YamlPath;
  readonly message: string;
}

// What apiextensions.k8s.io/v1 rejects, so that no library ever sees it: it could read files or fetch addresses.
const FORBIDDEN = ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];
const TYPES = ["array", "boolean", "integer", "number", "object", "string"];
const LISTS_OF_SCHEMAS = ["allOf", "anyOf", "oneOf"];
const SCHEMAS = ["not", "additionalProperties"];
/** Deeper than any schema that a cluster stores; recursion must end somewhere. */
const MAX_DEPTH = 200;

/** Checks that a schema has the shape that everything after relies on. */
export function checkSchema(schema: unknown, path: YamlPath = []): SchemaProblem[] {
  if (!isRecord(schema)) return [{ path, message: `expected a schema, found ${describeValue(schema)}` }];
  if (path.length > MAX_DEPTH) return [{ path, message: "the schema is nested too deeply" }];
  return [
    ...forbiddenKeywords(schema, path),
    ...inexactNumbers(schema, path),
    ...checkKeywords(schema, path),
    ...schemasIn(schema).flatMap(([rest, child]) => checkSchema(child, [...path, ...rest])),
  ];
}

function forbiddenKeywords(schema: { readonly [keyword: string]: unknown }, path: YamlPath): SchemaProblem[] {
  return FORBIDDEN.filter((keyword) => Object.hasOwn(schema, keyword)).map((keyword) => ({
    path: [...path, keyword],
    message: `${quote(keyword)} is not allowed in the schema of a CustomResourceDefinition`,
  }));
}

// An operator would write another number than the schema says.
function inexactNumbers(schema: { readonly [keyword: string]: unknown }, path: YamlPath): SchemaProblem[] {
  if (schema["type"] === "number") return [];
  return ["default", "enum"].flatMap((keyword) => {
    const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
    if (!hasInexactNumber(value)) return [];
    const message = `${keyword} has a whole number beyond 2^53, which JavaScript cannot hold exactly; leave it out of this copy of the CRD`;
    return [{ path: [...path, keyword], message }];
  });
}

function hasInexactNumber(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(hasInexactNumber);
}

function checkKeywords(schema: { readonly [keyword: string]: unknown }, path: YamlPath): SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const expect = (keyword: string, words: string, isRight: (value: unknown) => boolean) => {
    const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
    if (value === undefined || isRight(value)) return;
    const found = describeValue(value);
    problems.push({ path: [...path, keyword], message: `${keyword} must be ${words}, found ${found}` });
  };
  // The type may be left out as an empty text, as Go programs do that write CRDs.
  expect("type", `one of ${TYPES.join(", ")}`, (type) => type === "" || TYPES.includes(type as string));
  expect("description", "a text", (description) => typeof description === "string");
  expect("properties", "an object", isRecord);
  expect("items", "one schema", isRecord);
  expect("additionalProperties", "a schema or a boolean", (value) => typeof value === "boolean" || isRecord(value));
  expect("required", "a list of names", isTexts);
  expect("enum", "a list of values", Array.isArray);
  expect("x-kubernetes-list-map-keys", "a list of names", isTexts);
  for (const keyword of LISTS_OF_SCHEMAS) expect(keyword, "a list of schemas", Array.isArray);
  return problems;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function schemasIn(schema: { readonly [keyword: string]: unknown }): [YamlPath, unknown][] {
  const own = (keyword: string) => (Object.hasOwn(schema, keyword) ? schema[keyword] : undefined);
  const properties = own("properties");
  const items = own("items");
  return [
    ...(isRecord(properties) ? Object.entries(properties) : []).map(([name, child]): [YamlPath, unknown] => [
      ["properties", name],
      child,
    ]),
    ...(isRecord(items) ? [[["items"], items] as [YamlPath, unknown]] : []),
    ...SCHEMAS.flatMap((keyword): [YamlPath, unknown][] => {
      const child = own(keyword);
      return isRecord(child) ? [[[keyword], child]] : [];
    }),
    ...LISTS_OF_SCHEMAS.flatMap((keyword): [YamlPath, unknown][] => {
      const children = own(keyword);
      return Array.isArray(children) ? children.map((child: unknown, index) => [[keyword, index], child]) : [];
    }),
  ];
}
