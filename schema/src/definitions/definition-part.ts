// What kube-apiserver demands of a CustomResourceDefinition, and what it fills in first.
import { checkSpec, isEstablished, type DefinitionContext } from "./definition.js";
import { invalidError, type FieldError } from "./field-error.js";
import { objectAt, stringAt, type JsonObject } from "../json/json.js";

/** Sets the defaults of a definition, in the definition itself: names and conversion. */
export function defaultDefinition(crd: JsonObject): void {
  const spec = objectAt(crd, "spec");
  if (spec === undefined) return;
  defaultNames(spec);
  defaultConversion(spec);
}

/** Lists what is wrong with a definition that has its defaults. */
export function checkDefinition(crd: JsonObject, context: DefinitionContext): FieldError[] {
  const spec = objectAt(crd, "spec") ?? {};
  return [...(context.old === undefined ? checkName(crd, spec) : []), ...checkSpec(crd, spec, context)];
}

function defaultNames(spec: JsonObject): void {
  const names = objectAt(spec, "names");
  const kind = stringAt(names, "kind");
  if (names === undefined || !kind) return;
  if (!stringAt(names, "singular")) names["singular"] = kind.toLowerCase();
  if (!stringAt(names, "listKind")) names["listKind"] = `${kind}List`;
}

function defaultConversion(spec: JsonObject): void {
  const conversion = objectAt(spec, "conversion") ?? { strategy: "None" };
  const service = objectAt(objectAt(objectAt(conversion, "webhook"), "clientConfig"), "service");
  if (service !== undefined) service["port"] ??= 443;
  spec["conversion"] = conversion;
}

function checkName(crd: JsonObject, spec: JsonObject): FieldError[] {
  const name = stringAt(objectAt(crd, "metadata"), "name") ?? "";
  const plural = stringAt(objectAt(spec, "names"), "plural") ?? "";
  const wanted = `${plural}.${stringAt(spec, "group") ?? ""}`;
  return name === wanted || name === ""
    ? []
    : [invalidError("metadata.name", name, 'must be spec.names.plural+"."+spec.group')];
}

/** Checks what may not change in a definition. */
export function checkUnchanged(spec: JsonObject, old: JsonObject): FieldError[] {
  const oldSpec = objectAt(old, "spec") ?? {};
  const [names, oldNames] = [objectAt(spec, "names") ?? {}, objectAt(oldSpec, "names") ?? {}];
  // Objects are stored by these.
  const ofStored = [
    ...immutable("spec.scope", spec["scope"], oldSpec["scope"]),
    ...immutable("spec.names.kind", names["kind"], oldNames["kind"]),
  ];
  return [
    ...(isEstablished(old) ? ofStored : []),
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
