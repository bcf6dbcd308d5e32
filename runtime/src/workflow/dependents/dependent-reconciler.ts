// What a run needs of each kind of dependents: how their objects are found, written and removed. A dependent reconciler does not know when
// that is done, nor of conditions, order, retries or the items of a bulk dependent.
import type { PostponedWrite, Tracing } from "../../base/activity.js";
import type { KubernetesObject, ObjectKey } from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import type { DependentSource } from "../../sources/kind/dependent-source.js";
import type { DependentArguments } from "../definition/workflow-definition.js";
import type { LinkedPrimary } from "./live-objects.js";
import type { DiscoveredObjects, ReconcileNotes } from "../reconcile-notes.js";
import type { SeenVersions } from "../live-reads.js";
import type { DecodedResource } from "../../base/decoded-resource.js";

/** For whom a dependent is reconciled: one run for one primary. */
export interface DependentRun extends DependentArguments<KubernetesObject, object> {
  /** The kind of the primary. */
  readonly definition: ResourceDefinition;
  /** The namespaces that the controller watches; all of them if absent. */
  readonly namespaces?: readonly string[] | undefined;
  readonly notes: ReconcileNotes;
  /** Whose object is written, in the log. Default: that of the reconciler */
  readonly dependent?: string;
  /** Whether nothing of it may be left, so that `discover` looks for it as while the primary is being deleted. Default: false */
  readonly isConfirming?: boolean;
  /** Whether nothing is known of the primary but its name, namespace and uid, so that functions which read more fail. Default: false */
  readonly isPrimaryUnknown?: boolean;
  /** Is told of the changes of its objects. */
  readonly tracing?: Pick<Tracing, "changed"> | undefined;
  /**
   * Puts the finalizer on the primary, unless it has it: called before the first write of an object that has to be cleaned up. Throws if the primary
   * is gone, or the finalizer cannot be stored. Absent if the controller uses none.
   */
  readonly ensureFinalizer?: (() => Promise<void>) | undefined;
  /** Is told of every write that is given up, and that may create an object later that nobody but the runtime deletes. */
  readonly onGivenUp?: (() => void) | undefined;
}

/** Returns the part of a run that functions of the user are called with. */
export function argumentsOf({
  primary,
  secondary,
  context,
}: DependentRun): DependentArguments<KubernetesObject, object> {
  return { primary, secondary, context };
}

/** What `desired` returned, completed to what is written. */
export interface Wanted {
  /** The key of an object of Kubernetes, or the id of an external resource. */
  readonly id: string;
  readonly object: object;
  /** The key, if it is an item of a bulk dependent. */
  readonly item?: string | undefined;
}

/** A live object as its reconciler knows it; `object` is what functions of the user see. */
export interface Live {
  readonly object: object;
}

/** The live items of a bulk dependent by their keys. */
export type KnownItems = Pick<ReadonlyMap<string, Live>, "get">;

/** An object that `desired` has not seen; `isForeign`: it does not belong to the primary, and is to be adopted. */
export interface UnseenObject {
  readonly unseen: DecodedResource;
  readonly isForeign?: boolean | undefined;
}

/** An object that is created once, was, and is gone. */
export interface EndedObject {
  readonly ended: { readonly isReady: boolean; readonly detail?: string };
}

/**
 * What a write did. Nothing is written if the object is still being deleted (`waiting`), if somebody else creates it (`absent`), for a reason of its
 * own (`because`; with `untilEnd` the object is written once it has ended), or if `desired` has not seen the object that the write would replace (`unseen`).
 */
export type WriteOutcome =
  | "created"
  | "updated"
  | "unchanged"
  | "waiting"
  | "absent"
  | { readonly postponed: PostponedWrite }
  | { readonly because: string; readonly untilEnd?: boolean }
  | EndedObject
  | UnseenObject;

/** For whom objects are looked for; with notes, what other dependents want in the reconcile is not found. */
export type FindRun = Pick<DependentRun, "primary"> &
  Partial<Pick<DependentRun, "notes">> & {
    /** Objects that the watch does not show. Default: those of the notes */
    readonly discovered?: DiscoveredObjects;
  };

/** For whom objects are released. */
export type HoldRun = Pick<DependentRun, "primary"> & {
  readonly context: Pick<DependentRun["context"], "signal" | "logger">;
};

