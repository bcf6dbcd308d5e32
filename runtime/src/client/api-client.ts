import { once } from "node:events";
import { PassThrough } from "node:stream";
import { type ApiStatus, isAbsent, isApiError } from "../base/errors.js";
import {
  type Creatable,
  type DecodedResource,
  type Defined,
  type FieldManagers,
  type JsonPatchOperation,
  type KubernetesObject,
  type NewResource,
  type ObjectMeta,
  type ObjectRef,
  type PartialResource,
  type ResourceDefinition,
  type WholeObject,
  builtinKindOf,
  describeObject,
  objectIn,
} from "../base/kubernetes-object.js";
import { abortWith } from "../base/wait.js";
import type { Connection } from "./connection.js";
import { decodeResource } from "./object-decoder.js";
import { noteDeletion } from "./own-writes.js";
import { METADATA_LIST, pagesOf } from "./pager.js";
import {
  type ApiRequest,
  ApiRequester,
  type Applied,
  type ApplyOptions,
  type PatchTarget,
  type RequesterOptions,
  type WriteOptions,
  type WriteRequest,
  applyEmptying,
  collectionPath,
  describeCollection,
  errorOf,
  errorOfStatus,
  failed,
  objectPath,
  queryOf,
  readAnswer,
  httpRequestOf,
} from "./request.js";
import { Transport, type TransportOptions } from "./transport.js";

/** How a client differs from the usual one. */
export interface ApiClientOptions extends RequesterOptions, TransportOptions {}

const POD: ResourceDefinition = builtinKindOf({ kind: "Pod", plural: "pods" });

/** Returns what sends the requests of a client as they are: not for users, whose calls are methods of the client. */
export let requesterOf: (client: ApiClient) => ApiRequester;

/** Returns a client over the same connections whose requests differ in these options; both observers are called if there are two. */
export function variantOf(client: ApiClient, options: Parameters<ApiRequester["with"]>[0]): ApiClient {
  // What sends requests is no option that the types of users have.
  return new ApiClient(client.connection, requesterOf(client).with(options) as object);
}

/**
 * A client for the objects of one API server. Requests have no rate limit of their own; they are repeated where the server asks for it (429 and
 * 5xx, with Retry-After) and where the connection broke, unless they might then be carried out twice. Errors are ApiError and ConnectionError,
 * with what was asked of which object in the message.
 */
export class ApiClient {
  readonly connection: Connection;
  readonly #requester: ApiRequester;

  static {
    requesterOf = (client) => client.#requester;
  }

  constructor(connection: Connection, options?: ApiClientOptions);
  constructor(connection: Connection, options: ApiClientOptions | ApiRequester = {}) {
    this.connection = connection;
    this.#requester =
      options instanceof ApiRequester ? options : new ApiRequester(new Transport(connection, options), options);
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
    { fieldManagers = [], signal }: ReadOptions & { readonly fieldManagers?: FieldManagers } = {},
  ): Promise<DecodedResource<Resource> | undefined> {
    const body = await this.#sendAbout({ definition, ref }, "get", { method: "GET", signal });
    return body && decodeResource<Resource>(body, { fieldManagers });
  }

