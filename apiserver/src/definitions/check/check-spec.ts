// Validates a CRD's spec. What all versions share is reported at the top of the spec, where it was before versions had their own.
import { checkClientConfig } from "../../builtin/rules/admission/webhook-rules.js";
import {
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  type FieldError,
} from "../../errors/field-error.js";
import {
  arrayAt,
  deepEqual,
  isObject,
  memberOf,
  objectAt,
  stringAt,
  type JsonObject,
  type JsonValue,
} from "../../json.js";
import { checkVersionSchema } from "./check-schema.js";
import { checkColumns, checkScale, checkSelectableFields } from "./check-version.js";
import { internalVersion } from "../internal-form.js";
import { APPROVAL_ANNOTATION, dns1035Problem, dns1123SubdomainProblem, isProtectedGroup } from "./names.js";

const APPROVAL_TEXT = `protected groups must have approval annotation "${APPROVAL_ANNOTATION}"`;
const APPROVAL_LINK = "see https://github.com/kubernetes/enhancements/pull/1111";
const PRESERVE_TEXT =
  "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
const PRUNED_TEXT = "must be false in order to use defaults in the schema";

/** Checks a CRD's spec. */
export function checkSpec(crd: JsonObject, spec: JsonObject): FieldError[] {
  return [
    ...checkGroup(spec),
    ...checkScope(spec),
    ...checkVersions(spec),
    ...checkVersionParts(spec),
    ...checkPreserve(spec),
    ...checkNames(objectAt(spec, "names") ?? {}),
    ...checkConversion(objectAt(spec, "conversion")),
    ...checkConvertible(spec),
    ...checkApproval(crd, stringAt(spec, "group") ?? ""),
  ];
}

/** Checks that the versions of stored objects stay known. */
export function checkStoredVersions(spec: JsonObject, status: JsonObject | undefined): FieldError[] {
  const field = "status.storedVersions";
  const stored = arrayAt(status, "storedVersions") ?? [];
  if (stored.length === 0) return [invalidError(field, null, "must have at least one stored version")];
  // A name that two versions have is found once.
  const left = new Set(stored);
  const errors: FieldError[] = [];
  for (const version of versionsOf(spec)) {
    const name = version["name"] ?? null;
    if (!left.delete(name) && version["storage"] === true)
      errors.push(invalidError(field, stored, `must have the storage version ${String(name)}`));
  }
  stored.forEach((name, index) => {
    const text = `missing from spec.versions; ${String(name)} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${String(name)} and removes ${String(name)} from status.storedVersions`;
    if (left.has(name)) errors.push(invalidError(`${field}[${index}]`, name, text));
  });
  return errors;
}

function checkGroup(spec: JsonObject): FieldError[] {
  const group = stringAt(spec, "group") ?? "";
  if (group === "") return [requiredError("spec.group")];
  const problem = dns1123SubdomainProblem(group);
  if (problem !== undefined) return [invalidError("spec.group", group, problem)];
  return group.includes(".") ? [] : [invalidError("spec.group", group, "should be a domain with at least one dot")];
}

function checkScope(spec: JsonObject): FieldError[] {
  const scope = stringAt(spec, "scope") ?? "";
  if (scope === "") return [requiredError("spec.scope")];
  return ["Cluster", "Namespaced"].includes(scope)
    ? []
    : [notSupportedError("spec.scope", scope, ["Cluster", "Namespaced"])];
}

function checkVersions(spec: JsonObject): FieldError[] {
  const versions = versionsOf(spec);
  const errors: FieldError[] = [];
  versions.forEach((version, index) => {
    const name = stringAt(version, "name") ?? "";
    const problem = dns1035Problem(name);
    if (problem !== undefined) errors.push(invalidError(`spec.versions[${index}].name`, name, problem));
    const warning = version["deprecationWarning"];
    if (typeof warning === "string" && version["deprecated"] !== true) {
      const field = `spec.versions[${index}].deprecationWarning`;
      errors.push(invalidError(field, warning, "can only be set for deprecated versions"));
    }
  });
  const names = versions.map((version) => version["name"]);
  if (new Set(names).size < names.length) {
    errors.push(invalidError("spec.versions", internalVersions(spec), "must contain unique version names"));
  }
  if (versions.filter((version) => version["storage"] === true).length !== 1) {
    const text = "must have exactly one version marked as storage version";
    errors.push(invalidError("spec.versions", internalVersions(spec), text));
  }
  // The version that used to be the only one is validated again under its old name.
  const first = stringAt(versions[0], "name");
  const problem = first === undefined ? undefined : dns1035Problem(first);
  if (problem !== undefined) errors.push(invalidError("spec.version", first as string, problem));
  return errors;
}

