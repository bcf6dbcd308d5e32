/** A reference from a dependent to its owner. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** The metadata that the simulated controllers read. */
export interface ObjectMetadata {
  name: string;
  generateName?: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  labels?: Record<string, string>;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

/** An object of any kind; items of a list may lack apiVersion and kind. */
export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMetadata;
}

/** A kind of resource that the server offers. */
export interface ResourceKind {
  group: string;
  version: string;
  kind: string;
  plural: string;
  namespaced: boolean;
  verbs: string[];
}

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf({ group, version }: ResourceKind): string {
  return group === "" ? version : `${group}/${version}`;
}

/** The path of a collection, or of one object in it. */
export function pathOf(kind: ResourceKind, { namespace, name }: { namespace?: string; name?: string } = {}): string {
  const root = kind.group === "" ? "/api" : `/apis/${kind.group}`;
  const scope = kind.namespaced && namespace !== undefined ? `/namespaces/${namespace}` : "";
  // Names of RBAC objects may contain colons and the like.
  const item = name === undefined ? "" : `/${encodeURIComponent(name)}`;
  return `${root}/${kind.version}${scope}/${kind.plural}${item}`;
}

/** Identifies an object of its kind: `namespace/name`, or the name where it has no namespace. */
export function keyOfObject({ namespace, name }: { namespace?: string; name: string }): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** The reference to the controller of an object. */
export function controllerOf({ metadata }: KubernetesObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}
