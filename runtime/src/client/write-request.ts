import { describeObject, type KubernetesObject, type ObjectRef, type WriteVerb } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { decodeResource, peekIdentity, type DecodedResource } from "../decode/decode-resource.js";
import type { ApiRequester } from "./requester.js";
import { collectionPath, objectPath, queryOf } from "./resource-path.js";

/** What every write may state. */
export interface WriteOptions {
  /** Under whose name the server keeps what is written. */
  readonly fieldManager?: string;
  readonly subresource?: "status" | undefined;
  /** Ends the request; a write under way may still be carried out. */
  readonly signal?: AbortSignal | undefined;
}

/** One write of one object. */
export interface WriteRequest extends WriteOptions {
  readonly verb: WriteVerb;
  readonly ref: ObjectRef;
  /** The object, or the patch; apiVersion and kind of an object are those of the definition. */
  readonly body: object;
  /** Takes over fields that others manage; for an apply, and true unless said otherwise, as controllers should. */
  readonly force?: boolean;
  /** Whether the write may be sent again after its answer was lost. Default: an apply, an update or a merge patch without a version may. */
  readonly isRepeatable?: boolean;
  /** Whose managed fields the answer is returned with; those of `fieldManager` unless given. */
  readonly fieldManagers?: Iterable<string>;
  /** Returns the object if this version of it is known already: then the answer is not decoded. */
  readonly findKnown?: ((version: string) => DecodedResource | undefined) | undefined;
}

/** What became of a write. */
export interface Applied<Resource extends KubernetesObject = KubernetesObject> extends DecodedResource<Resource> {
  /** Whether the object did not exist before. */
  readonly wasCreated: boolean;
}

const VERBS = {
  create: { method: "POST", contentType: "application/json", words: "create" },
  update: { method: "PUT", contentType: "application/json", words: "update of" },
  apply: { method: "PATCH", contentType: "application/apply-patch+yaml", words: "apply of" },
  jsonPatch: { method: "PATCH", contentType: "application/json-patch+json", words: "patch of" },
  mergePatch: { method: "PATCH", contentType: "application/merge-patch+json", words: "patch of" },
} as const satisfies { [verb in WriteVerb]: object };

/** Writes an object; throws ApiError and ConnectionError, with what was asked of which object in the message. */
export async function sendWrite<Resource extends KubernetesObject>(
  requester: ApiRequester,
  definition: ResourceDefinition,
  request: WriteRequest,
): Promise<Applied<Resource>> {
  const { verb, ref, body, fieldManager, subresource, signal, force = true, findKnown } = request;
  const { fieldManagers = fieldManager ? [fieldManager] : [] } = request;
  const isVersioned = (body as Partial<KubernetesObject>).metadata?.resourceVersion !== undefined;
  const isSameTwice = verb === "apply" || (!isVersioned && (verb === "update" || verb === "mergePatch"));
  const { method, contentType, words } = VERBS[verb];
  const path = verb === "create" ? collectionPath(definition, ref.namespace) : objectPath(definition, ref, subresource);
  const query = queryOf({ fieldManager: fieldManager || undefined, force: verb === "apply" ? force : undefined });
  const { apiVersion, kind } = definition;
  const answer = await requester.send({
    isRepeatable: request.isRepeatable ?? isSameTwice,
    ...{ method, contentType, signal },
    path: path + query,
    body: JSON.stringify(verb.endsWith("Patch") ? body : Object.assign({}, body, { apiVersion, kind })),
    what: `${words} ${subresource === undefined ? "" : `the ${subresource} of `}${describeObject(definition, ref)}`,
  });
  const version = findKnown && peekIdentity(answer.body)?.version;
  const known = version === undefined ? undefined : (findKnown?.(version) as DecodedResource<Resource> | undefined);
  const entry = known ?? decodeResource<Resource>(answer.body, { fieldManagers });
  return { wasCreated: answer.status === 201, ...entry };
}
