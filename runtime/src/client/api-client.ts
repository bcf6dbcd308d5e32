import { once } from "node:events";
import { PassThrough } from "node:stream";
import { int64Json, mayHaveLongIntegers } from "@gen-operator/schema";
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
  type WriteVerb,
  builtinKindOf,
  describeObject,
  objectIn,
} from "../base/kubernetes-object.js";
import { abortWith } from "../base/wait.js";
import type { Connection } from "./connection.js";
import { decodeResource, peekIdentity } from "./object-decoder.js";
import { noteDeletion } from "./own-writes.js";
import { METADATA_LIST, pagesOf } from "./pager.js";
import {
  type ApiRequest,
  ApiRequester,
  type RequesterOptions,
  Transport,
  type TransportOptions,
  type TransportResponse,
  errorOf,
  errorOfStatus,
  failed,
} from "./transport.js";

/** Options of an ApiClient. */
export interface ApiClientOptions extends RequesterOptions, TransportOptions {}

const POD: ResourceDefinition = builtinKindOf({ kind: "Pod", plural: "pods" });

/** Returns the requester of a client, which sends requests unchanged. Internal: users call the methods of the client. */
export let requesterOf: (client: ApiClient) => ApiRequester;

/** Returns a client over the same connections with other options. If both clients have an observer, both are called. */
export function variantOf(client: ApiClient, options: Parameters<ApiRequester["with"]>[0]): ApiClient {
  // A requester is not part of the public option type.
  return new ApiClient(client.connection, requesterOf(client).with(options) as object);
}

