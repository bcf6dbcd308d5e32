/** What every object has, whatever its type: kind, name, namespace and the rest of `metadata`. Texts are those of Kubernetes 1.36. */
import { forgetGivenEmpty, withoutEmptyLists } from "../builtin/normal-form.js";
import type { ServedType } from "../builtin/served-type.js";
import { serverTime, timestampOf } from "../clock.js";
import { type FieldError, forbiddenError, invalidError, requiredError } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import { type KindRef, type ResourceRef, badRequest } from "../errors/status-error.js";
import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  deepEqual,
  isObject,
  memberOf,
  objectAt,
  stringAt,
} from "../json.js";
import { exactAddressProblems } from "../validation/addresses.js";
import { checkAnnotations, checkLabels, checkManagers, checkNotNegative } from "../validation/fields.js";
import { pathSegmentProblems, qualifiedNameProblems, subdomainProblems } from "../validation/names.js";

/** Returns the key of an object in the store of its resource. */
export function keyOf(object: { namespace: string | undefined; name: string }): string {
  return object.namespace === undefined ? object.name : `${object.namespace}/${object.name}`;
}

/** Returns the prefix of the keys in a namespace, or of all keys. */
export function keyPrefixOf(namespace: string | undefined): string {
  return namespace === undefined ? "" : `${namespace}/`;
}

/** Returns the `apiVersion` of a type. */
export function apiVersionOf(type: { group: string; version: string }): string {
  return type.group === "" ? type.version : `${type.group}/${type.version}`;
}

/** Returns the group and the version in an `apiVersion`. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1) };
}

/** Returns how most failures name an object: by its resource. */
export function resourceRefOf(type: ServedType, name: string): ResourceRef {
  return { resource: type.plural, group: type.group, name };
}

/** Returns how failed validation names an object: by its kind. Events of both groups are of the core. */
export function kindRefOf({ kind, group }: ServedType, name: string): KindRef {
  return { kind, group: group === "events.k8s.io" ? "" : group, name };
}

// Where etcd keeps what has another name there; what came later than the first types is kept by group, too.
const STORED_AS: { readonly [plural: string]: string } = {
  replicationcontrollers: "controllers",
  endpoints: "services/endpoints",
  nodes: "minions",
  services: "services/specs",
  ingresses: "ingress",
  customresourcedefinitions: "apiextensions.k8s.io/customresourcedefinitions",
  apiservices: "apiregistration.k8s.io/apiservices",
};

/** Gives the key of an object in etcd, which messages show; a dry run shows it without its first part. */
export function storageKeyOf(type: ServedType, key: string, { isDryRun }: { isDryRun: boolean }): string {
  const own = type.custom === undefined ? (STORED_AS[type.plural] ?? type.plural) : `${type.group}/${type.plural}`;
  return `${isDryRun ? "" : "/registry"}/${own}/${key}`;
}

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
  `alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`;
const labelPattern = new RegExp(`^${LABEL}$`);

/** How a type restricts the names of its objects. */
export type NameRule = "subdomain" | "label" | "path-segment" | "namespace" | "address" | "long-name";

/** Checks a name and returns what is wrong with it; the base of a generated name may end in a dash. */
export function checkName(rule: NameRule, name: string, { isPrefix = false } = {}): string[] {
  // Of a long name only what was generated is looked at, and it is counted in bytes.
  if (rule === "long-name")
    return isPrefix ? [] : subdomainProblems(name).map((problem) => problem.replace(/ characters$/, " bytes"));
  if (rule === "path-segment") return pathSegmentProblems(name, { isPrefix });
  // As Kubernetes has it, one letter stands for the dash at the end of a prefix and for what is before the dash.
  const tried = isPrefix ? name.replace(/.-$/s, "a") : name;
  // Labels count bytes, names count characters.
  if (rule === "address") return exactAddressProblems(tried);
  if (rule === "subdomain") return subdomainProblems(tried);
  return checkLabel(tried);
}

function checkLabel(text: string): string[] {
  const isDotted = text.includes(".") && subdomainProblems(text).length === 0;
  return [
    ...(text.length > 63 ? ["must be no more than 63 characters"] : []),
    ...(labelPattern.test(text) ? [] : [isDotted ? "must not contain dots" : LABEL_TEXT]),
  ];
}