  /** Reads all objects of a kind, page by page. */
  async list<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    { namespace, labelSelector, fieldSelector, signal }: ListOptions = {},
  ): Promise<Resource[]> {
    const found: Resource[] = [];
    const selection = { namespace, labelSelector, fieldSelector, signal };
    const pages = this.#pages<Resource>(definition, selection, { onRestart: () => void found.splice(0) });
    // Built-in kinds are listed without their apiVersion and kind.
    const type = { apiVersion: definition.apiVersion, kind: definition.kind };
    for await (const { items } of pages) for (const item of items ?? []) found.push({ ...type, ...item });
    return found;
  }

  /** Reads the metadata of all objects of a kind, and yields them page by page. Objects may come again if the list has to begin again. */
  async *listMetadata(
    { definition }: Defined,
    { namespace, labelSelector, fieldSelector, signal }: ListOptions = {},
  ): AsyncGenerator<KubernetesObject[], void> {
    const selection = { namespace, labelSelector, fieldSelector, signal };
    const pages = this.#pages<KubernetesObject>(definition, selection, { accept: METADATA_LIST, onRestart: () => {} });
    const type = { apiVersion: definition.apiVersion, kind: definition.kind };
    for await (const { items } of pages) yield (items ?? []).map((item) => ({ ...item, ...type }));
  }

  /**
   * Follows the objects of a kind by one watch: without a resource version it begins with an ADDED for every object that exists. Ends when the
   * signal is aborted or the server ends the watch, as it does after some minutes. Throws an ApiError with code 410 if the resource version is
   * too old, and any other error; nothing is repeated or resumed.
   */
  async *watch<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchedEvent<Resource>, void> {
    try {
      yield* watchEvents<Resource>(this.#requester.transport, definition, options);
    } catch (error) {
      throw failed(`watch of ${describeCollection(definition, options.namespace)}`, error);
    }
  }

  /** Creates an object; throws an ApiError with code 409 if it exists. */
  async create<Resource extends KubernetesObject, Input = WholeObject<Resource>>(
    defined: Creatable<Resource, Input>,
    object: NewResource<Input, Resource> | WholeObject<Resource>,
    options: Pick<WriteOptions, "fieldManager" | "signal"> = {},
  ): Promise<Resource> {
    const { metadata: ref } = object as unknown as KubernetesObject;
    return (await this.write(defined, { ...options, verb: "create", ref, body: object })).object;
  }

  /** Replaces an object, or its status; throws an ApiError with code 409 if it has a resource version that is not the latest. */
  async update<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    object: WholeObject<Resource>,
    options: WriteOptions = {},
  ): Promise<Resource> {
    const { metadata: ref } = object as unknown as KubernetesObject;
    return (await this.write(defined, { ...options, verb: "update", ref, body: object })).object;
  }

  /** Applies an object server-side, whether it exists or not. */
  async apply<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    object: PartialResource<Resource>,
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
    return (await this.write(defined, { ...target, verb: "mergePatch", ref: target, body: patch })).object;
  }

  /** Changes an object by a JSON patch (RFC 6902). */
  async jsonPatch<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    ref: ObjectRef,
    options: WriteOptions &
      Pick<WriteRequest, "fieldManagers" | "repeatable"> & { readonly operations: readonly JsonPatchOperation[] },
  ): Promise<DecodedResource<Resource>> {
    const { operations: body, ...rest } = options;
    return this.write(defined, { ...rest, verb: "jsonPatch", ref, body });
  }

  /** Writes an object in any of the ways, as the caches hold it: what the other writes are made of. */
  write<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    request: WriteRequest,
  ): Promise<Applied<Resource>> {
    const send = async (each: WriteRequest) =>
      readAnswer<Resource>(await this.#requester.send(httpRequestOf(definition, each)), each);
    return request.verb === "apply" && definition.isCustom ? applyEmptying(definition, request, send) : send(request);
  }

  /** Deletes an object, or starts its deletion where a finalizer or a grace period holds it. */
  async delete<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    ref: ObjectRef,
    options: DeleteOptions = {},
  ): Promise<Deletion> {
    const { uid, propagationPolicy, fieldManagers = [], signal } = options;
    const preconditions = uid === undefined ? undefined : { uid };
    const body = JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", preconditions, propagationPolicy });
    const answer = await this.#sendAbout({ definition, ref }, "delete of", { method: "DELETE", body, signal });
    if (answer === undefined) return { wasFound: false, isGone: true };
    noteDeletion(this.connection, objectPath(definition, ref));
    // Some kinds answer with the object even if it is gone; one that stays has a deletion timestamp.
    const { kind, metadata } = JSON.parse(answer.toString("utf8")) as Partial<KubernetesObject>;
    const isGone = kind === "Status" || metadata?.deletionTimestamp === undefined;
    return { wasFound: true, isGone, ...(isGone ? {} : { entry: decodeResource(answer, { fieldManagers }) }) };
  }

  /** Reads how many replicas an object has and shall have; undefined if there is no such object, or its kind cannot be scaled. */
  async getScale({ definition }: Defined, ref: ObjectRef, { signal }: ReadOptions = {}): Promise<Scale | undefined> {
    const target = { definition, ref, subresource: "scale" } as const;
    const body = await this.#sendAbout(target, "get the scale of", { method: "GET", signal });
    return body && (JSON.parse(body.toString("utf8")) as Scale);
  }

  /** Sets how many replicas an object shall have: by a JSON merge patch, or by server-side apply (`apply: true`), which custom kinds do not have. */
  async setScale(
    { definition }: Defined,
    { name, namespace }: ObjectRef,
    { replicas, fieldManager, apply = false, force = true, signal }: ScaleOptions,
  ): Promise<Scale> {
    const ref = { name, namespace };
    const what = `scaling of ${describeObject(definition, ref)}`;
    if (!Number.isInteger(replicas) || replicas < 0)
      throw new RangeError(`${what} has ${replicas} for replicas; it needs an integer of 0 or more`);
    if (apply && definition.isCustom)
      throw new Error(`${what} cannot be an apply, which the API server has for built-in kinds only; leave apply out`);
    const applied = { apiVersion: "autoscaling/v1", kind: "Scale", metadata: ref, spec: { replicas } };
    const { body } = await this.#requester.send({
      method: "PATCH",
      path: objectPath(definition, ref, "scale") + queryOf({ fieldManager, force: apply ? force : undefined }),
      contentType: apply ? "application/apply-patch+yaml" : "application/merge-patch+json",
      body: JSON.stringify(apply ? applied : { spec: { replicas } }),
      ...{ signal, what },
    });
    return JSON.parse(body.toString("utf8")) as Scale;
  }

  /** Evicts a pod, which a PodDisruptionBudget may refuse: an ApiError with code 429, which is not repeated. Tells whether there was a pod. */
  async evict(ref: ObjectRef, { uid, gracePeriodSeconds, signal }: EvictOptions = {}): Promise<boolean> {
    const metadata = { name: ref.name, namespace: ref.namespace };
    const deleteOptions = { gracePeriodSeconds, preconditions: uid === undefined ? undefined : { uid } };
    const body = JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions });
    const target = { definition: POD, ref, subresource: "eviction" } as const;
    const isEvicted = (await this.#sendAbout(target, "eviction of", { method: "POST", body, signal })) !== undefined;
    if (isEvicted) noteDeletion(this.connection, objectPath(POD, ref));
    return isEvicted;
  }

  /** Tells whether the API server serves a kind in its version. */
  async isServed(definition: ResourceDefinition, options: ReadOptions = {}): Promise<boolean> {
    const path = collectionPath(definition).replace(/\/[^/]+$/, "");
    const found = JSON.parse((await this.readPath(path, options)) ?? "{}") as { resources?: { name: string }[] | null };
    return (found.resources ?? []).some(({ name }) => name === definition.plural);
  }

  /** Returns the versions in which the API server serves a kind: without one there are no objects of the kind. */
  async servedVersions(definition: ResourceDefinition, options: ReadOptions = {}): Promise<string[]> {
    if (definition.group === "") return (await this.isServed(definition, options)) ? [definition.version] : [];
    const text = (await this.readPath(`/apis/${definition.group}`, options)) ?? "{}";
    const { versions = [] } = JSON.parse(text) as { versions?: { version: string }[] };
    const served = await Promise.all(versions.map(({ version }) => this.isServed({ ...definition, version }, options)));
    return versions.flatMap(({ version }, index) => (served[index] === true ? version : []));
  }

  /** Reads a path that is no object, such as `/version` or `/openapi/v3`, as text; undefined if the server has no such path. */
  async readPath(path: string, { signal }: ReadOptions = {}): Promise<string | undefined> {
    const request = { method: "GET", path, signal, what: `read ${path}`, isText: true } as const;
    return (await this.#sendUnless(is404, request))?.toString("utf8");
  }

  /** Breaks all connections. */
  async close(): Promise<void> {
    await this.#requester.transport.close();
  }

  #pages<Item>(
    definition: ResourceDefinition,
    { namespace, labelSelector, fieldSelector, signal }: ListOptions,
    { accept, onRestart }: { readonly accept?: string; onRestart(): void },
  ) {
    const collection = collectionPath(definition, namespace);
    return pagesOf(this.#requester, {
      ...{ accept, signal, what: `list ${describeCollection(definition, namespace)}` },
      pathOf: (page) => collection + queryOf({ labelSelector, fieldSelector, ...page }),
      read: (body) => JSON.parse(body.toString("utf8")) as ObjectList<Item>,
      onRestart,
    });
  }

  /** Returns the answer to a request about an object; undefined if there is no such object, or it has no such subresource. */
  #sendAbout(
    { definition, ref, subresource }: { definition: ResourceDefinition; ref: ObjectRef; subresource?: string },
    what: string,
    request: Pick<ApiRequest, "method" | "body" | "signal">,
  ): Promise<Buffer | undefined> {
    const path = objectPath(definition, ref, subresource);
    const named = { ...request, path, what: `${what} ${describeObject(definition, ref)}` };
    return this.#sendUnless(subresource === undefined ? isAbsent : is404, named);
  }

  async #sendUnless(isNothing: (error: unknown) => boolean, request: ApiRequest): Promise<Buffer | undefined> {
    try {
      return (await this.#requester.send(request)).body;
    } catch (error) {
      if (isNothing(error)) return undefined;
      throw error;
    }
  }
}