/**
 * A client for the objects of one API server. It has no rate limit of its own. Requests are retried after a lost connection and after the responses
 * 429, 502, 503 and 504 (500 only with Retry-After), unless the API server might then execute a write twice. Throws ApiError and ConnectionError,
 * whose messages contain the operation and the object.
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

  /** Reads an object. Returns undefined if it does not exist. */
  async get<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    ref: ObjectRef,
    options: ReadOptions = {},
  ): Promise<Resource | undefined> {
    return (await this.getEntry(defined, ref, options))?.object;
  }

  /** Reads an object in the form of the caches, with the fields that these field managers applied. Returns undefined if it does not exist. */
  async getEntry<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    ref: ObjectRef,
    { fieldManagers = [], signal }: ReadOptions & { readonly fieldManagers?: FieldManagers } = {},
  ): Promise<DecodedResource<Resource> | undefined> {
    const body = await this.#sendAbout({ definition, ref }, "get", { method: "GET", signal });
    return body && decodeResource<Resource>(body, { fieldManagers });
  }

  /** Lists all objects of a kind, in pages. */
  async list<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    { namespace, labelSelector, fieldSelector, signal }: ListOptions = {},
  ): Promise<Resource[]> {
    const found: Resource[] = [];
    const selection = { namespace, labelSelector, fieldSelector, signal };
    const pages = this.#pages<Resource>(definition, selection, { onRestart: () => void found.splice(0) });
    // Items of lists of built-in kinds have no apiVersion and kind.
    const type = { apiVersion: definition.apiVersion, kind: definition.kind };
    for await (const { items } of pages) for (const item of items ?? []) found.push({ ...type, ...item });
    return found;
  }

  /** Lists the metadata of all objects of a kind, and yields them page by page. Yields objects again if the list has to restart. */
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
   * Watches the objects of a kind with a single watch request. Without a resourceVersion, it starts with an ADDED event for each existing object.
   * Ends when the signal is aborted or the server ends the watch, as it does after some minutes. Throws an ApiError with code 410 if the
   * resourceVersion is too old, and any other error. The watch is neither retried nor resumed.
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

  /** Creates an object. Throws an ApiError with code 409 if it already exists. */
  async create<Resource extends KubernetesObject, Input = WholeObject<Resource>>(
    defined: Creatable<Resource, Input>,
    object: NewResource<Input, Resource> | WholeObject<Resource>,
    options: Pick<WriteOptions, "fieldManager" | "signal"> = {},
  ): Promise<Resource> {
    const { metadata: ref } = object as unknown as KubernetesObject;
    return (await this.write(defined, { ...options, verb: "create", ref, body: object })).object;
  }

  /** Replaces an object or its status. Throws an ApiError with code 409 if the object has a resourceVersion that is not the latest. */
  async update<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    object: WholeObject<Resource>,
    options: WriteOptions = {},
  ): Promise<Resource> {
    const { metadata: ref } = object as unknown as KubernetesObject;
    return (await this.write(defined, { ...options, verb: "update", ref, body: object })).object;
  }

  /** Writes an object with server-side apply, which creates it if it does not exist. */
  async apply<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    object: PartialResource<Resource>,
    options: ApplyOptions,
  ): Promise<Applied<Resource>> {
    return this.write(defined, { ...options, verb: "apply", ref: object.metadata, body: object });
  }

  /** Changes an object with a JSON merge patch (RFC 7386). */
  async mergePatch<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    target: PatchTarget,
    patch: object,
  ): Promise<Resource> {
    return (await this.write(defined, { ...target, verb: "mergePatch", ref: target, body: patch })).object;
  }

  /** Changes an object with a JSON patch (RFC 6902). */
  async jsonPatch<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    ref: ObjectRef,
    options: WriteOptions &
      Pick<WriteRequest, "fieldManagers" | "repeatable"> & { readonly operations: readonly JsonPatchOperation[] },
  ): Promise<DecodedResource<Resource>> {
    const { operations: body, ...rest } = options;
    return this.write(defined, { ...rest, verb: "jsonPatch", ref, body });
  }

  /** Writes an object with any verb, and returns it in the form of the caches. The other write methods call it. */
  write<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    request: WriteRequest,
  ): Promise<Applied<Resource>> {
    const send = async (each: WriteRequest) =>
      readAnswer<Resource>(await this.#requester.send(httpRequestOf(definition, each)), each);
    return request.verb === "apply" && definition.isCustom ? applyEmptying(definition, request, send) : send(request);
  }

  /** Deletes an object. An object with finalizers or a grace period stays and is only marked for deletion. */
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
    // For some kinds, the response contains the deleted object. An object that stays has a deletionTimestamp.
    const { kind, metadata } = JSON.parse(answer.toString("utf8")) as Partial<KubernetesObject>;
    const isGone = kind === "Status" || metadata?.deletionTimestamp === undefined;
    return { wasFound: true, isGone, ...(isGone ? {} : { entry: decodeResource(answer, { fieldManagers }) }) };
  }

  /** Reads the scale subresource of an object. Returns undefined if the object does not exist or its kind has no such subresource. */
  async getScale({ definition }: Defined, ref: ObjectRef, { signal }: ReadOptions = {}): Promise<Scale | undefined> {
    const target = { definition, ref, subresource: "scale" } as const;
    const body = await this.#sendAbout(target, "get the scale of", { method: "GET", signal });
    return body && (JSON.parse(body.toString("utf8")) as Scale);
  }

  /**
   * Sets the replicas of an object through the scale subresource: with a JSON merge patch, or with server-side apply (`apply: true`), which custom
   * kinds do not support.
   */
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

  /**
   * Evicts a pod. If a PodDisruptionBudget does not permit it, throws an ApiError with code 429, without retries. Returns whether the pod existed.
   */
  async evict(ref: ObjectRef, { uid, gracePeriodSeconds, signal }: EvictOptions = {}): Promise<boolean> {
    const metadata = { name: ref.name, namespace: ref.namespace };
    const deleteOptions = { gracePeriodSeconds, preconditions: uid === undefined ? undefined : { uid } };
    const body = JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions });
    const target = { definition: POD, ref, subresource: "eviction" } as const;
    const isEvicted = (await this.#sendAbout(target, "eviction of", { method: "POST", body, signal })) !== undefined;
    if (isEvicted) noteDeletion(this.connection, objectPath(POD, ref));
    return isEvicted;
  }

  /** Returns whether the API server serves a kind in the version of the definition. */
  async isServed(definition: ResourceDefinition, options: ReadOptions = {}): Promise<boolean> {
    const path = collectionPath(definition).replace(/\/[^/]+$/, "");
    const found = JSON.parse((await this.readPath(path, options)) ?? "{}") as { resources?: { name: string }[] | null };
    return (found.resources ?? []).some(({ name }) => name === definition.plural);
  }

  /** Returns the versions in which the API server serves a kind. If there are none, no objects of the kind exist. */
  async servedVersions(definition: ResourceDefinition, options: ReadOptions = {}): Promise<string[]> {
    if (definition.group === "") return (await this.isServed(definition, options)) ? [definition.version] : [];
    const text = (await this.readPath(`/apis/${definition.group}`, options)) ?? "{}";
    const { versions = [] } = JSON.parse(text) as { versions?: { version: string }[] };
    const served = await Promise.all(versions.map(({ version }) => this.isServed({ ...definition, version }, options)));
    return versions.flatMap(({ version }, index) => (served[index] === true ? version : []));
  }

  /** Reads a path other than that of an object as text, such as `/version` or `/openapi/v3`. Returns undefined if the server responds with 404. */
  async readPath(path: string, { signal }: ReadOptions = {}): Promise<string | undefined> {
    const request = { method: "GET", path, signal, what: `read ${path}`, isText: true } as const;
    return (await this.#sendUnless(is404, request))?.toString("utf8");
  }

  /** Closes all connections and aborts requests in flight. */
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

  /** Returns the response to a request about an object, or undefined if the object or the subresource does not exist. */
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
  /** Go serializes an empty list as null. */
  readonly items?: readonly Item[] | null;
}

