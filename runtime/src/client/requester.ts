import { Backoff } from "../base/backoff.js";
import { sleep } from "../base/clock.js";
import { ApiError, type ApiStatus, type ConnectionError } from "../base/errors.js";
import type { Transport, TransportRequest, TransportResponse } from "./transport.js";

// Servers answer these when they are busy or going away; the same request may succeed a moment later.
const BUSY_CODES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);
const MAX_ATTEMPTS = 8;
const BACKOFF = { initialMs: 100, factor: 2, maxMs: 5_000 };

/** A request as an observer sees it, once it is answered or failed. */
export interface RequestObservation {
  readonly method: string;
  readonly path: string;
  /** Absent if there was no answer. */
  readonly status?: number;
  readonly durationMs: number;
}

/** Called after every attempt of a request. */
export type RequestObserver = (observation: RequestObservation) => void;

/** Sends requests and tries again what is worth it: no answer, a busy server (honouring Retry-After), credentials that expired. */
export class ApiRequester {
  readonly #transport: Transport;
  readonly #observe: RequestObserver | undefined;

  constructor(transport: Transport, observe?: RequestObserver) {
    this.#transport = transport;
    this.#observe = observe;
  }

  /**
   * Sends a request; throws an ApiError for an answer of 400 or above, a ConnectionError if there is none in the end.
   *
   * A request that may not be carried out twice is repeated only if it was not carried out for certain: nothing was sent yet, or the
   * server says so by 401, 429 or a Retry-After.
   */
  async send(request: TransportRequest): Promise<TransportResponse> {
    const backoff = new Backoff(BACKOFF);
    let wasRejected = false;
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt >= MAX_ATTEMPTS;
      let response: TransportResponse;
      try {
        response = await this.#sendOnce(request);
      } catch (error) {
        if (isLast || request.signal?.aborted || (error as Error).name !== "ConnectionError") throw error;
        if (request.isRepeatable === false && (error as ConnectionError).wasSent) throw withoutRepeat(error as Error);
        await this.#pause(backoff.next(), request);
        continue;
      }
      if (response.status < 400) return response;
      const error = errorOf(response);
      if (error.code === 401 && !wasRejected) {
        // The transport asks for new credentials after a 401.
        wasRejected = true;
        continue;
      }
      if (isLast || !isWorthRepeating(error, request)) throw error;
      // To try again at once is what a server that is busy does not need, even if it says 0.
      await this.#pause(Math.max(error.retryAfterMs ?? 0, backoff.next()), request);
    }
  }

  // A client that is closed waits for nothing: its timers would keep the process alive.
  #pause(ms: number, { signal }: TransportRequest): Promise<void> {
    const { closed } = this.#transport;
    return sleep(ms, signal === undefined ? closed : AbortSignal.any([signal, closed]));
  }

  async #sendOnce(request: TransportRequest): Promise<TransportResponse> {
    if (this.#observe === undefined) return this.#transport.send(request);
    const startedAt = performance.now();
    const { method, path } = request;
    let status: number | undefined;
    try {
      const response = await this.#transport.send(request);
      status = response.status;
      return response;
    } finally {
      const durationMs = performance.now() - startedAt;
      this.#observe({ method, path, durationMs, ...(status === undefined ? {} : { status }) });
    }
  }
}

// 500 is also what the server answers to an apply that does not fit the schema: that stays wrong, so it needs a Retry-After. So does
// what must not be carried out twice: a gateway that gives up says nothing about the server behind it.
function isWorthRepeating({ code, retryAfterMs }: ApiError, { isRepeatable }: TransportRequest): boolean {
  if (code === 429 || retryAfterMs !== undefined) return BUSY_CODES.has(code);
  return BUSY_CODES.has(code) && code !== 500 && isRepeatable !== false;
}

function withoutRepeat(error: Error): Error {
  error.message += "; it is not repeated, as it may have been carried out";
  return error;
}

// Seconds, or, from proxies, a date (RFC 9110, 10.2.3).
function retryAfterMsOf(value: unknown): number | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  const seconds = Number(value);
  const delayMs = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(String(value)) - Date.now();
  return Number.isNaN(delayMs) ? undefined : Math.max(0, delayMs);
}

/** Turns an answer of 400 or above into an ApiError; what is no Status becomes its message. */
export function errorOf({ status, headers, body }: TransportResponse): ApiError {
  const text = body.toString("utf8");
  let parsed: ApiStatus & { readonly kind?: string } = { message: text.trim().slice(0, 300) || `HTTP ${status}` };
  try {
    const value = JSON.parse(text) as typeof parsed | null;
    if (typeof value === "object" && value !== null) parsed = value;
  } catch {
    // A proxy or the fall-through of the API server answers in plain text.
  }
  const retryAfterMs = retryAfterMsOf(headers["retry-after"]) ?? retryAfterMsOf(parsed.details?.retryAfterSeconds);
  if (status !== 404 || parsed.kind === "Status" || text.startsWith("404 page not found"))
    return new ApiError(status, parsed, retryAfterMs);
  // A proxy that has lost its way must not be taken to say that an object, or a kind, is gone.
  const message = `something between here and the API server answered 404: ${text.trim().slice(0, 300)}`;
  return new ApiError(502, { reason: "BadGateway", message }, retryAfterMs);
}
