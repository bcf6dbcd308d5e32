import { decodeBuiltin } from "../builtin/decode.js";
import type { ServedType } from "../builtin/served-type.js";
import { quote } from "../errors/quote.js";
import { badRequest } from "../errors/status-error.js";
import { isObject } from "../json.js";
import { finalizerWarnings } from "../object/object-meta.js";
import { checkScaleOf } from "../object/scale-paths.js";
import type { TypeRules } from "../registry/type-rules.js";
import { mergeTypeOfCustomResource } from "../ssa/types/merge-type.js";
import { applyDefaults, dropNulls, pruneUnknownFields } from "./schema/structural.js";
import { validateCustomResource, validateStatus } from "./schema/validate.js";

const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/** Returns the rules of a custom resource. */
export function customRules(type: ServedType): TypeRules {
  const schema = type.custom?.schema ?? {};
  const metadataType: ServedType = { ...type, schemaName: OBJECT_META };
  let mergeType: TypeRules["mergeType"] | undefined;
  return {
    get mergeType() {
      return (mergeType ??= mergeTypeOfCustomResource(schema));
    },
    decode(object, { keepsNulls } = { keepsNulls: false }) {
      const { metadata } = object;
      const { error } = isObject(metadata) ? decodeBuiltin(metadataType, metadata) : { error: undefined };
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
    validate: (object, live) => [...validateCustomResource(schema, object, live), ...checkScaleOf(type, object)],
    validateStatus: (object, live) => [...validateStatus(schema, object, live), ...checkScaleOf(type, object)],
    warnings: finalizerWarnings,
  };
}