interface ObjectList<Item> {
  readonly metadata?: { readonly continue?: string };
  /** Go writes an empty list as null. */
  readonly items?: readonly Item[] | null;
}

function is404(error: unknown): boolean {
  return isApiError(error, 404);
}

/** Options of every read. */
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

/** Which objects a watch follows, and from when on. */
export interface WatchOptions extends ListOptions {
  /** The version after which the events begin. Default: what exists comes first. */
  readonly resourceVersion?: string | undefined;
  /** Whether the server may send BOOKMARK events, which say how far the watch has come. Default: false. */
  readonly allowBookmarks?: boolean | undefined;
}

/** How an object is deleted. */
export interface DeleteOptions extends ReadOptions {
  /** Deletes the object only if this is its uid; otherwise the server answers 409. */
  readonly uid?: string | undefined;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan" | undefined;
  /** The field managers whose entries of `managedFields` are returned with an object that is held. */
  readonly fieldManagers?: FieldManagers;
}

/** The result of a deletion. */
export interface Deletion {
  readonly wasFound: boolean;
  /** False while a finalizer or a grace period holds the object. */
  readonly isGone: boolean;
  /** The object that is held, with what the field managers that were asked for applied. */
  readonly entry?: DecodedResource;
}

/** How many replicas an object has and shall have (autoscaling/v1). */
export interface Scale {
  readonly apiVersion: "autoscaling/v1";
  readonly kind: "Scale";
  readonly metadata: ObjectMeta;
  readonly spec: { readonly replicas?: number };
  /** `selector` selects the pods that are counted. */
  readonly status?: { readonly replicas: number; readonly selector?: string };
}

