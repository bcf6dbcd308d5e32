import { decodeBuiltin } from "../builtin/decode.js";
import type { ServedType } from "../builtin/served-type.js";
import type { FieldError } from "../errors/field-error.js";
import { goTypeOf } from "../errors/go-format.js";
import { quote } from "../errors/quote.js";
import { badRequest } from "../errors/status-error.js";
import { isObject, type JsonObject, type JsonValue } from "../json.js";
import { finalizerWarnings } from "../object/object-meta.js";
import { checkScaleOf } from "../object/scale-paths.js";
import type { TypeRules } from "../registry/type-rules.js";
import { mergeTypeOfCustomResource } from "../ssa/types/merge-type.js";
import { misfitOfEmbedded } from "./schema/embedded-resource.js";
import { evaluateRules } from "./schema/rules.js";
import { applyDefaults, dropNulls, pruneUnknownFields } from "./schema/structural.js";
import { validateCustomResource, validateStatus } from "./schema/validate.js";

const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/** Returns the rules of a custom resource. */
export function customRules(type: ServedType): TypeRules {
  const schema = type.custom?.schema ?? {};
  const metadataType: ServedType = { ...type, schemaName: OBJECT_META };
  let mergeType: TypeRules["mergeType"] | undefined;
  // What an update left as it was, and what a rule that is broken warns of.
  const forgiven = new WeakMap<JsonObject, readonly string[]>();
  const withRules = (object: JsonObject, old: JsonObject | undefined, found: readonly FieldError[]): FieldError[] => {
    const { errors, warnings } = evaluateRules(schema, { object, old, found });
    if (warnings.length > 0) forgiven.set(object, warnings);
    return [...found, ...errors];
  };
  return {
    get mergeType() {
      return (mergeType ??= mergeTypeOfCustomResource(schema));
    },
    decode(object, { keepsNulls } = { keepsNulls: false }) {
      const { metadata } = object;
      const misfitOfMeta = (given: JsonObject): string | undefined => decodeBuiltin(metadataType, given).error;
      const own = isObject(metadata) ? misfitOfMeta(metadata) : undefined;
      const decodeEmbedded = (given: JsonValue): string | undefined =>
        isObject(given)
          ? misfitOfMeta(given)
          : `json: cannot unmarshal ${goTypeOf(given)} into Go value of type v1.ObjectMeta`;
      const error = own ?? misfitOfEmbedded(schema, object, { decode: decodeEmbedded });
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
    validate: (object, live) =>
      withRules(object, live, [...validateCustomResource(schema, object, live), ...checkScaleOf(type, object)]),
    validateStatus: (object, live) =>
      withRules(object, live, [
        ...validateStatus(schema, object, live),
        ...checkScaleOf(type, object, { ofStatus: true }),
      ]),
    warnings: (object, live) => [...finalizerWarnings(object, live), ...(forgiven.get(object) ?? [])],
  };
}
