import {
  type KubernetesObject,
  type ObjectRef,
  type JsonPatchOperation,
  describeObject,
} from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { absentOrThrow, ApiRequester, failed, sendNamed, type RequesterOptions } from "./requester.js";
import type { Connection } from "./connect/connection.js";
import { decodeResource, type DecodedResource } from "../decode/decode-resource.js";
import { collectionPath, objectPath, queryOf } from "./resource-path.js";
import { evictPod, readScale, writeScale, type EvictOptions, type Scale, type ScaleOptions } from "./subresources.js";
import { Transport, type TransportOptions } from "./transport.js";
import { watchEvents, type WatchedEvent, type WatchOptions } from "./watch-events.js";
import { sendWrite, type Applied, type WriteOptions, type WriteRequest } from "./write-request.js";

/** A class or anything else that carries the definition of a kind. */
export interface Defined<Resource extends KubernetesObject> {
  readonly definition: ResourceDefinition<Resource>;
}

/** What an apply sends; the kind is that of the definition. */
export interface ApplyOptions extends WriteOptions, Pick<WriteRequest, "force" | "fieldManagers" | "findKnown"> {
  readonly fieldManager: string;
}

/** What every read may state. */
export interface ReadOptions {
  /** Ends the request. */
  readonly signal?: AbortSignal | undefined;
}

/** Which objects of a kind are read. */
export interface ListOptions extends ReadOptions {
  /** Default: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** How an object is deleted. */
export interface DeleteOptions extends ReadOptions {
  /** Deletes the object only if this is its uid; otherwise the server answers 409. */
  readonly uid?: string | undefined;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
  /** Whose managed fields the object that is held is returned with. */
  readonly fieldManagers?: Iterable<string>;
}

/** The object that a patch changes, and how. */
export interface PatchTarget extends ObjectRef, WriteOptions {}

/** What became of a deletion. */
export interface Deletion {
  readonly wasFound: boolean;
  /** False while a finalizer or a grace period holds the object. */
  readonly isGone: boolean;
  /** The object that is held, with what the field managers that were asked for applied. */
  readonly entry?: DecodedResource;
}

const LIST_LIMIT = 500;

/**
 * A client for the objects of one API server.
 *
 * Requests carry no rate limit of their own; they are repeated where the server asks for it (429 and 5xx, with Retry-After) and where
 * the connection broke, unless they might then be carried out twice. Errors are ApiError and ConnectionError, with what was asked of which object in the message.
 */
export class ApiClient {
  readonly connection: Connection;
  readonly #transport: Transport;
  readonly #requester: ApiRequester;

  constructor(connection: Connection, options: RequesterOptions & TransportOptions = {}) {
    this.connection = connection;
    this.#transport = new Transport(connection, options);
    this.#requester = new ApiRequester(this.#transport, options);
  }

  /** The connections that this client uses, for watches. */
  get transport(): Transport {
    return this.#transport;
  }

  /** Sends requests as they are. */
  get requester(): ApiRequester {
    return this.#requester;
  }

  /** Reads one object; undefined if there is none. */
  async get<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    ref: ObjectRef,
    options: ReadOptions = {},
  ): Promise<Resource | undefined> {
    return (await this.getEntry(defined, ref, options))?.object;
  }

