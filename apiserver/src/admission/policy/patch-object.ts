import { PatchFailure, type PatchOperation, applyJsonPatch } from "@gen-operator/schema";
import { type ExpressionResult, applyConfigurationOf, jsonPatchOf } from "@gen-operator/schema/cel";
import { unregisteredKind } from "../../errors/decode-errors.js";
import { internalError } from "../../errors/status-error.js";
import { type JsonObject, isObject, stringAt } from "../../json.js";
import { withScale } from "../../object/scale.js";
import type { ServedResource } from "../../registry/registry.js";
import { mergeConfiguration } from "../../ssa/merge.js";
import type { MergeType } from "../../ssa/typed-value.js";
import type { AdmittedWrite } from "../admission.js";
import { shown } from "./expressions.js";
import type { PolicyMutation } from "./policy.js";

/** The input of a mutation: a write, its current object, and the resource in the version that matched. */
export interface Patched {
  readonly write: AdmittedWrite;
  readonly seen: ServedResource;
  readonly object: JsonObject;
}

/** Applies the result of a mutation expression and returns the new object. Throws an Error if the result cannot be applied. */
export function patchObject(
  { patchType }: PolicyMutation,
  result: ExpressionResult,
  { write, seen, object }: Patched,
): JsonObject {
  if ("error" in result) throw new Error(result.error);
  const { context, part } = write;
  const { resource } = context;
  const before = shown(object, { write, seen });
  const written = part ?? seen;
  const changed =
    patchType === "JSONPatch"
      ? withOperations(before, jsonPatchOf(result.value))
      : mergeConfiguration(mergeTypeOf(written), before, applyConfigurationOf(result.value));
  if (write.subresource === "scale") return withScale(resource.type, object, changed);
  decodeChanged(changed, { seen: written, before, isStrict: patchType === "JSONPatch" });
  written.rules.fillDefaults(changed);
  return part === undefined ? seen.formIn(resource, changed) : changed;
}

// Kinds that exist only as the body of a subresource have no schema to merge with, in kube-apiserver either.
function mergeTypeOf({ type, rules }: ServedResource): MergeType {
  if (type.plural !== "") return rules.mergeType;
  const kind = `${type.group}/${type.version}, Kind=${type.kind}`;
  throw new Error(
    `error applying patch: failed to convert patch object to typed object: no corresponding type for ${kind}`,
  );
}

// The result of an expression is not client input, so decoding errors are internal errors.
function decodeChanged(
  changed: JsonObject,
  { seen, before, isStrict }: { seen: ServedResource; before: JsonObject; isStrict: boolean },
): void {
  if (changed["kind"] !== before["kind"] || changed["apiVersion"] !== before["apiVersion"])
    throw internalError(unregisteredKind(stringAt(changed, "kind") ?? "", stringAt(changed, "apiVersion") ?? ""));
  let unknown: readonly string[];
  try {
    unknown = seen.rules.decode(changed);
  } catch (error) {
    const { message } = error as Error;
    throw internalError(/cannot be handled as a [^:]*: (.*)$/s.exec(message)?.[1] ?? message);
  }
  if (!isStrict || unknown.length === 0 || seen.type.custom !== undefined) return;
  const fields = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
  throw internalError(`strict decoding error: ${fields.join(", ")}`);
}

// A failed "test" operation leaves the object unchanged and is not an error.
function withOperations(before: JsonObject, operations: readonly PatchOperation[]): JsonObject {
  try {
    const changed = applyJsonPatch(before, operations);
    return isObject(changed) ? changed : before;
  } catch (error) {
    if (!(error instanceof PatchFailure)) throw error;
    if (error.isTest) return before;
    throw new Error(`JSON Patch: ${error.message}`, { cause: error });
  }
}
