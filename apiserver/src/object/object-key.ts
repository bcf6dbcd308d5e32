import type { ServedType } from "../builtin/served-type.js";
import type { KindRef, ResourceRef } from "../errors/status-error.js";

/** Returns the key of an object in the store of its resource. */
export function keyOf(object: { namespace: string | undefined; name: string }): string {
  return object.namespace === undefined ? object.name : `${object.namespace}/${object.name}`;
}

/** Returns the prefix of the keys in a namespace, or of all keys. */
export function keyPrefixOf(namespace: string | undefined): string {
  return namespace === undefined ? "" : `${namespace}/`;
}

/** Returns the name of a resource across its versions, for example `widgets.example.com`. */
export function resourceNameOf(type: { plural: string; group: string }): string {
  return type.group === "" ? type.plural : `${type.plural}.${type.group}`;
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
