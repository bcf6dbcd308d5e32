// Watches the metadata of all garbage-collectable kinds, including those that CRDs add and remove at run time.
import type { ApiClient } from "./api-client.js";
import type { KubernetesObject, ResourceKind } from "./kubernetes-object.js";
import { startFeed } from "./reflector.js";
import {
  type CustomResourceDefinition,
  isCollectable,
  isDeletable,
  keyOf,
  kindOfCrd,
  readKinds,
} from "./resource-kinds.js";

/** Receives the events of a ClusterFeed. */
export interface ClusterListener {
  changed(object: KubernetesObject, kind: ResourceKind): void;
  deleted(object: KubernetesObject, kind: ResourceKind): void;
  /** Kinds were added or removed. */
  kindsChanged?(): void;
}

/** The kinds of a server; their objects are delivered to the listeners. */
export interface ClusterFeed {
  /** The kinds whose objects can currently be listed and deleted. */
  kinds(): ResourceKind[];
  /** Resolves the kind of an owner reference, regardless of its version. */
  kindOf(reference: { apiVersion: string; kind: string }): ResourceKind | undefined;
}

export interface ClusterFeedOptions {
  listeners: ClusterListener[];
  signal: AbortSignal;
  onError: (error: unknown, key: string) => void;
}

const CRDS = { group: "apiextensions.k8s.io", plural: "customresourcedefinitions" };

/** Starts the watches; resolves once all kinds are synced. */
export async function startClusterFeed(
  client: ApiClient,
  { listeners, signal, onError }: ClusterFeedOptions,
): Promise<ClusterFeed> {
  const kinds = new Map<string, ResourceKind>();
  const stops = new Map<string, AbortController>();

  const addKind = async (kind: ResourceKind): Promise<void> => {
    const key = keyOf(kind);
    const before = kinds.get(key);
    if (before !== undefined && before.version === kind.version && before.kind === kind.kind) return;
    removeKind(key);
    kinds.set(key, kind);
    for (const listener of listeners) listener.kindsChanged?.();
    if (!isCollectable(kind)) return;
    const stop = new AbortController();
    stops.set(key, stop);
    await startFeed(client, {
      kind,
      metadataOnly: true,
      onError,
      signal: AbortSignal.any([signal, stop.signal]),
      listener: {
        changed: (object) => listeners.forEach((listener) => listener.changed(object, kind)),
        deleted: (object) => listeners.forEach((listener) => listener.deleted(object, kind)),
      },
    });
  };
  const removeKind = (key: string): void => {
    if (!kinds.delete(key)) return;
    stops.get(key)?.abort();
    stops.delete(key);
    for (const listener of listeners) listener.kindsChanged?.();
  };

  const served = await readKinds(client);
  const crds = served.find((kind) => keyOf(kind) === keyOf(CRDS));
  await Promise.all(served.filter(isDeletable).map(addKind));
  if (crds !== undefined) {
    await startFeed<CustomResourceDefinition>(client, {
      kind: crds,
      metadataOnly: false,
      onError,
      signal,
      listener: {
        changed: (crd) => {
          const kind = kindOfCrd(crd);
          // Keep watching a kind whose CRD is being deleted, since its objects may still be owners or dependents.
          if (kind !== undefined) void addKind(kind);
        },
        deleted: ({ spec }) => removeKind(keyOf({ group: spec.group, plural: spec.names.plural })),
      },
    });
  }
  return {
    kinds: () => [...kinds.values()],
    kindOf: ({ apiVersion, kind }) => {
      const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
      return [...kinds.values()].find((each) => each.group === group && each.kind === kind);
    },
  };
}
