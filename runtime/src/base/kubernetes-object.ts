import type { JsonValue, ScalePaths, Schema } from "@gen-operator/schema";

export { memberOf } from "@gen-operator/schema";
export type { JsonValue, Schema };
export type { ValidationRule } from "@gen-operator/schema";

/** A value that Kubernetes accepts as a number or as text, such as a port or a percentage. */
export type IntOrString = number | string;

/** The link from an object to the one that owns it; the garbage collector deletes an object whose owners are all gone. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
  readonly blockOwnerDeletion?: boolean | undefined;
}

/** Which fields of an object a field manager wrote last. */
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
 * The metadata of an object; times are RFC 3339 strings. The API server sets `uid`, `resourceVersion`, `generation`, `creationTimestamp` and
 * `deletionTimestamp` itself; what a client sends there is ignored. The runtime's cache keeps no `managedFields`.
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
  /** Set by no API server since 1.20. */
  readonly selfLink?: string | undefined;
}

/** The metadata of an object of a namespaced kind, which is always in a namespace. */
export interface NamespacedMeta extends ObjectMeta {
  readonly namespace: string;
}

/** The metadata of an object of a cluster-scoped kind, which is in no namespace. */
export interface ClusterMeta extends ObjectMeta {
  readonly namespace?: undefined;
}

/** What the API server sets in the metadata of each object that it stores: an object that was read always has it. */
export interface StoredMeta {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
}

/** The same for objects of custom kinds, whose `generation` the API server counts from 1. */
export interface StoredCustomMeta extends StoredMeta {
  readonly generation: number;
}

/** One aspect of the state of an object, as `metav1.Condition` defines it. */
export interface StatusCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number | undefined;
}

/** An object of a kind whose status has conditions. */
export type WithConditions = KubernetesObject & {
  readonly status?: { readonly conditions?: readonly StatusCondition[] };
};

/** What every Kubernetes object has. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** The name of an object within its kind; `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef {
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** The identity of an object within its kind as one string: `namespace/name`, or `name` for a cluster-scoped one. */
export type ObjectKey = string;

/** Tells whether an object is being deleted. */
export function isTerminating({ metadata }: { readonly metadata: Pick<ObjectMeta, "deletionTimestamp"> }): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Returns the key of an object or of a reference to one. */
export function keyOf({ namespace, name }: ObjectRef): ObjectKey {
  return namespace ? `${namespace}/${name}` : name;
}

