import { isApiError } from "../base/errors.js";
import type { JsonValue, KubernetesObject, ObjectRef } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { ApiRequester, type RequestObserver } from "./api-requester.js";
import type { Connection } from "./connection.js";
import { decodeResource, peekResourceVersion, type DecodedResource } from "./decode-resource.js";
import { collectionPath, describeObject, objectPath, queryOf } from "./resource-path.js";
import { Transport } from "./transport.js";

/** A class or anything else that carries the definition of a kind. */
export interface Defined<Resource extends KubernetesObject> {
  readonly definition: ResourceDefinition<Resource>;
}

/** What an apply sends; the kind is that of the definition. */
export interface ApplyOptions {
  readonly fieldManager: string;
  /** Whose managed fields the answer is returned with; those of `fieldManager` unless given. */
  readonly fieldManagers?: Iterable<string>;
  /** Takes over fields that others manage; true unless said otherwise, as controllers should. */
  readonly force?: boolean;
  readonly subresource?: "status";
  readonly signal?: AbortSignal;
  /** Returns the object if this version of it is known already: then the answer is not decoded. */
  readonly findKnown?: (version: string) => DecodedResource | undefined;
}

/** What became of an apply. */
export interface Applied<Resource extends KubernetesObject = KubernetesObject> extends DecodedResource<Resource> {
  /** Whether the object did not exist before. */
  readonly wasCreated: boolean;
}

/** What became of a deletion. */
export interface Deletion {
  readonly wasFound: boolean;
  /** False while a finalizer or a grace period holds the object. */
  readonly isGone: boolean;
}

const APPLY_PATCH = "application/apply-patch+yaml";
const MERGE_PATCH = "application/merge-patch+json";
const JSON_PATCH = "application/json-patch+json";
const LIST_LIMIT = 500;

/**
 * A client for the objects of one API server.
 *
 * Requests carry no rate limit of their own; they are repeated where the server asks for it (429 and 5xx, with Retry-After) and where
 * the connection broke. Errors are ApiError and ConnectionError, with what was asked of which object in the message.
 */
export class ApiClient {
  readonly connection: Connection;
  readonly #transport: Transport;
  readonly #requester: ApiRequester;

  constructor(connection: Connection, observe?: RequestObserver) {
    this.connection = connection;
    this.#transport = new Transport(connection);
    this.#requester = new ApiRequester(this.#transport, observe);
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
    { definition }: Defined<Resource>,
    ref: ObjectRef,
  ): Promise<Resource | undefined> {
    try {
      const { body } = await this.#requester.send({ method: "GET", path: objectPath(definition, ref) });
      return decodeResource<Resource>(body, { fieldManagers: [] }).object;
    } catch (error) {
      if (isApiError(error, 404)) return undefined;
      throw failed("get", describeObject(definition, ref), error);
    }
  }

