import type { JsonValue, ScalePaths, Schema } from "@gen-operator/schema";

export { memberOf } from "@gen-operator/schema";
export type { JsonValue, Schema };
export type { ValidationRule } from "@gen-operator/schema";

/** A value that the Kubernetes API accepts as an integer or a string, such as a port or a percentage. */
export type IntOrString = number | string;

/** A reference from an object to its owner. The garbage collector deletes an object when none of its owners exist any more. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
  readonly blockOwnerDeletion?: boolean | undefined;
}

/** The fields of an object that a field manager owns. */
export interface ManagedFields {
  readonly manager?: string | undefined;
  readonly operation?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly time?: string | undefined;
  readonly fieldsType?: string | undefined;
  readonly fieldsV1?: { readonly [field: string]: unknown } | undefined;
  readonly subresource?: string | undefined;
}

/**
 * The metadata of an object. Times are RFC 3339 strings. The API server sets `uid`, `resourceVersion`, `generation`, `creationTimestamp` and
 * `deletionTimestamp`. Values that clients send do not change these fields; a `uid` or `resourceVersion` in a write is a precondition. The caches of
 * the runtime drop `managedFields`.
 */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly labels?: { readonly [key: string]: string } | undefined;
  readonly annotations?: { readonly [key: string]: string } | undefined;
  readonly finalizers?: readonly string[] | undefined;
  readonly ownerReferences?: readonly OwnerReference[] | undefined;
  readonly generateName?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly generation?: number | undefined;
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly deletionGracePeriodSeconds?: number | undefined;
  readonly managedFields?: readonly ManagedFields[] | undefined;
  /** No API server has set it since Kubernetes 1.20. */
  readonly selfLink?: string | undefined;
}

/** The metadata of an object of a namespaced kind. */
export interface NamespacedMeta extends ObjectMeta {
  readonly namespace: string;
}

/** The metadata of an object of a cluster-scoped kind. */
export interface ClusterMeta extends ObjectMeta {
  readonly namespace?: undefined;
}

/** The metadata that the API server sets on every stored object, so that objects read from it always have it. */
export interface StoredMeta {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
}

/** The same for custom resources, whose `generation` the API server counts from 1. */
export interface StoredCustomMeta extends StoredMeta {
  readonly generation: number;
}

/** A condition of the status (`metav1.Condition`). */
export interface StatusCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number | undefined;
}

/** An object whose status has conditions. */
export type WithConditions = KubernetesObject & {
  readonly status?: { readonly conditions?: readonly StatusCondition[] };
};

/** The fields that every Kubernetes object has. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** Names an object within its kind. `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef {
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** Names an object within its kind, as one string: `namespace/name`, or `name` for a cluster-scoped kind. */
export type ObjectKey = string;

/** Returns whether an object is being deleted. */
export function isTerminating({ metadata }: { readonly metadata: Pick<ObjectMeta, "deletionTimestamp"> }): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Returns the key of an object or of a reference to it. */
export function keyOf({ namespace, name }: ObjectRef): ObjectKey {
  return namespace ? `${namespace}/${name}` : name;
}

/** Returns the reference for a key; the inverse of keyOf(). */
export function refOfKey(key: ObjectKey): ObjectRef {
  const slash = key.indexOf("/");
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Returns the group of an apiVersion; empty for the core group. */
export function groupOf(apiVersion: string): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.lastIndexOf("/")));
}

/** Makes all fields of a value optional, recursively. */
export type PartOf<Value> = Value extends readonly (infer Item)[]
  ? readonly PartOf<Item>[]
  : Value extends object
    ? { readonly [Field in keyof Value]?: PartOf<Value[Field]> | undefined }
    : Value;

/** Some fields of an object, with the name of the object. */
export type PartialResource<Resource extends KubernetesObject> = PartOf<Omit<Resource, "metadata">> & {
  readonly metadata: ObjectRef & PartOf<Resource["metadata"]>;
};

/** The body of a write request. */
export type ObjectBody = object & { readonly metadata: ObjectRef & Partial<ObjectMeta> };

/** A copy of a value that may be modified. The types of values that are read are readonly, recursively. */
export type Draft<Value> = Value extends readonly (infer Item)[]
  ? Draft<Item>[]
  : Value extends object
    ? { -readonly [Field in keyof Value]: Draft<Value[Field]> }
    : Value;

/** An operation of a JSON patch (RFC 6902). */
export interface JsonPatchOperation {
  readonly op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** How an object is written: POST, PUT, server-side apply, JSON patch (RFC 6902), or JSON merge patch (RFC 7386). */
export type WriteVerb = "create" | "update" | "apply" | "jsonPatch" | "mergePatch";

/** Formats a time like `metav1.Time`. */
export function timestampOf(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, "Z");
}

