// What a run needs of each kind of dependents: how their objects are found, written and removed. When any of that is done is not for a
// driver to know, and neither are conditions, order, retries or the items of a bulk dependent.
import type { PostponedWrite } from "../../write/send/postponed-write.js";
import type { KubernetesObject, ObjectKey } from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import type { DependentArguments } from "../definition/workflow-definition.js";

/** For whom a driver works: one run for one primary. */
export interface DriverRun extends DependentArguments<KubernetesObject, object> {
  /** The kind of the primary. */
  readonly definition: ResourceDefinition;
  /** The namespaces that the controller watches; all of them if absent. */
  readonly namespaces?: readonly string[] | undefined;
}

/** What `desired` returned, completed to what is written. */
export interface Wanted {
  /** What tells the object from the others of its kind: the key of an object of Kubernetes, or the id of a resource. */
  readonly id: string;
  readonly object: object;
}

/** A live object as a driver knows it; `object` is what functions of the user see. */
export interface Live {
  readonly object: object;
}

/**
 * What a write did; `waiting`: nothing, because the object is being deleted and can be made anew only when it is gone; `absent`: nothing,
 * because there is no object and somebody else has to create it; `postponed`: nothing for now, because the object is written over and over.
 */
export type WriteOutcome =
  | "created"
  | "updated"
  | "unchanged"
  | "waiting"
  | "absent"
  | { readonly kind: "postponed"; readonly postponed: PostponedWrite };

/** For whom objects are looked for; with a context, what other dependents want in its reconcile is not found. */
export type FindRun = Pick<DriverRun, "primary"> & Partial<Pick<DriverRun, "context">>;

/** Finds, writes and removes the objects of one dependent; made once for a controller, so it keeps nothing of a run. */
export interface DependentDriver {
  /** Whether its objects may be left in a cleanup, because something else deletes them when their primary is gone. */
  readonly isGarbageCollected: boolean;
  /** What the dependent can do at all: one without `write` is only waited for, one without `remove` is left. */
  readonly capabilities: { readonly write: boolean; readonly remove: boolean };
  /** The client of the cluster that its objects are in; absent for what Kubernetes does not have. */
  readonly client?: ApiClient | undefined;
  /**
   * Starts to follow the objects, where an activation condition decides about that; resolves when the state is known. Throws if it cannot
   * be known now; then the primary is reconciled again when it is.
   */
  activate(primary: ObjectKey): Promise<void>;
  /** Says that a primary does not need the dependent; with the last one its objects are followed no more. */
  deactivate(primary: ObjectKey): Promise<void>;
  /** Completes what `desired` returned, for one item of a bulk dependent if its key is given. Throws a TerminalError if it cannot be written. */
  complete(run: DriverRun, desired: unknown, item?: string): Wanted;
  /** Returns the live object: the one that is wanted, or before that is known, the one that belongs to the primary. */
  find(run: FindRun, wanted?: Wanted): Live | undefined;
  /** Returns the live items of a bulk dependent by their keys. */
  findItems(run: FindRun): ReadonlyMap<string, Live>;
  /**
   * Returns those objects of the controller that are tied to a primary and meant, in the kind and cluster of this dependent, whichever
   * dependent they were written as. Absent where nothing can be left.
   */
  findLeftovers?(
    run: Pick<DriverRun, "primary">,
    isMeant: (dependent: string, id: ObjectKey) => boolean,
  ): readonly Live[];
  /** Makes the object as wanted, if it is not; `live` is what `find` returned. */
  write(run: DriverRun, wanted: Wanted, live: Live | undefined): Promise<WriteOutcome>;
  /**
   * Asks for the object to be deleted, unless that was done; it may be there for a while. One that is to be orphaned is untied from its
   * primary instead, and not found any more.
   */
  remove(run: DriverRun, live: Live): Promise<void>;
  /** Tells whether an object that could not be deleted is left, so that its primary goes all the same. Default: it is not. */
  release?(run: DriverRun, failed: { readonly error: unknown; readonly item?: string | undefined }): boolean;
}
