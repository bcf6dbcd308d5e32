import { isApiError } from "../base/errors.js";
import { messageOf } from "../base/logger.js";
import { type KubernetesObject, describeObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import type { KindOperations, ResourceWrite } from "./kind-operations.js";
import { lockingOperation, operationsOf } from "./plan.js";

/** A change that is made anew on what is there, until it meets no conflict. */
export interface RetriedPatch<Resource extends KubernetesObject> {
  /** Changes a copy of the object, or returns a changed one. */
  readonly change: (draft: Resource) => Resource | void;
  /** Tells whether an object has to be changed; without it every object has. */
  readonly isNeeded?: (object: Resource) => boolean;
  readonly mode?: "matchAndFilter" | "cacheOnly";
}

const MAX_ATTEMPTS = 10;

/**
 * Changes an object by a JSON patch of the version that it was made from. After a conflict, or an answer that was lost, the object is read
 * and looked at again.
 *
 * Returns undefined if the object is gone, or there is another one of its name.
 */
export async function patchWithConflictRetry<Resource extends KubernetesObject>(
  object: Resource,
  { change, isNeeded = () => true, mode = "matchAndFilter" }: RetriedPatch<Resource>,
  by: {
    readonly operations: KindOperations<Resource>;
    readonly definition: ResourceDefinition;
    readonly client: ApiClient;
  },
): Promise<ResourceWrite<Resource> | undefined> {
  const { operations, client } = by;
  const definition = by.definition as ResourceDefinition<Resource>;
  const { name, namespace, uid } = object.metadata;
  let current: Resource | undefined = object;
  for (let attempt = 1; ; attempt++) {
    if (current === undefined || current.metadata.uid !== uid) return undefined;
    if (!isNeeded(current)) return { kind: "unchanged", object: current };
    const { resourceVersion } = current.metadata;
    const lock = resourceVersion === undefined ? [] : [lockingOperation(resourceVersion)];
    try {
      return await operations.jsonPatch(current, [...lock, ...operationsOf(current, change)], { mode });
    } catch (error) {
      if (isApiError(error, 404)) return undefined;
      if (!isWorthAnotherLook(error)) throw error;
      if (attempt === MAX_ATTEMPTS) throw exhausted(describeObject(definition, { name, namespace }), error);
    }
    current = await client.get({ definition }, { name, namespace });
  }
}

// 422 is what the server answers to a patch that does not fit any more.
function isWorthAnotherLook(error: unknown): boolean {
  return isApiError(error, 409) || isApiError(error, 422) || (error as Error).name === "ConnectionError";
}

function exhausted(what: string, cause: unknown): Error {
  return new Error(`${what} could not be patched in ${MAX_ATTEMPTS} attempts: ${messageOf(cause)}`, { cause });
}