/** Finds, writes and removes the objects of one dependent; made once for a controller, so it keeps nothing of a run. */
export interface DependentReconciler {
  /** Runs the watch of a dependent with an activation condition while a primary needs it. */
  readonly source: Pick<DependentSource, "activate" | "deactivate">;
  /** Tells whether objects of a primary may be where nothing is known now, so that `desired` has to say where they are. Default: it does not. */
  isPartlyUnknown?(run: FindRun): boolean;
  /** Says what is not known where the desired objects are; undefined if all is. */
  unknownOf?(run: FindRun, desired: unknown): string | undefined;
  /** A dependent without `write` is only waited for, one without `remove` is left. */
  readonly capabilities: { readonly write: boolean; readonly remove: boolean };
  /** The client of the cluster of its objects; absent for external resources. */
  readonly client?: ApiClient | undefined;
  /** Tells whether there is an object that a primary may want. Default: there is. */
  isNamed?(run: FindRun): boolean;
  /** Tells whether the garbage collector deletes its objects after their primary, so that a cleanup leaves them. Default: it does not. */
  isCollected?(run: FindRun): boolean;
  /** Completes what `desired` returned, for one item of a bulk dependent if its key is given. Throws a TerminalError if it cannot be written. */
  complete(run: DependentRun, desired: unknown, item?: string): Wanted;
  /**
   * Returns the live object: the wanted one, or before that is known, the one that belongs to the primary. `items` are those of a bulk
   * dependent, which need not be looked for again.
   */
  find(run: FindRun, wanted?: Wanted, items?: KnownItems): Live | undefined;
  /**
   * Looks for objects that `find` cannot know before they are deleted, by what `desire` returns, and notes those that belong to the primary as
   * discovered: another client created them, their label is gone, or an earlier version of the operator linked them. Default: there are none
   */
  discover?(run: DependentRun, desire: () => Promise<unknown>): Promise<void>;
  /** Tells whether anything is known that has to be cleaned up before the primary goes. Default: nothing is */
  hasAny?(run: Pick<FindRun, "primary">): boolean;
  /** Returns the primaries that its objects are linked to, but for those that are known. Default: none */
  linkedPrimaries?(isKnown: (key: ObjectKey, uid: string) => boolean): readonly LinkedPrimary[];
  /** Names the objects of a primary that are not being deleted. Default: there are none */
  leftOf?(run: Pick<FindRun, "primary">): readonly string[];
  /** Returns how long what is known may lack what a process before this one created. Default: 0 */
  unconfirmedMs?(primary: KubernetesObject): number;
  /** Returns the live items of a bulk dependent by their keys. */
  findItems(run: FindRun): ReadonlyMap<string, Live>;
  /**
   * Returns the last state of an object that other clients deleted, for code that runs while the primary is being deleted. Default: none is
   * known
   */
  lastSeen?(run: FindRun): Live | undefined;
  /** Returns the last states of the items that other clients deleted, by their keys. Default: none is known */
  lastSeenItems?(run: FindRun): ReadonlyMap<string, Live>;
  /** Returns an item as it is now; undefined if it is gone. Default: all items have to be found again */
  findAgain?(item: Live, run?: FindRun): Live | undefined;
  /** Makes the object as wanted, if it is not; `live` is what `find` returned, `seen` what `desired` read. */
  write(run: DependentRun, wanted: Wanted, live: Live | undefined, seen?: SeenVersions): Promise<WriteOutcome>;
  /**
   * Takes note whether the object that was written is ready, if that has to be known when it is gone; tells whether the object has ended. Default: it
   * need not be known
   */
  remember?(run: DependentRun, wanted: Wanted, live: Live, isReady: boolean): Promise<boolean>;
  /** Asks once for the deletion of the object, which may take a while; an object to be orphaned is untied instead, and no longer found. */
  remove(run: DependentRun, live: Live): Promise<void>;
  /**
   * Holds an object until its primary is cleaned up, if the dependent asks for that; an object that is being deleted while its primary lives is
   * released. Default: nothing is held
   */
  hold?(run: DependentRun, live: Live): Promise<void>;
  /** Returns the objects that are to be held for a primary. Default: none */
  objectsToHold?(run: FindRun): readonly KubernetesObject[];
  /** Tells whether its event source knows objects that are held for a primary. Default: it does not */
  isAnyHeld?(run: Pick<HoldRun, "primary">): boolean;
  /** Releases the objects that are held for a primary and whose uid is not in `needed`, and adds them to it. Default: none are */
  releaseHeld?(run: HoldRun, needed: Set<string | undefined>): Promise<void>;
  /** Tells whether an object that was removed is still there, being deleted. Default: it is not. */
  isHeld?(live: Live): boolean;
  /** Does what was left of removals that failed halfway; called at the end of each step that did not fail. Default: nothing */
  finishRemovals?(run: Pick<DependentRun, "primary" | "context">): Promise<void>;
  /** Tells whether an object that could not be deleted is left, so that its primary goes all the same. Default: it is not. */
  release?(run: DependentRun, failed: { readonly error: unknown; readonly item?: string | undefined }): boolean;
}
