import type { KubernetesObject } from "./kubernetes-object.js";

/** The fields that a controller applied to an object, as the API server recorded them in `metadata.managedFields`. */
export interface OwnedFields {
  readonly fieldManager: string;
  /** The subresource through which it was applied; empty if it was the object itself. */
  readonly subresource: string;
  readonly apiVersion: string;
  readonly fieldsV1: string;
  /** Whether the entry is one of a former field manager, of which only is kept that it exists: its `fieldsV1` is empty. */
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
