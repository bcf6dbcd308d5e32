import type { ResourceRef } from "../errors/status-error.js";
import { type JsonObject, stringAt } from "../json.js";
import { metadataOf, resourceRefOf } from "../object/object-meta.js";
import type { ServedResource } from "../registry/registry.js";
import type { WriteContext } from "../write/write-context.js";

/** A write as admission sees it. */
export interface AdmittedWrite {
  readonly context: WriteContext;
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  /** "" for a creation under a generated name, and for what is deleted with a collection. */
  readonly name: string;
  /** "" on the main endpoint. */
  readonly subresource: string;
  /** The resource whose object `object` is, if that is neither the resource of the path nor a Scale. */
  readonly part?: ServedResource | undefined;
  /** The new state in the version of the request, or the options of a connection; absent in a deletion. */
  readonly object?: JsonObject;
  /** Whether an update creates the object, whose user need not have the right to create. */
  readonly isUpsert?: boolean;
  /** The present state in the version of the request; absent in a creation. */
  readonly oldObject?: JsonObject;
}

/**
 * What is asked about the writes of clients before they are stored.
 *
 * Both return undefined where nobody has to be asked; then the write stays within one turn. A refusal is a StatusError.
 * https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
 */
export interface Admission {
  /** Returns the object as admission changes it, decoded and with defaults, before it is checked; an object of its own. */
  mutate(write: AdmittedWrite): Promise<JsonObject> | undefined;
  /** Checks what would be stored. */
  validate(write: AdmittedWrite): Promise<void> | undefined;
}

/** An admission plugin. It handles writes of the listed resources only. */
export interface AdmissionPlugin {
  /** For example `pods` or `ingresses.networking.k8s.io`, including their subresources. */
  readonly resources: readonly string[];
  /** Changes the object of a write in place; a promise where it waits for something. A refusal is a StatusError. */
  readonly mutate?: (write: AdmittedWrite) => Promise<void> | void;
  /** Throws a StatusError for what must not be stored. */
  readonly validate?: (write: AdmittedWrite) => void;
}

/** Names what a write is about to whoever is refused; what has no name yet has the beginning of one. */
export function refOfWrite({ context, name, object }: AdmittedWrite): ResourceRef {
  const metadata = object === undefined ? undefined : metadataOf(object);
  const names = [name, stringAt(metadata, "name"), stringAt(metadata, "generateName"), "Unknown!"];
  return resourceRefOf(context.resource.type, names.find((one) => one !== undefined && one !== "") ?? "");
}
