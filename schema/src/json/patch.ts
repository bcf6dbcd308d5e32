// JSON patch (RFC 6902) as Kubernetes 1.36 applies it. Deviations from the RFC: `replace` of a missing member adds it, a missing member equals null
// in `test` and `copy`, negative indexes count from the end, and characters before the first slash are ignored.
import {
  clone,
  deepEqual,
  isJsonObject,
  isTooDeep,
  memberOf,
  setMember,
  type JsonObject,
  type JsonValue,
} from "./json.js";

/** The maximum total size that the "copy" operations of a patch may copy (JSONPatchMaxCopyBytes of kube-apiserver). */
const MAX_COPIED_BYTES = 3 * 1024 * 1024;

export interface PatchOperation {
  readonly op?: string;
  readonly path?: string;
  readonly from?: string;
  /** Any JSON value. */
  readonly value?: unknown;
}

/** Why a patch cannot be applied, with the message of the library that kube-apiserver uses (evanphx/json-patch). */
export class PatchFailure extends Error {
  override readonly name = "PatchFailure";
  /** Whether a `test` operation failed. */
  readonly isTest: boolean;

  constructor(message: string, { isTest = false }: { isTest?: boolean } = {}) {
    super(message);
    this.isTest = isTest;
  }
}

/** Applies a JSON patch to a copy of `object`; throws a PatchFailure if an operation cannot be applied. */
export function applyJsonPatch(object: JsonValue, operations: readonly PatchOperation[]): JsonValue {
  let result = clone(object);
  let copied = 0;
  for (const operation of operations) {
    if (operation.op === "copy") copied += sizeOf(copyOf(result, operation));
    if (copied > MAX_COPIED_BYTES) throw new PatchFailure("copy operations exceed the size limit");
    if (operation.op === "replace" && operation.path === "") result = wholeOf(operation.value);
    else applyOperation(result, operation);
  }
  return result;
}

// A patch may replace the whole document.
function wholeOf(value: unknown): JsonValue {
  if (typeof value === "object" && value !== null) return clone(value as JsonObject);
  throw new PatchFailure("replace operation hit impossible case");
}

function sizeOf(value: JsonValue): number {
  // Copying a value into itself may nest it too deeply; report that as too large, too.
  if (isTooDeep(value)) throw new PatchFailure("copy operations exceed the size limit");
  return Buffer.byteLength(JSON.stringify(value));
}

function applyOperation(root: JsonValue, operation: PatchOperation): void {
  const { op, path = "" } = operation;
  const value = (operation.value ?? null) as JsonValue;
  switch (op) {
    case "add": {
      const target = locate(root, path) ?? missing(`add operation does not apply: doc is missing path: "${path}"`);
      return within(`error in add for path: '${path}'`, () => add(target, clone(value)));
    }
    case "remove": {
      const target = locate(root, path) ?? missing(`remove operation does not apply: doc is missing path: "${path}"`);
      return within(`error in remove for path: '${path}'`, () => remove(target));
    }
    case "replace": {
      const words = "replace operation does not apply: doc is missing";
      const target = locate(root, path) ?? missing(`${words} path: ${path}`);
      if (Array.isArray(target.parent) && indexOf(target.key, target.parent.length) === undefined)
        missing(`${words} key: ${path}`);
      return replace(target, clone(value));
    }
    case "test": {
      const target = locate(root, path) ?? missing(`test operation does not apply: is missing path: ${path}`);
      const live = within(`error in test for path: '${path}'`, () => read(target));
      if (deepEqual(live, value)) return;
      throw new PatchFailure(`testing value ${path} failed: test failed`, { isTest: true });
    }
    case "copy": {
      const copy = clone(copyOf(root, operation));
      const words = "error while adding value during copy";
      return within(words, () => add(destinationOf(root, operation), copy));
    }
    case "move": {
      const source = sourceOf(root, operation);
      const moved = within(`error in move for path: '${source.key}'`, () => {
        const value = read(source);
        remove(source);
        return value;
      });
      // Removing the source may have shifted the target, so locate it again.
      return within(`error in move for path: '${path}'`, () => add(destinationOf(root, operation), moved));
    }
    default:
      throw new PatchFailure(`Unexpected kind: ${op ?? "unknown"}`);
  }
}

