// Defaults and validates CustomResourceDefinitions as kube-apiserver 1.36 does. Errors in parts that all versions share are reported at the top level
// of the spec, where the internal type has these fields.
import {
  checkRequiredOneOf,
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
  tooManyError,
  type FieldError,
} from "./field-error.js";
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
import { checkClientConfig, checkReviewVersions } from "./webhook-client.js";
import { dns1035Problem, kindProblem, subdomainProblems } from "../strings/names.js";
import type { MetadataRules } from "./embedded-resource.js";
import { checkVersionSchema } from "./open-api-schema.js";
import { internalVersion } from "./go-structs.js";
import { propertiesOf, type StructuralSchema } from "./structural-schema.js";

/** Sets the defaults of the names and the conversion. Mutates `crd`. */
export function defaultDefinition(crd: JsonObject): void {
  const spec = objectAt(crd, "spec");
  if (spec === undefined) return;
  defaultNames(spec);
  defaultConversion(spec);
}

/** Validates a CRD whose defaults are set. */
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

/** Validates the immutable fields of an update. */
export function checkUnchanged(spec: JsonObject, old: JsonObject): FieldError[] {
  const oldSpec = objectAt(old, "spec") ?? {};
  const [names, oldNames] = [objectAt(spec, "names") ?? {}, objectAt(oldSpec, "names") ?? {}];
  // Stored objects depend on the scope and kind, so they are immutable once the CRD is established.
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

const PRESERVE_TEXT =
  "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
const PRUNED_TEXT = "must be false in order to use defaults in the schema";

/** The context of the validation of a CRD. */
export interface DefinitionContext {
  /** The CRD before the update; undefined on create. */
  readonly old?: JsonObject | undefined;
  readonly metadata: MetadataRules;
}

function checkSpec(crd: JsonObject, spec: JsonObject, { old, metadata }: DefinitionContext): FieldError[] {
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

/** Returns whether the CRD is established, which means that objects of its kind can exist. */
function isEstablished(crd: JsonObject | undefined): boolean {
  const conditions = (arrayAt(objectAt(crd, "status"), "conditions") ?? []).filter(isJsonObject);
  return conditions.some(({ type, status }) => type === "Established" && status === "True");
}

/** Validates that the spec still contains all stored versions, and that the storage version is among them. */
export function checkStoredVersions(spec: JsonObject, status: JsonObject | undefined): FieldError[] {
  const field = "status.storedVersions";
  const stored = arrayAt(status, "storedVersions") ?? [];
  if (stored.length === 0) return [invalidError(field, null, "must have at least one stored version")];
  // If two versions have the same name, only the first one matches.
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
  // The internal type also has the name of the first version as spec.version, which is validated again.
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

/** Returns a part of all versions with its path: once at the top level if it is equal in all versions, otherwise for each version. */
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

// Parts that the internal type hoists to the top level if they are equal in all versions.
const SHARED_PARTS = new Set(["schema", "subresources", "additionalPrinterColumns", "selectableFields"]);

/** Converts the versions to the server's internal type for messages; parts that all versions share are omitted. */
function internalVersions(spec: JsonObject): JsonValue {
  // Go prints an absent list differently from an empty one.
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

/** Returns whether a schema or any schema nested in it has a default. */
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

/** The default applies only if the whole conversion is absent; within a conversion the strategy is required. */
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

const COLUMN_TYPES = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_TYPES = ["string", "boolean", "integer"];
const MAX_SELECTABLE = 8;
// Of all space separators, Go considers only the ASCII space printable.
const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/u;
const SIMPLE_PATH = "must be a simple json path starting with .";

/** Validates the deprecation warning of a version. */
function checkDeprecation(version: JsonObject, path: string): FieldError[] {
  const { deprecationWarning: warning } = version;
  if (typeof warning !== "string") return [];
  const field = `${path}.deprecationWarning`;
  if (version["deprecated"] !== true) return [invalidError(field, warning, "can only be set for deprecated versions")];
  const problems: string[] = [];
  if (Buffer.byteLength(warning) > 256) problems.push("must be <= 256 characters long");
  if (warning === "") problems.push("must not be an empty string");
  const odd = UNPRINTABLE.exec(warning);
  if (odd !== null) {
    const at = Buffer.byteLength(warning.slice(0, odd.index));
    problems.push(`must only contain printable UTF-8 characters; non-printable character found at index ${at}`);
  }
  return problems.map((problem) => invalidError(field, warning, problem));
}

/** Validates the paths of the scale subresource. */
function checkScale(scale: JsonObject, path: string): FieldError[] {
  const label = stringAt(scale, "labelSelectorPath") ?? "";
  const under = (roots: string[], text: string): ((value: string) => string | undefined) => {
    return (value) => (roots.some((root) => value.startsWith(`${root}.`)) ? undefined : text);
  };
  const specReplicas = under([".spec"], "should be a json path under .spec");
  const statusReplicas = under([".status"], "should be a json path under .status");
  const selector = under([".spec", ".status"], "should be a json path under either .spec or .status");
  return [
    ...checkPath(`${path}.specReplicasPath`, stringAt(scale, "specReplicasPath") ?? "", specReplicas),
    ...checkPath(`${path}.statusReplicasPath`, stringAt(scale, "statusReplicasPath") ?? "", statusReplicas),
    ...(label === "" ? [] : checkPath(`${path}.labelSelectorPath`, label, selector)),
  ];
}

/** Validates the additional printer columns. */
function checkColumns(columns: readonly JsonObject[], path: string): FieldError[] {
  return columns.flatMap((column, index) => {
    const at = `${path}[${index}]`;
    const [type, format] = [stringAt(column, "type") ?? "", stringAt(column, "format") ?? ""];
    const errors: FieldError[] = [];
    if (!stringAt(column, "name")) errors.push(requiredError(`${at}.name`));
    if (type === "") errors.push(requiredError(`${at}.type`, `must be one of ${COLUMN_TYPES.join(",")}`));
    else if (!COLUMN_TYPES.includes(type)) {
      errors.push(invalidError(`${at}.type`, type, `must be one of ${COLUMN_TYPES.join(",")}`));
    }
    if (format !== "" && !COLUMN_FORMATS.includes(format)) {
      errors.push(invalidError(`${at}.format`, format, `must be one of ${COLUMN_FORMATS.join(",")}`));
    }
    return [...errors, ...checkPath(`${at}.JSONPath`, stringAt(column, "jsonPath") ?? "", () => undefined)];
  });
}

/** Validates the selectable fields. */
function checkSelectableFields(
  fields: readonly JsonObject[],
  { schema, path }: { schema: StructuralSchema; path: string },
): FieldError[] {
  const seen = new Set<string>();
  const selectable = new Set<string>();
  const errors = fields.flatMap((given, index) => {
    const field = `${path}[${index}].jsonPath`;
    const jsonPath = stringAt(given, "jsonPath") ?? "";
    if (jsonPath === "") return [requiredError(field)];
    const target = schemaAt(schema, jsonPath.split(".").slice(1));
    const odd = oddPathProblem(jsonPath) ?? (target === undefined ? "does not refer to a valid field" : undefined);
    if (odd !== undefined) return [invalidError(field, jsonPath, `is an invalid path: ${odd}`)];
    const taken = seen.has(jsonPath) ? [duplicateError(field, jsonPath)] : [];
    seen.add(jsonPath);
    const isOfMetadata = jsonPath.split(".")[1] === "metadata";
    const text =
      "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
    const isSelectable = SELECTABLE_TYPES.includes(stringAt(target, "type") ?? "");
    selectable.add(jsonPath);
    return [
      ...(isOfMetadata ? [invalidError(field, jsonPath, "must not point to fields in metadata")] : []),
      ...(isSelectable ? [] : [invalidError(field, jsonPath, text)]),
      ...taken,
    ];
  });
  const { size } = selectable;
  return size > MAX_SELECTABLE ? [tooManyError(path, size, MAX_SELECTABLE), ...errors] : errors;
}

function oddPathProblem(path: string): string | undefined {
  if (!/^[.[]/.test(path)) return `expected [ or . but got: ${path.split(/[.[\]]/)[0]}`;
  if (/[[\]]/.test(path)) return "array notation is not allowed";
  return path.endsWith(".") ? "unexpected end of JSON path" : undefined;
}

function schemaAt(schema: StructuralSchema, names: readonly string[]): StructuralSchema | undefined {
  let at: StructuralSchema | undefined = schema;
  for (const name of names) {
    const next: JsonValue | undefined = memberOf(propertiesOf(at), name) ?? memberOf(at, "additionalProperties");
    if (!isJsonObject(next)) return undefined;
    at = next;
  }
  return at;
}

function checkPath(field: string, path: string, problemOf: (path: string) => string | undefined): FieldError[] {
  if (path === "") return [requiredError(field)];
  const problem = path.startsWith(".") ? problemOf(path) : SIMPLE_PATH;
  return problem === undefined ? [] : [invalidError(field, path, problem)];
}

const APPROVAL_LINK = "see https://github.com/kubernetes/enhancements/pull/1111";

/** The annotation that approves a CRD in a protected group. */
const APPROVAL_ANNOTATION = "api-approved.kubernetes.io";

/** Returns whether a group is reserved for Kubernetes. */
export function isProtectedGroup(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}

/** Validates that the required names are set. */
function checkMissingNames(names: JsonObject): FieldError[] {
  const missing = ["plural", "singular", "kind", "listKind"].filter((member) => !stringAt(names, member));
  return missing.map((member) => requiredError(`spec.names.${member}`));
}

/** Validates the names at `path`. */
export function checkNames(names: JsonObject, path: string): FieldError[] {
  const check = (member: string, text: string, problemOf = dns1035Problem): FieldError[] => {
    const problem = problemOf(text);
    return problem === undefined ? [] : [invalidError(`${path}.${member}`, text, problem)];
  };
  const checkOne = (member: string, problemOf = dns1035Problem): FieldError[] => {
    const text = stringAt(names, member) ?? "";
    return text === "" ? [] : check(member, text, problemOf);
  };
  const checkEach = (member: string): FieldError[] =>
    (arrayAt(names, member) ?? []).flatMap((name, index) => check(`${member}[${index}]`, String(name)));
  const kind = stringAt(names, "kind") ?? "";
  const isSame = kind !== "" && kind === stringAt(names, "listKind");
  return [
    ...checkOne("plural"),
    ...checkOne("singular"),
    ...checkOne("kind", kindProblem),
    ...checkOne("listKind", kindProblem),
    ...checkEach("shortNames"),
    ...(isSame ? [invalidError(`${path}.listKind`, kind, "kind and listKind may not be the same")] : []),
    ...checkEach("categories"),
  ];
}

/** Validates the approval of a CRD in a protected group. On an update, an unchanged approval state is not validated again. */
function checkApproval(crd: JsonObject, old: JsonObject | undefined): FieldError[] {
  if (!isProtectedGroup(stringAt(objectAt(crd, "spec"), "group") ?? "")) return [];
  const approval = approvalTextOf(crd);
  const state = approvalState(approval);
  if (old !== undefined && state === approvalState(approvalTextOf(old))) return [];
  const field = `metadata.annotations[${APPROVAL_ANNOTATION}]`;
  const text = `protected groups must have approval annotation "${APPROVAL_ANNOTATION}"`;
  if (state === "missing") return [requiredError(field, `${text}, ${APPROVAL_LINK}`)];
  if (state !== "invalid") return [];
  const detail = `${text} with either a URL or a reason starting with "unapproved", ${APPROVAL_LINK}`;
  return [invalidError(field, approval, detail)];
}

/** Returns the value of the approval annotation, or "". */
export function approvalTextOf(crd: JsonObject): string {
  return stringAt(objectAt(objectAt(crd, "metadata"), "annotations"), APPROVAL_ANNOTATION) ?? "";
}

/** Parses the value of the approval annotation. */
export function approvalState(approval: string): "missing" | "bypassed" | "approved" | "invalid" {
  if (approval === "") return "missing";
  if (approval.startsWith("unapproved")) return "bypassed";
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?]/i.test(approval) && URL.canParse(approval) ? "approved" : "invalid";
}