/** Formats a time like `metav1.MicroTime`. */
export function microTimeOf(time: Date): string {
  return time.toISOString().replace(/Z$/, "000Z");
}

/**
 * Parses a JSON object or list. Returns undefined for any other text. Never throws: the error of JSON.parse would quote the text, which may be
 * secret.
 */
export function objectIn<Value extends object>(text: string): Partial<Value> | undefined {
  try {
    const value = JSON.parse(text) as Value | null;
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Describes an object for messages: `Deployment "home/web"`. */
export function describeObject({ kind }: { kind: string }, ref: ObjectRef): string {
  return `${kind} "${keyOf(ref)}"`;
}

/** Compares two resourceVersions, which are increasing decimal numbers (KEP-5504). Negative if `a` is older than `b`. */
export function compareResourceVersions(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

/** Returns whether a resourceVersion is newer than another. */
export function isNewerVersion(version: string, than: string): boolean {
  return compareResourceVersions(version, than) > 0;
}

/** Returns the key of an object, given its reference or its key. */
export function keyFrom(ref: ObjectRef | ObjectKey): ObjectKey {
  return typeof ref === "string" ? ref : keyOf(ref);
}

/** Sorts objects of one kind by key. Unlike the order of a cache, this order is stable across events and restarts. */
export function sortedByKey<Resource extends KubernetesObject>(objects: readonly Resource[]): readonly Resource[] {
  if (objects.length <= 1) return objects;
  const byKey = objects.map((object) => ({ key: keyOf(object.metadata), object }));
  return byKey.sort((one, other) => (one.key < other.key ? -1 : 1)).map(({ object }) => object);
}

/** Reads the objects of one kind from a cache. */
export interface ResourceReader<Resource> {
  /** Returns the object with a reference or key, or undefined if it is not in the cache. */
  get(ref: ObjectRef | ObjectKey): Resource | undefined;
  /** Returns the objects of a namespace, or of all namespaces, sorted by key. */
  list(options?: { readonly namespace?: string }): readonly Resource[];
  /** Returns the objects that an index contains under `value`, sorted by key. Throws if there is no index with this name. */
  byIndex(index: string, value: string): readonly Resource[];
}

/** The subresource that was applied; empty for the object itself. */
export interface OwnedFields {
  readonly fieldManager: string;
  /** The subresource that was applied; empty for the object itself. */
  readonly subresource: string;
  readonly apiVersion: string;
  readonly fieldsV1: string;
  /** Set on entries of former field managers for the object itself. Their `fieldsV1` is dropped. */
  readonly isFormer?: true;
}

/** The field managers of an operator. Caches keep only their `managedFields` entries. */
export interface FieldManagers extends Iterable<string> {
  /** The former field managers, whose fields the operator takes over. */
  readonly former?: ReadonlySet<string>;
}

/** The latest write to an object by a field manager of the operator. `time` is on the clock of the API server. */
export interface ManagedWrite {
  readonly fieldManager: string;
  readonly time: string;
}

/** An object as the runtime caches it: without `managedFields`, which can be most of its size. */
export interface DecodedResource<Resource extends KubernetesObject = KubernetesObject> {
  readonly object: Resource;
  readonly owned?: readonly OwnedFields[];
}

/** Returns the fields of an object, or of one of its subresources, that a field manager has applied. Undefined if there are none. */
export function ownedBy(
  { owned }: DecodedResource,
  fieldManager: string,
  subresource: "" | "status" = "",
): OwnedFields | undefined {
  return owned?.find(
    (fields) =>
      fields.fieldManager === fieldManager && fields.subresource === subresource && fields.isFormer === undefined,
  );
}

/** Returns whether one of these former field managers owns fields of an object. */
export function isOwnedByFormer({ owned }: DecodedResource, managers: readonly string[]): boolean {
  return (
    managers.length > 0 &&
    owned?.some(({ fieldManager, isFormer }) => isFormer === true && managers.includes(fieldManager)) === true
  );
}

/** Returns the resourceVersion of an object, or "0", which is older than any other. */
export function versionOf({ object }: DecodedResource): string {
  return object.metadata.resourceVersion ?? "0";
}

/** Returns the UID of an object, if it has one. */
export function uidOf(entry: DecodedResource | undefined): string | undefined {
  return entry?.object.metadata.uid;
}

declare const resourceType: unique symbol;

/** The properties of a kind that the runtime needs. The generator emits one definition for each kind that a project uses. */
export interface ResourceDefinition<Resource extends KubernetesObject = KubernetesObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope: "Namespaced" | "Cluster";
  /** `group/version`, or `version` for the core group. */
  readonly apiVersion: string;
  readonly hasStatusSubresource: boolean;
  /** The paths that the scale subresource of a custom kind reads, such as `.spec.replicas`. */
  readonly scale?: ScalePaths;
  /** Whether the kind is defined by a CustomResourceDefinition, which a cluster may not have. */
  readonly isCustom: boolean;
  readonly schema: Schema;
  /** Never set; carries the type of the objects. */
  readonly [resourceType]?: Resource;
}

/** A class or any other value with the definition of a kind. */
export interface Defined<Resource extends KubernetesObject = KubernetesObject> {
  readonly definition: ResourceDefinition<Resource>;
}

/** A generated class, or any other value with the definition of a kind. */
export interface ResourceClass<Resource extends KubernetesObject = KubernetesObject, Input = never> {
  readonly definition: ResourceDefinition<Resource>;
  /** Creates an object. Its parameter also connects the input type with the class. */
  create(init: NewResource<Input, Resource>): Unstored<Resource>;
}

/** The metadata of an object before its creation: the name and, for a namespaced kind, the namespace. */
export type UnstoredMeta<Metadata extends ObjectMeta> = [Metadata["namespace"]] extends [undefined]
  ? ClusterMeta
  : [Metadata["namespace"]] extends [string]
    ? NamespacedMeta
    : ObjectMeta;

/**
 * An object that may not exist in the API server, such as the result of `create` or `parse` of a generated class. Its metadata may lack `uid`,
 * `resourceVersion`, `creationTimestamp` and `generation`.
 */
export type Unstored<Resource extends KubernetesObject> = {
  [Field in keyof Resource as Field extends "metadata" ? never : Field]: Resource[Field];
} & { readonly metadata: UnstoredMeta<Resource["metadata"]> };

/** The metadata of a new object: with a `name`, or with a `generateName` from which `create` generates the name. */
export type NewMeta<Metadata extends ObjectMeta> = Metadata | (Unnamed<Metadata> & { readonly generateName: string });

type Unnamed<Metadata> = { [Field in keyof Metadata as Field extends "name" ? never : Field]: Metadata[Field] } & {
  readonly name?: undefined;
};

/** The parameter of `create` of a generated class: the input with the metadata of the object. */
export type NewResource<Input, Resource extends KubernetesObject> = {
  [Field in keyof Input as Field extends "metadata" ? never : Field]: Input[Field];
} & { readonly metadata: NewMeta<UnstoredMeta<Resource["metadata"]>> };

/** An object without apiVersion and kind, which the class defines, and without the metadata that only the API server sets. */
export type WholeObject<Resource extends KubernetesObject> = Omit<Unstored<Resource>, "apiVersion" | "kind">;

/** A generated class, which knows the input type of new objects, or only the definition of a kind. */
export interface Creatable<Resource extends KubernetesObject, Input> {
  readonly definition: ResourceDefinition<Resource>;
  create?(init: NewResource<Input, Resource>): Unstored<Resource>;
}

/** Returns the definition of a built-in kind, in version v1, that the runtime itself uses. By default, it is namespaced and in the core group. */
export function builtinKindOf<Resource extends KubernetesObject>({
  group = "",
  kind,
  plural,
  scope = "Namespaced",
}: Pick<ResourceDefinition, "kind" | "plural"> &
  Partial<Pick<ResourceDefinition, "group" | "scope">>): ResourceDefinition<Resource> {
  const version = { group, version: "v1", apiVersion: group === "" ? "v1" : `${group}/v1` };
  return { ...version, kind, plural, scope, hasStatusSubresource: false, isCustom: false, schema: {} };
}

/** Returns `Kind.version.group`, for messages and as a map key. */
export function kindNameOf({ group, version, kind }: ResourceDefinition): string {
  return group === "" ? `${kind}.${version}` : `${kind}.${version}.${group}`;
}

/**
 * Returns whether a kind is served, given its served versions. Throws if only other versions are served: objects may exist, but cannot be reached.
 */
export function isReachable(definition: ResourceDefinition, served: readonly string[]): boolean {
  const { version } = definition;
  if (served.includes(version) || served.length === 0) return served.length > 0;
  throw new Error(
    `${kindNameOf(definition)} is served in other versions only (${served.join(", ")}): serve ${version} again, or use a version that is served`,
  );
}

/** Returns the name of the CustomResourceDefinition of a kind: `plural.group`. */
export function crdNameOf({ group, plural }: ResourceDefinition): string {
  return `${plural}.${group}`;
}

/** The type of an event source's resources: a kind or, for resources outside of Kubernetes, a name that the user chooses. */
export type SecondaryType = ResourceDefinition | string;

/** Returns the name of a type, for messages and comparisons. */
export function nameOfType(type: SecondaryType | undefined): string | undefined {
  return typeof type === "object" ? kindNameOf(type) : type;
}

/** Returns whether an event source has resources of a type. */
export function hasType({ type }: { readonly type?: SecondaryType | undefined }, wanted: SecondaryType): boolean {
  return type !== undefined && typeof type === typeof wanted && nameOfType(type) === nameOfType(wanted);
}
