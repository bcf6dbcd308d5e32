// What the server does with a CustomResourceDefinition itself: defaults, validation, and the acceptance of its names.
import { invalidError, type FieldError } from "../errors/field-error.js";
import { arrayAt, clone, isObject, objectAt, stringAt, type JsonObject } from "../json.js";
import { checkSpec, checkStoredVersions } from "./check/check-spec.js";

export { acceptNames, establish, type NamesStatus } from "./accept-names.js";
export { crdWarnings } from "./warnings.js";

/** Gives the CRD with its defaults: names, conversion, and a status that stores the storage version. */
export function defaultCrd(crd: JsonObject): JsonObject {
  const completed = clone(crd);
  const spec = objectAt(completed, "spec");
  if (spec === undefined) return completed;
  defaultNames(spec);
  defaultConversion(spec);
  const status = objectAt(completed, "status") ?? {};
  completed["status"] = {
    conditions: status["conditions"] ?? null,
    acceptedNames: status["acceptedNames"] ?? { plural: "", kind: "" },
    storedVersions: storedVersionsOf(spec, status),
  };
  return completed;
}

/** Lists what is wrong with a CRD; with `old`, also what may not change. */
export function validateCrd(crd: JsonObject, old?: JsonObject): FieldError[] {
  const spec = objectAt(crd, "spec") ?? {};
  return [
    ...(old === undefined ? checkName(crd, spec) : []),
    ...checkSpec(crd, spec),
    ...checkStoredVersions(spec, objectAt(crd, "status")),
    ...(old === undefined ? [] : checkUnchanged(spec, old)),
  ];
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
  return name === wanted ? [] : [invalidError("metadata.name", name, 'must be spec.names.plural+"."+spec.group')];
}

function checkUnchanged(spec: JsonObject, old: JsonObject): FieldError[] {
  const conditions = arrayAt(objectAt(old, "status"), "conditions") ?? [];
  const isEstablished = conditions.some(
    (condition) => isObject(condition) && condition["type"] === "Established" && condition["status"] === "True",
  );
  if (!isEstablished) return [];
  const oldSpec = objectAt(old, "spec") ?? {};
  const [names, oldNames] = [objectAt(spec, "names") ?? {}, objectAt(oldSpec, "names") ?? {}];
  return [
    ...immutable("spec.scope", spec["scope"], oldSpec["scope"]),
    ...immutable("spec.names.kind", names["kind"], oldNames["kind"]),
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
