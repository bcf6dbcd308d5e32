// The simulated controllers' view of the cluster: caches of the watched kinds, and writes whose responses update the caches.
import type { EventDetail, EventRecorder } from "../event-recorder.js";
import { type ApiClient, isNotFound } from "./api-client.js";
import {
  type KubernetesObject,
  type ResourceKind,
  apiVersionOf,
  controllerOf,
  keyOfObject,
  pathOf,
} from "./kubernetes-object.js";
import { startFeed } from "./reflector.js";
import { keyOf, readKinds } from "./resource-kinds.js";

/** Field manager of a write, as in managedFields. */
export type Manager =
  | "kube-controller-manager"
  | "kubelet"
  | "kube-scheduler"
  | "clusterrole-aggregation-controller"
  | "validatingadmissionpolicy-status";

/** An object to create, without the metadata that the server sets. */
export type NewObject = Record<string, unknown> & {
  metadata: Partial<KubernetesObject["metadata"]>;
};

/** Body of a server-side apply. */
type AppliedObject = Record<string, unknown> & { metadata: { name: string; namespace?: string } };

/** DeleteOptions. */
interface Removal {
  gracePeriodSeconds?: number;
  propagationPolicy?: "Background" | "Foreground" | "Orphan";
}

/** Reads from the caches and writes to the server. Kinds are identified by `plural.group`. */
export interface Cluster {
  get<T extends KubernetesObject>(kind: string, key: string): T | undefined;
  list<T extends KubernetesObject>(kind: string, namespace?: string): T[];
  /** Objects whose controller reference has this UID. */
  controlledBy<T extends KubernetesObject>(kind: string, uid: string): T[];
  /** Objects of a namespace without a controller reference. */
  orphans<T extends KubernetesObject>(kind: string, namespace?: string): T[];
  create<T extends KubernetesObject>(kind: string, object: NewObject, manager?: Manager): Promise<T>;
  update<T extends KubernetesObject>(kind: string, object: T, options?: WriteTarget): Promise<T>;
  /** Applies an object with force, so it takes over fields of other managers. */
  apply(kind: string, object: AppliedObject, target: WriteTarget): Promise<void>;
  /** Posts to a subresource that responds with another kind. */
  post(kind: string, object: KubernetesObject, body: { subresource: string } & Record<string, unknown>): Promise<void>;
  /** Deletes the object if its UID still matches; an object that is not found is not an error. */
  remove(kind: string, object: KubernetesObject, removal?: Removal): Promise<void>;
  /** Records an Event asynchronously, if Events are enabled. */
  record(kind: string, object: KubernetesObject, detail: EventDetail): void;
}

/** Subresource and field manager of a write. */
interface WriteTarget {
  subresource?: "status";
  manager?: Manager;
}

/** Called for each change of a watched kind. */
type ClusterChange = (kind: string, object: KubernetesObject) => void;

/** Starts watches of the kinds that the server serves; resolves once all caches are synced. */
export async function startCluster(
  client: ApiClient,
  options: {
    kinds: string[];
    changed: ClusterChange;
    recorder: EventRecorder | undefined;
    signal: AbortSignal;
    onError: (error: unknown, key: string) => void;
  },
): Promise<Cluster> {
  const { changed, signal, onError } = options;
  const kinds = new Map((await readKinds(client)).map((kind) => [keyOf(kind), kind]));
  const caches = new Map(options.kinds.map((key) => [key, new ObjectCache()]));
  const follow = async (kind: ResourceKind, cache: ObjectCache): Promise<void> => {
    const listener = {
      changed(object: KubernetesObject) {
        if (cache.set(object)) changed(keyOf(kind), object);
      },
      deleted(object: KubernetesObject) {
        cache.remove(object);
        changed(keyOf(kind), object);
      },
    };
    await startFeed(client, { kind, metadataOnly: false, listener, signal, onError });
  };
  const followed = [...caches].flatMap(([key, cache]) => {
    const kind = kinds.get(key);
    return kind === undefined ? [] : [follow(kind, cache)];
  });
  await Promise.all(followed);
  return clusterOf(client, { kinds, caches, changed, recorder: options.recorder });
}

