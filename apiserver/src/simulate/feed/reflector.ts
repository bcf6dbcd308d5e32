// Follows all objects of one kind: a list, then a watch that is resumed when it ends, then a list again when it cannot be
// resumed. A listener sees every change at least once, and the end of every object it has seen, at the latest when following ends.
import { sleep } from "../../clock.js";
import { type ApiClient, ApiError } from "./api-client.js";
import { type KubernetesObject, type ResourceKind, pathOf } from "./kubernetes-object.js";

/** What becomes of the objects of one kind. */
export interface FeedListener<T extends KubernetesObject = KubernetesObject> {
  changed(object: T): void;
  deleted(object: T): void;
}

/** What to follow, and how. */
export interface FeedOptions<T extends KubernetesObject> {
  kind: ResourceKind;
  /** Asks for metadata only, which is much less to send and to parse. */
  metadataOnly: boolean;
  listener: FeedListener<T>;
  signal: AbortSignal;
  /** Learns why the kind could not be listed or watched; it will be tried again. */
  onError: (error: unknown, key: string) => void;
}

interface ListPage<T> {
  metadata: { resourceVersion: string; continue?: string };
  /** The metadata of no objects is null (Kubernetes 1.36). */
  items: T[] | null;
}

const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const PAGE_SIZE = 500;
const WATCH_SECONDS = 300;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

/** Starts following a kind; resolves once every object that existed has been seen, or `signal` has aborted. */
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
      // 410: the server no longer knows what changed since. 404: the kind is gone, or not there yet.
      if (error instanceof ApiError && (error.status === 410 || error.status === 404)) resourceVersion = undefined;
      if (signal.aborted) break;
      options.onError(error, pathOf(options.kind));
      await sleep(pauseMs, { signal, ref: false });
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }
  // The kind itself may be gone, and nobody will tell what became of its objects.
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

/** Yields the resource version from which a later watch goes on. */
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