function checkVersionParts(spec: JsonObject): FieldError[] {
  const versions = versionsOf(spec);
  const missing = versions.flatMap((version, index) => {
    const schema = objectAt(objectAt(version, "schema"), "openAPIV3Schema");
    return schema === undefined ? [requiredError(`spec.versions[${index}].schema.openAPIV3Schema`)] : [];
  });
  const schemas = placedParts(spec, "schema", "validation").flatMap(({ part, path, version }) => {
    const schema = isObject(part) ? objectAt(part, "openAPIV3Schema") : undefined;
    const hasStatus = objectAt(objectAt(version, "subresources"), "status") !== undefined;
    return schema === undefined ? [] : checkVersionSchema(schema, { path: `${path}.openAPIV3Schema`, hasStatus });
  });
  const subresources = placedParts(spec, "subresources", "subresources").flatMap(({ part, path }) => {
    const scale = isObject(part) ? objectAt(part, "scale") : undefined;
    return scale === undefined ? [] : checkScale(scale, `${path}.scale`);
  });
  const columns = placedParts(spec, "additionalPrinterColumns", "additionalPrinterColumns").flatMap(({ part, path }) =>
    Array.isArray(part) ? checkColumns(part.filter(isObject), path) : [],
  );
  const fields = placedParts(spec, "selectableFields", "selectableFields").flatMap(({ part, path, version }) => {
    if (isShared(spec, "selectableFields") && !isShared(spec, "schema"))
      return [invalidError(path, "", "may only be set when validations.schema is included")];
    const schema = objectAt(objectAt(version, "schema"), "openAPIV3Schema") ?? {};
    return Array.isArray(part) ? checkSelectableFields(part.filter(isObject), { schema, path }) : [];
  });
  return [...missing, ...schemas, ...subresources, ...columns, ...fields];
}

interface PlacedPart {
  part: JsonValue;
  path: string;
  version: JsonObject;
}

/** Lists a part of all versions with its path: once at the top if all have the same, else version by version. */
function placedParts(spec: JsonObject, member: string, topMember: string): PlacedPart[] {
  const versions = versionsOf(spec);
  const [first] = versions;
  if (first === undefined) return [];
  if (isShared(spec, member)) {
    const part = first[member];
    return part === undefined ? [] : [{ part, path: `spec.${topMember}`, version: first }];
  }
  return versions.flatMap((version, index) => {
    const part = version[member];
    return part === undefined ? [] : [{ part, path: `spec.versions[${index}].${member}`, version }];
  });
}

function isShared(spec: JsonObject, member: string): boolean {
  const [first, ...rest] = versionsOf(spec);
  return rest.every((version) => deepEqual(version[member], first?.[member]));
}

// Parts that the internal type has once, if all versions have the same.
const SHARED_PARTS = new Set(["schema", "subresources", "additionalPrinterColumns", "selectableFields"]);

/** Spells the versions as the server's internal type prints: what all share is not in them. */
function internalVersions(spec: JsonObject): JsonValue {
  // An absent list prints otherwise than an empty one.
  if (arrayAt(spec, "versions") === undefined) return null;
  return versionsOf(spec).map((version) => {
    const own = Object.entries(version).filter(([member]) => !SHARED_PARTS.has(member) || !isShared(spec, member));
    return internalVersion(Object.fromEntries(own));
  });
}

function checkPreserve(spec: JsonObject): FieldError[] {
  if (spec["preserveUnknownFields"] !== true) return [];
  const isDefaulted = versionsOf(spec).some((version) =>
    hasDefault(memberOf(objectAt(version, "schema") ?? {}, "openAPIV3Schema")),
  );
  return [PRESERVE_TEXT, ...(isDefaulted ? [PRUNED_TEXT] : [])].map((detail) =>
    invalidError("spec.preserveUnknownFields", true, detail),
  );
}

/** Whether a schema or one below it has a default. */
function hasDefault(schema: JsonValue | undefined): boolean {
  if (!isObject(schema)) return false;
  if (memberOf(schema, "default") !== undefined) return true;
  const below = ["items", "additionalProperties", "not"].map((keyword) => memberOf(schema, keyword));
  const lists = ["allOf", "anyOf", "oneOf"].flatMap((keyword) => arrayAt(schema, keyword) ?? []);
  return [...below, ...lists, ...Object.values(objectAt(schema, "properties") ?? {})].some(hasDefault);
}

