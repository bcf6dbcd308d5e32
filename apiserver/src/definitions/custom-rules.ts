import {
  applyDefaults,
  dropNulls,
  evaluateRules,
  misfitOfEmbedded,
  pruneUnknownFields,
} from "@gen-operator/schema/definitions";
import type { ServedType } from "../builtin/served-type.js";
import { fieldErrorText, type FieldError } from "../errors/field-error.js";
import { quote } from "../errors/quote.js";
import { badRequest } from "../errors/status-error.js";
import { isObject, type JsonObject } from "../json.js";
import { finalizerWarnings } from "../object/object-meta.js";
import { checkScaleOf } from "../object/scale-paths.js";
import type { TypeRules } from "../registry/type-rules.js";
import { mergeTypeOfCustomResource } from "../ssa/types/merge-type.js";
import { METADATA_RULES, misfitOfMetadata } from "./metadata-rules.js";
import { validateCustomResource, validateStatus } from "./schema/validate.js";

/** Returns the rules of a custom resource. */
export function customRules(type: ServedType): TypeRules {
  const schema = type.custom?.schema ?? {};
  let mergeType: TypeRules["mergeType"] | undefined;
  // What an update left as it was, and what a rule that is broken warns of.
  const forgiven = new WeakMap<JsonObject, readonly string[]>();
  const withRules = (
    object: JsonObject,
    old: JsonObject | undefined,
    { found, before = [] }: { found: readonly FieldError[]; before?: readonly FieldError[] | undefined },
  ): FieldError[] => {
    const { errors, warnings } = evaluateRules(schema, { object, old, found: [...before, ...found] });
    if (warnings.length > 0) forgiven.set(object, warnings);
    return [...found, ...errors];
  };
  return {
    get mergeType() {
      return (mergeType ??= mergeTypeOfCustomResource(schema));
    },
    decode(object, { keepsNulls } = { keepsNulls: false }) {
      const { metadata } = object;
      const own = isObject(metadata) ? misfitOfMetadata(metadata) : undefined;
      const embedded = own === undefined ? misfitOfEmbedded(schema, object, { metadata: METADATA_RULES }) : undefined;
      const error = own ?? (embedded && fieldErrorText(embedded));
      if (error !== undefined) {
        throw badRequest(
          `${type.kind} in version ${quote(type.version)} cannot be handled as a ${type.kind}: ${error}`,
        );
      }
      const unknown = pruneUnknownFields(schema, object);
      if (!keepsNulls) dropNulls(schema, object);
      return unknown;
    },
    fillDefaults: (object) => applyDefaults(schema, object),
    finish: () => undefined,
    validate: (object, live, ofMetadata) =>
      withRules(object, live, {
        found: [...validateCustomResource(schema, object, live), ...checkScaleOf(type, object)],
        before: ofMetadata,
      }),
    validateStatus: (object, live) =>
      withRules(object, live, {
        found: [...validateStatus(schema, object, live), ...checkScaleOf(type, object, { ofStatus: true })],
      }),
    forgiven: (object) => forgiven.get(object) ?? [],
    warnings: (object, live) => [...finalizerWarnings(object, live), ...(forgiven.get(object) ?? [])],
  };
}
