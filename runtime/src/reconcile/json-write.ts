import { isDeepStrictEqual } from "node:util";
import { keyOf, type KubernetesObject, type JsonPatchOperation } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { ResourceView } from "../cache/resource-view.js";

/** With what an object is written by JSON patches. */
export interface JsonWrite {
  readonly client: ApiClient;
  readonly definition: ResourceDefinition;
  readonly cache: ResourceView;
  readonly fieldManager: string;
  /** Whose entries in managed fields the caches keep. */
  readonly fieldManagers: Iterable<string>;
}

/** Sends a JSON patch that turns one state of an object into another; the next read sees the answer. */
export async function writePatch(
  { client, definition, cache, fieldManager, fieldManagers }: JsonWrite,
  operations: readonly JsonPatchOperation[],
  { before, after, subresource }: { before: KubernetesObject; after: KubernetesObject; subresource?: "status" },
): Promise<DecodedResource> {
  const key = keyOf(before.metadata);
  cache.beginWrite(key);
  let written: { entry: DecodedResource; isOwn: boolean } | undefined;
  try {
    const entry = await client.jsonPatch({ definition }, before.metadata, {
      operations: [uidTest(before.metadata.uid), ...operations],
      fieldManager,
      fieldManagers,
      ...(subresource === undefined ? {} : { subresource }),
    });
    written = { entry, isOwn: isAnswerTo(after, entry.object, before) };
    return entry;
  } finally {
    cache.endWrite(key, written);
  }
}

/** Tests that an object was not made anew under its name. */
export function uidTest(uid: string | undefined): JsonPatchOperation {
  return { op: "test", path: "/metadata/uid", value: uid ?? "" };
}

/**
 * Tells whether a version that the server answered with is a write's own: what is there is what was to be written, so nobody else changed
 * anything, and it is another version than before, so something was written.
 */
export function isAnswerTo(expected: KubernetesObject, answer: KubernetesObject, before = expected): boolean {
  if (answer.metadata.resourceVersion === before.metadata.resourceVersion) return false;
  return isDeepStrictEqual(plainOf(answer), plainOf(expected));
}

// The server counts writes, and does not store what is undefined or empty.
function plainOf(object: KubernetesObject): unknown {
  const { resourceVersion: _resourceVersion, generation: _generation, finalizers, ...metadata } = object.metadata;
  const plain = { ...object, metadata: { ...metadata, ...(finalizers?.length ? { finalizers } : {}) } };
  return JSON.parse(JSON.stringify(plain));
}
