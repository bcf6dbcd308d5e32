// The rules for structural schemas: every field has one declared shape, and schemas inside of allOf, anyOf, oneOf and not constrain values without
// declaring anything.
import { findPatternProblem } from "../strings/pattern.js";
import { forbiddenError, invalidError, requiredError, type FieldError } from "./field-error.js";
import { deepEqual, isJsonObject, memberOf, stringAt, type JsonObject, type JsonValue } from "../json/json.js";
import { itemSchema, propertiesOf, type StructuralSchema } from "./structural-schema.js";

const INCONVERTIBLE = ["id", "$ref", "additionalItems", "patternProperties", "definitions", "dependencies"] as const;
const EMPTY_AT = {
  root: "must not be empty at the root",
  field: "must not be empty for specified object fields",
  item: "must not be empty for specified array items",
};
const EMBEDDED = "x-kubernetes-embedded-resource";
const INT_OR_STRING = "x-kubernetes-int-or-string";
const PRESERVING = "x-kubernetes-preserve-unknown-fields";
const ONLY_NAMES = "must not specify anything other than name and generateName, but metadata is implicitly specified";

/** Whether a schema can be a structural one at all, and why not where no other check says so. */
interface Conversion {
  readonly isPossible: boolean;
  readonly problem?: string | undefined;
}

/** Tells whether a schema has only what a structural one can express. */
export function conversionOf(schema: JsonValue | undefined): Conversion {
  if (!isJsonObject(schema)) return { isPossible: true };
  const isOdd = INCONVERTIBLE.some((keyword) => schema[keyword] !== undefined) || Array.isArray(schema["items"]);
  if (isOdd || schema[PRESERVING] === false) return { isPossible: false };
  if ((stringAt(schema, "$schema") ?? "") !== "")
    return { isPossible: false, problem: "OpenAPIV3Schema 'schema' is not supported" };
  const children = [schema["items"], schema["additionalProperties"], ...Object.values(propertiesOf(schema))];
  const all = [...children, ...schemasInJunctors(schema, "").map((branch) => branch.schema)].map(conversionOf);
  return all.find(({ isPossible }) => !isPossible) ?? { isPossible: true };
}

/** Checks that a schema is structural. */
export function checkStructure(schema: StructuralSchema, path: string): FieldError[] {
  return [...checkNode(schema, { path, level: "root" }), ...checkCompleteness(schema, path)];
}

interface Node {
  readonly path: string;
  readonly level: keyof typeof EMPTY_AT;
}

function checkNode(schema: StructuralSchema, { path, level }: Node): FieldError[] {
  const below = (child: JsonValue | undefined, name: string, at: Node["level"] = "field"): FieldError[] =>
    isJsonObject(child) ? checkNode(child, { path: `${path}.${name}`, level: at }) : [];
  const isEmpty = schema["type"] === "array" && !isJsonObject(memberOf(schema, "items"));
  return [
    ...(isEmpty ? [requiredError(`${path}.items`, "must be specified")] : []),
    ...(level === "root" || schema[EMBEDDED] === true ? checkTypeMeta(schema, path) : []),
    ...below(memberOf(schema, "items"), "items", "item"),
    ...Object.entries(propertiesOf(schema)).flatMap(([name, child]) => below(child, `properties[${name}]`)),
    ...below(memberOf(schema, "additionalProperties"), "additionalProperties"),
    ...checkRest(schema, { path, level }),
    ...checkJunctorSchemas(schema, path),
    ...[{ schema, path }, ...schemasInJunctors(schema, path)].flatMap(checkPattern),
    ...checkEmbedded(schema, path),
    ...checkOwnType(schema, { path, level }),
    ...checkIntOrString(schema, path),
    ...(level === "root" ? checkMetadata(schema, path) : []),
  ];
}

function checkRest(schema: StructuralSchema, { path, level }: Node): FieldError[] {
  if (memberOf(schema, "additionalProperties") === undefined) return [];
  const field = `${path}.additionalProperties`;
  if (level === "root") return [forbiddenError(field, "must not be used at the root")];
  return schema[EMBEDDED] === true ? [forbiddenError(field, `must not be used if ${EMBEDDED} is set`)] : [];
}