/** The number of replicas that an object shall have, and the field manager that sets it. */
export interface ScaleOptions extends ReadOptions {
  readonly replicas: number;
  /** Under whose name the server keeps the number; an apply needs it. */
  readonly fieldManager?: string | undefined;
  /** Applies the number, which then belongs to the field manager; built-in kinds only. Default: false. */
  readonly apply?: boolean;
  /** Takes the number over from another field manager, for an apply. Default: true. */
  readonly force?: boolean;
}

/** How a pod is evicted. */
export interface EvictOptions extends ReadOptions {
  /** Evicts the pod only if this is its uid; otherwise the server answers 409. */
  readonly uid?: string;
  /** Default: what the pod states. */
  readonly gracePeriodSeconds?: number;
}

/** An event of a watch; the object of a BOOKMARK has only its resource version. */
export interface WatchedEvent<Resource extends KubernetesObject = KubernetesObject> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: Resource;
}

/** Yields the events of one watch until its signal is aborted, the server ends it, or the caller stops iterating. */
async function* watchEvents<Resource extends KubernetesObject>(
  transport: Transport,
  definition: ResourceDefinition,
  { namespace, allowBookmarks, signal, ...selection }: WatchOptions,
): AsyncGenerator<WatchedEvent<Resource>, void> {
  const query = queryOf({ watch: true, ...selection, allowWatchBookmarks: allowBookmarks });
  const leaving = new AbortController();
  const leave = abortWith(leaving, signal);
  const body = new PassThrough();
  const request = {
    method: "GET",
    path: collectionPath(definition, namespace) + query,
    signal: leaving.signal,
  } as const;
  const answered = transport.send(request, {
    // A consumer that is slow to take the events holds the server back.
    onData: (chunk) => (body.write(chunk) ? undefined : once(body, "drain").then(() => {})),
  });
  answered.then(
    (response) => (response.status === 200 ? body.end() : body.destroy(errorOf(response))),
    (error: Error) => body.destroy(error),
  );
  try {
    const splitter = transport.createEventSplitter(request);
    for await (const chunk of body as AsyncIterable<Buffer>)
      for (const line of splitter.split(chunk)) {
        if (signal?.aborted === true) return;
        const event = objectIn<WatchedEvent<Resource> | { type: "ERROR"; object: ApiStatus }>(line.toString("utf8"));
        // An API server that fails may send null.
        if (!event?.object) throw transport.foreignAnswer(request, "with no event of a watch");
        if (event.type === "ERROR") throw errorOfStatus(event.object);
        yield event as WatchedEvent<Resource>;
      }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    leave();
    leaving.abort();
  }
}
