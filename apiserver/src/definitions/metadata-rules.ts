import type { MetadataRules } from "@gen-operator/schema/definitions";
import { decodeBuiltin } from "../builtin/decode.js";
import { goTypeOf } from "../errors/go-format.js";
import { isObject, type JsonValue } from "../json.js";
import { checkEmbeddedMeta } from "../object/object-meta.js";

const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/** What the metadata of embedded resources may be. */
export const METADATA_RULES: MetadataRules = { misfitOf: misfitOfMetadata, check: checkEmbeddedMeta };

/** Returns why metadata cannot be decoded. */
export function misfitOfMetadata(metadata: JsonValue): string | undefined {
  if (!isObject(metadata)) return `json: cannot unmarshal ${goTypeOf(metadata)} into Go value of type v1.ObjectMeta`;
  return decodeBuiltin({ schemaName: OBJECT_META }, metadata).error;
}