function checkIntOrString(schema: StructuralSchema, path: string): FieldError[] {
  if (schema[INT_OR_STRING] !== true) return [];
  return [EMBEDDED, PRESERVING].flatMap((member) =>
    schema[member] === true
      ? [invalidError(`${path}.${member}`, true, `must be false if ${INT_OR_STRING} is true`)]
      : [],
  );
}

function checkPattern({ schema, path }: { schema: JsonObject; path: string }): FieldError[] {
  const pattern = stringAt(schema, "pattern") ?? "";
  // Most schemas have none, and re2js need not be loaded for them.
  const problem = pattern === "" ? undefined : findPatternProblem(pattern);
  if (problem === undefined) return [];
  const text = `must be a valid regular expression, but isn't: error parsing regexp: ${problem}`;
  return [invalidError(`${path}.pattern`, pattern, text)];
}

function checkOwnType(schema: StructuralSchema, { path, level }: Node): FieldError[] {
  const type = stringAt(schema, "type") ?? "";
  const field = `${path}.type`;
  if (schema[EMBEDDED] === true && type !== "object") {
    const text = `must be object if ${EMBEDDED} is true`;
    return [type === "" ? requiredError(field, text) : invalidError(field, type, text)];
  }
  if (type !== "")
    return level === "root" && type !== "object" ? [invalidError(field, type, "must be object at the root")] : [];
  const isFree = schema[INT_OR_STRING] === true || schema[PRESERVING] === true;
  return isFree ? [] : [requiredError(field, EMPTY_AT[level])];
}

function checkTypeMeta(schema: StructuralSchema, path: string): FieldError[] {
  const properties = propertiesOf(schema);
  const errors = ["kind", "apiVersion"].flatMap((name) => {
    const property = memberOf(properties, name);
    const type = isJsonObject(property) ? (stringAt(property, "type") ?? "") : "string";
    return type === "string" ? [] : [invalidError(`${path}.properties[${name}].type`, type, "must be string")];
  });
  const metadata = memberOf(properties, "metadata");
  if (!isJsonObject(metadata)) return errors;
  const field = `${path}.properties[metadata]`;
  const type = stringAt(metadata, "type") ?? "";
  if (type !== "object") errors.push(invalidError(`${field}.type`, type, "must be object"));
  return errors;
}

function checkMetadata(schema: StructuralSchema, path: string): FieldError[] {
  const metadata = memberOf(propertiesOf(schema), "metadata");
  const isOdd = isJsonObject(metadata) && saysMore(metadata);
  return isOdd ? [forbiddenError(`${path}.properties[metadata]`, ONLY_NAMES)] : [];
}

// Its default is refused elsewhere.
function saysMore(metadata: JsonObject): boolean {
  const free = ["type", "default", "properties"];
  const names = Object.keys(propertiesOf(metadata));
  return Object.keys(metadata).some((member) => !free.includes(member)) || names.some((name) => !isName(name));
}

function isName(field: string): boolean {
  return field === "name" || field === "generateName";
}

function checkEmbedded(schema: StructuralSchema, path: string): FieldError[] {
  if (schema[EMBEDDED] !== true || schema[PRESERVING] === true || Object.keys(propertiesOf(schema)).length > 0)
    return [];
  return [requiredError(`${path}.properties`, `must not be empty if ${EMBEDDED} is true without ${PRESERVING}`)];
}

const DECLARING = [
  ["default", "undefined"],
  ["additionalProperties", "undefined"],
  ["description", "empty"],
  ["nullable", "false"],
  ["title", "empty"],
  ["type", "empty"],
  ["x-kubernetes-preserve-unknown-fields", "false"],
  ["x-kubernetes-embedded-resource", "false"],
  ["x-kubernetes-int-or-string", "false"],
  ["x-kubernetes-list-type", "undefined"],
  ["x-kubernetes-list-map-keys", "undefined"],
  ["x-kubernetes-map-type", "undefined"],
  ["x-kubernetes-validations", "empty"],
] as const;
const INTEGER_AND_STRING = [{ type: "integer" }, { type: "string" }];