function clusterOf(
  client: ApiClient,
  parts: {
    kinds: Map<string, ResourceKind>;
    caches: Map<string, ObjectCache>;
    changed: ClusterChange;
    recorder: EventRecorder | undefined;
  },
): Cluster {
  const { kinds, caches, changed, recorder } = parts;
  const kindOf = (key: string): ResourceKind => {
    const kind = kinds.get(key);
    if (kind === undefined) throw new Error(`the API server does not serve ${key}`);
    return kind;
  };
  const enter = <T extends KubernetesObject>(key: string, object: T): T => {
    if (caches.get(key)?.set(object) === true) changed(key, object);
    return object;
  };
  const typed = (kind: ResourceKind, object: object) => ({
    ...object,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
  });
  return {
    get: <T>(kind: string, key: string) => caches.get(kind)?.get(key) as T | undefined,
    list: <T>(kind: string, namespace?: string) => (caches.get(kind)?.list(namespace) ?? []) as T[],
    controlledBy: <T>(kind: string, uid: string) => (caches.get(kind)?.controlledBy(uid) ?? []) as T[],
    orphans: <T>(kind: string, namespace?: string) => (caches.get(kind)?.orphans(namespace) ?? []) as T[],
    async create<T extends KubernetesObject>(key: string, object: NewObject, manager?: Manager) {
      const kind = kindOf(key);
      const { namespace } = object.metadata;
      const path = pathOf(kind, namespace === undefined ? {} : { namespace }) + managerQuery(manager);
      return enter(key, await client.request<T>({ method: "POST", path, body: typed(kind, object) }));
    },
    async update<T extends KubernetesObject>(key: string, object: T, target: WriteTarget = {}) {
      const kind = kindOf(key);
      const path = writePathOf(kind, object.metadata, target);
      const answer = await client.request<T>({ method: "PUT", path, body: typed(kind, object) });
      if (answer.metadata.deletionTimestamp === undefined || isStillThere(answer)) return enter(key, answer);
      // The update removed the last finalizer: the response contains the previous resourceVersion, and the object is deleted.
      caches.get(key)?.forget(answer);
      changed(key, answer);
      return answer;
    },
    async apply(key, object, target) {
      const kind = kindOf(key);
      const path = `${writePathOf(kind, object.metadata, target)}&force=true`;
      const request = {
        method: "PATCH",
        path,
        body: typed(kind, object),
        contentType: "application/apply-patch+yaml",
      } as const;
      enter(key, await client.request<KubernetesObject>(request));
    },
    async post(key, object, { subresource, ...body }) {
      const path = `${pathOf(kindOf(key), object.metadata)}/${subresource}`;
      await client.request({ method: "POST", path, body });
    },
    async remove(key, object, removal = {}) {
      const { uid } = object.metadata;
      const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid }, ...removal };
      try {
        const request = { method: "DELETE", path: pathOf(kindOf(key), object.metadata), body } as const;
        const answer = await client.request<KubernetesObject & { kind?: string }>(request);
        if (isStillThere(answer)) enter(key, answer);
        else caches.get(key)?.forget(object);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      changed(key, object);
    },
    record: (key, object, detail) => recorder?.record(kindOf(key), object, detail),
  };
}

function writePathOf(
  kind: ResourceKind,
  metadata: { name: string; namespace?: string },
  { subresource, manager }: WriteTarget,
): string {
  return pathOf(kind, metadata) + (subresource === undefined ? "" : `/${subresource}`) + managerQuery(manager);
}

function managerQuery(manager: Manager = "kube-controller-manager"): string {
  return `?fieldManager=${manager}`;
}

