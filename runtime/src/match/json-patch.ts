// JSON patch (RFC 6902) and JSON merge patch (RFC 7386), as the API server carries them out: in a `test` a missing member is null (1.36).
import { isDeepStrictEqual } from "node:util";
import { memberOf, type JsonValue, type JsonPatchOperation } from "../base/kubernetes-object.js";
import { isJsonObject, type JsonObject } from "./json-value.js";

/** Carries out a JSON patch on a copy; throws if it does not fit. */
export function applyJsonPatch(object: JsonValue, operations: readonly JsonPatchOperation[]): JsonValue {
  // The document itself is a member here, so that it can be replaced as well.
  const root: JsonObject = { document: structuredClone(object) };
  for (const operation of operations) applyOperation(root, operation);
  return root["document"]!;
}

/** Carries out a JSON merge patch, without changing its target. */
export function applyMergePatch(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch;
  const merged = new Map(isJsonObject(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, applyMergePatch(merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

function applyOperation(root: JsonObject, { op, path, from, value = null }: JsonPatchOperation): void {
  switch (op) {
    case "add":
      return add(root, path, structuredClone(value));
    case "remove":
      return void remove(root, path);
    case "replace": {
      const { parent, key } = locate(root, path);
      if (!Array.isArray(parent)) return add(root, path, structuredClone(value));
      parent[indexOf(key, parent.length - 1)] = structuredClone(value);
      return;
    }
    case "test":
      if (!isDeepStrictEqual(readIn(locate(root, path)), value)) throw new Error(`${path} is not as tested`);
      return;
    case "copy":
      return add(root, path, structuredClone(readIn(locate(root, from ?? ""))));
    case "move":
      return add(root, path, remove(root, from ?? ""));
    default:
      throw new Error(`"${op}" is no operation of a JSON patch`);
  }
}

interface Location {
  readonly parent: JsonObject | JsonValue[];
  readonly key: string;
}

function locate(root: JsonObject, path: string): Location {
  const [, ...names] = path.split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  const key = names.pop();
  if (key === undefined) return { parent: root, key: "document" };
  let parent = containerOrThrow(root["document"]!, path);
  for (const name of names) parent = containerOrThrow(readIn({ parent, key: name }), path);
  return { parent, key };
}

function containerOrThrow(value: JsonValue, path: string): JsonObject | JsonValue[] {
  if (typeof value !== "object" || value === null) throw new Error(`there is no ${path}`);
  return value;
}

function readIn({ parent, key }: Location): JsonValue {
  if (Array.isArray(parent)) return parent[indexOf(key, parent.length - 1)]!;
  return Object.hasOwn(parent, key) ? parent[key]! : null;
}

function add(root: JsonObject, path: string, value: JsonValue): void {
  const { parent, key } = locate(root, path);
  if (Array.isArray(parent)) parent.splice(key === "-" ? parent.length : indexOf(key, parent.length), 0, value);
  // An assignment would take `__proto__` for the prototype.
  else Object.defineProperty(parent, key, { value, writable: true, enumerable: true, configurable: true });
}

function remove(root: JsonObject, path: string): JsonValue {
  const { parent, key } = locate(root, path);
  if (Array.isArray(parent)) return parent.splice(indexOf(key, parent.length - 1), 1)[0]!;
  if (!Object.hasOwn(parent, key)) throw new Error(`there is no ${path}`);
  const value = parent[key]!;
  delete parent[key];
  return value;
}

function indexOf(key: string, last: number): number {
  const index = /^\d+$/.test(key) ? Number(key) : Number.NaN;
  if (!(index <= last)) throw new Error(`there is no item ${key} in a list of ${last + 1}`);
  return index;
}

/**
 * Returns the JSON patch that turns one value into another. Lists are changed as a whole unless something is only appended, and with a test:
 * the patch fails rather than undo what somebody else has done there meanwhile.
 */
export function jsonDiff(before: object, after: object): JsonPatchOperation[] {
  return diffValues(before as JsonValue, after as JsonValue, "");
}

function diffValues(before: JsonValue, after: JsonValue, path: string): JsonPatchOperation[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isJsonObject(before) && isJsonObject(after)) return diffObjects(before, after, path);
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(before, after, path);
  return [{ op: "replace", path, value: after }];
}

function diffObjects(before: JsonObject, after: JsonObject, path: string): JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = [];
  for (const name of Object.keys(before))
    if (before[name] !== undefined && memberOf(after, name) === undefined)
      operations.push({ op: "remove", path: `${path}/${escape(name)}` });
  for (const [name, value] of Object.entries(after)) {
    const memberPath = `${path}/${escape(name)}`;
    if (value === undefined) continue;
    const known = memberOf(before, name);
    if (known !== undefined) operations.push(...diffValues(known, value, memberPath));
    else {
      // Whoever put another list or map there meanwhile would lose it.
      if (typeof value === "object" && value !== null) operations.push({ op: "test", path: memberPath, value: null });
      operations.push({ op: "add", path: memberPath, value });
    }
  }
  return operations;
}

function diffLists(before: JsonValue[], after: JsonValue[], path: string): JsonPatchOperation[] {
  const isAppended = before.every((item, index) => isDeepStrictEqual(item, after[index]));
  if (isAppended) return after.slice(before.length).map((value) => ({ op: "add", path: `${path}/-`, value }));
  return [
    { op: "test", path, value: before },
    { op: "replace", path, value: after },
  ];
}

function escape(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