/** A schema inside a junctor, with its path. */
interface Branch {
  schema: JsonObject;
  path: string;
}

/** Checks that the junctors of a node declare nothing. */
function checkJunctorSchemas(schema: StructuralSchema, path: string): FieldError[] {
  // The one way to declare an integer or string that older tools understand.
  const isIntOrString = schema["x-kubernetes-int-or-string"] === true;
  return branchesOf(schema, path).flatMap((branch) => {
    if (
      isIntOrString &&
      branch.path.startsWith(`${path}.anyOf`) &&
      deepEqual(schema["anyOf"] ?? null, INTEGER_AND_STRING)
    ) {
      return [];
    }
    if (
      isIntOrString &&
      branch.path === `${path}.allOf[0]` &&
      deepEqual(branch.schema["anyOf"] ?? null, INTEGER_AND_STRING)
    ) {
      return [];
    }
    return checkBranch(branch);
  });
}

/** Lists every schema inside the junctors of a node, however deep. */
function schemasInJunctors(schema: StructuralSchema, path: string): Branch[] {
  const below = (branch: Branch): Branch[] => [branch, ...innerOf(branch).flatMap(below)];
  return branchesOf(schema, path).flatMap(below);
}

/** Checks that fields which junctors at the root constrain are declared outside of them. */
function checkCompleteness(schema: StructuralSchema, path: string): FieldError[] {
  return branchesOf(schema, path).flatMap((branch) => missingIn({ schema, path }, branch));
}

function checkBranch({ schema, path }: Branch): FieldError[] {
  const own = DECLARING.flatMap(([member, wanted]) => {
    const value = memberOf(schema, member);
    const isSet = value !== undefined && value !== "" && value !== false;
    return isSet ? [forbiddenError(`${path}.${member}`, `must be ${wanted} to be structural`)] : [];
  });
  const ofMetadata = memberOf(propertiesOf(schema), "metadata") === undefined ? [] : [`${path}.properties[metadata]`];
  return [
    ...own,
    ...ofMetadata.map((field) => forbiddenError(field, "must not be specified in a nested context")),
    ...innerOf({ schema, path }).flatMap(checkBranch),
  ];
}

function missingIn(outer: Branch, branch: Branch): FieldError[] {
  const declared = propertiesOf(outer.schema);
  const inProperties = Object.entries(propertiesOf(branch.schema)).flatMap(([name, property]) => {
    const at = { schema: isJsonObject(property) ? property : {}, path: `${branch.path}.properties[${name}]` };
    const field = `${outer.path}.properties[${name}]`;
    const own = memberOf(declared, name);
    if (!isJsonObject(own)) return [requiredError(field, `because it is defined in ${at.path}`)];
    return missingIn({ schema: own, path: field }, at);
  });
  const nested = branchesOf(branch.schema, branch.path).flatMap((inner) => missingIn(outer, inner));
  return [...inProperties, ...nested];
}

function innerOf({ schema, path }: Branch): Branch[] {
  const items = itemSchema(schema);
  return [
    ...Object.entries(propertiesOf(schema)).flatMap(([name, property]) =>
      isJsonObject(property) ? [{ schema: property, path: `${path}.properties[${name}]` }] : [],
    ),
    ...(items === undefined ? [] : [{ schema: items, path: `${path}.items` }]),
    ...branchesOf(schema, path),
  ];
}

function branchesOf(schema: StructuralSchema, path: string): Branch[] {
  const listed = (["allOf", "anyOf", "oneOf"] as const).flatMap((junctor) => {
    const branches = memberOf(schema, junctor);
    return (Array.isArray(branches) ? branches : []).flatMap((branch, index) =>
      isJsonObject(branch) ? [{ schema: branch, path: `${path}.${junctor}[${index}]` }] : [],
    );
  });
  const not = memberOf(schema, "not");
  return isJsonObject(not) ? [...listed, { schema: not, path: `${path}.not` }] : listed;
}