  /** Reads one object as the caches hold it, with what these field managers applied; undefined if there is none. */
  async getEntry<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    ref: ObjectRef,
    options: Iterable<string> | (ReadOptions & { readonly fieldManagers?: Iterable<string> }) = {},
  ): Promise<DecodedResource<Resource> | undefined> {
    const { fieldManagers = [], signal } = Symbol.iterator in options ? { fieldManagers: options } : options;
    const request = { method: "GET", path: objectPath(definition, ref), signal } as const;
    const what = `get ${describeObject(definition, ref)}`;
    const answer = await sendNamed(this.#requester, request, what).catch(absentOrThrow);
    return answer && decodeResource<Resource>(answer.body, { fieldManagers });
  }

  /** Reads all objects of a kind, page by page. */
  async list<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    { namespace, labelSelector, fieldSelector, signal }: ListOptions = {},
  ): Promise<Resource[]> {
    const items: Resource[] = [];
    let next: string | undefined;
    do {
      const query = queryOf({ labelSelector, fieldSelector, limit: LIST_LIMIT, continue: next });
      const path = collectionPath(definition, namespace) + query;
      const what = `list ${describeKind(definition, namespace)}`;
      const { body } = await sendNamed(this.#requester, { method: "GET", path, signal }, what);
      const page = JSON.parse(body.toString("utf8")) as { metadata: { continue?: string }; items: Resource[] | null };
      // Built-in kinds are listed without their apiVersion and kind.
      const type = { apiVersion: definition.apiVersion, kind: definition.kind };
      for (const item of page.items ?? []) items.push({ ...type, ...item });
      next = page.metadata.continue || undefined;
    } while (next !== undefined);
    return items;
  }

  /**
   * Follows the objects of a kind by one watch: without a resource version it begins with an ADDED for every object that exists.
   *
   * Ends when the signal is aborted or the server ends the watch, as it does after some minutes. Throws an ApiError with code 410 if
   * the resource version is too old, and any other error; nothing is repeated or resumed.
   */
  async *watch<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchedEvent<Resource>, void> {
    try {
      yield* watchEvents<Resource>(this.#transport, definition, options);
    } catch (error) {
      throw failed(`watch of ${describeKind(definition, options.namespace)}`, error);
    }
  }

  /** Creates an object; throws an ApiError with code 409 if it exists. */
  async create<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    object: Omit<Resource, "apiVersion" | "kind">,
    options: Pick<WriteOptions, "fieldManager" | "signal"> = {},
  ): Promise<Resource> {
    const { metadata: ref } = object as unknown as KubernetesObject;
    return (await this.write(defined, { ...options, verb: "create", ref, body: object })).object;
  }

  /**
   * Replaces an object, or its status; throws an ApiError with code 409 if it states a resource version and somebody has changed the
   * object since.
   */
  async update<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    object: Omit<Resource, "apiVersion" | "kind">,
    options: WriteOptions = {},
  ): Promise<Resource> {
    const { metadata: ref } = object as unknown as KubernetesObject;
    return (await this.write(defined, { ...options, verb: "update", ref, body: object })).object;
  }

  /** Applies an object server-side, whether it exists or not. */
  async apply<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    object: object & { metadata: ObjectRef },
    options: ApplyOptions,
  ): Promise<Applied<Resource>> {
    return this.write(defined, { ...options, verb: "apply", ref: object.metadata, body: object });
  }

  /** Changes an object by a JSON merge patch (RFC 7386). */
  async mergePatch<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    target: PatchTarget,
    patch: object,
  ): Promise<Resource> {
    const { fieldManager = "", subresource, signal } = target;
    const options = { fieldManager, ...(subresource && { subresource }), signal };
    return (await this.write(defined, { ...options, verb: "mergePatch", ref: target, body: patch })).object;
  }

  /** Changes an object by a JSON patch (RFC 6902). */
  async jsonPatch<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    ref: ObjectRef,
    options: WriteOptions &
      Pick<WriteRequest, "fieldManagers" | "isRepeatable"> & { readonly operations: readonly JsonPatchOperation[] },
  ): Promise<DecodedResource<Resource>> {
    const { operations: body, ...rest } = options;
    return this.write(defined, { ...rest, verb: "jsonPatch", ref, body });
  }

  /** Writes an object in any of the ways, as the caches hold it: what the other writes are made of. */
  write<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    request: WriteRequest,
  ): Promise<Applied<Resource>> {
    return sendWrite(this.#requester, definition, request);
  }

  /** Deletes an object, or starts its deletion where a finalizer or a grace period holds it. */
  async delete<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    ref: ObjectRef,
    options: DeleteOptions = {},
  ): Promise<Deletion> {
    const { uid, propagationPolicy, fieldManagers = [], signal } = options;
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    const policy = propagationPolicy === undefined ? {} : { propagationPolicy };
    const body = JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", ...preconditions, ...policy });
    const request = { method: "DELETE", path: objectPath(definition, ref), body, signal } as const;
    const what = `delete of ${describeObject(definition, ref)}`;
    const response = await sendNamed(this.#requester, request, what).catch(absentOrThrow);
    if (response === undefined) return { wasFound: false, isGone: true };
    // Some kinds answer with the object even if it is gone; one that stays has a deletion timestamp.
    const answer = JSON.parse(response.body.toString("utf8")) as Partial<KubernetesObject>;
    const isGone = answer.kind === "Status" || answer.metadata?.deletionTimestamp === undefined;
    if (isGone) return { wasFound: true, isGone };
    return { wasFound: true, isGone, entry: decodeResource(response.body, { fieldManagers }) };
  }

  /** Reads how many replicas an object has and shall have; undefined if there is no such object, or its kind cannot be scaled. */
  async getScale(
    defined: Defined<KubernetesObject>,
    ref: ObjectRef,
    options: ReadOptions = {},
  ): Promise<Scale | undefined> {
    return readScale(this.#requester, { definition: defined.definition, ref }, options);
  }

  /** Sets how many replicas an object shall have: by server-side apply if `apply` is true, and otherwise by a JSON merge patch. */
  async setScale(defined: Defined<KubernetesObject>, ref: ObjectRef, options: ScaleOptions): Promise<Scale> {
    return writeScale(this.#requester, { definition: defined.definition, ref }, options);
  }

  /**
   * Evicts a pod, which a PodDisruptionBudget may refuse: an ApiError with code 429, which is not repeated. Tells whether there was a pod.
   */
  async evict(ref: ObjectRef, options: EvictOptions = {}): Promise<boolean> {
    return evictPod(this.#requester, ref, options);
  }

  /** Tells whether the API server serves a kind. */
  async isServed(definition: ResourceDefinition, { signal }: ReadOptions = {}): Promise<boolean> {
    const request = { method: "GET", path: collectionPath(definition).replace(/\/[^/]+$/, ""), signal } as const;
    const answer = await sendNamed(this.#requester, request, `look up ${definition.plural}`).catch(absentOrThrow);
    if (answer === undefined) return false;
    const { resources = [] } = JSON.parse(answer.body.toString("utf8")) as { resources?: { name: string }[] };
    return resources.some(({ name }) => name === definition.plural);
  }

  /** Breaks all connections. */
  async close(): Promise<void> {
    await this.#transport.close();
  }
}

function describeKind({ plural }: ResourceDefinition, namespace: string | undefined): string {
  return namespace === undefined ? plural : `${plural} in "${namespace}"`;
}
