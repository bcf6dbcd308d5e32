import type { ResourceRef } from "../errors/status-error.js";
import { type JsonObject, stringAt } from "../json.js";
import { metadataOf, resourceRefOf } from "../object/object-meta.js";
import type { ServedResource } from "../registry/registry.js";
import type { WriteContext } from "../write/write-context.js";

/** The attributes of a write that admission reads. */
export interface AdmittedWrite {
  readonly context: WriteContext;
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  /** "" for a create with generateName and for each object that a deletecollection deletes. */
  readonly name: string;
  /** "" on the main endpoint. */
  readonly subresource: string;
  /** The resource of `object` if the subresource has its own kind, other than Scale. */
  readonly part?: ServedResource | undefined;
  /** The new object in the version of the request, or the options of a CONNECT; undefined for a delete. */
  readonly object?: JsonObject;
  /** Whether an update creates the object. The request was authorized as an update, so admission checks the permission to create. */
  readonly isUpsert?: boolean;
  /** The existing object in the version of the request; undefined for a create. */
  readonly oldObject?: JsonObject;
}

/**
 * The admission chain that client writes pass before they are stored.
 *
 * Both methods return undefined if admission completes synchronously, so that the write stays in one turn of the event loop. A denial is a
 * StatusError.
 * https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
 */
export interface Admission {
  /**
   * Mutates the decoded and defaulted object before it is validated. Plugins mutate it in place; policies and webhooks return a new object. Returns
   * undefined if the object was at most mutated in place.
   */
  mutate(write: AdmittedWrite): Promise<JsonObject> | undefined;
  /** Validates the object to be stored. */
  validate(write: AdmittedWrite): Promise<void> | undefined;
}

/** An admission plugin. It handles writes of the listed resources only. */
export interface AdmissionPlugin {
  /** For example `pods` or `ingresses.networking.k8s.io`, including their subresources. */
  readonly resources: readonly string[];
  /** Mutates the object of a write in place. Returns a promise if it waits. A denial is a StatusError. */
  readonly mutate?: (write: AdmittedWrite) => Promise<void> | void;
  /** Throws a StatusError to deny the write. */
  readonly validate?: (write: AdmittedWrite) => void;
}

/** Returns the resource and name for error messages. An object without a name is identified by its generateName. */
export function refOfWrite({ context, name, object }: AdmittedWrite): ResourceRef {
  const metadata = object === undefined ? undefined : metadataOf(object);
  const names = [name, stringAt(metadata, "name"), stringAt(metadata, "generateName"), "Unknown!"];
  return resourceRefOf(context.resource.type, names.find((one) => one !== undefined && one !== "") ?? "");
}
