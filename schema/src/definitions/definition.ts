// Validates a CRD's spec. What all versions share is reported at the top of the spec, where it was before versions had their own.
import { checkRequiredOneOf } from "./required-rules.js";
import { checkClientConfig, checkReviewVersions } from "./webhook-client.js";
import { dns1035Problem, subdomainProblems } from "../strings/names.js";
import { forbiddenError, invalidError, requiredError, type FieldError } from "./field-error.js";
import {
  arrayAt,
  deepEqual,
  isJsonObject,
  memberOf,
  objectAt,
  stringAt,
  type JsonObject,
  type JsonValue,
} from "../json/json.js";
import type { MetadataRules } from "./embedded-resource.js";
import { checkVersionSchema } from "./check-schema.js";
import { checkColumns, checkDeprecation, checkScale, checkSelectableFields } from "./check-version.js";
import { internalVersion } from "./go-structs.js";
import { checkApproval, checkMissingNames, checkNames } from "./check-names.js";

const PRESERVE_TEXT =
  "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
const PRUNED_TEXT = "must be false in order to use defaults in the schema";

/** What the check of a definition knows besides it. */
export interface DefinitionContext {
  /** The definition that it replaces. */
  readonly old?: JsonObject | undefined;
  readonly metadata: MetadataRules;
}

/** Checks a CRD's spec. */
export function checkSpec(crd: JsonObject, spec: JsonObject, { old, metadata }: DefinitionContext): FieldError[] {
  const names = objectAt(spec, "names") ?? {};
  return [
    ...checkGroup(spec),
    ...checkRequiredOneOf("spec.scope", stringAt(spec, "scope") ?? "", ["Cluster", "Namespaced"]),
    ...checkVersions(spec),
    ...checkVersionParts(spec, metadata),
    ...checkPreserve(spec),
    ...checkMissingNames(names),
    ...checkNames(names, "spec.names"),
    ...checkConversion(objectAt(spec, "conversion"), isEstablished(old)),
    ...checkConvertible(spec),
    ...checkApproval(crd, old),
  ];
}

/** Tells whether objects of a definition can exist. */
export function isEstablished(crd: JsonObject | undefined): boolean {
  const conditions = (arrayAt(objectAt(crd, "status"), "conditions") ?? []).filter(isJsonObject);
  return conditions.some(({ type, status }) => type === "Established" && status === "True");
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
  const problems = subdomainProblems(group);
  if (problems.length > 0) return [invalidError("spec.group", group, problems.join(","))];
  return group.includes(".") ? [] : [invalidError("spec.group", group, "should be a domain with at least one dot")];
}

function checkVersions(spec: JsonObject): FieldError[] {
  const versions = versionsOf(spec);
  const errors: FieldError[] = [];
  versions.forEach((version, index) => {
    const name = stringAt(version, "name") ?? "";
    const problem = dns1035Problem(name);
    if (problem !== undefined) errors.push(invalidError(`spec.versions[${index}].name`, name, problem));
    errors.push(...checkDeprecation(version, `spec.versions[${index}]`));
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

function checkVersionParts(spec: JsonObject, metadata: MetadataRules): FieldError[] {
  const versions = versionsOf(spec);
  const missing = versions.flatMap((version, index) => {
    const schema = objectAt(objectAt(version, "schema"), "openAPIV3Schema");
    return schema === undefined ? [requiredError(`spec.versions[${index}].schema.openAPIV3Schema`)] : [];
  });
  const schemas = placedParts(spec, "schema", "validation").flatMap(({ part, path, version }) => {
    const schema = isJsonObject(part) ? objectAt(part, "openAPIV3Schema") : undefined;
    const holders = isShared(spec, "schema") ? versions : [version];
    const hasStatus = holders.some((holder) => objectAt(objectAt(holder, "subresources"), "status") !== undefined);
    return schema === undefined
      ? []
      : checkVersionSchema(schema, { path: `${path}.openAPIV3Schema`, hasStatus, metadata });
  });
  const subresources = placedParts(spec, "subresources", "subresources").flatMap(({ part, path }) => {
    const scale = isJsonObject(part) ? objectAt(part, "scale") : undefined;
    return scale === undefined ? [] : checkScale(scale, `${path}.scale`);
  });
  const columns = placedParts(spec, "additionalPrinterColumns", "additionalPrinterColumns").flatMap(({ part, path }) =>
    Array.isArray(part) ? checkColumns(part.filter(isJsonObject), path) : [],
  );
  const fields = placedParts(spec, "selectableFields", "selectableFields").flatMap(({ part, path, version }) => {
    const isWithoutSchema = !isShared(spec, "schema") || objectAt(version, "schema") === undefined;
    if (isShared(spec, "selectableFields") && isWithoutSchema)
      return [invalidError(path, "", "may only be set when validations.schema is included")];
    const schema = objectAt(objectAt(version, "schema"), "openAPIV3Schema") ?? {};
    return Array.isArray(part) ? checkSelectableFields(part.filter(isJsonObject), { schema, path }) : [];
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
  if (!isJsonObject(schema)) return false;
  if (memberOf(schema, "default") !== undefined) return true;
  const below = ["items", "additionalProperties", "not"].map((keyword) => memberOf(schema, keyword));
  const lists = ["allOf", "anyOf", "oneOf"].flatMap((keyword) => arrayAt(schema, keyword) ?? []);
  return [...below, ...lists, ...Object.values(objectAt(schema, "properties") ?? {})].some(hasDefault);
}

function checkConversion(conversion: JsonObject | undefined, isEstablished: boolean): FieldError[] {
  const strategy = strategyOf(conversion);
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
      ...(isEstablished ? checkAuthorities(`${configField}.caBundle`, stringAt(config, "caBundle") ?? "") : []),
      ...checkReviewVersions(reviewsField, reviews, ""),
    ];
  }
  const text = "should not be set when strategy is not set to Webhook";
  return [
    ...checkRequiredOneOf("spec.conversion.strategy", strategy, ["None", "Webhook"]),
    ...(config === undefined ? [] : [forbiddenError(configField, text)]),
    ...(reviews.length === 0 ? [] : [forbiddenError(reviewsField, text)]),
  ];
}

/** The strategy is only optional together with the whole conversion. */
function strategyOf(conversion: JsonObject | undefined): string {
  return conversion === undefined ? "None" : (stringAt(conversion, "strategy") ?? "");
}

function checkAuthorities(field: string, bundle: string): FieldError[] {
  if (bundle === "" || Buffer.from(bundle, "base64").includes("-----BEGIN ")) return [];
  return [invalidError(field, bundle, "unable to load root certificates: unable to parse bytes as PEM block")];
}

function checkConvertible(spec: JsonObject): FieldError[] {
  const strategy = strategyOf(objectAt(spec, "conversion"));
  if (spec["preserveUnknownFields"] !== true || strategy === "None") return [];
  return [invalidError("spec.conversion.strategy", strategy, "must be None if spec.preserveUnknownFields is true")];
}

function versionsOf(spec: JsonObject): JsonObject[] {
  return (arrayAt(spec, "versions") ?? []).filter(isJsonObject);
}
