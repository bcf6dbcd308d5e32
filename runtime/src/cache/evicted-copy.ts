import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../decode/decode-resource.js";

const copies = new WeakSet<KubernetesObject>();

// It has the size of the object itself, and nobody maps or selects by it.
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** Returns what a bounded cache keeps of an object that had to make room: what it is, and its metadata. */
export function createEvictedCopy({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { annotations, ...others } = metadata;
  const kept = annotations && Object.fromEntries(Object.entries(annotations).filter(([name]) => name !== LAST_APPLIED));
  const copy = { apiVersion, kind, metadata: { ...others, ...(kept === undefined ? {} : { annotations: kept }) } };
  copies.add(copy);
  return copy;
}

/** Tells whether an object is only what a bounded cache keeps of it. */
export function isEvictedCopy(object: KubernetesObject): boolean {
  return copies.has(object);
}

/** Tells whether an entry is only what a bounded cache keeps of an object. */
export function isEvicted({ object }: DecodedResource): boolean {
  return isEvictedCopy(object);
}
