import { isKnownFormat } from "@gen-operator/schema";
import { quote } from "../errors/quote.js";
import { arrayAt, isObject, objectAt, type JsonObject, type JsonValue } from "../json.js";

/** Lists the warnings that creating or changing a CRD answers: formats that nothing checks. */
export function crdWarnings(crd: JsonObject): string[] {
  const versions = (arrayAt(objectAt(crd, "spec"), "versions") ?? []).filter(isObject);
  const formats = new Set<string>();
  for (const version of versions) collectFormats(objectAt(objectAt(version, "schema"), "openAPIV3Schema"), formats);
  return [...formats].map((format) => `unrecognized format ${quote(format)}`);
}

function collectFormats(schema: JsonValue | undefined, formats: Set<string>): void {
  if (!isObject(schema)) return;
  const { format, items, additionalProperties, properties } = schema;
  if (typeof format === "string" && format !== "" && !isKnownFormat(format)) formats.add(format);
  collectFormats(items, formats);
  collectFormats(additionalProperties, formats);
  if (isObject(properties)) for (const property of Object.values(properties)) collectFormats(property, formats);
}
