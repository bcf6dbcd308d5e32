import { ApiClient } from "../client/api-client.js";
import type { Connection } from "../client/connection.js";
import type { RequestCounter } from "../client/transport.js";
import { checkScrapeRights, createScrapeAuthentication } from "../operate/access-review.js";
import {
  DEBUG_METHODS,
  type DebugSubject,
  type DebugToken,
  createDebugToken,
  debugHandler,
} from "../operate/debug-endpoint.js";
import type { EventLoopMonitor } from "../operate/event-loop-monitor.js";
import { type ProbeChecks, type ProbeSubject, probeHandler } from "../operate/health.js";
import {
  type EndpointHandler,
  HttpEndpoint,
  type HttpEndpointOptions,
  bindAddressOf,
  loopbackAddressOf,
} from "../operate/http-endpoint.js";
import { instanceName } from "../operate/lease-lock.js";
import { METRICS_CONTENT_TYPE, OperatorMetrics } from "../operate/metrics.js";
import type { ControllerDefinition } from "../reconcile/controller-definition.js";

/** The addresses of the endpoints of an operator. */
export interface EndpointSettings {
  /**
   * Where the probes `/livez`, `/readyz` and `/startupz` are answered: `:8081`, `127.0.0.1:8081`, or `0` for nowhere. Default: `0`, and `:8081`
   * for `runOperator` in a pod.
   */
  readonly healthProbeBindAddress?: string | undefined;
  /** Further checks of the probes. */
  readonly checks?: ProbeChecks | undefined;
  /** Where Prometheus finds `/metrics`. Default: `0`, and `:8080` for `runOperator` in a pod. */
  readonly metricsBindAddress?: string | undefined;
  /** Whether only a token of the cluster that may `get` the path `/metrics` gets metrics. Default: false */
  readonly metricsAuthentication?: boolean | undefined;
  /** Where the paths below `/debug/` are answered: a loopback address such as `127.0.0.1:8082`, or `0` for nowhere. Default: `0` */
  readonly debugBindAddress?: string | undefined;
  /** A file with the token that these paths ask for. Default: one is made, and the log names its file. */
  readonly debugTokenFile?: string | undefined;
}

interface EndpointSubject extends Omit<ProbeSubject, "checks">, Omit<DebugSubject, "instance"> {
  readonly eventLoop: Pick<EventLoopMonitor, "takeMaxDelayMs">;
  readonly definitions: readonly ControllerDefinition[];
  /** The connection to the API server; absent until it is found. */
  connection(): Connection | undefined;
}

type AddressSetting = "healthProbeBindAddress" | "metricsBindAddress" | "debugBindAddress";
type Served = Pick<HttpEndpointOptions, "what" | "handle" | "methods">;

/** The HTTP servers of an operator, over all its starts. */
export class OperatorEndpoints {
  /** Absent without a bind address for metrics. */
  readonly metrics: OperatorMetrics | undefined;
  readonly #subject: EndpointSubject;
  /** The token opens before the endpoint that requires it. */
  readonly #parts: readonly Pick<DebugToken, "open" | "close">[];
  readonly #authenticatesScrapes: boolean;
  #reviews: ApiClient | undefined;

  constructor(settings: EndpointSettings, subject: EndpointSubject) {
    const { checks = {}, metricsAuthentication = false, debugTokenFile } = settings;
    const { logger } = subject;
    const endpointAt = (setting: AddressSetting, served: Served, parse = bindAddressOf): HttpEndpoint | undefined => {
      const address = parse(setting, settings[setting] ?? "0");
      return address && new HttpEndpoint({ setting, address, logger, ...served });
    };
    const handleProbes = probeHandler({ ...subject, checks });
    const probes = endpointAt("healthProbeBindAddress", { what: "the probes", handle: handleProbes });
    const handleMetrics = this.#metricsHandler(metricsAuthentication);
    const metrics = endpointAt("metricsBindAddress", { what: "the metrics", handle: handleMetrics });
    const token = createDebugToken(debugTokenFile, logger);
    const handleDebug = debugHandler({ ...subject, instance: instanceName() }, token);
    const paths = { what: "the debug paths", handle: handleDebug, methods: DEBUG_METHODS };
    const debug = endpointAt("debugBindAddress", paths, loopbackAddressOf);
    this.#subject = subject;
    this.#authenticatesScrapes = metricsAuthentication && metrics !== undefined;
    this.#parts = [probes, metrics, debug && token, debug].filter((each) => each !== undefined);
    this.metrics = metrics && new OperatorMetrics(subject, subject);
  }

  /** Returns the request counter for one server; undefined without metrics. */
  requestCounterOf({ server }: Connection): RequestCounter | undefined {
    const { metrics } = this;
    const { host } = new URL(server);
    return metrics && ((request) => metrics.observeRequest(request, host));
  }

  /** Opens all endpoints that are not open; throws if an address is taken or a token cannot be read. */
  async open(): Promise<void> {
    for (const each of this.#parts) await each.open();
  }

  /** Throws an error that lists the missing permissions of the endpoints. */
  async checkRights(signal: AbortSignal): Promise<void> {
    const client = this.#authenticatesScrapes ? this.#reviewClient() : undefined;
    if (client !== undefined) await checkScrapeRights(client, signal);
  }

  async close(): Promise<void> {
    await Promise.all(this.#parts.map((each) => each.close()));
    await this.#reviews?.close();
    this.#reviews = undefined;
  }

  #metricsHandler(isAuthenticated: boolean): EndpointHandler {
    const refusalOf = isAuthenticated ? createScrapeAuthentication(() => this.#reviewClient()) : undefined;
    return async ({ pathname }, request) => {
      if (pathname !== "/metrics" || this.metrics === undefined) return undefined;
      const refusal = await refusalOf?.(pathname, request);
      if (refusal !== undefined) return refusal;
      return { status: 200, body: this.metrics.render(), contentType: METRICS_CONTENT_TYPE };
    };
  }

  // A review changes nothing, so it needs no write fence: standby replicas send it, too.
  #reviewClient(): ApiClient | undefined {
    const connection = this.#subject.connection();
    return connection && (this.#reviews ??= new ApiClient(connection));
  }
}
