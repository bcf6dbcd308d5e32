import { describeObject, type KubernetesObject, type ObjectRef, type WriteVerb } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource, FieldManagers } from "../base/decoded-resource.js";
import { decodeResource, peekIdentity } from "../decode/decode-resource.js";
import type { ApiRequest } from "./requester.js";
import { objectPath, parentPath, queryOf } from "./resource-path.js";
import type { TransportResponse } from "./transport.js";

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
  /** Takes fields over that other managers have, for an apply. Default: true, as controllers should. */
  readonly force?: boolean;
  /** Whether the API server only says what would become of the object, and stores nothing. */
  readonly dryRun?: boolean;
  /** Whether the write may be sent again after its answer was lost. Default: an apply, an update or a merge patch without a version may. */
  readonly repeatable?: boolean;
  /** Whose managed fields the answer is returned with. Default: those of `fieldManager` */
  readonly fieldManagers?: FieldManagers;
  /** Returns the object if this version of it is known already: then the answer is not decoded. */
  readonly findKnown?: ((version: string) => DecodedResource | undefined) | undefined;
}

/** What an apply sends; the kind is that of the definition. */
export interface ApplyOptions extends WriteOptions, Pick<WriteRequest, "force" | "fieldManagers" | "findKnown"> {
  readonly fieldManager: string;
}

/** The object that a patch changes, and how. */
export interface PatchTarget extends ObjectRef, WriteOptions {}

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

// An apply is read as YAML 1.1, which refuses these where they stand for themselves, or takes them for the end of a line.
const NOT_AS_IN_YAML = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** Returns the request that makes a write; its errors say what was asked of which object. */
export function requestOf(definition: ResourceDefinition, write: WriteRequest): ApiRequest {
  const { verb, ref, body, fieldManager, subresource, signal, force = true, dryRun = false } = write;
  const isVersioned = (body as Partial<KubernetesObject>).metadata?.resourceVersion !== undefined;
  const isSameTwice = verb === "apply" || (!isVersioned && (verb === "update" || verb === "mergePatch"));
  const { method, contentType, words } = VERBS[verb];
  const path = verb === "create" ? parentPath(definition, ref) : objectPath(definition, ref, subresource);
  const query = queryOf({
    fieldManager: fieldManager || undefined,
    force: verb === "apply" ? force : undefined,
    dryRun: dryRun ? "All" : undefined,
  });
  const { apiVersion, kind } = definition;
  const text = JSON.stringify(verb.endsWith("Patch") ? body : Object.assign({}, body, { apiVersion, kind }));
  return {
    isRepeatable: write.repeatable ?? isSameTwice,
    ...{ method, contentType, signal },
    path: path + query,
    body: text.replace(NOT_AS_IN_YAML, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`),
    what: `${words} ${subresource === undefined ? "" : `the ${subresource} of `}${describeObject(definition, ref)}`,
  };
}

/** Reads the answer to a write. */
export function readAnswer<Resource extends KubernetesObject>(
  { status, body }: TransportResponse,
  { fieldManager, findKnown, fieldManagers = fieldManager ? [fieldManager] : [] }: WriteRequest,
): Applied<Resource> {
  const version = findKnown && peekIdentity(body)?.version;
  const known = version === undefined ? undefined : (findKnown?.(version) as DecodedResource<Resource> | undefined);
  const entry = known ?? decodeResource<Resource>(body, { fieldManagers });
  return { wasCreated: status === 201, ...entry };
}
