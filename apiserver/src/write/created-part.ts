// Objects that are created but not stored: Evictions, Bindings, TokenRequests, and reviews.
import type { AdmittedWrite } from "../admission/admission.js";
import type { ServedType } from "../builtin/served-type.js";
import { restStrategyOf } from "../builtin/rest-strategy.js";
import { badRequest } from "../errors/status-error.js";
import { type JsonObject, objectAt, stringAt } from "../json.js";
import { metadataOf, normalForm } from "../object/object-meta.js";
import { builtinRules } from "../registry/builtin-rules.js";
import { ServedResource } from "../registry/registry.js";
import { trackUpdate } from "./managed-fields.js";
import { type WriteContext, setNamespace } from "./write-context.js";

/** An object that is created but not stored. */
interface CreatedPart {
  /** "" if it has no name. */
  readonly name: string;
  /** "" for the main resource. */
  readonly subresource: string;
  /** The resource of the object, if it differs from that of the path. */
  readonly part?: ServedResource;
  /** The decoded object. */
  readonly object: JsonObject;
}

/** How such an object is admitted. */
interface PartAdmission {
  /** True to track managedFields. */
  readonly isTracked: boolean;
  /** Validates the object between mutating and validating admission; returns it with its remaining defaults. */
  readonly check: (object: JsonObject) => JsonObject;
}

/** Runs admission and validation; returns the mutated object. */
export async function admitPart(
  context: WriteContext,
  created: CreatedPart,
  { isTracked, check }: PartAdmission,
): Promise<JsonObject> {
  const { object: given, subresource, part = context.resource } = created;
  setNamespace(metadataOf(given), context.namespace);
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

/** Throws if the name of an object does not match the URL. */
export function checkPartName(object: JsonObject, { kind, name }: { kind: string; name: string }): void {
  if ((stringAt(objectAt(object, "metadata"), "name") ?? "") === name) return;
  throw badRequest(`name in URL does not match name in ${kind} object`);
}

function writeOf(context: WriteContext, { name, subresource, part, object }: CreatedPart): AdmittedWrite {
  return { context, operation: "CREATE", name, subresource, part, object };
}

/** A kind that is only written through a subresource of another kind. */
interface PartKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schemaName: string;
}

/**
 * Returns a resource that decodes and defaults objects of such a kind. Its plural is "", as it has no path of its own; its store is that of the
 * parent resource.
 */
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
