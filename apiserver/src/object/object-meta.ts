/** Metadata and identity of objects, independent of their type: kind, name, namespace, and `metadata`. Messages are those of Kubernetes 1.36. */
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

/** Returns the key prefix of a namespace; "" for all namespaces. */
export function keyPrefixOf(namespace: string | undefined): string {
  return namespace === undefined ? "" : `${namespace}/`;
}

/** Returns the `apiVersion` of a type. */
export function apiVersionOf(type: { group: string; version: string }): string {
  return type.group === "" ? type.version : `${type.group}/${type.version}`;
}

/** Splits an `apiVersion` into group and version. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return { group: apiVersion.slice(0, Math.max(slash, 0)), version: apiVersion.slice(slash + 1) };
}

/** Returns the reference to an object in most errors, by resource. */
export function resourceRefOf(type: ServedType, name: string): ResourceRef {
  return { resource: type.plural, group: type.group, name };
}

/** Returns the reference to an object in validation errors, by kind. Events of both groups count as core. */
export function kindRefOf({ kind, group }: ServedType, name: string): KindRef {
  return { kind, group: group === "events.k8s.io" ? "" : group, name };
}

// Resources whose storage prefix in etcd differs from their plural. Those of the extension API servers include their group.
const STORED_AS: { readonly [plural: string]: string } = {
  replicationcontrollers: "controllers",
  endpoints: "services/endpoints",
  nodes: "minions",
  services: "services/specs",
  ingresses: "ingress",
  customresourcedefinitions: "apiextensions.k8s.io/customresourcedefinitions",
  apiservices: "apiregistration.k8s.io/apiservices",
};

/** Returns the etcd key of an object, which some errors contain. A dry run omits its prefix. */
export function storageKeyOf(type: ServedType, key: string, { isDryRun }: { isDryRun: boolean }): string {
  const own = type.custom === undefined ? (STORED_AS[type.plural] ?? type.plural) : `${type.group}/${type.plural}`;
  return `${isDryRun ? "" : "/registry"}/${own}/${key}`;
}

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
  `alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`;
const labelPattern = new RegExp(`^${LABEL}$`);

/** The rule for the names of a type. */
export type NameRule = "subdomain" | "label" | "path-segment" | "namespace" | "address" | "long-name";

/** Validates a name and returns the problems. A generateName (`isPrefix`) may end in a dash. */
export function checkName(rule: NameRule, name: string, { isPrefix = false } = {}): string[] {
  // For long names, a generateName is not validated, and the message counts bytes.
  if (rule === "long-name")
    return isPrefix ? [] : subdomainProblems(name).map((problem) => problem.replace(/ characters$/, " bytes"));
  if (rule === "path-segment") return pathSegmentProblems(name, { isPrefix });
  // As in Kubernetes (maskTrailingDash), a letter replaces the trailing dash of a prefix and the character before it.
  const tried = isPrefix ? name.replace(/.-$/s, "a") : name;
  // Unlike label values, names are limited in characters, not bytes.
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

/** Throws 400 if a name in a path is invalid. */
export function checkPathName(name: string): void {
  const problems = pathSegmentProblems(name);
  if (problems.length > 0) throw badRequest(`Name parameter invalid: ${quote(name)}: ${problems.join(";")}`);
}

const STANDARD_FINALIZERS = new Set(["kubernetes", "orphan", "foregroundDeletion"]);

/** Returns the `metadata` of an object, which every object in the registry has. */
export function metadataOf(object: JsonObject): JsonObject {
  return object["metadata"] as JsonObject;
}

/** Returns the finalizers of an object. */
export function finalizersOf(object: JsonObject): string[] {
  return (arrayAt(metadataOf(object), "finalizers") ?? []) as string[];
}

/** Reports whether an object is being deleted. */
export function isTerminating(object: JsonObject): boolean {
  return typeof metadataOf(object)["deletionTimestamp"] === "string";
}

/** Reports whether a finalizer is a standard one, which needs no domain. */
export function isStandardFinalizer(name: string): boolean {
  return STANDARD_FINALIZERS.has(name);
}

/** Validates the metadata of a new object before it is stored. */
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

// The fields that Kubernetes validates on every create and update.
function checkWritable(metadata: JsonObject): FieldError[] {
  return [
    ...checkLabels(objectAt(metadata, "labels") ?? {}, "metadata.labels"),
    ...checkAnnotations(objectAt(metadata, "annotations") ?? {}, "metadata.annotations"),
    ...checkOwnerReferences(arrayAt(metadata, "ownerReferences") ?? [], "metadata.ownerReferences"),
    ...checkManagers("metadata.managedFields", arrayAt(metadata, "managedFields") ?? []),
  ];
}

/**
 * Validates the metadata of an updated object. Kubernetes validates most of it for all types and again for the kind, and reports both. The update of
 * a subresource validates only the change.
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
  // The rule of the type was checked on creation; an update validates name and generateName as path segments only.
  return [...checkCommonMeta("path-segment", object), ...change, ...ofKind];
}

/** Validates the metadata of an object embedded in another one, at `path`. Its name must only be a valid path segment. */
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

// Rejects changes of immutable metadata, and new finalizers on an object that is being deleted.
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

/** Removes duplicate owner references, in place, and returns the warning for the client; undefined if there are none. */
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

/** Returns the warnings about new finalizers without a path. */
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
  // An invalid apiVersion has neither group nor version.
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

// Formats an owner reference as Go prints it: with its fields in order.
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

// Most built-in types additionally require finalizers to be standard or qualified.
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

/** Returns the current time as Kubernetes stores it: UTC, in seconds. */
export function now(): string {
  return timestampOf(serverTime());
}

const FOREGROUND = "foregroundDeletion";
const ORPHAN = "orphan";

/** What happens to the dependents of a deleted object. */
export type PropagationPolicy = "Foreground" | "Background" | "Orphan";

/** Returns all finalizers of an object. A Namespace also has those in its spec. */
export function holdersOf(type: ServedType, object: JsonObject): string[] {
  const ofNamespace = isNamespace(type) ? (arrayAt(objectAt(object, "spec"), "finalizers") ?? []) : [];
  return [...finalizersOf(object), ...(ofNamespace as string[])];
}

export function isNamespace(type: ServedType): boolean {
  return type.group === "" && type.plural === "namespaces";
}

/** Returns the finalizers of an object after a delete with a propagation policy. The garbage collector acts on them. */
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

/** Returns a normalized object: its fields in the order of the server, with the kind and apiVersion of its type. */
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