  /** Reads all objects of a kind, page by page. */
  async list<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    { namespace, labelSelector }: { namespace?: string; labelSelector?: string } = {},
  ): Promise<Resource[]> {
    const items: Resource[] = [];
    let next: string | undefined;
    do {
      const query = queryOf({ labelSelector, limit: LIST_LIMIT, continue: next });
      const path = collectionPath(definition, namespace) + query;
      try {
        const { body } = await this.#requester.send({ method: "GET", path });
        const page = JSON.parse(body.toString("utf8")) as { metadata: { continue?: string }; items: Resource[] | null };
        // Built-in kinds are listed without their apiVersion and kind.
        const type = { apiVersion: definition.apiVersion, kind: definition.kind };
        for (const item of page.items ?? []) items.push({ ...type, ...item });
        next = page.metadata.continue || undefined;
      } catch (error) {
        throw failed("list", `${definition.plural}${namespace === undefined ? "" : ` in "${namespace}"`}`, error);
      }
    } while (next !== undefined);
    return items;
  }

  /** Creates an object; throws an ApiError with code 409 if it exists. */
  async create<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    object: Omit<Resource, "apiVersion" | "kind">,
  ): Promise<Resource> {
    const { apiVersion, kind } = definition;
    const { metadata } = object as unknown as KubernetesObject;
    const path = collectionPath(definition, metadata.namespace);
    try {
      const body = JSON.stringify({ apiVersion, kind, ...object });
      return decodeResource<Resource>((await this.#requester.send({ method: "POST", path, body })).body, {
        fieldManagers: [],
      }).object;
    } catch (error) {
      throw failed("create", describeObject(definition, metadata), error);
    }
  }

  /** Applies an object server-side, whether it exists or not. */
  async apply<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    object: object & { metadata: ObjectRef },
    options: ApplyOptions,
  ): Promise<Applied<Resource>> {
    const { fieldManager, fieldManagers = [fieldManager], force = true, subresource, signal, findKnown } = options;
    const { apiVersion, kind } = definition;
    const path = objectPath(definition, object.metadata, subresource) + queryOf({ fieldManager, force });
    try {
      const { status, body } = await this.#requester.send({
        method: "PATCH",
        path,
        contentType: APPLY_PATCH,
        body: JSON.stringify({ apiVersion, kind, ...object }),
        ...(signal === undefined ? {} : { signal }),
      });
      const version = findKnown && peekResourceVersion(body);
      const known = version === undefined ? undefined : (findKnown?.(version) as DecodedResource<Resource> | undefined);
      return { ...(known ?? decodeResource<Resource>(body, { fieldManagers })), wasCreated: status === 201 };
    } catch (error) {
      const what = subresource === undefined ? "apply of" : `apply of the ${subresource} of`;
      throw failed(what, describeObject(definition, object.metadata), error);
    }
  }

  /** Changes an object by a JSON merge patch (RFC 7386). */
  async mergePatch<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    ref: ObjectRef,
    patch: object,
  ): Promise<Resource> {
    const { object } = await this.#patch(defined, { ref, contentType: MERGE_PATCH, patch });
    return object;
  }

  /** Changes an object by a JSON patch (RFC 6902). */
  async jsonPatch<Resource extends KubernetesObject>(
    defined: Defined<Resource>,
    ref: ObjectRef,
    options: {
      readonly operations: readonly { op: string; path: string; value?: JsonValue }[];
      readonly fieldManager?: string;
      /** Whose entries in managed fields are kept; those of `fieldManager` unless given. */
      readonly fieldManagers?: Iterable<string>;
      readonly subresource?: "status";
    },
  ): Promise<DecodedResource<Resource>> {
    const { operations, ...rest } = options;
    return this.#patch(defined, { ...rest, ref, contentType: JSON_PATCH, patch: operations });
  }

  /** Deletes an object, or starts its deletion where a finalizer or a grace period holds it. */
  async delete<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    ref: ObjectRef,
    options: {
      readonly uid?: string | undefined;
      readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
    } = {},
  ): Promise<Deletion> {
    const { uid, propagationPolicy } = options;
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    const policy = propagationPolicy === undefined ? {} : { propagationPolicy };
    const body = JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", ...preconditions, ...policy });
    try {
      const response = await this.#requester.send({ method: "DELETE", path: objectPath(definition, ref), body });
      // Some kinds answer with the object even if it is gone; one that stays has a deletion timestamp.
      const answer = JSON.parse(response.body.toString("utf8")) as Partial<KubernetesObject>;
      return { wasFound: true, isGone: answer.kind === "Status" || answer.metadata?.deletionTimestamp === undefined };
    } catch (error) {
      if (isApiError(error, 404)) return { wasFound: false, isGone: true };
      throw failed("delete of", describeObject(definition, ref), error);
    }
  }

  /** Tells whether the API server serves a kind. */
  async isServed(definition: ResourceDefinition): Promise<boolean> {
    try {
      const { body } = await this.#requester.send({
        method: "GET",
        path: collectionPath(definition).replace(/\/[^/]+$/, ""),
      });
      const { resources = [] } = JSON.parse(body.toString("utf8")) as { resources?: { name: string }[] };
      return resources.some(({ name }) => name === definition.plural);
    } catch (error) {
      if (isApiError(error, 404)) return false;
      throw failed("look up", definition.plural, error);
    }
  }

  /** Breaks all connections. */
  async close(): Promise<void> {
    await this.#transport.close();
  }

  async #patch<Resource extends KubernetesObject>(
    { definition }: Defined<Resource>,
    options: {
      ref: ObjectRef;
      contentType: string;
      patch: unknown;
      fieldManager?: string;
      fieldManagers?: Iterable<string>;
      subresource?: "status";
    },
  ): Promise<DecodedResource<Resource>> {
    const { ref, contentType, patch, fieldManager, subresource } = options;
    const { fieldManagers = fieldManager === undefined ? [] : [fieldManager] } = options;
    const path = objectPath(definition, ref, subresource) + queryOf({ fieldManager });
    try {
      const { body } = await this.#requester.send({ method: "PATCH", path, contentType, body: JSON.stringify(patch) });
      return decodeResource<Resource>(body, { fieldManagers });
    } catch (error) {
      throw failed("patch of", describeObject(definition, ref), error);
    }
  }
}

// The error itself is kept (its code and causes matter to callers); its message gets what was asked.
function failed(what: string, object: string, error: unknown): unknown {
  if (error instanceof Error && (error.name === "ApiError" || error.name === "ConnectionError"))
    error.message = `${what} ${object} failed: ${error.message}`;
  return error;
}