// A response to a deletion may be a Status, the deleted object, or an object that still waits for its finalizers or grace period.
function isStillThere({ kind, metadata }: KubernetesObject): boolean {
  if (kind === "Status" || metadata.deletionTimestamp === undefined) return false;
  const { deletionGracePeriodSeconds = 0 } = metadata as { deletionGracePeriodSeconds?: number };
  return deletionGracePeriodSeconds > 0 || (metadata.finalizers ?? []).length > 0;
}

/**
 * Cache of the objects of one kind.
 *
 * The response of an own write updates the cache immediately, so that no controller decides on a state before it; older watch events are ignored.
 * Objects are indexed by namespace and controller UID, because every reconcile lists the objects of its owner.
 */
export class ObjectCache<T extends KubernetesObject = KubernetesObject> {
  readonly #objects = new Map<string, T>();
  readonly #byNamespace = new Groups<T>(({ metadata }) => metadata.namespace ?? "");
  readonly #byController = new Groups<T>(groupOf);
  /** UIDs of objects that we deleted and whose DELETED event has not arrived yet. */
  readonly #gone = new Set<string>();

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** Lists the objects of a namespace, or all. */
  list(namespace?: string): T[] {
    return namespace === undefined ? [...this.#objects.values()] : this.#byNamespace.get(namespace);
  }

  /** Lists the objects that have a controller reference with this UID. */
  controlledBy(uid: string): T[] {
    return this.#byController.get(uid);
  }

  /** Lists the objects of a namespace without a controller reference. */
  orphans(namespace = ""): T[] {
    return this.#byController.get(orphansOf(namespace));
  }

  /** Stores an object; returns false if the cache already has this version or a newer one. */
  set(object: T): boolean {
    const { uid, resourceVersion } = object.metadata;
    if (this.#gone.has(uid)) return false;
    const key = keyOfObject(object.metadata);
    const before = this.#objects.get(key);
    if (before?.metadata.uid === uid && Number(before.metadata.resourceVersion) >= Number(resourceVersion))
      return false;
    this.#objects.set(key, object);
    for (const groups of [this.#byNamespace, this.#byController]) groups.replace(key, before, object);
    return true;
  }

  /** Removes an object on its DELETED event. */
  remove({ metadata }: KubernetesObject): void {
    this.#gone.delete(metadata.uid);
    this.#removeObject(metadata);
  }

  /** Removes an object that we deleted before its DELETED event arrives. */
  forget({ metadata }: KubernetesObject): void {
    if (this.#removeObject(metadata)) this.#gone.add(metadata.uid);
  }

  #removeObject(metadata: KubernetesObject["metadata"]): boolean {
    const key = keyOfObject(metadata);
    const before = this.#objects.get(key);
    if (before === undefined || before.metadata.uid !== metadata.uid) return false;
    for (const groups of [this.#byNamespace, this.#byController]) groups.replace(key, before, undefined);
    return this.#objects.delete(key);
  }
}

function groupOf(object: KubernetesObject): string {
  return controllerOf(object)?.uid ?? orphansOf(object.metadata.namespace ?? "");
}

// Cannot collide with a UID, which never starts with a slash.
function orphansOf(namespace: string): string {
  return `/${namespace}`;
}

/** Groups of objects, in order of insertion. */
class Groups<T> {
  readonly #groups = new Map<string, Map<string, T>>();
  readonly #groupOf: (object: T) => string;

  constructor(groupOf: (object: T) => string) {
    this.#groupOf = groupOf;
  }

  get(name: string): T[] {
    return [...(this.#groups.get(name)?.values() ?? [])];
  }

  replace(key: string, before: T | undefined, after: T | undefined): void {
    const [from, to] = [before, after].map((object) => (object === undefined ? undefined : this.#groupOf(object)));
    if (from !== undefined && from !== to) {
      const group = this.#groups.get(from);
      group?.delete(key);
      if (group?.size === 0) this.#groups.delete(from);
    }
    if (to === undefined || after === undefined) return;
    let group = this.#groups.get(to);
    if (group === undefined) this.#groups.set(to, (group = new Map()));
    group.set(key, after);
  }
}
