import { createPatch, type Operation } from "rfc6902";
import type { JsonValue } from "./kubernetes-object.js";

/** One operation of a JSON patch (RFC 6902). */
export interface JsonPatchOperation {
  readonly op: "add" | "remove" | "replace" | "test";
  readonly path: string;
  readonly value?: JsonValue;
}

// The shortest way from one list to another takes time and memory with the product of their lengths.
const LONGEST_LIST = 100;

/** Returns the JSON patch that turns one value into another; members that are undefined count as absent. */
export function jsonDiff(from: object, to: object): JsonPatchOperation[] {
  return createPatch(from, to, replaceLongLists) as JsonPatchOperation[];
}

function replaceLongLists(from: unknown, to: unknown, pointer: { toString(): string }): Operation[] | undefined {
  if (!Array.isArray(from) || !Array.isArray(to) || Math.max(from.length, to.length) <= LONGEST_LIST) return undefined;
  if (JSON.stringify(from) === JSON.stringify(to)) return [];
  return [{ op: "replace", path: pointer.toString(), value: to }];
}
