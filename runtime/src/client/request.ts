import { int64Json, mayHaveLongIntegers } from "@gen-operator/schema";
import type { RequestObservation } from "../base/activity.js";
import { ApiError, type ApiStatus, type ConnectionError, isAboutImmutable, isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type FieldManagers,
  type KubernetesObject,
  type ObjectRef,
  type ResourceDefinition,
  type WriteVerb,
  describeObject,
  objectIn,
} from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { Backoff, sleep } from "../base/wait.js";
import { decodeResource, peekIdentity } from "./object-decoder.js";
import type { Transport, TransportRequest, TransportResponse } from "./transport.js";

// Servers answer these when they are busy or going away; the same request may succeed a moment later.
const BUSY_CODES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);
const MAX_ATTEMPTS = 8;
const BACKOFF = { initialMs: 100, factor: 2, maxMs: 5_000 };
// The caller holds a reconcile slot while it waits; a longer wait is better scheduled by the caller.
const MAX_WAIT_MS = 60_000;
const LONG_WAIT_MS = 5_000;
// A server that asks for an hour is asked again earlier: its trouble may be over.
const MAX_RETRY_AFTER_MS = 300_000;

/** Called after every attempt of a request. */
export type RequestObserver = (observation: RequestObservation) => void;

/** Counts an attempt of a request, or a stream that began. */
export type RequestCounter = (request: Pick<RequestObservation, "method" | "status">) => void;

/**
 * Called synchronously right before the bytes of an attempt of a request that may change something leave, also before a repetition. If it
 * throws, the request is not sent, not repeated, and fails with that error.
 */
export type Fence = (request: Pick<TransportRequest, "method" | "path">) => void;

/** What takes part in every request of a client. */
export interface RequesterOptions {
  readonly observe?: RequestObserver | undefined;
  readonly fence?: Fence | undefined;
  /** How often a request is sent at most, but for credentials that expired. Default: 8. */
  readonly maxAttempts?: number | undefined;
  /** Gets a warning when the server makes a request wait for 5 s or more. */
  readonly logger?: Logger | undefined;
}

/** A request, and how it may be repeated. */
export interface ApiRequest extends TransportRequest {
  /** Begins the message of an error: `get ConfigMap "home/web"`. Default: the error says no more than the server. */
  readonly what?: string;
  /** Whether the answer may be anything. Default: it must be an object in JSON. */
  readonly isText?: boolean;
  /** Whether it does no harm to carry the request out twice. Default: true */
  readonly isRepeatable?: boolean | undefined;
}

/** Sends requests, and retries after a lost connection, a busy server (honoring Retry-After) and expired credentials. */
export class ApiRequester {
  /** Sends a request once, as watches need it. */
  readonly transport: Transport;
  readonly #options: RequesterOptions;

  constructor(transport: Transport, options: RequesterOptions = {}) {
    this.transport = transport;
    this.#options = options;
  }

