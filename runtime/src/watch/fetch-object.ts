import { isApiError } from "../base/errors.js";
import { refOfKey, type ObjectKey, describeObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { requesterOf, type ApiClient } from "../client/api-client.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { objectPath } from "../client/resource-path.js";
import { createWatchedDecoder } from "./decode-watched.js";
import { METADATA_OBJECT } from "./list-watch-options.js";
import type { InformerScope } from "./shared-informers.js";

/** Reads objects one by one as an informer of this scope keeps them (JOSDK KubernetesResourceFetcher). */
export function createObjectFetcher(
  { definition, isMetadataOnly = false, projection }: InformerScope,
  { client, fieldManagers }: { readonly client: ApiClient; readonly fieldManagers: Iterable<string> },
): (key: ObjectKey, signal: AbortSignal | undefined) => Promise<DecodedResource | undefined> {
  const decode = createWatchedDecoder({ definition, projection, fieldManagers });
  const accept = isMetadataOnly ? METADATA_OBJECT : undefined;
  return async (key, signal) => {
    const ref = refOfKey(key);
    try {
      const path = objectPath(definition, ref);
      const { body } = await requesterOf(client).send({ method: "GET", path, accept, signal });
      return decode(body, { start: 0, end: body.length, lacksType: isMetadataOnly });
    } catch (error) {
      if (isApiError(error, 404)) return undefined;
      const what = `${describeObject(definition, ref)} was evicted from a bounded cache and could not be fetched again`;
      throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
    }
  };
}
