// What makes a schema structural, as apiextensions.k8s.io/v1 demands it.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
import { quote } from "../../../diagnostic.js";
import { describeValue } from "../../yaml/describe-value.js";
import { isRecord } from "../../yaml/json.js";
import type { YamlPath } from "../../yaml/yaml-document.js";
import type { SchemaProblem } from "./check-schema.js";

type Schema = { readonly [keyword: string]: unknown };

/** Checks a schema whose keywords have values of the right types. */
export function checkStructure(root: Schema): SchemaProblem[] {
  return [...checkRoot(root), ...checkNode(root, [])];
}

function checkRoot(root: Schema): SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const isOpen = root["x-kubernetes-preserve-unknown-fields"] === true && root["type"] === undefined;
  if (root["type"] !== "object" && !isOpen)
    problems.push({ path: ["type"], message: `the type of a kind must be object, found ${describeType(root)}` });
  if (root["nullable"] === true) problems.push({ path: ["nullable"], message: "an object of a kind cannot be null" });
  const fields = fieldsOf(root);
  for (const [name, type] of [
    ["apiVersion", "string"],
    ["kind", "string"],
    ["metadata", "object"],
  ] as const) {
    const field = fields.get(name);
    if (field !== undefined && field["type"] !== type)
      problems.push({
        path: ["properties", name, "type"],
        message: `the type of ${name} must be ${type}, found ${describeType(field)}`,
      });
  }
  for (const name of fieldsOf(fields.get("metadata") ?? {}).keys())
    if (name !== "name" && name !== "generateName")
      problems.push({
        path: ["properties", "metadata", "properties", name],
        message: `the schema of metadata may limit name and generateName only, found ${quote(name)}`,
      });
  return problems;
}

function describeType({ type }: Schema): string {
  return type === "" ? "nothing" : describeValue(type);
}

/** `path` is the way to the schema: one list for all of them, of which only problems get a copy. */
function checkNode(schema: Schema, path: (string | number)[]): SchemaProblem[] {
  const { type, items, additionalProperties } = schema;
  const problems: SchemaProblem[] = [];
  const fail = (keyword: string, message: string) => problems.push({ path: [...path, keyword], message });
  const isIntOrString = schema["x-kubernetes-int-or-string"] === true;
  const isFree = schema["x-kubernetes-preserve-unknown-fields"] === true || isIntOrString;
  if ((type === undefined || type === "") && !isFree && path.length > 0)
    fail(
      "type",
      "a field needs a type, unless it has x-kubernetes-preserve-unknown-fields or x-kubernetes-int-or-string",
    );
  if (type === "array" && !isRecord(items)) fail("items", "a list needs items");
  const fields = fieldsOf(schema);
  if (fields.size > 0 && additionalProperties !== undefined && additionalProperties !== true)
    fail("additionalProperties", "an object has properties or additionalProperties, not both");
  if (schema["x-kubernetes-embedded-resource"] === true && type !== "object")
    fail("x-kubernetes-embedded-resource", "an embedded resource has the type object");
  problems.push(...checkListKeys(schema, path));
  for (const keyword of ["allOf", "anyOf", "oneOf"])
    for (const [index, part] of schemasAt(schema, keyword))
      problems.push(...checkPart(part, [...path, keyword, index], isIntOrString));
  if (isRecord(schema["not"])) problems.push(...checkPart(schema["not"], [...path, "not"], isIntOrString));
  if (Object.hasOwn(schema, "default")) problems.push(...checkValue(schema["default"], schema, [...path, "default"]));
  const checkAt = (child: Schema, ...steps: readonly string[]) => {
    path.push(...steps);
    problems.push(...checkNode(child, path));
    path.length -= steps.length;
  };
  for (const [name, field] of fields)
    if (path.length > 0 || !["apiVersion", "kind", "metadata"].includes(name)) checkAt(field, "properties", name);
  if (isRecord(items)) checkAt(items, "items");
  if (isRecord(additionalProperties)) checkAt(additionalProperties, "additionalProperties");
  return problems;
}

