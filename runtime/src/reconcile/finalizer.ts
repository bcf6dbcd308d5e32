import { isApiError } from "../base/errors.js";
import { keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../cluster/api-client.js";
import type { ResourceView } from "../cluster/resource-view.js";

const MAX_ATTEMPTS = 10;

/** Returns the finalizer that a controller puts on objects of a kind, as JOSDK names it. */
export function defaultFinalizerOf({ plural, group }: ResourceDefinition): string {
  // Finalizers have to be qualified by a domain, which the core group and groups without a dot are not.
  const qualified = group === "" ? plural : `${plural}.${group}`;
  return qualified.includes(".") ? `${qualified}/finalizer` : `${qualified}.gen-operator.dev/finalizer`;
}

/** Tells whether an object has a finalizer. */
export function hasFinalizer({ metadata }: KubernetesObject, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) ?? false;
}

/**
 * Removes a finalizer, which lets an object go that is being deleted.
 *
 * Others may change the list at the same time, so the patch tests what it removes, and is made anew on what is there now.
 */
export async function removeFinalizer(
  object: KubernetesObject,
  options: { finalizer: string; definition: ResourceDefinition; client: ApiClient; cache: ResourceView },
): Promise<void> {
  const { finalizer, definition, client, cache } = options;
  const key = keyOf(object.metadata);
  let current: KubernetesObject | undefined = object;
  for (let attempt = 1; ; attempt++) {
    const index: number = current?.metadata.finalizers?.indexOf(finalizer) ?? -1;
    if (current === undefined || index === -1 || current.metadata.uid !== object.metadata.uid) return;
    const path = `/metadata/finalizers/${index}`;
    const operations = [
      { op: "test", path, value: finalizer },
      { op: "remove", path },
    ];
    cache.beginWrite(key);
    try {
      await client.jsonPatch({ definition }, object.metadata, { operations });
      return;
    } catch (error) {
      if (isApiError(error, 404)) return;
      const isConflict = isApiError(error, 409) || isApiError(error, 422);
      if (!isConflict || attempt === MAX_ATTEMPTS) throw error;
    } finally {
      cache.endWrite(key);
    }
    current = await client.get({ definition }, object.metadata);
  }
}
