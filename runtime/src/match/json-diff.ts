import { isDeepStrictEqual } from "node:util";
import type { JsonValue } from "../base/kubernetes-object.js";

/** One operation of a JSON patch (RFC 6902). */
export interface JsonPatchOperation {
  readonly op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  readonly path: string;
  readonly from?: string;
  readonly value?: JsonValue;
}

type JsonObject = { [key: string]: JsonValue };

/**
 * Returns the JSON patch that turns one value into another; members that are undefined count as absent.
 *
 * Lists are changed as a whole unless something is only appended, and what is changed or put where nothing was is tested: the patch
 * fails rather than undo what somebody else has done there meanwhile.
 */
export function jsonDiff(before: object, after: object): JsonPatchOperation[] {
  return diffValues(before as JsonValue, after as JsonValue, "");
}

function diffValues(before: JsonValue, after: JsonValue, path: string): JsonPatchOperation[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isObject(before) && isObject(after)) return diffObjects(before, after, path);
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(before, after, path);
  return [{ op: "replace", path, value: after }];
}

function diffObjects(before: JsonObject, after: JsonObject, path: string): JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = [];
  for (const name of Object.keys(before))
    if (before[name] !== undefined && after[name] === undefined)
      operations.push({ op: "remove", path: `${path}/${escape(name)}` });
  for (const [name, value] of Object.entries(after)) {
    const memberPath = `${path}/${escape(name)}`;
    if (value === undefined) continue;
    const known = before[name];
    if (known !== undefined) operations.push(...diffValues(known, value, memberPath));
    else operations.push(...testOf(memberPath, value), { op: "add", path: memberPath, value });
  }
  return operations;
}

// Whoever put another list or map there meanwhile would lose it.
function testOf(path: string, value: JsonValue): JsonPatchOperation[] {
  return typeof value === "object" && value !== null ? [{ op: "test", path, value: null }] : [];
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

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
