// List and watch of one kind. A watch is resumed from the last resourceVersion when it ends; if that fails, the kind is relisted. The listener
// receives every change at least once, and the deletion of every object that it received, at the latest when the feed stops.
import { sleep } from "../../clock.js";
import { type ApiClient, ApiError } from "./api-client.js";
import { type KubernetesObject, type ResourceKind, pathOf } from "./kubernetes-object.js";

/** Receives the events of one kind. */
export interface FeedListener<T extends KubernetesObject = KubernetesObject> {
  changed(object: T): void;
  deleted(object: T): void;
}

/** Options of a feed. */
export interface FeedOptions<T extends KubernetesObject> {
  kind: ResourceKind;
  /** Requests PartialObjectMetadata, which is smaller to transfer and parse. */
  metadataOnly: boolean;
  listener: FeedListener<T>;
  signal: AbortSignal;
  /** Called when a list or watch failed; it is retried. */
  onError: (error: unknown, key: string) => void;
}

interface ListPage<T> {
  metadata: { resourceVersion: string; continue?: string };
  /** Kubernetes 1.36 encodes an empty PartialObjectMetadataList with `items: null`. */
  items: T[] | null;
}

const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const PAGE_SIZE = 500;
const WATCH_SECONDS = 300;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

/** Starts to list and watch a kind; resolves after the first list, or when `signal` is aborted. */
export function startFeed<T extends KubernetesObject>(client: ApiClient, options: FeedOptions<T>): Promise<void> {
  return new Promise((listed) => {
    void follow(client, options, listed).finally(listed);
  });
}

async function follow<T extends KubernetesObject>(client: ApiClient, options: FeedOptions<T>, listed: () => void) {
  const { signal } = options;
  const known = new Map<string, T>();
  let resourceVersion: string | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      if (resourceVersion === undefined) {
        resourceVersion = await list(client, options, known);
        listed();
      }
      for await (const version of watch(client, options, { known, resourceVersion })) {
        resourceVersion = version;
        pauseMs = FIRST_PAUSE_MS;
      }
    } catch (error) {
      // 410: the resourceVersion is too old. 404: the kind was removed or is not served yet. Both require a relist.
      if (error instanceof ApiError && (error.status === 410 || error.status === 404)) resourceVersion = undefined;
      if (signal.aborted) break;
      options.onError(error, pathOf(options.kind));
      await sleep(pauseMs, { signal, ref: false });
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }
  // The kind may no longer be served, so no DELETED events will arrive.
  for (const object of known.values()) options.listener.deleted(object);
}

async function list<T extends KubernetesObject>(
  client: ApiClient,
  { kind, metadataOnly, listener, signal }: FeedOptions<T>,
  known: Map<string, T>,
): Promise<string> {
  const gone = new Map(known);
  let next: string | undefined = "";
  let resourceVersion = "";
  while (next !== undefined) {
    const query: string = `?limit=${PAGE_SIZE}${next === "" ? "" : `&continue=${encodeURIComponent(next)}`}`;
    const page: ListPage<T> = await client.request<ListPage<T>>({
      method: "GET",
      path: pathOf(kind) + query,
      ...(metadataOnly ? { accept: METADATA_LIST } : {}),
    });
    if (signal.aborted) break;
    for (const object of page.items ?? []) {
      gone.delete(object.metadata.uid);
      known.set(object.metadata.uid, object);
      listener.changed(object);
    }
    resourceVersion = page.metadata.resourceVersion;
    next = page.metadata.continue || undefined;
  }
  for (const [uid, object] of gone) {
    known.delete(uid);
    listener.deleted(object);
  }
  return resourceVersion;
}

/** Yields the resourceVersion to resume from. */
async function* watch<T extends KubernetesObject>(
  client: ApiClient,
  { kind, metadataOnly, listener, signal }: FeedOptions<T>,
  { known, resourceVersion }: { known: Map<string, T>; resourceVersion: string },
): AsyncGenerator<string> {
  const query = `?watch=true&allowWatchBookmarks=true&resourceVersion=${resourceVersion}&timeoutSeconds=${WATCH_SECONDS}`;
  const events = client.watch<T & { code?: number; message?: string }>(pathOf(kind) + query, {
    signal,
    ...(metadataOnly ? { accept: METADATA_OBJECT } : {}),
  });
  for await (const { type, object } of events) {
    if (signal.aborted) return;
    if (type === "ERROR") throw new ApiError(object.code ?? 500, object.message ?? "watch failed");
    const { uid } = object.metadata;
    if (type === "DELETED") {
      known.delete(uid);
      listener.deleted(object);
    } else if (type !== "BOOKMARK") {
      known.set(uid, object);
      listener.changed(object);
    }
    yield object.metadata.resourceVersion;
  }
}
