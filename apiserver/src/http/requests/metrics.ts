import { resourceNameOf } from "../../object/object-key.js";
import type { Registry } from "../../registry/registry.js";

const START = Date.now() / 1000 - process.uptime();

/** Writes what is measured as Prometheus reads it, under the names of kube-apiserver: the objects of each resource, and the process. */
export function metricsText(registry: Registry): string {
  const { user, system } = process.cpuUsage();
  return [
    ...metric("apiserver_resource_objects", "gauge", "Number of stored objects, by resource", objectCounts(registry)),
    ...metric("process_cpu_seconds_total", "counter", "User and system CPU time in seconds", [
      ["", (user + system) / 1e6],
    ]),
    ...metric("process_resident_memory_bytes", "gauge", "Resident memory in bytes", [["", process.memoryUsage.rss()]]),
    ...metric("process_start_time_seconds", "gauge", "Start of the process, in seconds since the epoch", [["", START]]),
    "",
  ].join("\n");
}

type Sample = [labels: string, value: number];

function metric(name: string, type: "counter" | "gauge", help: string, samples: Sample[]): string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(([labels, value]) => `${name}${labels} ${value}`),
  ];
}

function objectCounts(registry: Registry): Sample[] {
  const seen = new Map<string, Sample>();
  for (const type of registry.types) {
    const size = registry.find(type)?.store.size ?? 0;
    const labels = `{group="${type.group}",resource="${type.plural}"}`;
    if (type.verbs.includes("list")) seen.set(resourceNameOf(type), [labels, size]);
  }
  return [...seen.values()];
}
