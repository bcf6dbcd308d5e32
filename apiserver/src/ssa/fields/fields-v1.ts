// FieldsV1, the JSON form of a field set: `{"f:spec":{"f:replicas":{}}}`. A member without paths below is `{}`, one with paths
// below has the member ".".
import { isObject, type JsonObject, type JsonValue } from "../../json.js";
import { FieldSet, type FieldEntry } from "./field-set.js";
import { parsePathElement, type PathElement } from "./path-element.js";

// Objects keep their managedFields from write to write, so the same texts come back again and again.
const CACHE_LIMIT = 4096;
const decoded = new Map<string, FieldSet>();
const encoded = new WeakMap<FieldSet, JsonObject>();

/** Reads a field set; throws if it is not FieldsV1. */
export function decodeFieldsV1(fields: JsonObject): FieldSet {
  const text = JSON.stringify(fields);
  const known = decoded.get(text);
  if (known !== undefined) return known;
  const set = decodeEntry(fields).below;
  if (decoded.size >= CACHE_LIMIT) decoded.delete(decoded.keys().next().value as string);
  decoded.set(text, set);
  return set;
}

/** Writes a field set with its members in Kubernetes' order; the object is shared with other callers and not to be changed. */
export function encodeFieldsV1(set: FieldSet): JsonObject {
  let fields = encoded.get(set);
  if (fields === undefined) {
    fields = {};
    for (const element of set.sortedElements()) {
      const { isMember, below } = set.entries.get(element) as FieldEntry;
      const inner = encodeFieldsV1(below);
      fields[element] = isMember && !below.isEmpty ? { ".": {}, ...inner } : inner;
    }
    encoded.set(set, fields);
  }
  return fields;
}

function decodeEntry(value: JsonValue | undefined): FieldEntry {
  if (value === null) return FieldSet.leaf;
  if (!isObject(value)) throw new Error("a FieldsV1 member is not an object");
  const names = Object.keys(value);
  if (names.length === 0) return FieldSet.leaf;
  const entries = new Map<PathElement, FieldEntry>();
  let isMember = false;
  for (const name of names) {
    if (name === ".") {
      isMember = true;
      continue;
    }
    const element = parsePathElement(name);
    if (element !== undefined) entries.set(element, decodeEntry(value[name]));
  }
  // What holds only unknown steps counts as what is left of it: the path itself.
  return { isMember: isMember || entries.size === 0, below: FieldSet.from(entries) };
}
