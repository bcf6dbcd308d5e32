import type { WriteVerb } from "../base/kubernetes-object.js";
import { type KubernetesObject, type ObjectRef, describeObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { sendNamed, type ApiRequester } from "./requester.js";
import { decodeResource, peekResourceVersion, type DecodedResource } from "../decode/decode-resource.js";
import { collectionPath, objectPath, queryOf } from "./resource-path.js";
import { lacksEmptied, withoutEmptied } from "./emptied-fields.js";
import type { TransportRequest } from "./transport.js";

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
  /**
   * Whether the write may be sent again after its answer was lost. Unless said otherwise that holds for what comes to the same if it is
   * carried out twice: an apply, and an update or a merge patch that states no version.
   */
  readonly isRepeatable?: boolean;
  /** Whose managed fields the answer is returned with; those of `fieldManager` unless given. */
  readonly fieldManagers?: Iterable<string>;
  /** Returns the object if this version of it is known already: then the answer is not decoded. */
  readonly findKnown?: (version: string) => DecodedResource | undefined;
}

/** What became of a write. */
export interface Applied<Resource extends KubernetesObject = KubernetesObject> extends DecodedResource<Resource> {
  /** Whether the object did not exist before. */
  readonly wasCreated: boolean;
}

const METHODS: { readonly [verb in WriteVerb]: TransportRequest["method"] } = {
  create: "POST",
  update: "PUT",
  apply: "PATCH",
  jsonPatch: "PATCH",
  mergePatch: "PATCH",
};
const CONTENT_TYPES: { readonly [verb in WriteVerb]?: string } = {
  apply: "application/apply-patch+yaml",
  jsonPatch: "application/json-patch+json",
  mergePatch: "application/merge-patch+json",
};
const WORDS: { readonly [verb in WriteVerb]: string } = {
  create: "create",
  update: "update of",
  apply: "apply of",
  jsonPatch: "patch of",
  mergePatch: "patch of",
};

/** Writes an object; throws ApiError and ConnectionError, with what was asked of which object in the message. */
export async function sendWrite<Resource extends KubernetesObject>(
  requester: ApiRequester,
  definition: ResourceDefinition,
  request: WriteRequest,
): Promise<Applied<Resource>> {
  if (request.verb !== "apply" || !definition.isCustom) return sendOnce(requester, definition, request);
  const { first, isWhole } = await applyFirst<Resource>(requester, definition, request);
  if (isWhole) return first;
  const body = ofVersion(request.body, first.object);
  const { wasCreated } = first;
  return { ...(await sendOnce<Resource>(requester, definition, { ...request, body })), wasCreated };
}

// What cannot be emptied at once is left out, by the server or here.
async function applyFirst<Resource extends KubernetesObject>(
  requester: ApiRequester,
  definition: ResourceDefinition,
  request: WriteRequest,
): Promise<{ first: Applied<Resource>; isWhole: boolean }> {
  try {
    const first = await sendOnce<Resource>(requester, definition, request);
    return { first, isWhole: !lacksEmptied(writtenFields(definition, request), first.object) };
  } catch (error) {
    const body = withoutEmptied(request.body, error);
    if (body === undefined) throw error;
    // The first error says what is wrong with what was meant.
    const first = await sendOnce<Resource>(requester, definition, { ...request, body }).catch(() =>
      Promise.reject(error),
    );
    return { first, isWhole: false };
  }
}

// What the server takes, but for the metadata, of which it leaves out what is empty.
function writtenFields({ hasStatusSubresource }: ResourceDefinition, { body, subresource }: WriteRequest): object {
  const { metadata: _metadata, status, ...fields } = body as KubernetesObject & { status?: unknown };
  if (subresource === "status") return { status };
  return hasStatusSubresource ? fields : { ...fields, status };
}

// What states a version states that of what was applied first.
function ofVersion(body: object, { metadata: { resourceVersion } }: KubernetesObject): object {
  const { metadata } = body as KubernetesObject;
  return metadata?.resourceVersion === undefined ? body : { ...body, metadata: { ...metadata, resourceVersion } };
}

async function sendOnce<Resource extends KubernetesObject>(
  requester: ApiRequester,
  definition: ResourceDefinition,
  request: WriteRequest,
): Promise<Applied<Resource>> {
  const { verb, ref, body, fieldManager, subresource, findKnown } = request;
  const {
    isRepeatable = isRepeatableWrite(request),
    signal,
    fieldManagers = fieldManager ? [fieldManager] : [],
  } = request;
  const path = verb === "create" ? collectionPath(definition, ref.namespace) : objectPath(definition, ref, subresource);
  const query = queryOf({
    fieldManager: fieldManager || undefined,
    force: verb === "apply" ? (request.force ?? true) : undefined,
  });
  const what = subresource === undefined ? WORDS[verb] : `${WORDS[verb]} the ${subresource} of`;
  const write = {
    method: METHODS[verb],
    path: path + query,
    body: JSON.stringify(verb.endsWith("Patch") ? body : withType(definition, body)),
    isRepeatable,
    contentType: CONTENT_TYPES[verb],
    signal,
  };
  const answer = await sendNamed(requester, write, `${what} ${describeObject(definition, ref)}`);
  const version = findKnown && peekResourceVersion(answer.body);
  const known = version === undefined ? undefined : (findKnown?.(version) as DecodedResource<Resource> | undefined);
  const entry = known ?? decodeResource<Resource>(answer.body, { fieldManagers });
  return { ...entry, wasCreated: answer.status === 201 };
}

function withType({ apiVersion, kind }: ResourceDefinition, body: object): object {
  return { ...body, apiVersion, kind };
}

function isRepeatableWrite({ verb, body }: WriteRequest): boolean {
  if (verb === "create" || verb === "jsonPatch") return false;
  return verb === "apply" || (body as Partial<KubernetesObject>).metadata?.resourceVersion === undefined;
}
