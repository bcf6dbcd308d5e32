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

/** Options of every write. */
export interface WriteOptions {
  /** The field manager under which the API server records the written fields. */
  readonly fieldManager?: string;
  readonly subresource?: "status" | undefined;
  /** Aborts the request; the API server may still execute a write in flight. */
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

/** The object after a write. */
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

// JSON.stringify writes 2^63 for the largest int64, which the API server rejects.
function jsonOf(body: object): string {
  let text: string;
  try {
    text = JSON.stringify(body);
  } catch {
    return int64Json(body);
  }
  return mayHaveLongIntegers(text) ? int64Json(body) : text;
}

/** Reads the answer to a write. */
function readAnswer<Resource extends KubernetesObject>(
  { status, body }: TransportResponse,
  { fieldManager, findKnown, fieldManagers = fieldManager ? [fieldManager] : [] }: WriteRequest,
): Applied<Resource> {
  const version = findKnown && peekIdentity(body)?.version;
  const known = version === undefined ? undefined : (findKnown?.(version) as DecodedResource<Resource> | undefined);
  const entry = known ?? decodeResource<Resource>(body, { fieldManagers });
  return { wasCreated: status === 201, ...entry };
}

// What an apply empties. Where all entries of a map or all items of a list were applied under one name, and that name applies the map or list
// without any, kube-apiserver 1.36 removes a list as a whole, and makes null of a map, which it rejects (422) unless the schema of a custom
// resource allows null. What is not there can be applied empty. So what is to be empty in the end takes one apply more.

/** Applies an object of a custom resource by `send`, and once more if what is to be empty had to be left out at first. */
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
    // The first error says what is wrong with what was meant.
    first = await send({ ...request, body }).catch(() => Promise.reject(error));
  }
  const { metadata } = request.body as KubernetesObject;
  const { resourceVersion } = first.object.metadata;
  const isVersioned = metadata?.resourceVersion !== undefined;
  // What states a version states that of what was applied first.
  const body = isVersioned ? { ...request.body, metadata: { ...metadata, resourceVersion } } : request.body;
  const second = await send({ ...request, body });
  return { ...second, wasCreated: first.wasCreated };
}

// What the server takes, but for the metadata, of which it leaves out what is empty.
function writtenFields({ hasStatusSubresource }: ResourceDefinition, { body, subresource }: WriteRequest): object {
  const { metadata: _metadata, status, ...fields } = body as KubernetesObject & { status?: unknown };
  if (subresource === "status") return { status };
  return hasStatusSubresource ? fields : { ...fields, status };
}

/** Returns the body of the first of two applies, if an apply failed because it empties fields; undefined if it failed for another reason. */
function withoutEmptied(body: object, error: unknown): object | undefined {
  if (!isApiError(error, 422)) return undefined;
  const aboutNull = error.causes.filter(({ message = "" }) => message.includes('Invalid value: "null"'));
  // Which item of a list it is differs between what is applied and what comes of it.
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

/** Tells whether the server left out fields that were applied empty. Items of lists are not compared. */
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

/** Returns the path of a collection. Default: all namespaces */
export function collectionPath({ group, version, plural, scope }: ResourceDefinition, namespace?: string): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scoped = scope === "Namespaced" && namespace !== undefined;
  return scoped ? `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}` : `${root}/${plural}`;
}

/** Returns what messages call a collection. */
function describeCollection({ plural }: ResourceDefinition, namespace: string | undefined): string {
  return namespace === undefined ? plural : `${plural} in "${namespace}"`;
}

/** Returns the path of one object, or of a subresource of it; throws if the reference names none. */
export function objectPath(definition: ResourceDefinition, ref: ObjectRef, subresource?: string): string {
  checkSegment(definition, ref, "name");
  const path = `${parentPath(definition, ref)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Returns the path of the collection that has an object; throws if the reference lacks the namespace that its kind needs. */
function parentPath(definition: ResourceDefinition, ref: ObjectRef): string {
  if (definition.scope === "Namespaced") checkSegment(definition, ref, "namespace");
  return collectionPath(definition, ref.namespace);
}

// As client-go has it (IsValidPathSegmentName). An empty name, and "/", would make the path that of all objects of the kind.
const NO_SEGMENT = /^\.\.?$|[/%]/;

function checkSegment(definition: ResourceDefinition, ref: ObjectRef, member: "name" | "namespace"): void {
  const value = ref[member];
  if (value && !NO_SEGMENT.test(value)) return;
  const problem = value
    ? `has "${value}" for its ${member}, which no object can have`
    : `states no ${member}, which its kind needs`;
  throw new Error(`${describeObject(definition, ref)} ${problem}`);
}

/** Returns `?a=b&c=d` of the parameters that are defined, or the empty string. */
export function queryOf(parameters: { readonly [name: string]: string | number | boolean | undefined }): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
