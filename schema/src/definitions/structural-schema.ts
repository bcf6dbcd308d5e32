// Structural schemas: the rules for a schema to be structural, and the steps before validation that are based on it: pruning, dropping of nulls, and
// defaulting.
import {
  clone,
  deepEqual,
  isJsonObject,
  memberOf,
  setMember,
  stringAt,
  type JsonObject,
  type JsonValue,
} from "../json/json.js";
import { findPatternProblem } from "../strings/pattern.js";
import { forbiddenError, invalidError, requiredError, type FieldError } from "./field-error.js";

/** The openAPIV3Schema of a CRD version, or a schema nested in it. */
export type StructuralSchema = JsonObject;

/** The fields of a resource that Kubernetes declares implicitly. */
export const RESOURCE_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);
const METADATA_FIELDS = new Set([
  ...["annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"],
  ...["generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences"],
  ...["resourceVersion", "selfLink", "uid"],
]);

const OWNER_FIELDS = new Set(["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"]);

/**
 * Removes the fields that the schema does not declare. Mutates `object`.
 *
 * Returns the sorted paths of the pruned fields, such as `spec.list[0].x`, those in the metadata of the object first. In metadata, including that of
 * embedded resources, the fields of ObjectMeta are declared; empty ones are removed without being returned.
 */
export function pruneUnknownFields(schema: StructuralSchema, object: JsonObject): string[] {
  const droppedFirst: string[] = [];
  const dropped: string[] = [];
  const droppedInside: string[] = [];
  const isResource = { ...schema, "x-kubernetes-embedded-resource": true };
  pruneObject(isResource, object, { path: "", metadataPath: "", dropped, droppedInside, droppedFirst });
  // The API server decodes the metadata of the object first, and that of embedded resources last.
  return [...droppedFirst.sort(), ...dropped.sort(), ...droppedInside.sort()];
}

/** Removes nulls of fields that are not nullable and have no default. Mutates `object`. */
export function dropNulls(schema: StructuralSchema, object: JsonObject): void {
  dropNullsBelow(schema, object);
}

/** Sets absent fields to their defaults, recursively. Mutates `object`. */
export function applyDefaults(schema: StructuralSchema, object: JsonObject): void {
  defaultBelow(schema, object);
}

/** Returns the schema of a member: that of the property, or of additionalProperties. */
export function memberSchema(schema: StructuralSchema, name: string): StructuralSchema | undefined {
  const own = memberOf(propertiesOf(schema), name);
  if (isJsonObject(own)) return own;
  const rest = memberOf(schema, "additionalProperties");
  return isJsonObject(rest) ? rest : undefined;
}

/** Returns the path of a member: a field by its name, a map key in brackets. */
export function memberPathOf(schema: StructuralSchema, path: string, name: string): string {
  if (memberOf(propertiesOf(schema), name) === undefined) return `${path}[${name}]`;
  return path === "" ? name : `${path}.${name}`;
}

export function propertiesOf(schema: StructuralSchema): JsonObject {
  const properties = memberOf(schema, "properties");
  return isJsonObject(properties) ? properties : {};
}

/** Returns the schema of the items of a list. */
export function itemSchema(schema: StructuralSchema): StructuralSchema | undefined {
  const items = memberOf(schema, "items");
  return isJsonObject(items) ? items : undefined;
}

interface Pruning {
  path: string;
  /** The same path with map keys in brackets, as it is reported for fields in metadata. */
  metadataPath: string;
  dropped: string[];
  /** Pruned fields in the metadata of the object. */
  droppedFirst: string[];
  /** Pruned fields in the metadata of embedded resources. */
  droppedInside: string[];
}

