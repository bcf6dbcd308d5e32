import { resourceNameOf } from "../builtin/resource-name.js";
import { machineTime } from "../clock.js";
import type { Registry } from "../registry/registry.js";
import { type ApiRequest, type ResourcePath, verbOf } from "./request-info.js";

/** Verbs that kube-apiserver's metrics name differently from authorization. */
const VERBS: Readonly<Record<string, string>> = { create: "POST", update: "PUT", deletecollection: "DELETE" };
const CONNECTED: ReadonlySet<string> = new Set(["exec", "attach", "portforward"]);

/**
 * Counts resource requests under the metric names of kube-apiserver. A watch is counted when it ends, any other request when it is answered.
 *
 * https://kubernetes.io/docs/reference/instrumentation/metrics/
 */
export class RequestMetrics {
  readonly #registry: Registry;
  readonly #counts = new Map<string, number>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  count(request: ApiRequest, status: number): void {
    const { target, query } = request;
    // Unknown resources are not counted: their names are arbitrary and would create any number of series.
    if (target === undefined || this.#registry.find(target) === undefined) return;
    const dryRun = query.getAll("dryRun").includes("All") ? "All" : "";
    addOne(this.#counts, `code="${status}",component="apiserver",dry_run="${dryRun}",${labelsOf(request, target)}`);
  }

  /** Returns the counters, and a gauge of the given open requests. */
  lines(open: Iterable<ApiRequest>): string[] {
    const running = new Map<string, number>();
    for (const request of open)
      if (request.target !== undefined) addOne(running, `component="apiserver",${labelsOf(request, request.target)}`);
    return [
      "# HELP apiserver_request_total Number of answered requests, by verb, resource, and status",
      "# TYPE apiserver_request_total counter",
      ...Array.from(this.#counts, ([labels, count]) => `apiserver_request_total{${labels}} ${count}`),
      "# HELP apiserver_longrunning_requests Number of requests in progress, such as watches",
      "# TYPE apiserver_longrunning_requests gauge",
      ...Array.from(running, ([labels, count]) => `apiserver_longrunning_requests{${labels}} ${count}`),
    ];
  }
}

function addOne(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}

function labelsOf(request: ApiRequest, target: ResourcePath): string {
  const { group, version, plural, subresource = "" } = target;
  const on = `group="${group}",resource="${plural}",scope="${scopeOf(request, target)}",subresource="${subresource}"`;
  return `${on},verb="${metricVerbOf(request, subresource)}",version="${version}"`;
}

function metricVerbOf(request: ApiRequest, subresource: string): string {
  if (CONNECTED.has(subresource)) return "CONNECT";
  const verb = verbOf(request);
  const isApply = verb === "patch" && request.headers["content-type"]?.startsWith("application/apply-patch+") === true;
  return isApply ? "APPLY" : (VERBS[verb] ?? verb.toUpperCase());
}

function scopeOf({ method }: ApiRequest, { name, namespace }: ResourcePath): string {
  if (name !== undefined || method === "POST") return "resource";
  return namespace === undefined ? "cluster" : "namespace";
}

const START = machineTime().getTime() / 1000 - process.uptime();

/**
 * Renders all metrics in Prometheus format, under the names of kube-apiserver: the given request metrics, the number of objects by resource, and the
 * process metrics.
 */
export function metricsText(registry: Registry, ofRequests: readonly string[]): string {
  const { user, system } = process.cpuUsage();
  return [
    ...ofRequests,
    "# HELP apiserver_resource_objects Number of stored objects, by resource",
    "# TYPE apiserver_resource_objects gauge",
    ...objectCounts(registry),
    "# HELP process_cpu_seconds_total User and system CPU time in seconds",
    "# TYPE process_cpu_seconds_total counter",
    `process_cpu_seconds_total ${(user + system) / 1e6}`,
    "# HELP process_resident_memory_bytes Resident memory in bytes",
    "# TYPE process_resident_memory_bytes gauge",
    `process_resident_memory_bytes ${process.memoryUsage.rss()}`,
    "# HELP process_start_time_seconds Start of the process, in seconds since the epoch",
    "# TYPE process_start_time_seconds gauge",
    `process_start_time_seconds ${START}`,
    "",
  ].join("\n");
}

function objectCounts(registry: Registry): string[] {
  const lines = new Map<string, string>();
  for (const type of registry.types) {
    const size = registry.find(type)?.store.size ?? 0;
    const line = `apiserver_resource_objects{group="${type.group}",resource="${type.plural}"} ${size}`;
    if (type.verbs.includes("list")) lines.set(resourceNameOf(type), line);
  }
  return [...lines.values()];
}
