// Parses and applies a JSON Patch, with the errors of Kubernetes.
import { PatchFailure, type PatchOperation, applyJsonPatch as applyOperations } from "@gen-operator/schema";
import { goTypeOf } from "../errors/go-format.js";
import { badRequest, statusError, unappliablePatch } from "../errors/status-error.js";
import { type JsonValue, isObject, memberOf } from "../json.js";

const MAX_OPERATIONS = 10_000;
const MEMBERS = new Set(["op", "path", "from", "value"]);

/** Applies a JSON Patch to a copy of `object`. Throws the error of Kubernetes if it is invalid or cannot be applied. */
export function applyJsonPatch(object: JsonValue, patch: unknown): JsonValue {
  const operations = operationsOf(patch);
  if (operations.length > MAX_OPERATIONS) throw tooManyOperations(operations.length);
  try {
    return applyOperations(object, operations);
  } catch (error) {
    throw error instanceof PatchFailure ? unappliablePatch() : error;
  }
}

/** Returns the unknown fields of operations, e.g. `[0].odd`, in document order. */
export function unknownPatchMembers(patch: unknown): string[] {
  if (!Array.isArray(patch)) return [];
  return patch.flatMap((operation: unknown, index) =>
    Object.keys(isObject(operation) ? operation : {})
      .filter((member) => !MEMBERS.has(member))
      .map((member) => `[${index}].${member}`),
  );
}

function operationsOf(patch: unknown): PatchOperation[] {
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
    return operation as PatchOperation;
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