/** Fails for the name of a path that no object can have. */
export function checkPathName(name: string): void {
  const problems = pathSegmentProblems(name);
  if (problems.length > 0) throw badRequest(`Name parameter invalid: ${quote(name)}: ${problems.join(";")}`);
}

const STANDARD_FINALIZERS = new Set(["kubernetes", "orphan", "foregroundDeletion"]);

/** Returns `metadata` of an object, which every object in the registry has. */
export function metadataOf(object: JsonObject): JsonObject {
  return object["metadata"] as JsonObject;
}

/** Returns the finalizers of an object. */
export function finalizersOf(object: JsonObject): string[] {
  return (arrayAt(metadataOf(object), "finalizers") ?? []) as string[];
}

/** True once a deletion of the object has begun. */
export function isTerminating(object: JsonObject): boolean {
  return typeof metadataOf(object)["deletionTimestamp"] === "string";
}

/** True for the finalizers that need no domain. */
export function isStandardFinalizer(name: string): boolean {
  return STANDARD_FINALIZERS.has(name);
}

/** Checks the metadata of an object as it would be stored. */
export function checkObjectMeta(type: ServedType, object: JsonObject): FieldError[] {
  return [...checkCommonMeta(type.strategy.nameRule, object), ...checkOwnFinalizers(type, finalizersOf(object))];
}

function checkCommonMeta(rule: NameRule, object: JsonObject): FieldError[] {
  const metadata = metadataOf(object);
  const generation = memberOf(metadata, "generation") ?? 0;
  return [
    ...checkNames(rule, metadata),
    ...checkNotNegative("metadata.generation", generation),
    ...checkWritable(metadata),
    ...checkFinalizers(finalizersOf(object), "metadata.finalizers"),
  ];
}

function checkFinalizers(names: string[], path: string): FieldError[] {
  const areBothSet = ["orphan", "foregroundDeletion"].every((name) => names.includes(name));
  const detail = "finalizer orphan and foregroundDeletion cannot be both set";
  return [
    ...names.flatMap((name) => checkFinalizer(name, path)),
    ...(areBothSet ? [invalidError(path, names, detail)] : []),
  ];
}

// What Kubernetes checks of every object, and again of every update.
function checkWritable(metadata: JsonObject): FieldError[] {
  return [
    ...checkLabels(objectAt(metadata, "labels") ?? {}, "metadata.labels"),
    ...checkAnnotations(objectAt(metadata, "annotations") ?? {}, "metadata.annotations"),
    ...checkOwnerReferences(arrayAt(metadata, "ownerReferences") ?? [], "metadata.ownerReferences"),
    ...checkManagers("metadata.managedFields", arrayAt(metadata, "managedFields") ?? []),
  ];
}

/**
 * Checks the metadata of an updated object. Kubernetes checks most of it for all types, and again with what the type checks; all of that is listed.
 * A subresource checks only what changes.
 */
export function checkUpdatedMeta(
  type: ServedType,
  { object, live, subresource }: { object: JsonObject; live: JsonObject; subresource: string },
): FieldError[] {
  const { checksMetadata, nameRule } = type.strategy;
  const change = [...checkObjectMetaUpdate(object, live), ...checkWritable(metadataOf(object))];
  const isPart = subresource !== "" && checksMetadata.length > 0;
  const ofKind = (isPart ? (["change"] as const) : checksMetadata).flatMap((part) => [
    ...(part === "change" ? change : checkCommonMeta(nameRule, object)),
    ...checkOwnFinalizers(type, finalizersOf(object)),
  ]);
  // That a name is right for its type is known, and what it was generated from is no longer looked at.
  return [...checkCommonMeta("path-segment", object), ...change, ...ofKind];
}

