// The metrics of the process and of Node, under the names of prom-client. Its own collectors observe every garbage collection and wake up a hundred
// times a second, which took 13 % of an operator's CPU.
import { readdirSync, readFileSync } from "node:fs";
import { Metric } from "./metric.js";

const PROCESS_START = Date.now() / 1000 - process.uptime();

/** Reads the metrics of this process when somebody asks. */
export class ProcessMetrics {
  readonly #takeMaxDelayMs: () => number;

  /** `takeMaxDelayMs` returns how late the event loop was at most since the last call. */
  constructor(takeMaxDelayMs: () => number) {
    this.#takeMaxDelayMs = takeMaxDelayMs;
  }

  /** Appends them in the text format of Prometheus. */
  render(lines: string[]): void {
    const { user, system } = process.cpuUsage();
    const kilobytes = numberIn("status", /^VmSize:\s+(\d+) kB/m);
    const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
    const facts: readonly (readonly [name: string, help: string, value: number | undefined])[] = [
      ["process_cpu_user_seconds_total", "CPU time in user mode.", user / 1e6],
      ["process_cpu_system_seconds_total", "CPU time in system mode.", system / 1e6],
      ["process_cpu_seconds_total", "CPU time.", (user + system) / 1e6],
      ["process_start_time_seconds", "When the process began, since the epoch.", PROCESS_START],
      ["process_resident_memory_bytes", "Memory that is in use.", rss],
      ["process_virtual_memory_bytes", "Memory that is mapped.", kilobytes && kilobytes * 1024],
      ["process_open_fds", "Open file descriptors.", readOrNothing(() => readdirSync("/proc/self/fd").length)],
      ["process_max_fds", "File descriptors that may be open.", numberIn("limits", /^Max open files +(\d+)/m)],
      ["nodejs_heap_size_total_bytes", "Size of V8's heap.", heapTotal],
      ["nodejs_heap_size_used_bytes", "Size of the objects in V8's heap.", heapUsed],
      ["nodejs_external_memory_bytes", "Memory of buffers outside V8's heap.", external],
      [
        "nodejs_eventloop_lag_max_seconds",
        "How late the event loop was at most since the last question.",
        this.#takeMaxDelayMs() / 1000,
      ],
    ];
    for (const [name, help, value] of facts) {
      if (value === undefined) continue;
      const metric = new Metric(name, { type: name.endsWith("_total") ? "counter" : "gauge", help, labels: [] });
      metric.set([], value);
      metric.render(lines);
    }
    const [major = "", minor = "", patch = ""] = process.versions.node.split(".");
    const labels = ["version", "major", "minor", "patch"];
    const version = new Metric("nodejs_version_info", { type: "gauge", help: "The version of Node.", labels });
    version.set([process.version, major, minor, patch], 1);
    version.render(lines);
  }
}

// Linux alone has these files.
function readOrNothing<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function numberIn(file: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(readOrNothing(() => readFileSync(`/proc/self/${file}`, "utf8")) ?? "")?.[1];
  return found === undefined ? undefined : Number(found);
}
