// Finalizers are put on objects, and taken off, without being held back: whoever undoes it, the next reconcile needs them as they should be.
import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { KindOperations, PartialResource, ResourceWrite } from "./kind-operations.js";

/** Which finalizer is meant, and what is made of the event. */
export interface FinalizerWrite {
  readonly finalizer: string;
  readonly mode?: "matchAndFilter" | "cacheOnly";
}

/** Tells whether an object has a finalizer. */
export function hasFinalizer({ metadata }: KubernetesObject, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) === true;
}

/** Puts a finalizer on an object by a JSON patch, unless it has it or is being deleted; undefined if it is gone. */
export function addFinalizer<Resource extends KubernetesObject>(
  operations: KindOperations<Resource>,
  object: Resource,
  { finalizer, ...options }: FinalizerWrite,
): Promise<ResourceWrite<Resource> | undefined> {
  return operations.patchOnLatest(object, {
    ...options,
    isNeeded: (live) => live.metadata.deletionTimestamp === undefined && !hasFinalizer(live, finalizer),
    change: ({ metadata }) => void (metadata.finalizers = [...(metadata.finalizers ?? []), finalizer]),
  });
}

/** Puts a finalizer on an object by server-side apply, unless it has it or is being deleted. */
export async function applyFinalizer<Resource extends KubernetesObject>(
  operations: KindOperations<Resource>,
  object: Resource,
  { finalizer, ...options }: FinalizerWrite,
): Promise<ResourceWrite<Resource>> {
  const { name, namespace, uid, deletionTimestamp } = object.metadata;
  if (deletionTimestamp !== undefined || hasFinalizer(object, finalizer)) return { kind: "unchanged", object };
  const metadata = { name, uid, finalizers: [finalizer], ...(namespace === undefined ? {} : { namespace }) };
  return operations.apply({ metadata } as unknown as PartialResource<Resource>, options);
}

/** Takes a finalizer off an object, which lets one go that is being deleted; undefined if it is gone. */
export function removeFinalizer<Resource extends KubernetesObject>(
  operations: KindOperations<Resource>,
  object: Resource,
  { finalizer, ...options }: FinalizerWrite,
): Promise<ResourceWrite<Resource> | undefined> {
  return operations.patchOnLatest(object, {
    ...options,
    isNeeded: (live) => hasFinalizer(live, finalizer),
    change: ({ metadata }) => void (metadata.finalizers = metadata.finalizers?.filter((name) => name !== finalizer)),
  });
}