  /** Returns a requester over the same connections that differs in these options; both observers are called if there are two. */
  with(options: Pick<RequesterOptions, "maxAttempts" | "observe">): ApiRequester {
    const observe: RequestObserver = (observation) => {
      this.#options.observe?.(observation);
      options.observe?.(observation);
    };
    return new ApiRequester(this.transport, { ...this.#options, ...options, observe });
  }

  /**
   * Sends a request; throws an ApiError for an answer of 300 or above, a ConnectionError if there is none in the end. One that may not be
   * carried out twice is repeated only if it was not carried out for certain: nothing was sent yet, or the server says so by 401, 429 or a
   * Retry-After. A Retry-After that would take the request beyond a minute of waiting fails it at once; the error has the time, at most 5 minutes.
   */
  async send(request: ApiRequest): Promise<TransportResponse> {
    const { fence, logger, maxAttempts = MAX_ATTEMPTS } = this.#options;
    const { closed } = this.transport;
    let isRefused = false;
    const beforeSend = () => {
      isRefused = true;
      fence?.(request);
      isRefused = false;
    };
    const fenced = fence === undefined || request.method === "GET" ? request : { ...request, beforeSend };
    const backoff = new Backoff(BACKOFF);
    let wasRejected = false;
    let [waitMs, waitedMs] = [0, 0];
    for (let attempt = 1; ; attempt++) {
      try {
        // A client that is closed waits for nothing, as its timers would keep the process alive; the attempt then fails.
        if (waitMs > 0)
          await sleep(waitMs, [request.signal, closed]).catch((error) => {
            if (error !== closed.reason) throw error;
          });
        return await this.#attempt(fenced);
      } catch (error) {
        const isFinal = attempt >= maxAttempts || isRefused || request.signal?.aborted === true || closed.aborted;
        // The transport asks for new credentials after a 401.
        const isRejected: boolean = isApiError(error, 401) && !wasRejected && !isRefused;
        wasRejected ||= isRejected;
        const nextMs = isRejected ? 0 : isFinal ? undefined : waitAfter(error as Error, request, backoff);
        if (nextMs === undefined || waitedMs + nextMs > MAX_WAIT_MS) throw failed(request.what, error);
        if (nextMs >= LONG_WAIT_MS && waitedMs < LONG_WAIT_MS && isApiError(error)) {
          const text = `${request.method} ${request.path.replace(/\?.*$/, "")} waits ${Math.round(nextMs / 1000)} s`;
          logger?.warn({ retryAfterMs: Math.round(nextMs) }, `${text}: ${error.message}`);
        }
        waitedMs += nextMs;
        waitMs = nextMs;
      }
    }
  }

  async #attempt(request: ApiRequest): Promise<TransportResponse> {
    const { method, path } = request;
    const startedAt = performance.now();
    let status: number | undefined;
    try {
      const response = await this.transport.send(request);
      ({ status } = response);
      if (status >= 300) throw errorOf(response);
      if (request.isText !== true && !/^\s*\{/.test(response.body.toString("latin1", 0, 64)))
        throw this.transport.foreignAnswer(request, "with no object in JSON");
      return response;
    } finally {
      this.#options.observe?.({ method, path, status, durationMs: performance.now() - startedAt });
    }
  }
}

/** Returns after how long a failed request is sent again; undefined if it is not. */
function waitAfter(error: Error, { isRepeatable }: ApiRequest, backoff: Backoff): number | undefined {
  if (isApiError(error))
    // To try again at once is what a server that is busy does not need, even if it says 0.
    return isWorthRepeating(error, isRepeatable) ? Math.max(error.retryAfterMs ?? 0, backoff.next()) : undefined;
  if (error.name !== "ConnectionError" || (error as ConnectionError).isFinal) return undefined;
  if (isRepeatable !== false || !(error as ConnectionError).wasSent) return backoff.next();
  error.message += "; not retried, because the API server may have executed it";
  return undefined;
}

/** Completes the message of an error of a request, which itself is kept: its code and causes matter to callers. */
export function failed(what: string | undefined, error: unknown): unknown {
  const isOfRequest = isApiError(error) || (error instanceof Error && error.name === "ConnectionError");
  if (what !== undefined && isOfRequest) error.message = `${what} failed: ${error.message}`;
  return error;
}

// 500 is also what the server answers to an apply that does not fit the schema: that stays wrong, so it needs a Retry-After. So does
// what must not be carried out twice: a gateway that gives up says nothing about the server behind it.
function isWorthRepeating({ code, retryAfterMs, causes }: ApiError, isRepeatable: boolean | undefined): boolean {
  // A refused eviction is no sign of a busy server: other pods have to become ready first.
  if (causes.some(({ reason }) => reason === "DisruptionBudget")) return false;
  if (code === 429 || retryAfterMs !== undefined) return BUSY_CODES.has(code);
  return BUSY_CODES.has(code) && code !== 500 && isRepeatable !== false;
}

// Seconds, or, from proxies, a date (RFC 9110, 10.2.3).
function retryAfterMsOf(value: unknown): number | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  const seconds = Number(value);
  const delayMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(String(value)) - Date.now();
  return Number.isNaN(delayMs) ? undefined : Math.min(Math.max(0, delayMs), MAX_RETRY_AFTER_MS);
}

/** Turns a Status that came as an event of a watch into an ApiError. */
export function errorOfStatus(status: ApiStatus): ApiError {
  return new ApiError(status.code ?? 500, status, retryAfterMsOf(status.details?.retryAfterSeconds));
}

// What a server, or a webhook behind it, says about a Secret may quote its values; logs and statuses would spread them.
const SECRET_PATH = /^\/api\/v1\/(namespaces\/[^/]+\/)?secrets([/?]|$)/;

// What the API server answers for a path that it does not have: of a group as a text, of a kind or a subresource as a Status.
const NOT_SERVED = /^404 page not found|the server could not find the requested resource/;

const NOT_SERVED_HINT =
  "the API server does not serve the kind, or the subresource, in this version, or the kind has another scope in the cluster";

/** Turns an answer of 300 or above into an ApiError; what is no Status becomes its message, but nothing that an answer about a Secret quotes. */
export function errorOf({ path, status, headers, body }: TransportResponse): ApiError {
  const text = body.toString("utf8");
  const isAboutSecret = SECRET_PATH.test(path);
  const { location } = headers;
  // A proxy that asks people to log in.
  const redirect = typeof location === "string" ? `redirected to ${location.replace(/\?.*$/, "")}` : "";
  const quoted = redirect || (isAboutSecret ? "" : text.trim().slice(0, 300));
  let parsed: ApiStatus & { readonly kind?: string } = { message: quoted || `HTTP ${status}` };
  // A proxy or the fall-through of the API server answers in plain text.
  const value = objectIn<typeof parsed>(text);
  if (value !== undefined) parsed = isAboutSecret ? withoutValues(value) : value;
  const retryAfterMs = retryAfterMsOf(headers["retry-after"]) ?? retryAfterMsOf(parsed.details?.retryAfterSeconds);
  const notServed = NOT_SERVED.exec(text)?.[0];
  if (status === 404 && notServed !== undefined) parsed = { message: `${notServed}: ${NOT_SERVED_HINT}` };
  else if (status === 404 && parsed.kind !== "Status") {
    // A proxy that has lost its way must not be taken to say that an object, or a kind, is gone.
    const message = `a proxy or load balancer in front of the API server answered 404: ${quoted}`;
    return new ApiError(502, { reason: "BadGateway", message }, retryAfterMs);
  }
  return new ApiError(status, parsed, retryAfterMs);
}

// Messages of RBAC contain only the user and the resource, and messages of a quota only counts.
const HARMLESS =
  /^secrets(?: "[^"]*")? is forbidden: (?:User "[^"]*" cannot \w+ resource "secrets"[^:]*|exceeded quota: [-\w.,:=/ ]*)/;

function withoutValues(status: ApiStatus & { kind?: string }): ApiStatus & { kind?: string } {
  const { kind, details = {} } = status;
  const causes = details.causes?.map((cause) => ({
    ...wordIn(cause.reason),
    // These words are the API server's own.
    ...(isAboutImmutable(cause) && { message: "field is immutable" }),
    ...(cause.field && { field: cause.field }),
  }));
  const fields = causes?.map((cause) => Object.values(cause).reverse().join(" ")).join(", ");
  return {
    ...(kind && { kind }),
    ...wordIn(status.reason),
    message:
      HARMLESS.exec(status.message ?? "")?.[0] || fields || "the message may quote the Secret, so it is not shown",
    details: { ...details, ...(causes && { causes }) },
  };
}

// A webhook may give sentences for reasons.
function wordIn(reason: string | undefined): { readonly reason?: string } {
  return reason !== undefined && /^\w+$/.test(reason) ? { reason } : {};
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
export function readAnswer<Resource extends KubernetesObject>(
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
export async function applyEmptying<Resource extends KubernetesObject>(
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
export function describeCollection({ plural }: ResourceDefinition, namespace: string | undefined): string {
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