/** Checks the metadata of an object inside of another one, at `path`; its name may be any. */
export function checkEmbeddedMeta(metadata: JsonObject, path: string): FieldError[] {
  const namespace = stringAt(metadata, "namespace") ?? "";
  const namesOf = (field: "name" | "generateName") =>
    checkName("path-segment", stringAt(metadata, field) ?? "", { isPrefix: field === "generateName" }).map((detail) =>
      invalidError(`${path}.${field}`, metadata[field] ?? "", detail),
    );
  return [
    ...namesOf("generateName"),
    ...namesOf("name"),
    ...(namespace === ""
      ? []
      : checkName("label", namespace).map((detail) => invalidError(`${path}.namespace`, namespace, detail))),
    ...checkNotNegative(`${path}.generation`, memberOf(metadata, "generation")),
    ...checkLabels(objectAt(metadata, "labels") ?? {}, `${path}.labels`),
    ...checkAnnotations(objectAt(metadata, "annotations") ?? {}, `${path}.annotations`),
    ...checkOwnerReferences(arrayAt(metadata, "ownerReferences") ?? [], `${path}.ownerReferences`),
    ...((arrayAt(metadata, "finalizers") ?? []) as string[]).flatMap((name) =>
      checkFinalizer(name, `${path}.finalizers`),
    ),
  ];
}

