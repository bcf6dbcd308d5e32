import { isKnownFormat } from "@gen-operator/schema";
import {
  checkDefinition,
  checkNames,
  checkStoredVersions,
  checkUnchanged,
  defaultDefinition,
  unevaluatedRules,
} from "@gen-operator/schema/definitions";
import type { FieldError } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, objectAt, stringAt } from "../json.js";
import { METADATA_RULES } from "./custom-rules.js";
import type { TypeRules } from "./registry.js";

/** Returns the rules of CustomResourceDefinitions, on top of the common rules of built-in kinds. */
export function definitionRules(common: TypeRules): TypeRules {
  return {
    ...common,
    fillDefaults(object, live) {
      // Normalization drops the empty list, but the error message for an empty list differs from the one for an absent list.
      const hasNoVersion = arrayAt(objectAt(object, "spec"), "versions")?.length === 0;
      common.fillDefaults(object, live);
      const spec = objectAt(object, "spec");
      if (hasNoVersion && spec !== undefined) spec["versions"] = [];
      defaultCrd(object);
    },
    finish(object, _live, { subresource }) {
      completeStatus(object, { isStatusWrite: subresource === "status" });
      return undefined;
    },
    validate: validateCrd,
    validateStatus: validateCrdStatus,
    warnings: (object, live, subresource) => [
      ...common.warnings(object, live, subresource),
      ...(subresource === "status" ? [] : crdWarnings(object, live)),
    ],
  };
}

// Built-in behavior of CustomResourceDefinition: defaults, validation, and warnings.

/** Sets the defaults of a CRD: names, conversion, and status.storedVersions if it is empty. */
export function defaultCrd(crd: JsonObject): void {
  const spec = objectAt(crd, "spec");
  if (spec === undefined) return;
  defaultDefinition(crd);
  const status = objectAt(crd, "status");
  if (status !== undefined && (arrayAt(status, "storedVersions") ?? []).length === 0)
    status["storedVersions"] = storedVersionsOf(spec, {});
}

/** Completes the status of a CRD. The storage version is added to storedVersions, unless the write is to the status subresource. */
export function completeStatus(crd: JsonObject, { isStatusWrite }: { isStatusWrite: boolean }): void {
  const status = objectAt(crd, "status") ?? {};
  crd["status"] = {
    conditions: status["conditions"] ?? null,
    acceptedNames: status["acceptedNames"] ?? { plural: "", kind: "" },
    storedVersions: isStatusWrite
      ? (status["storedVersions"] ?? null)
      : storedVersionsOf(objectAt(crd, "spec") ?? {}, status),
  };
}

/** Validates a CRD; with `old`, also checks immutable fields. */
export function validateCrd(crd: JsonObject, old?: JsonObject): FieldError[] {
  const spec = objectAt(crd, "spec") ?? {};
  return [
    ...checkDefinition(crd, { old, metadata: METADATA_RULES }),
    ...validateCrdStatus(crd),
    ...checkStoredVersions(spec, objectAt(crd, "status")),
    ...(old === undefined ? [] : checkUnchanged(spec, old)),
  ];
}

/** Validates the status of a CRD. */
function validateCrdStatus(crd: JsonObject): FieldError[] {
  return checkNames(objectAt(objectAt(crd, "status"), "acceptedNames") ?? {}, "status.acceptedNames");
}

function storedVersionsOf(spec: JsonObject, status: JsonObject): JsonObject[string] {
  const stored = arrayAt(status, "storedVersions") ?? [];
  const storage = (arrayAt(spec, "versions") ?? []).filter(isObject).find((version) => version["storage"] === true);
  const name = stringAt(storage, "name");
  const all = name === undefined || stored.includes(name) ? stored : [...stored, name];
  return all.length === 0 ? null : all;
}

/** Returns the warnings for a CRD: unrecognized formats that are new, and validation rules that this server cannot evaluate. */
export function crdWarnings(crd: JsonObject, live?: JsonObject): string[] {
  const known = live === undefined ? new Set<string>() : formatsOf(live);
  const formats = [...formatsOf(crd)].filter((format) => !known.has(format));
  const rules = schemasOf(crd).flatMap(unevaluatedRules);
  return [
    ...formats.map((format) => `unrecognized format ${quote(format)}`),
    ...rules.map((rule) => `the embedded API server does not evaluate rule ${rule}`),
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
