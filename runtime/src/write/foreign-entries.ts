import type { JsonObject } from "@gen-operator/schema";
import { isApiError } from "../base/errors.js";
import type { JsonPatchOperation, JsonValue } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import { keyOfListItem } from "../match/owned-fields.js";
import { schemaOf, type SchemaNode } from "../match/schema-node.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import { uidTest } from "./send/plan.js";

/**
 * Returns the JSON patch that takes entries of others out of the way of an apply; undefined if that is not why it failed. An entry of another
 * key of a list may have what is unique, as a Service port of the same name: then the API server refuses the apply for ever (422,
 * FieldValueDuplicate).
 */
export function clearingPatch(
  error: unknown,
  { target, desired, live }: { target: WriteTarget; desired: object; live: DecodedResource },
): readonly JsonPatchOperation[] | undefined {
  if (!isApiError(error, 422)) return undefined;
  const operations = error.causes.flatMap(({ reason, field = "" }) => {
    // Below a list the indexes are those of the object that was refused, which nobody has.
    const [, path, unique] = /^([\w.]+)\[\d+\]\.(\w+)$/.exec(field) ?? [];
    if (reason !== "FieldValueDuplicate" || path === undefined || unique === undefined) return [];
    return clearList(path.split("."), unique, { target, desired, live: live.object });
  });
  return operations.length === 0 ? undefined : [uidTest(live.object.metadata.uid), ...operations];
}

function clearList(
  path: readonly string[],
  field: string,
  { target, desired, live }: { target: WriteTarget; desired: object; live: object },
): JsonPatchOperation[] {
  const schema = path.reduce<SchemaNode>((node, name) => node.property(name), schemaOf(target.definition));
  const [wanted, known] = [desired, live].map((object) => valueAt(object, path));
  if (schema.merge !== "listMap" || !Array.isArray(wanted) || !Array.isArray(known)) return [];
  const keys = new Set(wanted.map((item) => keyOfListItem(item, schema)));
  const taken = new Set(wanted.map((item) => (item as JsonObject)[field]));
  const isInTheWay = (item: JsonValue) =>
    !keys.has(keyOfListItem(item, schema)) && taken.has((item as JsonObject)[field]);
  if (!known.some(isInTheWay)) return [];
  const left = known.filter((item) => !isInTheWay(item));
  const present = new Set(left.map((item) => keyOfListItem(item, schema)));
  const missing = wanted.filter((item) => !present.has(keyOfListItem(item, schema)));
  const pointer = `/${path.join("/")}`;
  return [
    { op: "test", path: pointer, value: known },
    { op: "replace", path: pointer, value: [...left, ...missing] },
  ];
}

function valueAt(object: object, path: readonly string[]): JsonValue | undefined {
  return path.reduce<unknown>((value, name) => (value as JsonObject | undefined)?.[name], object) as
    JsonValue | undefined;
}