/** Returns the reference that `keyOf` turned into `key`. */
export function refOfKey(key: ObjectKey): ObjectRef {
  const slash = key.indexOf("/");
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Returns the group of an API version; empty for the core group. */
export function groupOf(apiVersion: string): string {
  return apiVersion.slice(0, Math.max(0, apiVersion.lastIndexOf("/")));
}

/** Some of the fields of a value. */
export type PartOf<Value> = Value extends readonly (infer Item)[]
  ? readonly PartOf<Item>[]
  : Value extends object
    ? { readonly [Field in keyof Value]?: PartOf<Value[Field]> | undefined }
    : Value;

/** Some of the fields of an object, and which object it is. */
export type PartialResource<Resource extends KubernetesObject> = PartOf<Omit<Resource, "metadata">> & {
  readonly metadata: ObjectRef & PartOf<Resource["metadata"]>;
};

/** An object as a write sends it. */
export type ObjectBody = object & { readonly metadata: ObjectRef & Partial<ObjectMeta> };

/** A copy of a value that may be changed: the types of what is read are readonly, at any depth. */
export type Draft<Value> = Value extends readonly (infer Item)[]
  ? Draft<Item>[]
  : Value extends object
    ? { -readonly [Field in keyof Value]: Draft<Value[Field]> }
    : Value;

/** One operation of a JSON patch (RFC 6902). */
export interface JsonPatchOperation {
  readonly op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** The ways to write an object: POST, PUT, server-side apply, JSON patch (RFC 6902), JSON merge patch (RFC 7386). */
export type WriteVerb = "create" | "update" | "apply" | "jsonPatch" | "mergePatch";

/** Returns a time as `metav1.Time` has it. */
export function timestampOf(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, "Z");
}

/** Returns a time as `metav1.MicroTime` has it. */
export function microTimeOf(time: Date): string {
  return time.toISOString().replace(/Z$/, "000Z");
}

/** Returns the object or list that a text is in JSON; undefined if it is none. A parser's own error would quote the text, which may be secret. */
export function objectIn<Value extends object>(text: string): Partial<Value> | undefined {
  try {
    const value = JSON.parse(text) as Value | null;
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Names an object for messages: `Deployment "home/web"`. */
export function describeObject({ kind }: { kind: string }, ref: ObjectRef): string {
  return `${kind} "${keyOf(ref)}"`;
}

/** Compares two resource versions, which are decimal numbers that only grow (KEP-5504): negative if `a` is older than `b`. */
export function compareResourceVersions(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

/** Tells whether a resource version is newer than another. */
export function isNewerVersion(version: string, than: string): boolean {
  return compareResourceVersions(version, than) > 0;
}

/** Returns the key of an object that is named by a ref or by its key. */
export function keyFrom(ref: ObjectRef | ObjectKey): ObjectKey {
  return typeof ref === "string" ? ref : keyOf(ref);
}

/** Returns objects of one kind in the order of their keys, which neither events nor a restart change as they do that of a cache. */
export function sortedByKey<Resource extends KubernetesObject>(objects: readonly Resource[]): readonly Resource[] {
  if (objects.length <= 1) return objects;
  const byKey = objects.map((object) => ({ key: keyOf(object.metadata), object }));
  return byKey.sort((one, other) => (one.key < other.key ? -1 : 1)).map(({ object }) => object);
}

/** Reads objects of one kind from a cache. */
export interface ResourceReader<Resource> {
  /** Returns an object by its ref, or its key; undefined if it is not known. */
  get(ref: ObjectRef | ObjectKey): Resource | undefined;
  /** Returns the objects of a namespace, or all of them, sorted by key. */
  list(options?: { readonly namespace?: string }): readonly Resource[];
  /** Returns the objects for which the function of an index gave `value`, sorted by key; throws if there is no index of this name. */
  byIndex(index: string, value: string): readonly Resource[];
}

/** The fields that a controller applied to an object, as the API server recorded them in `metadata.managedFields`. */
export interface OwnedFields {
  readonly fieldManager: string;
  /** The subresource through which it was applied; empty if it was the object itself. */
  readonly subresource: string;
  readonly apiVersion: string;
  readonly fieldsV1: string;
  /** Set on entries of former field managers for the object itself. Their `fieldsV1` is not kept. */
  readonly isFormer?: true;
}

/** The names of the field managers of an operator, whose entries the caches keep. */
export interface FieldManagers extends Iterable<string> {
  /** The names of the field managers whose fields the operator takes over. */
  readonly former?: ReadonlySet<string>;
}

/** The latest write of the field managers of the operator to an object, in the time of the API server. */
export interface ManagedWrite {
  readonly fieldManager: string;
  readonly time: string;
}

/** An object as the runtime keeps it: without `managedFields`, which are most of its size. */
export interface DecodedResource<Resource extends KubernetesObject = KubernetesObject> {
  readonly object: Resource;
  readonly owned?: readonly OwnedFields[];
}

/** Returns the fields that a controller applied to an object, or through a subresource; undefined if there are none. */
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

/** Tells whether one of these former field managers owns fields of an object. */
export function isOwnedByFormer({ owned }: DecodedResource, managers: readonly string[]): boolean {
  return (
    managers.length > 0 &&
    owned?.some(({ fieldManager, isFormer }) => isFormer === true && managers.includes(fieldManager)) === true
  );
}

/** Returns the version of an object; "0", which is older than any, if it has none. */
export function versionOf({ object }: DecodedResource): string {
  return object.metadata.resourceVersion ?? "0";
}

/** Returns the uid of an object, if there is one. */
export function uidOf(entry: DecodedResource | undefined): string | undefined {
  return entry?.object.metadata.uid;
}

declare const resourceType: unique symbol;

/** What the runtime has to know of a kind; the generator writes one for each kind that a project uses. */
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
  /** Where a custom kind with the subresource `scale` keeps what its Scale shows, for example `.spec.replicas`. */
  readonly scale?: ScalePaths;
  /** Whether the kind comes from a CustomResourceDefinition, which a cluster may lack. */
  readonly isCustom: boolean;
  readonly schema: Schema;
  /** Never set: it only carries the type. */
  readonly [resourceType]?: Resource;
}

/** A class or anything else that carries the definition of a kind. */
export interface Defined<Resource extends KubernetesObject = KubernetesObject> {
  readonly definition: ResourceDefinition<Resource>;
}

/** A generated class, or anything else that carries the definition of a kind. */
export interface ResourceClass<Resource extends KubernetesObject = KubernetesObject, Input = never> {
  readonly definition: ResourceDefinition<Resource>;
  /** Builds a resource; here it ties the input type to the class. */
  create(init: NewResource<Input, Resource>): Unstored<Resource>;
}

/** The metadata of an object before it is created: its name, and the namespace if its kind is namespaced. */
export type UnstoredMeta<Metadata extends ObjectMeta> = [Metadata["namespace"]] extends [undefined]
  ? ClusterMeta
  : [Metadata["namespace"]] extends [string]
    ? NamespacedMeta
    : ObjectMeta;

/**
 * An object that need not exist in the API server, such as one that `create` or `parse` of a class returns: its metadata may
 * lack `uid`, `resourceVersion`, `creationTimestamp` and `generation`.
 */
export type Unstored<Resource extends KubernetesObject> = {
  [Field in keyof Resource as Field extends "metadata" ? never : Field]: Resource[Field];
} & { readonly metadata: UnstoredMeta<Resource["metadata"]> };

/** The metadata of an object that is to be created: with a name, or with the start of a name that `create` completes. */
export type NewMeta<Metadata extends ObjectMeta> = Metadata | (Unnamed<Metadata> & { readonly generateName: string });

type Unnamed<Metadata> = { [Field in keyof Metadata as Field extends "name" ? never : Field]: Metadata[Field] } & {
  readonly name?: undefined;
};

/** What `create` of a class takes: an input that says where the object is. */
export type NewResource<Input, Resource extends KubernetesObject> = {
  [Field in keyof Input as Field extends "metadata" ? never : Field]: Input[Field];
} & { readonly metadata: NewMeta<UnstoredMeta<Resource["metadata"]>> };

/** An object without what the class says anyway; what only the API server sets may be missing. */
export type WholeObject<Resource extends KubernetesObject> = Omit<Unstored<Resource>, "apiVersion" | "kind">;

/** A generated class, of which it is known what a new object is made of, or the definition of a kind alone. */
export interface Creatable<Resource extends KubernetesObject, Input> {
  readonly definition: ResourceDefinition<Resource>;
  create?(init: NewResource<Input, Resource>): Unstored<Resource>;
}

/** Returns the definition of a kind of Kubernetes in version v1 that the runtime itself asks for. Default: namespaced, of the core group. */
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

/** Returns `Kind.version.group` of a definition, for messages and as a map key. */
export function kindNameOf({ group, version, kind }: ResourceDefinition): string {
  return group === "" ? `${kind}.${version}` : `${kind}.${version}.${group}`;
}

/** Tells whether a kind is served, by the versions that are; throws if its own is none of them: its objects may exist, and cannot be reached. */
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

/** The type of the resources of an event source: a kind, or the user's own name for what Kubernetes does not have. */
export type SecondaryType = ResourceDefinition | string;

/** Returns the name of a type as messages and comparisons use it. */
export function nameOfType(type: SecondaryType | undefined): string | undefined {
  return typeof type === "object" ? kindNameOf(type) : type;
}

/** Tells whether an event source has resources of this type. */
export function hasType({ type }: { readonly type?: SecondaryType | undefined }, wanted: SecondaryType): boolean {
  return type !== undefined && typeof type === typeof wanted && nameOfType(type) === nameOfType(wanted);
}
