import { isApiError } from "../base/errors.js";
import {
  keyOf,
  type KubernetesObject,
  type ObjectMeta,
  type JsonPatchOperation,
  describeObject,
} from "../base/kubernetes-object.js";
import type { ApiClient } from "../client/api-client.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { LINK_ANNOTATIONS } from "../base/primary-link.js";
import type { WriteTarget } from "./apply-matcher.js";
import { hasForeignChange } from "../match/foreign-change.js";
import { schemaOf } from "../match/schema-node.js";
import type { DeletePolicy } from "./object-writer.js";
import { writeThrough } from "./write-through.js";

/** With what objects are deleted and untied. */
export interface RemoveOptions {
  readonly client: ApiClient;
  readonly fieldManager: string;
  /** Whose managed fields the caches keep. */
  readonly fieldManagers: Iterable<string>;
}

const MAX_ATTEMPTS = 10;

/** Deletes an object, unless it was made anew meanwhile; tells whether it is gone at once. */
export async function deleteObject(
  { definition, cache }: WriteTarget,
  live: KubernetesObject,
  { client, fieldManagers, ...policy }: Pick<RemoveOptions, "client" | "fieldManagers"> & DeletePolicy,
): Promise<boolean> {
  const { name, namespace, uid } = live.metadata;
  const end = uid === undefined ? undefined : cache.beginDeletion(keyOf(live.metadata), uid);
  let isGone = false;
  try {
    const deletion = await client.delete({ definition }, { name, namespace }, { uid, fieldManagers, ...policy });
    ({ isGone } = deletion);
    const { entry } = deletion;
    // The next reconcile knows that it is on its way out, and does not ask again.
    if (entry?.object.metadata.uid === uid && entry !== undefined) cache.put(entry);
    return isGone;
  } catch (error) {
    // Another object has the name by now: ours is gone.
    if (isApiError(error, 409)) return true;
    throw error;
  } finally {
    end?.({ isGone });
  }
}

/**
 * Takes off an object what ties it to a primary, and leaves it alone otherwise: a JSON patch, so that neither the content nor what others
 * manage changes. Nothing happens if it is gone, or was made anew.
 */
export async function untieObject(
  target: WriteTarget,
  live: DecodedResource,
  { primary, ...options }: RemoveOptions & { readonly primary: KubernetesObject },
): Promise<void> {
  const { definition } = target;
  const { name, namespace, uid } = live.object.metadata;
  let current: DecodedResource | undefined = live;
  for (let attempt = 1; ; attempt++) {
    if (current === undefined || current.object.metadata.uid !== uid) return;
    const operations = untyingOperations(current.object, primary.metadata.uid);
    if (operations.length === 0) return;
    try {
      return await send(target, { before: current, operations, options });
    } catch (error) {
      if (isApiError(error, 404)) return;
      // Somebody changed what was tested, or the answer was lost.
      const isWorthAnotherLook =
        isApiError(error, 409) || isApiError(error, 422) || (error as Error).name === "ConnectionError";
      if (!isWorthAnotherLook) throw error;
      if (attempt === MAX_ATTEMPTS)
        throw new Error(`${describeObject(definition, live.object.metadata)} could not be untied from its primary`, {
          cause: error,
        });
    }
    current = await options.client.getEntry({ definition }, { name, namespace }, options.fieldManagers);
  }
}

/** Returns the operations that take owner references of an owner and the annotations of a dependent off an object. */
export function untyingOperations({ metadata }: KubernetesObject, owner: string | undefined): JsonPatchOperation[] {
  const removed = (path: string, test: JsonPatchOperation): JsonPatchOperation[] => [test, { op: "remove", path }];
  const annotations = LINK_ANNOTATIONS.flatMap((name) => {
    const value = metadata.annotations?.[name];
    const path = `/metadata/annotations/${name.replaceAll("/", "~1")}`;
    return value === undefined ? [] : removed(path, { op: "test", path, value });
  });
  // From the last to the first, so that the places of those before stay right.
  const owners = [...(metadata.ownerReferences ?? []).entries()].reverse().flatMap(([index, { uid }]) => {
    const path = `/metadata/ownerReferences/${index}`;
    return uid === owner ? removed(path, { op: "test", path: `${path}/uid`, value: uid }) : [];
  });
  const operations = [...annotations, ...owners];
  if (operations.length === 0) return [];
  return [{ op: "test", path: "/metadata/uid", value: metadata.uid ?? "" }, ...operations];
}

async function send(
  { definition, cache }: WriteTarget,
  {
    before,
    operations,
    options,
  }: { before: DecodedResource; operations: readonly JsonPatchOperation[]; options: RemoveOptions },
): Promise<void> {
  const { client, fieldManager, fieldManagers } = options;
  const ref = before.object.metadata;
  const patch = () => client.jsonPatch({ definition }, ref, { operations, fieldManager, fieldManagers });
  // A cache of parts has no place for a whole answer; the watch brings it.
  if (cache.isPartial) return void (await patch());
  await writeThrough(cache, {
    key: keyOf(ref),
    isFiltered: true,
    send: async () => ({ ...(await patch()), wasCreated: false }),
    before,
    isOwn: (after, state) => state !== undefined && isUntied({ definition, cache }, state.object, after.object),
  });
}

// Nothing but the link is different.
function isUntied({ definition }: WriteTarget, before: KubernetesObject, after: KubernetesObject): boolean {
  if (before.metadata.resourceVersion === after.metadata.resourceVersion) return false;
  const owners = new Set(after.metadata.ownerReferences?.map(({ uid }) => uid));
  const isKept = (name: string) => !LINK_ANNOTATIONS.includes(name);
  const without = (object: KubernetesObject): KubernetesObject => {
    const { annotations = {}, ownerReferences = [], ...rest } = object.metadata;
    const kept = Object.fromEntries(Object.entries(annotations).filter(([name]) => isKept(name)));
    const others = ownerReferences.filter(({ uid }) => owners.has(uid));
    const metadata: ObjectMeta = { ...rest, annotations: kept, ownerReferences: others };
    return { ...object, metadata };
  };
  return !hasForeignChange(without(before), without(after), { owned: [], schema: schemaOf(definition) });
}