function prune(schema: StructuralSchema | undefined, value: JsonValue, pruning: Pruning): void {
  if (Array.isArray(value)) {
    const declared = schema && itemSchema(schema);
    const isOpen = schema?.["x-kubernetes-preserve-unknown-fields"] === true;
    if (declared === undefined && isOpen) return;
    // A list that preserves unknown fields keeps those of its items, but not those nested in declared fields of the items.
    const items = isOpen ? { ...declared, "x-kubernetes-preserve-unknown-fields": true } : declared;
    value.forEach((item, index) =>
      prune(items, item, {
        ...pruning,
        path: `${pruning.path}[${index}]`,
        metadataPath: `${pruning.metadataPath}[${index}]`,
      }),
    );
  } else if (isJsonObject(value)) pruneObject(schema, value, pruning);
}

function pruneObject(
  schema: StructuralSchema | undefined,
  object: JsonObject,
  { path, metadataPath, ...lists }: Pruning,
): void {
  const properties = schema === undefined ? {} : propertiesOf(schema);
  const isResource = schema?.["x-kubernetes-embedded-resource"] === true;
  const rest = memberOf(schema, "additionalProperties");
  // Fields that additionalProperties: false forbids are not pruned; validation rejects them.
  const isOpen = isJsonObject(rest) || typeof rest === "boolean";
  for (const name of Object.keys(object)) {
    const memberPath = path === "" ? name : `${path}.${name}`;
    const innerPath = memberPathOf(schema ?? {}, metadataPath, name);
    const value = object[name] as JsonValue;
    if (isResource && RESOURCE_FIELDS.has(name)) {
      // ObjectMeta is a struct, so null is decoded to an empty one.
      if (name === "metadata" && value === null) object[name] = {};
      else if (name === "metadata")
        pruneMetadata(value, {
          path: metadataPath === "" ? name : `${metadataPath}.${name}`,
          dropped: path === "" ? lists.droppedFirst : lists.droppedInside,
        });
      continue;
    }
    const property = memberOf(properties, name);
    if (isJsonObject(property)) prune(property, value, { path: memberPath, metadataPath: innerPath, ...lists });
    else if (isOpen)
      prune(isJsonObject(rest) ? rest : undefined, value, { path: memberPath, metadataPath: innerPath, ...lists });
    else if (schema?.["x-kubernetes-preserve-unknown-fields"] !== true) {
      delete object[name];
      lists.dropped.push(memberPath);
    }
  }
}

function pruneMetadata(metadata: JsonValue, { path, dropped }: Pick<Pruning, "path" | "dropped">): void {
  if (!isJsonObject(metadata)) return;
  for (const name of Object.keys(metadata)) {
    // Empty fields of ObjectMeta are omitted in JSON, except deletionGracePeriodSeconds, which is a pointer.
    const isKept =
      name === "deletionGracePeriodSeconds" ? metadata[name] !== null : !isEmpty(metadata[name] as JsonValue);
    if (METADATA_FIELDS.has(name) && isKept) {
      if (name === "labels" || name === "annotations") emptyTextForNull(metadata[name] as JsonValue);
      if (name === "ownerReferences") pruneOwners(metadata[name] as JsonValue, { path: `${path}.${name}`, dropped });
      if (name === "finalizers") emptyTextForNull(metadata[name] as JsonValue);
      continue;
    }
    delete metadata[name];
    if (!METADATA_FIELDS.has(name)) dropped.push(`${path}.${name}`);
  }
}

function emptyTextForNull(texts: JsonValue): void {
  if (Array.isArray(texts)) texts.forEach((text, index) => (texts[index] = text ?? ""));
  else if (isJsonObject(texts))
    for (const [key, value] of Object.entries(texts)) if (value === null) setMember(texts, key, "");
}