function checkNames(names: JsonObject): FieldError[] {
  const labels = (member: "shortNames" | "categories"): FieldError[] =>
    (arrayAt(names, member) ?? []).flatMap((name, index) =>
      checkLabel(`spec.names.${member}[${index}]`, String(name), (text) => dns1035Problem(text)),
    );
  const mixedCase = (text: string): string | undefined => {
    const problem = dns1035Problem(text.toLowerCase());
    return problem && `may have mixed case, but should otherwise match: ${problem}`;
  };
  const [kind, listKind] = [stringAt(names, "kind") ?? "", stringAt(names, "listKind") ?? ""];
  return [
    ...checkLabel("spec.names.plural", stringAt(names, "plural") ?? "", dns1035Problem),
    ...checkLabel("spec.names.singular", stringAt(names, "singular") ?? "", dns1035Problem),
    ...checkLabel("spec.names.kind", kind, mixedCase),
    ...checkLabel("spec.names.listKind", listKind, mixedCase),
    ...labels("shortNames"),
    ...labels("categories"),
    ...(kind !== "" && kind === listKind
      ? [invalidError("spec.names.listKind", listKind, "kind and listKind may not be the same")]
      : []),
  ];
}

function checkLabel(field: string, text: string, problemOf: (text: string) => string | undefined): FieldError[] {
  if (text === "") return [requiredError(field)];
  const problem = problemOf(text);
  return problem === undefined ? [] : [invalidError(field, text, problem)];
}

function checkConversion(conversion: JsonObject | undefined): FieldError[] {
  const strategy = stringAt(conversion, "strategy") ?? "None";
  const webhook = objectAt(conversion, "webhook");
  const config = objectAt(webhook, "clientConfig");
  const reviews = arrayAt(webhook, "conversionReviewVersions") ?? [];
  const [configField, reviewsField] = [
    "spec.conversion.webhookClientConfig",
    "spec.conversion.conversionReviewVersions",
  ];
  if (strategy === "Webhook") {
    return [
      ...(config === undefined ? [requiredError(configField, "required when strategy is set to Webhook")] : []),
      ...(config === undefined ? [] : checkClientConfig(configField, config)),
      ...checkReviewVersions(reviews, reviewsField),
    ];
  }
  const text = "should not be set when strategy is not set to Webhook";
  return [
    ...(strategy === "None" ? [] : [notSupportedError("spec.conversion.strategy", strategy, ["None", "Webhook"])]),
    ...(config === undefined ? [] : [forbiddenError(configField, text)]),
    ...(reviews.length === 0 ? [] : [forbiddenError(reviewsField, text)]),
  ];
}

function checkConvertible(spec: JsonObject): FieldError[] {
  const strategy = stringAt(objectAt(spec, "conversion"), "strategy") ?? "None";
  if (spec["preserveUnknownFields"] !== true || strategy === "None") return [];
  return [invalidError("spec.conversion.strategy", strategy, "must be None if spec.preserveUnknownFields is true")];
}

function checkReviewVersions(versions: JsonValue[], field: string): FieldError[] {
  if (versions.length === 0) return [requiredError(field)];
  if (versions.includes("v1") || versions.includes("v1beta1")) return [];
  return [invalidError(field, versions, "must include at least one of v1, v1beta1")];
}

function checkApproval(crd: JsonObject, group: string): FieldError[] {
  if (!isProtectedGroup(group)) return [];
  const field = `metadata.annotations[${APPROVAL_ANNOTATION}]`;
  const approval = stringAt(objectAt(objectAt(crd, "metadata"), "annotations"), APPROVAL_ANNOTATION) ?? "";
  if (approval === "") return [requiredError(field, `${APPROVAL_TEXT}, ${APPROVAL_LINK}`)];
  if (approval.startsWith("unapproved") || URL.canParse(approval)) return [];
  const text = `${APPROVAL_TEXT} with either a URL or a reason starting with "unapproved", ${APPROVAL_LINK}`;
  return [invalidError(field, approval, text)];
}

function versionsOf(spec: JsonObject): JsonObject[] {
  return (arrayAt(spec, "versions") ?? []).filter(isObject);
}
