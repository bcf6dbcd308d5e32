import type { Logger } from "../../base/logger.js";
import { ApiClient } from "../../client/api-client.js";
import type { Connection } from "../../client/connect/connection.js";
import { bindAddressOf } from "../../operate/http/bind-address.js";
import { HttpEndpoint, type EndpointHandler } from "../../operate/http/http-endpoint.js";
import { probeHandler, type ProbeChecks, type ProbeSubject } from "../../operate/http/probes.js";
import { METRICS_CONTENT_TYPE, OperatorMetrics, type MetricsSubject } from "../../operate/metrics/operator-metrics.js";
import { ScrapeAuthentication } from "../../operate/metrics/scrape-authentication.js";

/** Where an operator is looked at. */
export interface EndpointSettings {
  /**
   * Where the probes `/livez`, `/readyz` and `/startupz` are answered: `:8081`, `127.0.0.1:8081`, or `0` for nowhere. Default: `0`, and `:8081`
   * for `runOperator` in a pod.
   */
  readonly healthProbeBindAddress?: string | undefined;
  /** What the probes look at besides the operator. */
  readonly checks?: ProbeChecks | undefined;
  /** Where Prometheus finds `/metrics`. Default: `0`, and `:8080` for `runOperator` in a pod. */
  readonly metricsBindAddress?: string | undefined;
  /** Whether only a token of the cluster that may `get` the path `/metrics` gets metrics. Default: false */
  readonly metricsAuthentication?: boolean | undefined;
}

/** What the endpoints show. */
export interface EndpointSubject extends Omit<ProbeSubject, "checks">, MetricsSubject {
  readonly logger: Logger;
  /** The connection to the API server; absent until it is found. */
  connection(): Connection | undefined;
}

/** The HTTP servers of an operator, over all its starts. */
export class OperatorEndpoints {
  /** Absent if nobody is to see them. */
  readonly metrics: OperatorMetrics | undefined;
  readonly #subject: EndpointSubject;
  readonly #endpoints: readonly HttpEndpoint[];
  #reviews: ApiClient | undefined;

  constructor(settings: EndpointSettings, subject: EndpointSubject) {
    const { healthProbeBindAddress = "0", checks = {}, metricsBindAddress = "0", metricsAuthentication } = settings;
    const { logger } = subject;
    this.#subject = subject;
    const probes = probeHandler({ ...subject, checks });
    const metrics = this.#metricsHandler(metricsAuthentication === true);
    this.#endpoints = [
      ...endpointAt("healthProbeBindAddress", healthProbeBindAddress, { what: "the probes", handle: probes, logger }),
      ...endpointAt("metricsBindAddress", metricsBindAddress, { what: "the metrics", handle: metrics, logger }),
    ];
    const isServed = bindAddressOf("metricsBindAddress", metricsBindAddress) !== undefined;
    this.metrics = isServed ? new OperatorMetrics(subject) : undefined;
  }

  /** Opens those that are not open; throws for an address that cannot be had. */
  async open(): Promise<void> {
    for (const endpoint of this.#endpoints) await endpoint.open();
  }

  async close(): Promise<void> {
    await Promise.all(this.#endpoints.map((endpoint) => endpoint.close()));
    this.metrics?.close();
    await this.#reviews?.close();
    this.#reviews = undefined;
  }

  #metricsHandler(isAuthenticated: boolean): EndpointHandler {
    const authentication = isAuthenticated ? new ScrapeAuthentication(() => this.#reviewClient()) : undefined;
    return async ({ pathname }, request) => {
      if (pathname !== "/metrics" || this.metrics === undefined) return undefined;
      const refusal = await authentication?.refusalOf(pathname, request);
      if (refusal !== undefined) return refusal;
      return { status: 200, body: this.metrics.render(), contentType: METRICS_CONTENT_TYPE };
    };
  }

  // A review changes nothing, so a replica that stands by asks for it, too.
  #reviewClient(): ApiClient | undefined {
    const connection = this.#subject.connection();
    return connection && (this.#reviews ??= new ApiClient(connection));
  }
}

function endpointAt(
  setting: string,
  text: string,
  more: { readonly what: string; readonly handle: EndpointHandler; readonly logger: Logger },
): readonly HttpEndpoint[] {
  const address = bindAddressOf(setting, text);
  return address === undefined ? [] : [new HttpEndpoint({ setting, address, ...more })];
}
