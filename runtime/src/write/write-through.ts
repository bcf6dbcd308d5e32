import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { Applied, WriteRequest } from "../client/write-request.js";

/** A write whose answer goes into a cache. */
export interface CachedWrite<Resource extends KubernetesObject> {
  readonly key: ObjectKey;
  /** Whether the event of the write is kept from the controller, if it is its own for certain. */
  readonly isFiltered: boolean;
  readonly send: (findKnown: NonNullable<WriteRequest["findKnown"]>) => Promise<Applied<Resource>>;
  /** The state that the write was made from; undefined if none is known. */
  readonly before: DecodedResource | undefined;
  /**
   * Tells whether the version of an answer is the one that the write made, and nothing is in it that was not in `before`: a write that
   * changes nothing answers with the version of a change that the watch may not have brought yet.
   */
  readonly isOwn: (answer: DecodedResource<Resource>, before: DecodedResource | undefined) => boolean;
}

/** Writes so that the next read sees the answer. */
export async function writeThrough<Resource extends KubernetesObject>(
  cache: ResourceView,
  { key, isFiltered, send, before, isOwn }: CachedWrite<Resource>,
): Promise<Applied<Resource>> {
  const findKnown = (version: string) => cache.getVersion(key, version);
  if (!isFiltered) {
    const answer = await send(findKnown);
    if (!isGone(answer.object)) cache.put(entryOf(answer));
    return answer;
  }
  cache.beginWrite(key);
  let written: { readonly entry: DecodedResource; readonly isOwn: boolean } | undefined;
  try {
    const answer = await send(findKnown);
    const entry = entryOf(answer);
    // What came during the write is known to be somebody else's, and told as such.
    const states = new Set([before, cache.get(key)]);
    const isOwnVersion = answer.wasCreated || [...states].some((state) => isOwn(entry, state));
    if (!isGone(answer.object)) written = { entry, isOwn: isOwnVersion };
    return answer;
  } finally {
    cache.endWrite(key, written);
  }
}

function entryOf<Resource extends KubernetesObject>(answer: Applied<Resource>): DecodedResource<Resource> {
  const { wasCreated: _wasCreated, ...entry } = answer;
  return entry;
}

// The last finalizer went: this is the answer of a write, but the object is no more.
function isGone({ metadata }: KubernetesObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadata;
  return deletionTimestamp !== undefined && finalizers.length === 0 && deletionGracePeriodSeconds === 0;
}
