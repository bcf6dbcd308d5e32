// What a controller itself writes to its primaries. Every write states the uid, so that a primary that is gone is not made anew. (The
// status subresource of custom resources does not look at it: one that was made anew gets its own status a moment later.)
import { isApiError } from "../base/errors.js";
import { keyOf, type KubernetesObject } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../cluster/decode-resource.js";
import type { RunOptions } from "../workflow/run.js";

/** With what primaries are written. */
export interface PrimaryWrite {
  readonly writer: RunOptions["writer"];
  readonly target: Parameters<RunOptions["writer"]["apply"]>[0];
}

/** Puts a finalizer on a primary; returns its new state, or undefined if it is gone. */
export async function addFinalizer(
  { writer, target }: PrimaryWrite,
  { primary, finalizer }: { primary: DecodedResource; finalizer: string },
): Promise<DecodedResource | undefined> {
  const { name, namespace, uid } = primary.object.metadata;
  const metadata = { name, uid, finalizers: [finalizer], ...(namespace === undefined ? {} : { namespace }) };
  try {
    return (await writer.apply(target, { metadata }, { live: primary })).entry;
  } catch (error) {
    if (isPrimaryGone(error)) return undefined;
    throw error;
  }
}

/** Applies the status of a primary; tells whether anything was written. */
export async function applyPrimaryStatus(
  { writer, target }: PrimaryWrite,
  { primary, status }: { primary: KubernetesObject; status: object },
): Promise<boolean> {
  const latest = target.cache.get(keyOf(primary.metadata));
  if (latest === undefined || latest.object.metadata.uid !== primary.metadata.uid) return false;
  try {
    return (await writer.applyStatus(target, status, latest)).kind !== "unchanged";
  } catch (error) {
    // There is nothing left to report on.
    if (isPrimaryGone(error)) return false;
    throw error;
  }
}

// The API server answers 404 at subresources, 409 to what would create the object, and 422 if there is another one (1.36).
function isPrimaryGone(error: unknown): boolean {
  if (isApiError(error, 422)) return error.causes.some(({ field }) => field === "metadata.uid");
  return isApiError(error, 404) || isApiError(error, 409);
}
