import type { ScalePaths, Schema } from "@gen-operator/schema";
import type { ClusterMeta, KubernetesObject, NamespacedMeta, ObjectMeta } from "./kubernetes-object.js";

export type { Schema, ValidationRule } from "@gen-operator/schema";

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