function is404(error: unknown): boolean {
  return isApiError(error, 404);
}

/** Options of all read requests. */
export interface ReadOptions {
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined;
}

/** Selects the objects of a list. */
export interface ListOptions extends ReadOptions {
  /** Default: all namespaces */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** Selects the objects of a watch and its starting point. */
export interface WatchOptions extends ListOptions {
  /** The resourceVersion after which events start. Default: the watch starts with the existing objects */
  readonly resourceVersion?: string | undefined;
  /** Whether the server may send BOOKMARK events, which report the progress of the watch. Default: false */
  readonly allowBookmarks?: boolean | undefined;
}

/** Options of a deletion. */
export interface DeleteOptions extends ReadOptions {
  /** Precondition: deletes the object only if it has this UID. Otherwise, the server responds with 409. */
  readonly uid?: string | undefined;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan" | undefined;
  /** The field managers whose `managedFields` entries are returned with an object that stays. */
  readonly fieldManagers?: FieldManagers;
}

/** The result of a deletion. */
export interface Deletion {
  readonly wasFound: boolean;
  /** False while finalizers or a grace period delay the deletion. */
  readonly isGone: boolean;
  /** The object that stays, with the fields that the requested field managers applied. */
  readonly entry?: DecodedResource;
}

/** The desired and actual replicas of an object (autoscaling/v1). */
export interface Scale {
  readonly apiVersion: "autoscaling/v1";
  readonly kind: "Scale";
  readonly metadata: ObjectMeta;
  readonly spec: { readonly replicas?: number };
  /** `selector` selects the pods that are counted. */
  readonly status?: { readonly replicas: number; readonly selector?: string };
}

/** The desired replicas of an object, and how to set them. */
export interface ScaleOptions extends ReadOptions {
  readonly replicas: number;
  /** The field manager for the replicas field. Required for an apply. */
  readonly fieldManager?: string | undefined;
  /** Whether to use server-side apply, so that the field manager owns the replicas field. Only for built-in kinds. Default: false */
  readonly apply?: boolean;
  /** Whether an apply takes ownership of the field from other field managers. Default: true */
  readonly force?: boolean;
}

/** Options of an eviction. */
export interface EvictOptions extends ReadOptions {
  /** Precondition: evicts the pod only if it has this UID. Otherwise, the server responds with 409. */
  readonly uid?: string;
  /** Default: the grace period of the pod */
  readonly gracePeriodSeconds?: number;
}

/** A watch event. The object of a BOOKMARK has only a resourceVersion. */
export interface WatchedEvent<Resource extends KubernetesObject = KubernetesObject> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: Resource;
}

/** Yields the events of a watch until its signal is aborted, the server ends it, or the caller stops iterating. */
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
    // Backpressure: if the consumer is slow, the client stops reading from the connection.
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
        // A failing API server may send null.
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

/** Options of all write requests. */
export interface WriteOptions {
  /** The field manager of the written fields. */
  readonly fieldManager?: string;
  readonly subresource?: "status" | undefined;
  /** Aborts the request. The API server may still execute a write in flight. */
  readonly signal?: AbortSignal | undefined;
}