/** Checks a part of `allOf`, `anyOf`, `oneOf` or `not`, which may limit values and not say what they are. */
function checkPart(part: Schema, path: YamlPath, isIntOrString: boolean): SchemaProblem[] {
  const isStated = part["type"] !== undefined && part["type"] !== "" && !isIntOrString;
  const message = "a schema in allOf, anyOf, oneOf or not states no type: the schema around it does";
  return [
    ...(isStated ? [{ path: [...path, "type"], message }] : []),
    ...["allOf", "anyOf", "oneOf"].flatMap((keyword) =>
      schemasAt(part, keyword).flatMap(([index, inner]) => checkPart(inner, [...path, keyword, index], isIntOrString)),
    ),
  ];
}

function checkListKeys(schema: Schema, path: YamlPath): SchemaProblem[] {
  const keys = schema["x-kubernetes-list-map-keys"];
  const isMap = schema["x-kubernetes-list-type"] === "map";
  if (!isMap && (keys === undefined || (Array.isArray(keys) && keys.length === 0))) return [];
  const at = [...path, "x-kubernetes-list-map-keys"];
  if (!isMap) return [{ path: at, message: "the keys of a list need x-kubernetes-list-type: map" }];
  if (!Array.isArray(keys) || keys.length === 0)
    return [
      { path: [...path, "x-kubernetes-list-type"], message: "a list of type map needs x-kubernetes-list-map-keys" },
    ];
  const items = isRecord(schema["items"]) ? schema["items"] : {};
  const required = Array.isArray(items["required"]) ? items["required"] : [];
  return keys.flatMap((key: string): SchemaProblem[] => {
    const field = fieldsOf(items).get(key);
    if (field === undefined) return [{ path: at, message: `the items have no field ${quote(key)}, which is a key` }];
    const isSet = required.includes(key) || Object.hasOwn(field, "default");
    return isSet ? [] : [{ path: at, message: `the key ${quote(key)} must be required, or have a default` }];
  });
}

/** Checks a default against the structure of its schema. */
function checkValue(value: unknown, schema: Schema, path: YamlPath): SchemaProblem[] {
  // Where null is not allowed, the API server drops it.
  if (value === null) return [];
  if (schema["x-kubernetes-int-or-string"] === true)
    return typeof value === "string" || Number.isInteger(value) ? [] : [wrongDefault(value, "integer or string", path)];
  const { type, items, additionalProperties } = schema;
  if (typeof type === "string" && type !== "" && !isOfType(value, type)) return [wrongDefault(value, type, path)];
  const values = schema["enum"];
  const isListed = !Array.isArray(values) || values.some((each) => JSON.stringify(each) === JSON.stringify(value));
  if (!isListed) return [{ path, message: `the default ${describeValue(value)} is none of the values of the enum` }];
  if (Array.isArray(value))
    return isRecord(items) ? value.flatMap((item, index) => checkValue(item, items, [...path, index])) : [];
  if (!isRecord(value)) return [];
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true || additionalProperties === true;
  const fields = fieldsOf(schema);
  return Object.entries(value).flatMap(([name, child]) => {
    const field = fields.get(name) ?? (isRecord(additionalProperties) ? additionalProperties : undefined);
    if (field !== undefined) return checkValue(child, field, [...path, name]);
    const isKnown = isOpen || (schema["x-kubernetes-embedded-resource"] === true && IMPLIED.has(name));
    return isKnown
      ? []
      : [{ path: [...path, name], message: `the default has the field ${quote(name)}, which the schema lacks` }];
  });
}

const IMPLIED: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

function wrongDefault(value: unknown, type: string, path: YamlPath): SchemaProblem {
  return { path, message: `the default must be of type ${type}, found ${describeValue(value)}` };
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  return type === "object" ? isRecord(value) : typeof value === type;
}

function fieldsOf(schema: Schema): ReadonlyMap<string, Schema> {
  const properties = Object.hasOwn(schema, "properties") ? schema["properties"] : undefined;
  const fields = new Map<string, Schema>();
  if (!isRecord(properties)) return fields;
  for (const name of Object.keys(properties)) {
    const field = properties[name];
    if (isRecord(field)) fields.set(name, field);
  }
  return fields;
}

function schemasAt(schema: Schema, keyword: string): [number, Schema][] {
  const parts = schema[keyword];
  if (!Array.isArray(parts)) return [];
  return parts.flatMap((part: unknown, index): [number, Schema][] => (isRecord(part) ? [[index, part]] : []));
}
