// What the server does with a CustomResourceDefinition itself: defaults, validation, and the acceptance of its names.
import {
  checkDefinition,
  checkNames,
  checkStoredVersions,
  checkUnchanged,
  defaultDefinition,
} from "@gen-operator/schema/definitions";
import type { FieldError } from "../errors/field-error.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject } from "../json.js";
import { METADATA_RULES } from "./metadata-rules.js";

export { acceptNames, establish, type NamesStatus } from "./accept-names.js";
export { crdWarnings } from "./warnings.js";

/** Sets the defaults of a CRD: names, conversion, and the versions that are stored if its status names none. */
export function defaultCrd(crd: JsonObject): void {
  const spec = objectAt(crd, "spec");
  if (spec === undefined) return;
  defaultDefinition(crd);
  const status = objectAt(crd, "status");
  if (status !== undefined && (arrayAt(status, "storedVersions") ?? []).length === 0)
    status["storedVersions"] = storedVersionsOf(spec, {});
}

/** Completes the status of a CRD; the storage version is one of those that are stored, unless the status alone is written. */
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

/** Lists what is wrong with a CRD; with `old`, also what may not change. */
export function validateCrd(crd: JsonObject, old?: JsonObject): FieldError[] {
  const spec = objectAt(crd, "spec") ?? {};
  return [
    ...checkDefinition(crd, { old, metadata: METADATA_RULES }),
    ...validateCrdStatus(crd),
    ...checkStoredVersions(spec, objectAt(crd, "status")),
    ...(old === undefined ? [] : checkUnchanged(spec, old)),
  ];
}

/** Lists what is wrong with the status of a CRD. */
export function validateCrdStatus(crd: JsonObject): FieldError[] {
  return checkNames(objectAt(objectAt(crd, "status"), "acceptedNames") ?? {}, "status.acceptedNames");
}

function storedVersionsOf(spec: JsonObject, status: JsonObject): JsonObject[string] {
  const stored = arrayAt(status, "storedVersions") ?? [];
  const storage = (arrayAt(spec, "versions") ?? []).filter(isObject).find((version) => version["storage"] === true);
  const name = stringAt(storage, "name");
  const all = name === undefined || stored.includes(name) ? stored : [...stored, name];
  return all.length === 0 ? null : all;
}