// What a write may not change about the metadata of an existing object.
function checkObjectMetaUpdate(object: JsonObject, live: JsonObject): FieldError[] {
  const metadata = metadataOf(object);
  const before = metadataOf(live);
  const immutable = ["name", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    .filter((field) => !deepEqual(metadata[field], before[field]))
    .map((field) => invalidError(`metadata.${field}`, metadata[field] ?? null, "field is immutable"));
  const added = isTerminating(live) ? finalizersOf(object).filter((name) => !finalizersOf(live).includes(name)) : [];
  if (added.length === 0) return immutable;
  const list = `[]string{${added.map(quote).join(", ")}}`;
  const detail = `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`;
  return [...immutable, forbiddenError("metadata.finalizers", detail)];
}

/** Drops repeated owner references; returns the warning that the client gets. */
export function dropDuplicateOwners(metadata: JsonObject, { isPatch = false } = {}): string | undefined {
  const owners = arrayAt(metadata, "ownerReferences");
  if (owners === undefined || owners.length < 2) return undefined;
  const seen: JsonValue[] = [];
  const repeated = new Set<string>();
  for (const owner of owners) {
    if (seen.some((other) => deepEqual(other, owner)))
      repeated.add(stringAt(isObject(owner) ? owner : {}, "uid") ?? "");
    else seen.push(owner);
  }
  if (repeated.size === 0) return undefined;
  metadata["ownerReferences"] = seen;
  return (
    `.metadata.ownerReferences contains duplicate entries${isPatch ? " after mutating admission happens" : ""}; ` +
    "API server dedups owner references in 1.20+, and may reject such " +
    `requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${[...repeated].join(", ")}`
  );
}

/** Returns the warnings about finalizers that were added without a path. */
export function finalizerWarnings(object: JsonObject, live?: JsonObject): string[] {
  const before = live === undefined ? [] : finalizersOf(live);
  return finalizersOf(object)
    .filter((name) => !before.includes(name) && !name.includes("/") && !STANDARD_FINALIZERS.has(name))
    .map((name) => {
      const advice = name.includes(".") ? "finalizer name including a path (/)" : "finalizer name";
      return `metadata.finalizers: ${quote(name)}: prefer a domain-qualified ${advice} to avoid accidental conflicts with other finalizer writers`;
    });
}

function checkNames(rule: NameRule, metadata: JsonObject): FieldError[] {
  const name = stringAt(metadata, "name") ?? "";
  const base = stringAt(metadata, "generateName") ?? "";
  const baseErrors =
    base === ""
      ? []
      : checkName(rule, base, { isPrefix: true }).map((detail) => invalidError("metadata.generateName", base, detail));
  if (name === "") return [...baseErrors, requiredError("metadata.name", "name or generateName is required")];
  return [...baseErrors, ...checkName(rule, name).map((detail) => invalidError("metadata.name", name, detail))];
}

function checkOwnerReferences(owners: JsonValue[], path: string): FieldError[] {
  const references = owners.filter(isObject);
  const controllers = references.filter((owner) => owner["controller"] === true);
  const errors = references.flatMap((owner) => checkOwnerReference(owner, path));
  if (controllers.length < 2) return errors;
  const [first, second] = controllers.map((owner) => `${String(owner["kind"])}/${String(owner["name"])}`);
  const detail = `Only one reference can have Controller set to true. Found "true" in references for ${first} and ${second}`;
  return [...errors, invalidError(path, references.map(goOwner), detail)];
}

function checkOwnerReference(owner: JsonObject, path: string): FieldError[] {
  const apiVersion = stringAt(owner, "apiVersion") ?? "";
  const parts = apiVersion.split("/");
  // What is no group and version has neither.
  const [group, version] = parts.length > 2 ? ["", ""] : parts.length === 2 ? parts : ["", apiVersion];
  const empty = ["kind", "name", "uid"]
    .filter((field) => (memberOf(owner, field) ?? "") === "")
    .map((field) => invalidError(`${path}.${field}`, "", "must not be empty"));
  const isEvent = owner["kind"] === "Event" && (group === "" || group === "events.k8s.io");
  return [
    ...(version === "" ? [invalidError(`${path}.apiVersion`, apiVersion, "version must not be empty")] : []),
    ...empty,
    ...(isEvent
      ? [invalidError(path, goOwner(owner), `${group}/${version}, Kind=Event is disallowed from being an owner`)]
      : []),
  ];
}

// An owner as Go prints it: with its members in their order.
function goOwner({
  apiVersion = "",
  kind = "",
  name = "",
  uid = "",
  controller,
  blockOwnerDeletion,
}: JsonObject): JsonObject {
  return {
    ...{ apiVersion, kind, name, uid },
    ...(controller === undefined ? {} : { controller }),
    ...(blockOwnerDeletion === undefined ? {} : { blockOwnerDeletion }),
  };
}

// The stricter rule of most built-in types.
function checkOwnFinalizers(type: ServedType, finalizers: string[]): FieldError[] {
  if (!type.strategy.checksFinalizers) return [];
  return finalizers.flatMap((name, index) =>
    name.includes("/") || STANDARD_FINALIZERS.has(name)
      ? []
      : [
          invalidError(
            `metadata.finalizers[${index}]`,
            name,
            "name is neither a standard finalizer name nor is it fully qualified",
          ),
        ],
  );
}

function checkFinalizer(name: string, path: string): FieldError[] {
  return qualifiedNameProblems(name).map((detail) => invalidError(path, name, detail));
}

/** Returns the present time as Kubernetes stores it: UTC in whole seconds. */
export function now(): string {
  return timestampOf(serverTime());
}

const FOREGROUND = "foregroundDeletion";
const ORPHAN = "orphan";

/** What happens to the dependents of a deleted object. */
export type PropagationPolicy = "Foreground" | "Background" | "Orphan";

/** Returns everything that holds an object; a namespace is also held by the list in its spec. */
export function holdersOf(type: ServedType, object: JsonObject): string[] {
  const ofNamespace = isNamespace(type) ? (arrayAt(objectAt(object, "spec"), "finalizers") ?? []) : [];
  return [...finalizersOf(object), ...(ofNamespace as string[])];
}

/** True for the type Namespace. */
export function isNamespace(type: ServedType): boolean {
  return type.group === "" && type.plural === "namespaces";
}

/** Returns the finalizers of an object that is deleted with a policy; garbage collection acts on them. */
export function finalizersForDeletion(
  type: ServedType,
  object: JsonObject,
  policy: PropagationPolicy | undefined,
): string[] {
  const { defaultPropagation } = type.strategy;
  const present = finalizersOf(object);
  if (defaultPropagation === undefined) return present;
  const kept = present.find((name) => name === FOREGROUND || name === ORPHAN);
  const wanted = policy === undefined ? (kept ?? finalizerOf(defaultPropagation)) : finalizerOf(policy);
  const others = present.filter((name) => name === wanted || (name !== FOREGROUND && name !== ORPHAN));
  return wanted === undefined || others.includes(wanted) ? others : [...others, wanted];
}

function finalizerOf(policy: PropagationPolicy): string | undefined {
  return { Foreground: FOREGROUND, Orphan: ORPHAN, Background: undefined }[policy];
}

/** Returns an object with its members in the order in which the server keeps them, and the kind and apiVersion of its type. */
export function normalForm(type: ServedType, object: JsonObject): JsonObject {
  if (type.custom === undefined) forgetGivenEmpty(object);
  return {
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: object["metadata"] ?? {},
    ...withoutEmptyLists(type.schemaName, withoutHead(object)),
  };
}

function withoutHead(object: JsonObject): JsonObject {
  const { kind: _kind, apiVersion: _apiVersion, metadata: _metadata, ...rest } = object;
  return rest;
}