interface Location {
  readonly parent: JsonObject | JsonValue[];
  readonly key: string;
}

/** Resolves a path; returns undefined if its parent does not exist. */
function locate(root: JsonValue, path: string | undefined): Location | undefined {
  const [, ...keys] = (path ?? "")
    .split("/")
    .map((key) => key.replace(/~[01]/g, (code) => (code === "~0" ? "~" : "/")));
  const last = keys.pop();
  if (last === undefined) return undefined;
  let parent: JsonValue = root;
  for (const key of keys) {
    if (typeof parent !== "object" || parent === null) return undefined;
    const index: number | undefined = Array.isArray(parent) ? indexOf(key, parent.length) : undefined;
    if (Array.isArray(parent)) parent = index === undefined ? null : (parent[index] as JsonValue);
    else parent = memberOf(parent, key) ?? null;
  }
  return typeof parent !== "object" || parent === null ? undefined : { parent, key: last };
}

function sourceOf(root: JsonValue, { op = "", from = "" }: PatchOperation): Location {
  return locate(root, from) ?? missing(`${op} operation does not apply: doc is missing from path: ${from}`);
}

function copyOf(root: JsonValue, operation: PatchOperation): JsonValue {
  return within(`error in copy for from: '${operation.from ?? ""}'`, () => read(sourceOf(root, operation)));
}

function destinationOf(root: JsonValue, { op = "", path = "" }: PatchOperation): Location {
  return locate(root, path) ?? missing(`${op} operation does not apply: doc is missing destination path: ${path}`);
}

function missing(words: string): never {
  throw new PatchFailure(`${words}: missing value`);
}

// Prefixes error messages with the operation, except those about a path that cannot be resolved.
function within<Result>(words: string, change: () => Result): Result {
  try {
    return change();
  } catch (error) {
    if (!(error instanceof PatchFailure) || / operation does not apply: /.test(error.message)) throw error;
    throw new PatchFailure(words === "" ? error.message : `${words}: ${error.message}`);
  }
}

function read({ parent, key }: Location): JsonValue {
  if (!Array.isArray(parent)) return memberOf(parent, key) ?? null;
  return parent[indexOrThrow(key, parent.length)] as JsonValue;
}

function add({ parent, key }: Location, value: JsonValue): void {
  if (!Array.isArray(parent)) setMember(parent, key, value);
  else if (key === "-") parent.push(value);
  else
    parent.splice(
      within(/^[+-]?\d+$/.test(key) ? "" : `value was not a proper array index: '${key}'`, () =>
        indexOrThrow(key, parent.length + 1),
      ),
      0,
      value,
    );
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
  if (!Object.hasOwn(parent, key)) missing(`Unable to remove nonexistent key: ${key}`);
  delete parent[key];
}

function indexOf(text: string, length: number): number | undefined {
  const given = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  const index = given < 0 ? given + length : given;
  return index >= 0 && index < length ? index : undefined;
}

function indexOrThrow(text: string, length: number): number {
  const index = indexOf(text, length);
  if (index !== undefined) return index;
  if (/^[+-]?\d+$/.test(text))
    throw new PatchFailure(`Unable to access invalid index: ${Number(text)}: invalid index referenced`);
  throw new PatchFailure(`strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`);
}

/** Applies a merge patch (RFC 7386) to a copy of `live`, as Kubernetes 1.36 does. */
export function applyMergePatch(live: JsonObject, patch: JsonObject): JsonObject {
  const merged = clone(live);
  for (const [key, value] of Object.entries(patch)) {
    const current = memberOf(live, key);
    if (value === null) delete merged[key];
    else if (isJsonObject(value))
      setMember(merged, key, isJsonObject(current) ? applyMergePatch(current, value) : withoutNulls(value));
    // An array that replaces an object keeps the nulls in its items, as in the library that Kubernetes uses.
    else setMember(merged, key, isJsonObject(current) ? clone(value) : withoutNulls(value));
  }
  return merged;
}

function withoutNulls<Value extends JsonValue>(value: Value): Value;
function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item));
  if (!isJsonObject(value)) return value;
  const kept: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    if (member !== null) setMember(kept, key, withoutNulls(member));
  }
  return kept;
}