function pruneOwners(owners: JsonValue, { path, dropped }: Pick<Pruning, "path" | "dropped">): void {
  for (const [index, owner] of Array.isArray(owners) ? owners.entries() : []) {
    // OwnerReference is a struct, so null is decoded to an empty one.
    if (owner === null) (owners as JsonValue[])[index] = { apiVersion: "", kind: "", name: "", uid: "" };
    if (!isJsonObject(owner)) continue;
    for (const flag of ["controller", "blockOwnerDeletion"]) if (owner[flag] === null) delete owner[flag];
    for (const member of Object.keys(owner).filter((each) => !OWNER_FIELDS.has(each))) {
      delete owner[member];
      dropped.push(`${path}[${index}].${member}`);
    }
  }
}

function isEmpty(value: JsonValue): boolean {
  if (typeof value !== "object") return value === "" || value === 0;
  return value === null || Object.keys(value).length === 0;
}

function dropNullsBelow(schema: StructuralSchema | undefined, value: JsonValue): void {
  if (schema === undefined) return;
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    for (const item of value) dropNullsBelow(items, item);
  } else if (isJsonObject(value)) {
    for (const name of Object.keys(value)) {
      const inner = memberSchema(schema, name);
      const member = value[name] as JsonValue;
      if (member !== null) dropNullsBelow(inner, member);
      else if (inner !== undefined && !isNullable(inner) && defaultOf(inner) === undefined) delete value[name];
    }
  }
}

function defaultBelow(schema: StructuralSchema | undefined, value: JsonValue): void {
  if (schema === undefined) return;
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    value.forEach((item, index) => {
      if (item === null && items !== undefined) value[index] = defaultOfNull(items);
      defaultBelow(items, value[index] as JsonValue);
    });
  } else if (isJsonObject(value)) defaultMembers(schema, value);
}

function defaultMembers(schema: StructuralSchema, object: JsonObject): void {
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    if (!isJsonObject(property) || defaultOf(property) === undefined) continue;
    const value = memberOf(object, name);
    if (value === undefined || (value === null && !isNullable(property))) {
      setMember(object, name, clone(defaultOf(property) as JsonValue));
    }
  }
  for (const name of Object.keys(object)) {
    const inner = memberSchema(schema, name);
    if (inner === undefined) continue;
    if (object[name] === null) setMember(object, name, defaultOfNull(inner));
    defaultBelow(inner, object[name] as JsonValue);
  }
}

function defaultOfNull(schema: StructuralSchema): JsonValue {
  return isNullable(schema) ? null : clone(defaultOf(schema) ?? null);
}

// A null default counts as no default.
function defaultOf(schema: StructuralSchema): JsonValue | undefined {
  return memberOf(schema, "default") ?? undefined;
}

function isNullable(schema: StructuralSchema): boolean {
  return schema["nullable"] === true;
}

// The rules of structural schemas: each field is declared exactly once; schemas in allOf, anyOf, oneOf, and not constrain values without declaring
// fields.

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

/** Whether a schema can be converted to a structural one. `problem` is set if no other check reports the reason. */
interface Conversion {
  readonly isPossible: boolean;
  readonly problem?: string | undefined;
}

/** Checks that a schema uses only keywords that structural schemas support. */
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

/** Validates that a schema is structural. */
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
  // Most schemas have no pattern, so re2js is loaded only if there is one.
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

// Defaults of metadata are rejected by another check.
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

/** A schema in allOf, anyOf, oneOf, or not, with its path. */
interface Branch {
  schema: JsonObject;
  path: string;
}

/** Validates that schemas in allOf, anyOf, oneOf, and not declare nothing. */
function checkJunctorSchemas(schema: StructuralSchema, path: string): FieldError[] {
  // This anyOf is allowed because it is the standard OpenAPI declaration of an integer or string.
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

/** Lists all schemas in allOf, anyOf, oneOf, and not, recursively. */
function schemasInJunctors(schema: StructuralSchema, path: string): Branch[] {
  const below = (branch: Branch): Branch[] => [branch, ...innerOf(branch).flatMap(below)];
  return branchesOf(schema, path).flatMap(below);
}

/** Validates that fields which allOf, anyOf, oneOf, and not constrain are declared outside of them. As in the API server, items are not checked. */
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
