import { isKnownFormat } from "@gen-operator/schema";
import { unevaluatedRules } from "./check/check-rules.js";
import { quote } from "../errors/quote.js";
import { arrayAt, isObject, objectAt, type JsonObject, type JsonValue } from "../json.js";

/** Lists the warnings that creating or changing a CRD answers: formats that nothing checks, rules that this server cannot evaluate. */
export function crdWarnings(crd: JsonObject): string[] {
  const versions = (arrayAt(objectAt(crd, "spec"), "versions") ?? []).filter(isObject);
  const formats = new Set<string>();
  for (const version of versions) collectFormats(objectAt(objectAt(version, "schema"), "openAPIV3Schema"), formats);
  const rules = versions.flatMap((version) =>
    unevaluatedRules(objectAt(objectAt(version, "schema"), "openAPIV3Schema")),
  );
  return [
    ...[...formats].map((format) => `unrecognized format ${quote(format)}`),
    ...rules.map((rule) => `the embedded API server does not evaluate the rule ${rule}`),
  ];
}

function collectFormats(schema: JsonValue | undefined, formats: Set<string>): void {
  if (!isObject(schema)) return;
  const { type, format, items, additionalProperties, properties } = schema;
  if (typeof format === "string" && format !== "" && !isKnownFormat(format, type)) formats.add(format);
  collectFormats(items, formats);
  collectFormats(additionalProperties, formats);
  if (isObject(properties)) for (const property of Object.values(properties)) collectFormats(property, formats);
}
