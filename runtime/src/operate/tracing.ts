// OpenTelemetry tracing: a span per reconcile, with child spans for dependents, and in these a span per request. The API package is loaded only if
// the program has registered a tracer provider before the operator starts.
import { AsyncLocalStorage } from "node:async_hooks";
import { channel } from "node:diagnostics_channel";
import type { Context, Span } from "@opentelemetry/api";
import type { Tracing } from "../base/activity.js";
import { messageOf } from "../base/logger.js";

type Api = typeof import("@opentelemetry/api");

// The global symbol under which all copies of the API package share their providers.
const REGISTERED = Symbol.for("opentelemetry.js.api.1");

// Many collectors drop or truncate spans with more attribute values.
const MAX_PATHS = 20;
const MAX_PATH_LENGTH = 100;

/** Loads the OpenTelemetry API; undefined if no tracer provider is registered. */
export async function loadTracing(): Promise<Tracing | undefined> {
  const registered = (globalThis as { readonly [REGISTERED]?: { readonly trace?: unknown } })[REGISTERED];
  if (registered?.trace === undefined) return undefined;
  // The import fails if the package is not resolvable from here, for example in a bundle.
  const api = await import("@opentelemetry/api").catch(() => undefined);
  return api && new OpenTelemetryTracing(api);
}

class OpenTelemetryTracing implements Tracing {
  readonly #api: Api;
  readonly #tracer: ReturnType<Api["trace"]["getTracer"]>;
  /** The active span; needed if the program has not registered a context manager. */
  readonly #contexts = new AsyncLocalStorage<Context>();

  /** Paths of differing fields, by the span of their write. */
  readonly #changed = new WeakMap<Span, ReadonlySet<string>>();

  constructor(api: Api) {
    this.#api = api;
    this.#tracer = api.trace.getTracer("@gen-operator/runtime");
  }

  reconcile: Tracing["reconcile"] = ({ controller, primary, attempt, queuedMs, reasons }, work) => {
    const attributes = {
      "gen_operator.controller": controller,
      "gen_operator.primary": primary,
      "gen_operator.attempt": attempt,
      "gen_operator.queue_wait_ms": queuedMs,
      "gen_operator.reasons": [...reasons],
    };
    const span = this.#tracer.startSpan(`reconcile ${controller}`, { attributes }, this.#current);
    return this.#within(span, work, ({ failure }) => {
      if (failure !== undefined) this.#fail(span, failure.error);
    });
  };

  dependent: Tracing["dependent"] = (name, work) => {
    const attributes = { "gen_operator.dependent": name };
    const span = this.#tracer.startSpan(`dependent ${name}`, { attributes }, this.#current);
    return this.#within(span, work, (outcome) => {
      span.setAttribute("gen_operator.outcome", typeof outcome === "string" ? "unwanted" : outcome.kind);
    });
  };

  changed: Tracing["changed"] = (pathsOf) => {
    const span = this.#api.trace.getSpan(this.#current);
    // Do not compute paths for a span that is not sampled.
    if (span?.isRecording() !== true) return;
    const known = this.#changed.get(span) ?? new Set();
    if (known.size >= MAX_PATHS) return;
    // The items of a bulk dependent share a span.
    const paths = [...new Set([...known, ...pathsOf(MAX_PATHS).map(cut)])].slice(0, MAX_PATHS);
    this.#changed.set(span, new Set(paths));
    if (paths.length > 0) span.setAttribute("gen_operator.changed_paths", paths);
  };

  request: Tracing["request"] = ({ method, path, status, durationMs }) => {
    const [route = path] = path.split("?");
    const startTime = Date.now() - durationMs;
    const attributes = { "http.request.method": method, "url.path": route };
    const kind = this.#api.SpanKind.CLIENT;
    const span = this.#tracer.startSpan(method, { kind, startTime, attributes }, this.#current);
    if (status === undefined) this.#fail(span, "there was no answer");
    else span.setAttribute("http.response.status_code", status);
    if (status !== undefined && status >= 400) span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
    span.end();
  };

  get #current(): Context {
    return this.#contexts.getStore() ?? this.#api.context.active();
  }

  async #within<Result>(span: Span, work: () => Promise<Result>, onResult: (result: Result) => void): Promise<Result> {
    const { context, trace } = this.#api;
    const current = trace.setSpan(this.#current, span);
    try {
      const result = await this.#contexts.run(current, () => context.with(current, work));
      onResult(result);
      return result;
    } catch (error) {
      this.#fail(span, error);
      throw error;
    } finally {
      span.end();
    }
  }

  #fail(span: Span, error: unknown): void {
    if (error instanceof Error) span.recordException(error);
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: messageOf(error) });
  }
}

function cut(path: string): string {
  return path.length <= MAX_PATH_LENGTH ? path : `${path.slice(0, MAX_PATH_LENGTH - 1)}…`;
}

// Channels of node:diagnostics_channel; tools can subscribe to them without changing the operator.

/** Published after an operator has started, with the names of its `controllers`. */
export const startedChannel = channel("gen-operator.started");

/** Published at the end of each reconcile. Messages are `ReconcileEvent`s. */
export const reconcileChannel = channel("gen-operator.reconcile");

/** Published after a primary was deleted: the `controller`, and the key of the `primary`. */
export const primaryDeletedChannel = channel("gen-operator.primary-deleted");
