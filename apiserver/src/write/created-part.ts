// Objects that are created but not stored: Evictions, Bindings, TokenRequests and reviews.
import type { AdmittedWrite } from "../admission/admission.js";
import type { ServedType } from "../builtin/served-type.js";
import { restStrategyOf } from "../builtin/rest-strategy.js";
import { badRequest } from "../errors/status-error.js";
import { type JsonObject, objectAt, stringAt } from "../json.js";
import { metadataOf, normalForm } from "../object/object-meta.js";
import { builtinRules } from "../registry/builtin-rules.js";
import { ServedResource } from "../registry/registry.js";
import { trackUpdate } from "./managed-fields.js";
import { type WriteContext, settleNamespace } from "./write-context.js";

/** An object that is created but not stored. */
interface CreatedPart {
  /** "" for what has no name. */
  readonly name: string;
  /** "" on the main endpoint. */
  readonly subresource: string;
  /** What the object is of, if that is not the resource of the path. */
  readonly part?: ServedResource;
  /** A decoded object. */
  readonly object: JsonObject;
}

/** How such an object is admitted. */
interface PartAdmission {
  /** Whether managedFields are recorded. */
  readonly isTracked: boolean;
  /** Validates the object between mutating and validating admission, and returns it with its remaining defaults. */
  readonly check: (object: JsonObject) => JsonObject;
}

/** Runs admission and validation, and returns the mutated object. */
export async function admitPart(
  context: WriteContext,
  created: CreatedPart,
  { isTracked, check }: PartAdmission,
): Promise<JsonObject> {
  const { object: given, subresource, part = context.resource } = created;
  settleNamespace(metadataOf(given), context.namespace);
  part.rules.fillDefaults(given);
  const object = isTracked
    ? trackUpdate({ ...context, resource: part }, { live: undefined, object: given, subresource })
    : given;
  const write = writeOf(context, { ...created, object: normalForm(part.type, object) });
  const mutated = (await context.admission?.mutate(write)) ?? (write.object as JsonObject);
  const checked = check(mutated);
  await context.admission?.validate({ ...write, object: checked });
  return checked;
}

/** Fails if an object is for another name than the URL. */
export function checkPartName(object: JsonObject, { kind, name }: { kind: string; name: string }): void {
  if ((stringAt(objectAt(object, "metadata"), "name") ?? "") === name) return;
  throw badRequest(`name in URL does not match name in ${kind} object`);
}

function writeOf(context: WriteContext, { name, subresource, part, object }: CreatedPart): AdmittedWrite {
  return { context, operation: "CREATE", name, subresource, part, object };
}

/** A kind that is only written below objects of another kind. */
interface PartKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schemaName: string;
}

/** Gives what decodes and completes objects of such a kind. It has no path of its own, so its plural is "", and what it stores is the object that it is below. */
export function partResource(part: PartKind, { store }: ServedResource): ServedResource {
  const type: ServedType = {
    ...part,
    ...{ plural: "", singular: "", listKind: "", shortNames: [], categories: [], namespaced: true, verbs: [] },
    subresources: [],
    strategy: restStrategyOf({}, { hasStatus: false }),
  };
  const noAddresses = (): never => {
    throw new Error(`a ${part.kind} has no addresses`);
  };
  return new ServedResource({ type, store, rules: () => builtinRules(type, noAddresses) });
}

/** The response to such a request. */
export const SUCCESS: JsonObject = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
