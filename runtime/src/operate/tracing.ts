// Reconciles as traces of OpenTelemetry: a span for each, with a child for each dependent, and in these one for each request. Nothing of it is
// loaded unless the program has registered a tracer provider before the operator starts.
import { AsyncLocalStorage } from "node:async_hooks";
import type { Context, Span } from "@opentelemetry/api";
import type { Tracing } from "../base/activity.js";
import { messageOf } from "../base/logger.js";

type Api = typeof import("@opentelemetry/api");

// Where every copy of the API, of any version of it, looks for what was registered.
const REGISTERED = Symbol.for("opentelemetry.js.api.1");

// A span with more is dropped or cut by many collectors.
const MAX_PATHS = 20;
const MAX_PATH_LENGTH = 100;

/** Returns what makes spans; undefined if the program has registered no tracer provider. */
export async function loadTracing(): Promise<Tracing | undefined> {
  const registered = (globalThis as { readonly [REGISTERED]?: { readonly trace?: unknown } })[REGISTERED];
  if (registered?.trace === undefined) return undefined;
  // It may be out of reach for this package, or left out of a bundle.
  const api = await import("@opentelemetry/api").catch(() => undefined);
  return api && new OpenTelemetryTracing(api);
}

class OpenTelemetryTracing implements Tracing {
  readonly #api: Api;
  readonly #tracer: ReturnType<Api["trace"]["getTracer"]>;
  /** The span that is under way, also where the program has registered no context manager. */
  readonly #contexts = new AsyncLocalStorage<Context>();

  /** Where objects were not as desired, by the span in which they were written. */
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
    // A span that is sampled away costs no search.
    if (span?.isRecording() !== true) return;
    const known = this.#changed.get(span) ?? new Set();
    if (known.size >= MAX_PATHS) return;
    // The items of a bulk dependent share one span.
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
