import { isAbsent, isApiError } from "../../base/errors.js";
import { describeObject, isNewerVersion, keyOf, type KubernetesObject } from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import { uidOf, type DecodedResource } from "../../base/decoded-resource.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { WriteTarget } from "./apply-matcher.js";
import type { WriteCause } from "./postponed-write.js";
import type { Sender } from "./send.js";

interface OnLatestOptions {
  readonly sender: Pick<Sender, "read">;
  readonly target: WriteTarget;
  readonly maxAttempts?: number;
  /** Tells whether an error is worth another look at the object. Default: a conflict, a patch that does not fit, a lost answer */
  readonly isConflict?: (error: unknown) => boolean;
}

/** Returns an object as it is known now: since the caller read it, the controller may have written it itself. */
export function latestOf<Resource extends KubernetesObject>(cache: ResourceView, object: Resource): Resource {
  const known = cache.get(keyOf(object.metadata))?.object as Resource | undefined;
  if (known === undefined || known.metadata.uid !== object.metadata.uid) return object;
  return isNewerVersion(known.metadata.resourceVersion!, object.metadata.resourceVersion ?? "") ? known : object;
}

/**
 * The one loop over conflicts: `change` makes one attempt and throws what the server answers. After a conflict, or a lost answer, the object
 * is read again. Returns undefined if it is gone, or another one has its name.
 */
export async function onLatest<Result>(
  first: DecodedResource,
  change: (state: DecodedResource) => Promise<Result> | Result,
  { sender, target, maxAttempts = 10, isConflict = isWorthAnotherLook }: OnLatestOptions,
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

/**
 * Tells whether a write failed because its object is gone, or another one has its name. The API server answers 404 at subresources, 409 to what
 * would create the object, and 422 if there is another one (1.36). It answers the same where a version or a value was tested, and where the
 * object is not valid.
 */
export async function failedAsGone(
  error: unknown,
  { metadata }: KubernetesObject,
  { sender, target, cause }: Pick<OnLatestOptions, "sender" | "target"> & { readonly cause?: WriteCause | undefined },
): Promise<boolean> {
  if (!isApiError(error, 404) && !isApiError(error, 409) && !isApiError(error, 422)) return false;
  const { causes } = error;
  if (causes.some(({ field }) => field === "metadata.uid")) return true;
  if (error.code === 422 && causes.length > 0) return false;
  try {
    return uidOf(await sender.read(target, metadata, cause?.signal)) !== metadata.uid;
  } catch {
    // The first error says more.
    return false;
  }
}

// 422 is what the server answers to a patch that does not fit any more.
function isWorthAnotherLook(error: unknown): boolean {
  return isApiError(error, 409) || isApiError(error, 422) || (error as Error).name === "ConnectionError";
}
