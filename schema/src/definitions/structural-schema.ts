// Structural schemas, and what they do to an object before it is validated: pruning of unknown fields, dropping of nulls, and defaulting.
import { clone, isJsonObject, memberOf, setMember, type JsonObject, type JsonValue } from "../json/json.js";

/** The openAPIV3Schema of a CRD version, or a part of it. */
export type StructuralSchema = JsonObject;

/** The fields of a resource that Kubernetes itself declares. */
export const RESOURCE_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);
const METADATA_FIELDS = new Set([
  ...["annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"],
  ...["generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences"],
  ...["resourceVersion", "selfLink", "uid"],
]);

const OWNER_FIELDS = new Set(["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"]);

/**
 * Removes the fields that the schema does not declare, from the object itself.
 *
 * Gives their paths, sorted, such as `spec.list[0].x`, those in metadata first. Inside metadata, of embedded resources too, the fields of ObjectMeta count,
 * and empty ones go without being named.
 */
export function pruneUnknownFields(schema: StructuralSchema, object: JsonObject): string[] {
  const droppedFirst: string[] = [];
  const dropped: string[] = [];
  const droppedInside: string[] = [];
  const isResource = { ...schema, "x-kubernetes-embedded-resource": true };
  pruneObject(isResource, object, { path: "", metadataPath: "", dropped, droppedInside, droppedFirst });
  // The metadata of the object is decoded first, that of embedded resources last.
  return [...droppedFirst.sort(), ...dropped.sort(), ...droppedInside.sort()];
}

/** Removes nulls, from the object itself, that are neither nullable nor replaced by a default. */
export function dropNulls(schema: StructuralSchema, object: JsonObject): void {
  dropNullsBelow(schema, object);
}

/** Sets absent fields to their defaults, in the object itself, and then the defaults inside those. */
export function applyDefaults(schema: StructuralSchema, object: JsonObject): void {
  defaultBelow(schema, object);
}

/** Gives the schema of a member: its own, or that of additionalProperties. */
export function memberSchema(schema: StructuralSchema, name: string): StructuralSchema | undefined {
  const own = memberOf(propertiesOf(schema), name);
  if (isJsonObject(own)) return own;
  const rest = memberOf(schema, "additionalProperties");
  return isJsonObject(rest) ? rest : undefined;
}

/** Gives the path of a member: of a field by its name, of a key of a map in brackets. */
export function memberPathOf(schema: StructuralSchema, path: string, name: string): string {
  if (memberOf(propertiesOf(schema), name) === undefined) return `${path}[${name}]`;
  return path === "" ? name : `${path}.${name}`;
}

/** Gives the declared properties of a schema. */
export function propertiesOf(schema: StructuralSchema): JsonObject {
  const properties = memberOf(schema, "properties");
  return isJsonObject(properties) ? properties : {};
}

/** Gives the schema of a list's items. */
export function itemSchema(schema: StructuralSchema): StructuralSchema | undefined {
  const items = memberOf(schema, "items");
  return isJsonObject(items) ? items : undefined;
}

interface Pruning {
  path: string;
  /** The same path as it is told of what is in metadata: keys of maps are in brackets there. */
  metadataPath: string;
  dropped: string[];
  /** In the metadata of the object. */
  droppedFirst: string[];
  /** In the metadata of embedded resources. */
  droppedInside: string[];
}

function prune(schema: StructuralSchema | undefined, value: JsonValue, pruning: Pruning): void {
  if (Array.isArray(value)) {
    const declared = schema && itemSchema(schema);
    const isOpen = schema?.["x-kubernetes-preserve-unknown-fields"] === true;
    if (declared === undefined && isOpen) return;
    // An open list keeps the unknown fields of its items, but not those inside the fields that the items declare.
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
  // What additionalProperties: false forbids is kept until it is refused.
  const isOpen = isJsonObject(rest) || typeof rest === "boolean";
  for (const name of Object.keys(object)) {
    const memberPath = path === "" ? name : `${path}.${name}`;
    const innerPath = memberPathOf(schema ?? {}, metadataPath, name);
    const value = object[name] as JsonValue;
    if (isResource && RESOURCE_FIELDS.has(name)) {
      // ObjectMeta is typed: there is no null of it.
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
    // ObjectMeta is typed, and its empty members are never written, but for the one that is a pointer to a number.
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
    // An owner is a struct: there is no null of it.
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

// A default of null is none.
function defaultOf(schema: StructuralSchema): JsonValue | undefined {
  return memberOf(schema, "default") ?? undefined;
}

function isNullable(schema: StructuralSchema): boolean {
  return schema["nullable"] === true;
}
