import type { ObjectKey } from "../../base/kubernetes-object.js";
import type { EventSource } from "../event-source.js";
import type { IdOf } from "./external-cache.js";
import type { EventFilters } from "../../cache/resource-change.js";

/** An event source of resources outside Kubernetes. */
export interface ExternalSource<Resource> extends EventSource<Resource> {
  /** Takes what the controller itself has created, so that its next reconcile sees it; no event comes of it. */
  recordCreated(primary: ObjectKey, resource: Resource): void;
  /** Takes what the controller itself has changed from `previous`, unless something newer is known; no event comes of it. */
  recordUpdated(primary: ObjectKey, resource: Resource, previous: Resource): void;
  /** Takes that the controller itself has deleted a resource; no event comes of it. */
  recordDeleted(primary: ObjectKey, resource: Resource): void;
  /** Says that a change of the controller's own failed, perhaps after it had an effect: the next `load` of the primary fetches again. */
  invalidate(primary: ObjectKey): void;
}

/** The options that all event sources of external resources have. */
export interface ExternalSourceOptions<Resource> {
  /** Unique in its controller. */
  readonly name: string;
  /** The user's name for the type, by which a reconciler finds the resources. */
  readonly type?: string;
  /** Returns the id of a resource, unique among those of its primary: `singleResource` if there is one at most. */
  readonly idOf: IdOf<Resource>;
  readonly filters?: EventFilters<Resource>;
  /** How long one fetch may take, in milliseconds; then its signal is aborted and the fetch has failed. Default: 60,000. */
  readonly fetchTimeoutMs?: number;
  /**
   * How long what is fetched may lag behind what the controller itself created, updated or deleted, in milliseconds; so long its own change counts,
   * unless a fetch shows it, or something new. Apart from that, a resource that one fetch lacks counts as there until the next one lacks it as
   * well. 0: every fetch is believed at once, for a service whose lists are never late. Default: 30,000. Example: `creationGraceMs: 120_000`
   */
  readonly creationGraceMs?: number;
}

/** What a fetch of the user is given besides its subject. */
export interface FetchContext {
  /** Aborted when nobody needs the result any more. */
  readonly signal: AbortSignal;
  /** What is known of the primary that is fetched for: its dependents and what event sources have, by name. */
  readonly secondary?: object;
}

/** A result that may take a while. */
export type MaybePromise<Result> = Result | Promise<Result>;
