// What is created below an object, or to be done and not stored: an Eviction, a Binding.
import { decodeBuiltin } from "../../builtin/decode.js";
import type { AdmittedWrite, WrittenKind } from "../../admission/admission.js";
import { badRequest } from "../../errors/status-error.js";
import { objectAt, stringAt, type JsonObject } from "../../json.js";
import type { WriteContext } from "../write-context.js";

/** A creation whose kind is not that of the resource. */
export interface CreatedPart {
  readonly name: string;
  /** "" on the main endpoint. */
  readonly subresource: string;
  readonly kind: WrittenKind;
  readonly object: JsonObject;
}

/** Returns what is asked for after admission has changed it; fails if it is for another name than the URL. */
export async function mutatedPart(context: WriteContext, part: CreatedPart): Promise<JsonObject> {
  const object = completed(context, part);
  const mutation = context.admission?.mutate(writeOf(context, { ...part, object }));
  const mutated = mutation === undefined ? object : await mutation;
  const name = stringAt(objectAt(mutated, "metadata"), "name") ?? "";
  if (name !== part.name) throw badRequest(`name in URL does not match name in ${part.kind.kind} object`);
  return mutated;
}

/** Asks whether it may be done. */
export async function validatePart(context: WriteContext, part: CreatedPart): Promise<void> {
  await context.admission?.validate(writeOf(context, part));
}

function completed({ namespace }: WriteContext, { kind, object }: CreatedPart): JsonObject {
  decodeBuiltin(kind, object);
  const metadata = { ...objectAt(object, "metadata"), ...(namespace === undefined ? {} : { namespace }) };
  const apiVersion = kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
  return { ...object, kind: kind.kind, apiVersion, metadata };
}

function writeOf(context: WriteContext, { name, subresource, kind, object }: CreatedPart): AdmittedWrite {
  return { context, operation: "CREATE", name, subresource, kind, object };
}