/** A write request for one object. */
export interface WriteRequest extends WriteOptions {
  readonly verb: WriteVerb;
  readonly ref: ObjectRef;
  /** The object or the patch. An object gets the apiVersion and kind of the definition. */
  readonly body: object;
  /** Whether an apply takes ownership of conflicting fields from other field managers. Default: true, as recommended for controllers */
  readonly force?: boolean;
  /** Whether the API server only returns the resulting object without storing it. */
  readonly dryRun?: boolean;
  /**
   * Whether the write may be sent again after its response was lost. Default: true for an apply, and for an update or a merge patch without a
   * resourceVersion
   */
  readonly repeatable?: boolean;
  /** The field managers whose `managedFields` entries are returned. Default: `fieldManager` */
  readonly fieldManagers?: FieldManagers;
  /** Returns the object if this resourceVersion of it is already cached, so that the response need not be decoded. */
  readonly findKnown?: ((version: string) => DecodedResource | undefined) | undefined;
}

/** Options of an apply. */
export interface ApplyOptions extends WriteOptions, Pick<WriteRequest, "force" | "fieldManagers" | "findKnown"> {
  readonly fieldManager: string;
}

/** The object that a patch changes, and the options of the write. */
export interface PatchTarget extends ObjectRef, WriteOptions {}

/** The object after a write. */
export interface Applied<Resource extends KubernetesObject = KubernetesObject> extends DecodedResource<Resource> {
  /** Whether the write created the object. */
  readonly wasCreated: boolean;
}

const VERBS = {
  create: { method: "POST", contentType: "application/json", words: "create" },
  update: { method: "PUT", contentType: "application/json", words: "update of" },
  apply: { method: "PATCH", contentType: "application/apply-patch+yaml", words: "apply of" },
  jsonPatch: { method: "PATCH", contentType: "application/json-patch+json", words: "patch of" },
  mergePatch: { method: "PATCH", contentType: "application/merge-patch+json", words: "patch of" },
} as const satisfies { [verb in WriteVerb]: object };

