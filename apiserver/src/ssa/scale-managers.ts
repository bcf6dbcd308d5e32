// What a write of a Scale does to the managers of its object. Kubernetes shows them to the Scale as managers of a Scale: who updated the number in
// the object's version is then another one, who keeps the number alone and has no time.
import { isObject, type JsonObject, type JsonValue } from "../json.js";
import { FieldSet } from "./fields/field-set.js";
import { decodeFieldsV1, encodeFieldsV1 } from "./fields/fields-v1.js";
import { compareEncoded } from "./managers.js";

/** Returns managedFields as they are after a write of the number at `path`, e.g. `.spec.replicas`. */
export function throughScale(managedFields: JsonValue[], path: string): JsonValue[] {
  const number = FieldSet.of(path);
  return managedFields
    .filter(isObject)
    .flatMap((entry) => splitEntry(entry, number))
    .sort(compareEncoded);
}

function splitEntry(entry: JsonObject, number: FieldSet): JsonObject[] {
  const { time: _, ...timeless } = entry;
  if (entry["operation"] === "Apply") return [entry["subresource"] === "scale" ? timeless : entry];
  const set = decodeFieldsV1(isObject(entry["fieldsV1"]) ? entry["fieldsV1"] : {});
  if (set.intersection(number).isEmpty) return [entry];
  const rest = set.difference(number);
  const ofNumber = { ...timeless, fieldsV1: encodeFieldsV1(number) };
  return rest.isEmpty ? [ofNumber] : [{ ...entry, fieldsV1: encodeFieldsV1(rest) }, ofNumber];
}
