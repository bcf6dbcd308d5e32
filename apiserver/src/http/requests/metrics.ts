import { machineTime } from "../../real-time.js";
import { resourceNameOf } from "../../object/object-key.js";
import type { Registry } from "../../registry/registry.js";

const START = machineTime().getTime() / 1000 - process.uptime();

/** Writes what is measured as Prometheus reads it, under the names of kube-apiserver: these lines of requests, the objects of each resource, and the process. */
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
