import { isAbsent, isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type KubernetesObject,
  describeObject,
  isNewerVersion,
  keyOf,
  uidOf,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { Sender } from "./sender.js";
import type { WriteCause, WriteTarget } from "./write.js";

interface RetryOptions {
  readonly sender: Pick<Sender, "read">;
  readonly target: WriteTarget;
  readonly maxAttempts?: number;
  /** Returns whether to retry after an error. Default: after a conflict, a patch that no longer applies, or a lost response */
  readonly isConflict?: (error: unknown) => boolean;
}

/**
 * Calls `change` without a pause until it succeeds, at most `maxAttempts` times. The first attempt uses the state of the caller, without a read.
 * After a conflict or a lost response, the object is read again. Returns undefined if the object no longer exists or another object has its name.
 */
export async function retryOnConflict<Result>(
  first: DecodedResource,
  change: (state: DecodedResource) => Promise<Result> | Result,
  { sender, target, maxAttempts = 10, isConflict = isRetriable }: RetryOptions,
): Promise<Result | undefined> {
  const { metadata } = first.object;
  let state: DecodedResource | undefined = first;
  for (let attempt = 1; ; attempt++) {
    if (state === undefined || uidOf(state) !== metadata.uid) return undefined;
    try {
      return await change(state);
    } catch (error) {
      if (isAbsent(error)) return undefined;
      if (!isConflict(error)) throw error;
      const problem = `${describeObject(target.definition, metadata)} could not be patched in ${maxAttempts} attempts`;
      if (attempt === maxAttempts) throw new Error(`${problem}: ${messageOf(error)}`, { cause: error });
    }
    state = await sender.read(target, metadata);
  }
}

/** Returns the newer of an object and its state in the cache: the controller may have written the object since the caller read it. */
export function latestOf<Resource extends KubernetesObject>(cache: ResourceView, object: Resource): Resource {
  const known = cache.get(keyOf(object.metadata))?.object as Resource | undefined;
  if (known === undefined || known.metadata.uid !== object.metadata.uid) return object;
  return isNewerVersion(known.metadata.resourceVersion!, object.metadata.resourceVersion ?? "") ? known : object;
}

/**
 * Returns whether a write failed because its object no longer exists or another object has its name. In this case, the API server (1.36) responds
 * with 404 to a write of a subresource, with 409 to a write that would create the object, and with 422 if another object has the name. Since it
 * responds in the same way to a failed test of a resourceVersion or value and to an invalid object, the object is read to find out.
 */
export async function failedAsGone(
  error: unknown,
  { metadata }: KubernetesObject,
  { sender, target, cause }: Pick<RetryOptions, "sender" | "target"> & { readonly cause?: WriteCause | undefined },
): Promise<boolean> {
  if (!isApiError(error, 404) && !isApiError(error, 409) && !isApiError(error, 422)) return false;
  const { causes } = error;
  if (causes.some(({ field }) => field === "metadata.uid")) return true;
  if (error.code === 422 && causes.length > 0) return false;
  try {
    return uidOf(await sender.read(target, metadata, cause?.signal)) !== metadata.uid;
  } catch {
    // The error of the write is more helpful.
    return false;
  }
}

// 422: the patch no longer applies.
function isRetriable(error: unknown): boolean {
  return isApiError(error, 409) || isApiError(error, 422) || (error as Error).name === "ConnectionError";
}
