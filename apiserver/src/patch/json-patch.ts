// JSON patch (RFC 6902) as Kubernetes 1.36 applies it. It deviates from the RFC: `replace` of a missing member adds it, a missing
// member equals null in `test` and `copy`, negative indexes count from the end, and what stands before the first slash is ignored.
import { isTooDeep } from "../decode/check-limits.js";
import { goTypeOf } from "../errors/go-format.js";
import { badRequest, statusError, unappliablePatch } from "../errors/status-error.js";
import { clone, deepEqual, isObject, memberOf, setMember, type JsonObject, type JsonValue } from "../json.js";

const MAX_OPERATIONS = 10_000;
/** As much as the operations "copy" of one patch may copy together (the server's JSONPatchMaxCopyBytes). */
const MAX_COPIED_BYTES = 3 * 1024 * 1024;
const MEMBERS = new Set(["op", "path", "from", "value"]);

interface Operation {
  op?: string;
  path?: string;
  from?: string;
  value?: JsonValue;
}

/** Applies a JSON patch to a copy of `object`; throws the Status that Kubernetes answers if it does not apply. */
export function applyJsonPatch(object: JsonValue, patch: unknown): JsonValue {
  const operations = operationsOf(patch);
  if (operations.length > MAX_OPERATIONS) throw tooManyOperations(operations.length);
  const result = clone(object);
  let copied = 0;
  for (const operation of operations) {
    if (operation.op === "copy") copied += sizeOf(read(locate(result, operation.from)));
    if (copied > MAX_COPIED_BYTES) throw unappliablePatch();
    applyOperation(result, operation);
  }
  return result;
}

/** Names the members that no operation has, e.g. `[0].odd`, in document order. */
export function unknownPatchMembers(patch: unknown): string[] {
  if (!Array.isArray(patch)) return [];
  return patch.flatMap((operation: unknown, index) =>
    Object.keys(isObject(operation) ? operation : {})
      .filter((member) => !MEMBERS.has(member))
      .map((member) => `[${index}].${member}`),
  );
}

function operationsOf(patch: unknown): Operation[] {
  if (patch === null) return [];
  if (!Array.isArray(patch)) throw decodeError(patch, "value of type []handlers.jsonPatchOp");
  return patch.map((operation: unknown) => {
    if (operation === null) return {};
    if (!isObject(operation)) throw decodeError(operation, "value of type handlers.jsonPatchOp");
    for (const member of ["op", "path", "from"]) {
      const text = memberOf(operation, member);
      if (text !== undefined && text !== null && typeof text !== "string") {
        throw decodeError(text, `struct field jsonPatchOp.${member} of type string`);
      }
    }
    return operation as Operation;
  });
}

function decodeError(value: unknown, target: string) {
  return badRequest(`error decoding patch: json: cannot unmarshal ${goTypeOf(value)} into Go ${target}`);
}

function tooManyOperations(count: number) {
  const limit = `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${count}`;
  const message = `Request entity too large: ${limit}`;
  return statusError({ code: 413, reason: "RequestEntityTooLarge", message });
}

function sizeOf(value: JsonValue): number {
  // A value that copies of itself have made too deep is too large, as well.
  if (isTooDeep(value)) throw unappliablePatch();
  return Buffer.byteLength(JSON.stringify(value));
}

function applyOperation(root: JsonValue, { op, path, from, value = null }: Operation): void {
  const target = locate(root, path);
  switch (op) {
    case "add":
      return add(target, clone(value));
    case "remove":
      return remove(target);
    case "replace":
      read(target);
      return replace(target, clone(value));
    case "test":
      if (!deepEqual(read(target), value)) throw unappliablePatch();
      return;
    case "copy":
      return add(target, clone(read(locate(root, from))));
    case "move": {
      const source = locate(root, from);
      const moved = read(source);
      remove(source);
      // The target is found again: removing the source may have shifted it.
      return add(locate(root, path), moved);
    }
    default:
      throw unappliablePatch();
  }
}

interface Location {
  parent: JsonObject | JsonValue[];
  key: string;
}

function locate(root: JsonValue, path: string | undefined): Location {
  const [, ...keys] = (path ?? "")
    .split("/")
    .map((key) => key.replace(/~[01]/g, (code) => (code === "~0" ? "~" : "/")));
  const last = keys.pop();
  if (last === undefined) throw unappliablePatch();
  let parent: JsonValue = root;
  for (const key of keys) parent = read({ parent: containerOrThrow(parent), key });
  return { parent: containerOrThrow(parent), key: last };
}

function containerOrThrow(value: JsonValue): JsonObject | JsonValue[] {
  if (typeof value !== "object" || value === null) throw unappliablePatch();
  return value;
}

function read({ parent, key }: Location): JsonValue {
  if (!Array.isArray(parent)) return memberOf(parent, key) ?? null;
  return parent[indexOrThrow(key, parent.length)] as JsonValue;
}

function add({ parent, key }: Location, value: JsonValue): void {
  if (!Array.isArray(parent)) setMember(parent, key, value);
  else parent.splice(key === "-" ? parent.length : indexOrThrow(key, parent.length + 1), 0, value);
}

function replace({ parent, key }: Location, value: JsonValue): void {
  if (!Array.isArray(parent)) setMember(parent, key, value);
  else parent[indexOrThrow(key, parent.length)] = value;
}

function remove({ parent, key }: Location): void {
  if (Array.isArray(parent)) {
    parent.splice(indexOrThrow(key, parent.length), 1);
    return;
  }
  if (!Object.hasOwn(parent, key)) throw unappliablePatch();
  delete parent[key];
}

function indexOrThrow(text: string, length: number): number {
  const given = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  const index = given < 0 ? given + length : given;
  if (!(index >= 0 && index < length)) throw unappliablePatch();
  return index;
}
