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

/** Bind addresses and options of the HTTP endpoints of an operator. */
export interface EndpointSettings {
  /**
   * The address of the probes `/livez`, `/readyz` and `/startupz`: `:8081`, `127.0.0.1:8081`, or `0` to disable them. Default: `0`; `:8081` for
   * `runOperator` in a pod
   */
  readonly healthProbeBindAddress?: string | undefined;
  /** Additional checks for the probes. */
  readonly checks?: ProbeChecks | undefined;
  /** The address of the Prometheus metrics, `/metrics`, or `0` to disable them. Default: `0`; `:8080` for `runOperator` in a pod */
  readonly metricsBindAddress?: string | undefined;
  /** Whether `/metrics` requires a bearer token whose user may `get` the non-resource URL `/metrics` in the cluster. Default: false */
  readonly metricsAuthentication?: boolean | undefined;
  /** The address of the paths below `/debug/`: a loopback address such as `127.0.0.1:8082`, or `0` to disable them. Default: `0` */
  readonly debugBindAddress?: string | undefined;
  /** The file with the token that the debug paths require. Default: a token is generated, and the log names its file */
  readonly debugTokenFile?: string | undefined;
}

interface EndpointSubject extends Omit<ProbeSubject, "checks">, Omit<DebugSubject, "instance"> {
  readonly eventLoop: Pick<EventLoopMonitor, "takeMaxDelayMs">;
  readonly definitions: readonly ControllerDefinition[];
  /** The connection to the API server, or undefined until one is found. */
  connection(): Connection | undefined;
}

type AddressSetting = "healthProbeBindAddress" | "metricsBindAddress" | "debugBindAddress";
type Served = Pick<HttpEndpointOptions, "what" | "handle" | "methods">;

/** The HTTP endpoints of an operator. They stay open across restarts of its controllers. */
export class OperatorEndpoints {
  /** Absent if no bind address is set for metrics. */
  readonly metrics: OperatorMetrics | undefined;
  readonly #subject: EndpointSubject;
  /** In this order: the token file opens before the endpoint that requires the token. */
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

  /** Returns the request counter of one API server, or undefined without metrics. */
  requestCounterOf({ server }: Connection): RequestCounter | undefined {
    const { metrics } = this;
    const { host } = new URL(server);
    return metrics && ((request) => metrics.observeRequest(request, host));
  }

  /** Opens all endpoints that are not open yet. Throws if an address is in use or a token cannot be read. */
  async open(): Promise<void> {
    for (const each of this.#parts) await each.open();
  }

  /** Throws an error that lists the permissions that the endpoints lack. */
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

  // A review changes nothing in the cluster, so it is not fenced: standby replicas send it, too.
  #reviewClient(): ApiClient | undefined {
    const connection = this.#subject.connection();
    return connection && (this.#reviews ??= new ApiClient(connection));
  }
}
