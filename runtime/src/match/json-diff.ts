import { isDeepStrictEqual } from "node:util";
import { isJsonObject, memberOf, type JsonObject, type JsonValue } from "@gen-operator/schema";
import type { JsonPatchOperation } from "../base/kubernetes-object.js";

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
