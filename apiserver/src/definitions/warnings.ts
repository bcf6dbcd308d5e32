import { isKnownFormat } from "@gen-operator/schema";
import { unevaluatedRules } from "@gen-operator/schema/definitions";
import { quote } from "../errors/quote.js";
import { arrayAt, isObject, objectAt, type JsonObject, type JsonValue } from "../json.js";

/** Lists the warnings that a CRD causes: new formats that nothing checks, rules that this server cannot evaluate. */
export function crdWarnings(crd: JsonObject, live?: JsonObject): string[] {
  const known = live === undefined ? new Set<string>() : formatsOf(live);
  const formats = [...formatsOf(crd)].filter((format) => !known.has(format));
  const rules = schemasOf(crd).flatMap(unevaluatedRules);
  return [
    ...formats.map((format) => `unrecognized format ${quote(format)}`),
    ...rules.map((rule) => `the embedded API server does not evaluate the rule ${rule}`),
  ];
}

function formatsOf(crd: JsonObject): Set<string> {
  const formats = new Set<string>();
  for (const schema of schemasOf(crd)) collectFormats(schema, formats);
  return formats;
}

function schemasOf(crd: JsonObject): (JsonObject | undefined)[] {
  const versions = (arrayAt(objectAt(crd, "spec"), "versions") ?? []).filter(isObject);
  return versions.map((version) => objectAt(objectAt(version, "schema"), "openAPIV3Schema"));
}

function collectFormats(schema: JsonValue | undefined, formats: Set<string>): void {
  if (!isObject(schema)) return;
  const { type, format, items, additionalProperties, properties } = schema;
  if (typeof format === "string" && format !== "" && !isKnownFormat(format, type)) formats.add(format);
  collectFormats(items, formats);
  collectFormats(additionalProperties, formats);
  if (isObject(properties)) for (const property of Object.values(properties)) collectFormats(property, formats);
}
