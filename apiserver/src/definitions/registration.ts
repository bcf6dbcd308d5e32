// What the server does with a CustomResourceDefinition itself: defaults, validation, and the acceptance of its names.
import { invalidError, type FieldError } from "../errors/field-error.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject } from "../json.js";
import { hasCondition } from "../object/conditions.js";
import { checkNames } from "./check/check-names.js";
import { checkSpec, checkStoredVersions } from "./check/check-spec.js";

export { acceptNames, establish, type NamesStatus } from "./accept-names.js";
export { crdWarnings } from "./warnings.js";

/** Sets the defaults of a CRD: names, conversion, and the versions that are stored if its status names none. */
export function defaultCrd(crd: JsonObject): void {
  const spec = objectAt(crd, "spec");
  if (spec === undefined) return;
  defaultNames(spec);
  defaultConversion(spec);
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
    ...(old === undefined ? checkName(crd, spec) : []),
    ...checkSpec(crd, spec, old),
    ...validateCrdStatus(crd),
    ...checkStoredVersions(spec, objectAt(crd, "status")),
    ...(old === undefined ? [] : checkUnchanged(spec, old)),
  ];
}

/** Lists what is wrong with the status of a CRD. */
export function validateCrdStatus(crd: JsonObject): FieldError[] {
  return checkNames(objectAt(objectAt(crd, "status"), "acceptedNames") ?? {}, "status.acceptedNames");
}

function defaultNames(spec: JsonObject): void {
  const names = objectAt(spec, "names");
  const kind = stringAt(names, "kind");
  if (names === undefined || !kind) return;
  if (!stringAt(names, "singular")) names["singular"] = kind.toLowerCase();
  if (!stringAt(names, "listKind")) names["listKind"] = `${kind}List`;
}

function defaultConversion(spec: JsonObject): void {
  const conversion = objectAt(spec, "conversion") ?? {};
  conversion["strategy"] ??= "None";
  const service = objectAt(objectAt(objectAt(conversion, "webhook"), "clientConfig"), "service");
  if (service !== undefined) service["port"] ??= 443;
  spec["conversion"] = conversion;
}

function storedVersionsOf(spec: JsonObject, status: JsonObject): JsonObject[string] {
  const stored = arrayAt(status, "storedVersions") ?? [];
  const storage = (arrayAt(spec, "versions") ?? []).filter(isObject).find((version) => version["storage"] === true);
  const name = stringAt(storage, "name");
  const all = name === undefined || stored.includes(name) ? stored : [...stored, name];
  return all.length === 0 ? null : all;
}

function checkName(crd: JsonObject, spec: JsonObject): FieldError[] {
  const name = stringAt(objectAt(crd, "metadata"), "name") ?? "";
  const plural = stringAt(objectAt(spec, "names"), "plural") ?? "";
  const wanted = `${plural}.${stringAt(spec, "group") ?? ""}`;
  return name === wanted || name === ""
    ? []
    : [invalidError("metadata.name", name, 'must be spec.names.plural+"."+spec.group')];
}

function checkUnchanged(spec: JsonObject, old: JsonObject): FieldError[] {
  const oldSpec = objectAt(old, "spec") ?? {};
  const [names, oldNames] = [objectAt(spec, "names") ?? {}, objectAt(oldSpec, "names") ?? {}];
  // Objects are stored by these.
  const ofStored = [
    ...immutable("spec.scope", spec["scope"], oldSpec["scope"]),
    ...immutable("spec.names.kind", names["kind"], oldNames["kind"]),
  ];
  return [
    ...(hasCondition(old, "Established") ? ofStored : []),
    ...immutable("spec.group", spec["group"], oldSpec["group"]),
    ...immutable("spec.names.plural", names["plural"], oldNames["plural"]),
  ];
}

function immutable(
  field: string,
  value: JsonObject[string] | undefined,
  old: JsonObject[string] | undefined,
): FieldError[] {
  return value === old ? [] : [invalidError(field, value ?? "", "field is immutable")];
}