// Apply requests are parsed as YAML 1.1, which rejects these characters unless they are escaped, or treats them as line breaks.
const NOT_AS_IN_YAML = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** Returns the HTTP request of a write. Its errors contain the operation and the object. */
export function httpRequestOf(definition: ResourceDefinition, write: WriteRequest): ApiRequest {
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
  const text = jsonOf(verb.endsWith("Patch") ? body : Object.assign({}, body, { apiVersion, kind }));
  return {
    isRepeatable: write.repeatable ?? isSameTwice,
    ...{ method, contentType, signal },
    path: path + query,
    body: text.replace(NOT_AS_IN_YAML, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`),
    what: `${words} ${subresource === undefined ? "" : `the ${subresource} of `}${describeObject(definition, ref)}`,
  };
}

// JSON.stringify writes the largest int64 as 2^63, which the API server rejects.
function jsonOf(body: object): string {
  let text: string;
  try {
    text = JSON.stringify(body);
  } catch {
    return int64Json(body);
  }
  return mayHaveLongIntegers(text) ? int64Json(body) : text;
}

/** Decodes the response to a write. */
function readAnswer<Resource extends KubernetesObject>(
  { status, body }: TransportResponse,
  { fieldManager, findKnown, fieldManagers = fieldManager ? [fieldManager] : [] }: WriteRequest,
): Applied<Resource> {
  const version = findKnown && peekIdentity(body)?.version;
  const known = version === undefined ? undefined : (findKnown?.(version) as DecodedResource<Resource> | undefined);
  const entry = known ?? decodeResource<Resource>(body, { fieldManagers });
  return { wasCreated: status === 201, ...entry };
}

// Applying empty maps and lists. If all entries of a map or all items of a list were applied by one field manager, and it now applies the map or list
// without any, kube-apiserver 1.36 removes a list as a whole and sets a map to null. It rejects null (422) unless the schema of the custom resource
// allows it. A map or list that does not exist can be applied empty. So emptying one takes a second apply.

/** Applies a custom resource with `send`. Applies it again if empty fields were left out of the first apply. */
async function applyEmptying<Resource extends KubernetesObject>(
  definition: ResourceDefinition,
  request: WriteRequest,
  send: (request: WriteRequest) => Promise<Applied<Resource>>,
): Promise<Applied<Resource>> {
  let first: Applied<Resource>;
  try {
    first = await send(request);
    if (!lacksEmptied(writtenFields(definition, request), first.object)) return first;
  } catch (error) {
    const body = withoutEmptied(request.body, error);
    if (body === undefined) throw error;
    // The first error explains what is wrong with the object of the caller.
    first = await send({ ...request, body }).catch(() => Promise.reject(error));
  }
  const { metadata } = request.body as KubernetesObject;
  const { resourceVersion } = first.object.metadata;
  const isVersioned = metadata?.resourceVersion !== undefined;
  // An apply with a resourceVersion must use the one from the first apply.
  const body = isVersioned ? { ...request.body, metadata: { ...metadata, resourceVersion } } : request.body;
  const second = await send({ ...request, body });
  return { ...second, wasCreated: first.wasCreated };
}

// The fields that the API server stores, without the metadata, whose empty fields it drops.
function writtenFields({ hasStatusSubresource }: ResourceDefinition, { body, subresource }: WriteRequest): object {
  const { metadata: _metadata, status, ...fields } = body as KubernetesObject & { status?: unknown };
  if (subresource === "status") return { status };
  return hasStatusSubresource ? fields : { ...fields, status };
}

/** Returns the body of the first of two applies if an apply failed because it empties fields, or undefined if it failed for another reason. */
function withoutEmptied(body: object, error: unknown): object | undefined {
  if (!isApiError(error, 422)) return undefined;
  const aboutNull = error.causes.filter(({ message = "" }) => message.includes('Invalid value: "null"'));
  // The index of an item in the applied list differs from that in the merged list.
  const nulled = new Set(aboutNull.map(({ field = "" }) => field.replace(/\[[^\]]*\]/g, "")));
  let wasFound = false;
  const reduce = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => reduce(item, path));
    if (!isObjectValue(value)) return value;
    const kept = Object.entries(value).flatMap(([name, child]) => {
      const childPath = path === "" ? name : `${path}.${name}`;
      if (!isEmptyObject(child) || !nulled.has(childPath)) return [[name, reduce(child, childPath)]];
      wasFound = true;
      return [];
    });
    return Object.fromEntries(kept);
  };
  const reduced = reduce(body, "") as object;
  return wasFound ? reduced : undefined;
}

/** Returns whether the server dropped fields that were applied empty. Items of lists are not compared. */
function lacksEmptied(applied: unknown, stored: unknown): boolean {
  if (isEmptyObject(applied)) return !isObjectValue(stored);
  if (!isObjectValue(applied) || Array.isArray(applied)) return false;
  const kept = isObjectValue(stored) ? stored : {};
  return Object.entries(applied).some(([name, child]) => lacksEmptied(child, kept[name]));
}

function isEmptyObject(value: unknown): boolean {
  return isObjectValue(value) && Object.keys(value).length === 0;
}

function isObjectValue(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === "object" && value !== null;
}

/** Returns the URL path of a collection. Default: all namespaces */
export function collectionPath({ group, version, plural, scope }: ResourceDefinition, namespace?: string): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scoped = scope === "Namespaced" && namespace !== undefined;
  return scoped ? `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}` : `${root}/${plural}`;
}

/** Describes a collection for messages. */
function describeCollection({ plural }: ResourceDefinition, namespace: string | undefined): string {
  return namespace === undefined ? plural : `${plural} in "${namespace}"`;
}

/** Returns the URL path of an object or a subresource. Throws if the reference is incomplete. */
export function objectPath(definition: ResourceDefinition, ref: ObjectRef, subresource?: string): string {
  checkSegment(definition, ref, "name");
  const path = `${parentPath(definition, ref)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Returns the URL path of the collection that contains an object. Throws if the reference lacks the namespace of a namespaced kind. */
function parentPath(definition: ResourceDefinition, ref: ObjectRef): string {
  if (definition.scope === "Namespaced") checkSegment(definition, ref, "namespace");
  return collectionPath(definition, ref.namespace);
}

// Same as IsValidPathSegmentName of apimachinery. An empty name or one with "/" would result in the path of the collection.
const NO_SEGMENT = /^\.\.?$|[/%]/;

function checkSegment(definition: ResourceDefinition, ref: ObjectRef, member: "name" | "namespace"): void {
  const value = ref[member];
  if (value && !NO_SEGMENT.test(value)) return;
  const problem = value
    ? `has "${value}" for its ${member}, which no object can have`
    : `states no ${member}, which its kind needs`;
  throw new Error(`${describeObject(definition, ref)} ${problem}`);
}

/** Returns the query string `?a=b&c=d` of the defined parameters, or an empty string. */
export function queryOf(parameters: { readonly [name: string]: string | number | boolean | undefined }): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
