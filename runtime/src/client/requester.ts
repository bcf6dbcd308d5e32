import type { RequestObservation } from "../base/activity.js";
import { Backoff, sleep } from "../base/clock.js";
import { ApiError, isAboutImmutable, isApiError, type ApiStatus, type ConnectionError } from "../base/errors.js";
import { objectIn } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
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

/** Sends requests and tries again what is worth it: no answer, a busy server (honouring Retry-After), credentials that expired. */
export class ApiRequester {
  /** Sends a request once, as watches need it. */
  readonly transport: Transport;
  readonly #options: RequesterOptions;

  constructor(transport: Transport, options: RequesterOptions = {}) {
    this.transport = transport;
    this.#options = options;
  }

  /** Returns a requester over the same connections that differs in these options; of two observers both are told. */
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
  error.message += "; it is not repeated, as it may have been carried out";
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
    const message = `something between here and the API server answered 404: ${quoted}`;
    return new ApiError(502, { reason: "BadGateway", message }, retryAfterMs);
  }
  return new ApiError(status, parsed, retryAfterMs);
}

// The words of RBAC, which quote only who asked for what.
const RBAC = /^secrets(?: "[^"]*")? is forbidden: User "[^"]*" cannot \w+ resource "secrets"[^:]*/;

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
    message: RBAC.exec(status.message ?? "")?.[0] || fields || "the message may quote the Secret, so it is not shown",
    details: { ...details, ...(causes && { causes }) },
  };
}

// A webhook may give sentences for reasons.
function wordIn(reason: string | undefined): { readonly reason?: string } {
  return reason !== undefined && /^\w+$/.test(reason) ? { reason } : {};
}
