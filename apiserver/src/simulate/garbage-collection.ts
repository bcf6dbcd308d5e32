// Garbage collection as in kube-controller-manager 1.36: background, foreground, and orphan propagation. Driven by watches. Deletions have
// preconditions, so that only the evaluated version is deleted, and an owner counts as absent only after a read from the server.
import type { EventRecorder } from "./event-recorder.js";
import { type ApiClient, isNotFound } from "./feed/api-client.js";
import type { ClusterFeed, ClusterListener } from "./feed/cluster-feed.js";
import { KeyedQueue } from "./feed/controller.js";
import { type KubernetesObject, type OwnerReference, type ResourceKind, pathOf } from "./feed/kubernetes-object.js";

interface GarbageCollection extends ClusterListener {
  start(feed: ClusterFeed): void;
  close(): void;
}

const CONCURRENCY = 8;
/**
 * Delay before an owner in foreground deletion is evaluated. Watches of different kinds are not ordered relative to each other, so the event of an
 * earlier dependent may still be in flight.
 */
const SETTLE_MS = 50;

/** Creates a garbage collector, which acts after `start`. */
export function createGarbageCollection(
  client: ApiClient,
  { onError, recorder }: { onError: (error: unknown, key: string) => void; recorder: EventRecorder | undefined },
): GarbageCollection {
  const graph = new OwnerGraph();
  /** UIDs of dependent and owner of each cross-namespace reference that an Event was recorded for. */
  const told = new Set<string>();
  const unresolved = new Set<string>();
  let feed: ClusterFeed | undefined;

  const work = async (uid: string): Promise<void> => {
    const owned = graph.get(uid);
    if (owned === undefined || feed === undefined) return;
    if (isOrphaning(owned.object)) await releaseDependents(owned);
    else if (isForeground(owned.object)) await advanceForeground(owned);
    else if (owned.object.metadata.deletionTimestamp === undefined) await collect(owned, feed);
  };
  const queue = new KeyedQueue({ work, concurrency: CONCURRENCY, onError });

  const releaseDependents = async (owner: OwnedObject): Promise<void> => {
    const { uid } = owner.object.metadata;
    await Promise.all(
      dependentsOf(owner).map((dependent) =>
        patchOwnerReferences(dependent, (references) => references.filter((reference) => reference.uid !== uid)),
      ),
    );
    await removeFinalizer(owner, ORPHAN);
  };

  const advanceForeground = async (owner: OwnedObject): Promise<void> => {
    const { uid } = owner.object.metadata;
    const dependents = dependentsOf(owner);
    const isBlocked = dependents.some((dependent) => referenceTo(uid, dependent)?.blockOwnerDeletion === true);
    if (!isBlocked) await removeFinalizer(owner, FOREGROUND);
    for (const dependent of dependents) queue.add(dependent.object.metadata.uid);
  };

  const collect = async (owned: OwnedObject, feed: ClusterFeed): Promise<void> => {
    const states: { uid: string; state: ReferenceState }[] = [];
    for (const reference of owned.object.metadata.ownerReferences ?? []) {
      const state = await stateOf(reference, owned, feed);
      // Never delete an object with a reference that cannot be resolved.
      if (state === undefined) return;
      states.push({ uid: reference.uid, state });
    }
    if (states.length === 0) return;
    const dependents = dependentsOf(owned);
    const verdict = judge(owned, states, { hasDependents: dependents.length > 0 });
    if (verdict.kind === "keep") {
      if (verdict.withoutOwners.length === 0) return;
      const isKept = ({ uid }: OwnerReference) => !verdict.withoutOwners.includes(uid);
      return patchOwnerReferences(owned, (references) => references.filter(isKept));
    }
    if (verdict.propagationPolicy === "Foreground" && dependents.some(({ object }) => isForeground(object))) {
      // Owners in a cycle would block each other forever, so unblock the owners of this object.
      await patchOwnerReferences(owned, (references) =>
        references.map((reference) => ({ ...reference, blockOwnerDeletion: false })),
      );
      return deleteObject(owned, verdict.propagationPolicy, { withoutVersion: true });
    }
    return deleteObject(owned, verdict.propagationPolicy);
  };

  const stateOf = async (
    reference: OwnerReference,
    owned: OwnedObject,
    feed: ClusterFeed,
  ): Promise<ReferenceState | undefined> => {
    const seen = graph.get(reference.uid);
    if (seen !== undefined && names(reference, seen, owned)) return isForeground(seen.object) ? "waiting" : "solid";
    const kind = feed.kindOf(reference);
    const { namespace } = owned.object.metadata;
    if (kind === undefined || (kind.namespaced && namespace === undefined)) {
      unresolved.add(owned.object.metadata.uid);
      return undefined;
    }
    const owner = await readObject(kind, { name: reference.name, ...(namespace === undefined ? {} : { namespace }) });
    if (owner === undefined || owner.metadata.uid !== reference.uid) return "dangling";
    return isForeground(owner) ? "waiting" : "solid";
  };

  const dependentsOf = (owner: OwnedObject): OwnedObject[] => {
    const { uid } = owner.object.metadata;
    return graph.dependentsOf(uid).filter((dependent) => {
      const reference = referenceTo(uid, dependent);
      return reference !== undefined && names(reference, owner, dependent);
    });
  };

  const readObject = async (
    kind: ResourceKind,
    item: { namespace?: string; name: string },
  ): Promise<KubernetesObject | undefined> => {
    try {
      return await client.request<KubernetesObject>({ method: "GET", path: pathOf(kind, item) });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  /** Patches the live object; a concurrent change is a conflict, and the attempt is retried. */
  const patchMetadata = async (
    { kind, object }: OwnedObject,
    change: (live: KubernetesObject) => Partial<KubernetesObject["metadata"]> | undefined,
  ): Promise<void> => {
    const live = await readObject(kind, object.metadata);
    if (live === undefined || live.metadata.uid !== object.metadata.uid) return;
    const metadata = change(live);
    if (metadata === undefined) return;
    const body = { metadata: { ...metadata, uid: live.metadata.uid, resourceVersion: live.metadata.resourceVersion } };
    await ignoreNotFound(client.request({ method: "PATCH", path: writePathOf(kind, object), body }));
  };

  const patchOwnerReferences = (owned: OwnedObject, change: (references: OwnerReference[]) => OwnerReference[]) =>
    patchMetadata(owned, ({ metadata }) =>
      metadata.ownerReferences === undefined ? undefined : { ownerReferences: change(metadata.ownerReferences) },
    );

  const removeFinalizer = (owned: OwnedObject, name: string) =>
    patchMetadata(owned, ({ metadata: { finalizers = [] } }) =>
      finalizers.includes(name) ? { finalizers: finalizers.filter((each) => each !== name) } : undefined,
    );

  const deleteObject = async (
    { kind, object }: OwnedObject,
    propagationPolicy: string,
    { withoutVersion = false }: { withoutVersion?: boolean } = {},
  ): Promise<void> => {
    const { uid, resourceVersion } = object.metadata;
    const preconditions = withoutVersion ? { uid } : { uid, resourceVersion };
    const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy, preconditions };
    await ignoreNotFound(client.request({ method: "DELETE", path: pathOf(kind, object.metadata), body }));
  };

  /** Records an Event for an owner reference to another namespace: the dependent is deleted as if the owner did not exist. */
  const recordStranger = (owner: OwnedObject, { kind, object }: OwnedObject): void => {
    const { uid, namespace = "" } = object.metadata;
    const reference = object.metadata.ownerReferences?.find((one) => one.uid === owner.object.metadata.uid);
    if (reference === undefined || !owner.kind.namespaced || owner.object.metadata.namespace === namespace) return;
    const key = `${uid} ${reference.uid}`;
    if (told.has(key)) return;
    told.add(key);
    const { apiVersion, name } = reference;
    const identity = `${apiVersion}/${reference.kind}, namespace: ${namespace}, name: ${name}, uid: ${reference.uid}`;
    recorder?.record(kind, object, {
      ...{ type: "Warning", reason: "OwnerRefInvalidNamespace", by: { component: "garbage-collector-controller" } },
      message: `ownerRef [${identity}] does not exist in namespace ${JSON.stringify(namespace)}`,
    });
  };

  const recordStrangers = (owned: OwnedObject): void => {
    for (const { uid } of owned.object.metadata.ownerReferences ?? []) {
      const owner = graph.get(uid);
      if (owner !== undefined) recordStranger(owner, owned);
    }
    for (const dependent of graph.dependentsOf(owned.object.metadata.uid)) recordStranger(owned, dependent);
  };

  /** Enqueues the owners that may be waiting for this object. */
  const addWaitingOwners = (object: KubernetesObject | undefined): void => {
    for (const { uid } of object?.metadata.ownerReferences ?? []) {
      const owner = graph.get(uid);
      if (owner !== undefined && isForeground(owner.object)) queue.add(uid);
    }
  };

  return {
    changed(object, kind) {
      const { uid, deletionTimestamp, ownerReferences } = object.metadata;
      const before = graph.set({ kind, object });
      recordStrangers({ kind, object });
      if (deletionTimestamp !== undefined) queue.add(uid, SETTLE_MS);
      else if (ownerReferences !== undefined) queue.add(uid);
      if (JSON.stringify(before?.object.metadata.ownerReferences) !== JSON.stringify(ownerReferences))
        addWaitingOwners(before?.object);
    },
    deleted({ metadata }) {
      const before = graph.delete(metadata.uid);
      unresolved.delete(metadata.uid);
      for (const { uid } of before?.object.metadata.ownerReferences ?? []) told.delete(`${metadata.uid} ${uid}`);
      for (const { object } of graph.dependentsOf(metadata.uid)) queue.add(object.metadata.uid);
      addWaitingOwners(before?.object);
    },
    kindsChanged() {
      for (const uid of unresolved) queue.add(uid);
      unresolved.clear();
    },
    start(started) {
      feed = started;
      for (const uid of graph.uids()) queue.add(uid);
    },
    close: () => queue.close(),
  };
}

function writePathOf(kind: ResourceKind, { metadata }: KubernetesObject): string {
  return `${pathOf(kind, metadata)}?fieldManager=kube-controller-manager`;
}

async function ignoreNotFound(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

// Owner graph, built from watch events. Only data and decisions, no I/O.

/** An object and its kind. */
export interface OwnedObject {
  kind: ResourceKind;
  object: KubernetesObject;
}

/** State of an owner reference. */
export type ReferenceState =
  /** The owner exists. */
  | "solid"
  /** The owner was deleted, or never existed with this name and UID. */
  | "dangling"
  /** The owner is in foreground deletion. */
  | "waiting";

/** What to do with an object, given the states of its owner references. */
type Verdict =
  | { kind: "keep"; withoutOwners: string[] }
  | { kind: "delete"; propagationPolicy: "Background" | "Foreground" | "Orphan" };

/** Finalizer of an owner until its dependents have been orphaned. */
const ORPHAN = "orphan";
/** Finalizer of an owner until its dependents have been deleted. */
const FOREGROUND = "foregroundDeletion";

/** True for an object in foreground deletion. */
function isForeground({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined && hasFinalizer(metadata, FOREGROUND);
}

/** True for an object that is being deleted with orphan propagation. */
function isOrphaning({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined && hasFinalizer(metadata, ORPHAN);
}

/** Returns the owner reference with this UID. */
function referenceTo(ownerUid: string, { object }: OwnedObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find(({ uid }) => uid === ownerUid);
}

/** Reports whether `reference` of `dependent` identifies `owner`. A namespaced owner must be in the same namespace. */
export function names(reference: OwnerReference, owner: OwnedObject, dependent: OwnedObject): boolean {
  const { metadata } = owner.object;
  return (
    metadata.uid === reference.uid &&
    metadata.name === reference.name &&
    owner.kind.kind === reference.kind &&
    owner.kind.group === groupOf(reference.apiVersion) &&
    (!owner.kind.namespaced || metadata.namespace === dependent.object.metadata.namespace)
  );
}

/** Decides whether to keep or delete an object that is not being deleted yet. */
export function judge(
  { object }: OwnedObject,
  states: { uid: string; state: ReferenceState }[],
  { hasDependents }: { hasDependents: boolean },
): Verdict {
  const uidsOf = (...wanted: ReferenceState[]) =>
    states.filter(({ state }) => wanted.includes(state)).map(({ uid }) => uid);
  if (uidsOf("solid").length > 0) return { kind: "keep", withoutOwners: uidsOf("dangling", "waiting") };
  // In a chain of foreground deletions, the last dependent is deleted first.
  if (uidsOf("waiting").length > 0 && hasDependents) return { kind: "delete", propagationPolicy: "Foreground" };
  return { kind: "delete", propagationPolicy: policyOf(object) };
}

function policyOf({ metadata }: KubernetesObject): "Background" | "Foreground" | "Orphan" {
  if (hasFinalizer(metadata, ORPHAN)) return "Orphan";
  return hasFinalizer(metadata, FOREGROUND) ? "Foreground" : "Background";
}

function hasFinalizer({ finalizers }: KubernetesObject["metadata"], name: string): boolean {
  return finalizers?.includes(name) === true;
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
}

/** Index of objects by UID and by the UIDs of their owners. */
export class OwnerGraph {
  readonly #objects = new Map<string, OwnedObject>();
  readonly #dependents = new Map<string, Set<string>>();

  get(uid: string): OwnedObject | undefined {
    return this.#objects.get(uid);
  }

  uids(): IterableIterator<string> {
    return this.#objects.keys();
  }

  /** Adds or replaces an object; returns the previous one. */
  set(owned: OwnedObject): OwnedObject | undefined {
    const before = this.delete(owned.object.metadata.uid);
    this.#objects.set(owned.object.metadata.uid, owned);
    for (const { uid } of owned.object.metadata.ownerReferences ?? []) {
      let dependents = this.#dependents.get(uid);
      if (dependents === undefined) this.#dependents.set(uid, (dependents = new Set()));
      dependents.add(owned.object.metadata.uid);
    }
    return before;
  }

  /** Removes and returns an object. Its dependents still refer to it. */
  delete(uid: string): OwnedObject | undefined {
    const before = this.#objects.get(uid);
    if (before === undefined) return undefined;
    this.#objects.delete(uid);
    for (const owner of before.object.metadata.ownerReferences ?? []) {
      const dependents = this.#dependents.get(owner.uid);
      dependents?.delete(uid);
      if (dependents?.size === 0) this.#dependents.delete(owner.uid);
    }
    return before;
  }

  /** Returns the objects that refer to an owner, valid or not. */
  dependentsOf(ownerUid: string): OwnedObject[] {
    const uids = this.#dependents.get(ownerUid) ?? [];
    return [...uids].flatMap((uid) => this.#objects.get(uid) ?? []);
  }
}
