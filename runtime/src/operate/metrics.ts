// Metrics of an operator. Counters are updated on events; gauges are read at scrape time.
import { readFileSync, readdirSync } from "node:fs";
import { EXTERNAL_KIND, type InformerActivity, type LoopEvent, type RequestObservation } from "../base/activity.js";
import { findError } from "../base/errors.js";
import { type ResourceDefinition, kindNameOf } from "../base/kubernetes-object.js";
import type { ReconcileEvent } from "../queue/controller.js";
import type { EventLoopMonitor } from "./event-loop-monitor.js";
import type { ObservedOperator } from "./health.js";

export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The part of a workflow that metrics need. An external dependent has no `resource`. */
interface MeasuredWorkflow {
  readonly primary: ResourceDefinition;
  readonly dependents: readonly { readonly name: string; readonly resource?: ResourceDefinition }[];
}

/** The part of a controller that metrics need. */
interface MeasuredController {
  readonly name: string;
  readonly workflow: MeasuredWorkflow;
  readonly workflows?: { readonly [name: string]: MeasuredWorkflow };
}

interface MetricsOptions {
  readonly eventLoop: Pick<EventLoopMonitor, "takeMaxDelayMs">;
  readonly definitions: readonly MeasuredController[];
}

const RESULTS = ["success", "error", "requeue", "requeue_after"];
const VERBS = ["created", "updated", "deleted"];
const OUTCOMES = ["created", "updated", "unchanged", "waiting", "deleted", "inactive", "left", "failed"];

/** Counts events of an operator and renders its metrics for Prometheus. */
export class OperatorMetrics {
  readonly #subject: ObservedOperator;
  readonly #process: ProcessMetrics;
  readonly #metrics: { readonly [Name in MetricName]: Metric };

  constructor(subject: ObservedOperator, { eventLoop, definitions }: MetricsOptions) {
    this.#subject = subject;
    this.#process = new ProcessMetrics(() => eventLoop.takeMaxDelayMs());
    const all = Object.entries(METRICS).map(([name, definition]) => [name, new Metric(name, definition)]);
    this.#metrics = Object.fromEntries(all) as { readonly [Name in MetricName]: Metric };
    for (const each of definitions) this.#initialize(each);
  }

  // Create all series up front: increase() in Prometheus ignores the first value of a series.
  #initialize({ name: controller, workflow, workflows = {} }: MeasuredController): void {
    const metrics = this.#metrics;
    const own = [controller];
    const queue = [controller, controller];
    for (const result of RESULTS) metrics.controller_runtime_reconcile_total.initialize([controller, result]);
    metrics.controller_runtime_reconcile_errors_total.initialize(own);
    metrics.controller_runtime_terminal_reconcile_errors_total.initialize(own);
    metrics.controller_runtime_reconcile_time_seconds.initialize(own);
    metrics.workqueue_queue_duration_seconds.initialize(queue);
    metrics.workqueue_work_duration_seconds.initialize(queue);
    metrics.workqueue_retries_total.initialize(queue);
    metrics.gen_operator_write_loops_total.initialize([controller, "", kindNameOf(workflow.primary)]);
    metrics.gen_operator_foreign_writes_total.initialize(own);
    const all = [workflow, ...Object.values(workflows)].flatMap(({ dependents }) => dependents);
    for (const { name: dependent, resource } of all) {
      for (const outcome of OUTCOMES)
        metrics.gen_operator_dependent_duration_seconds.initialize([controller, dependent, outcome]);
      const kind = resource === undefined ? EXTERNAL_KIND : kindNameOf(resource);
      metrics.gen_operator_write_loops_total.initialize([controller, dependent, kind]);
      if (resource !== undefined) continue;
      for (const verb of VERBS) metrics.gen_operator_external_writes_total.initialize([controller, dependent, verb]);
    }
  }

  onReconcile(event: ReconcileEvent): void {
    const { controller, durationMs, queuedMs, error, rescheduleAfterMs, retryAfterMs, steps, isEnded = false } = event;
    const isEnding = event.isNamespaceTerminating === true;
    const isFailed = "error" in event && !isEnded && !isEnding;
    // A reconcile that was ended early runs again immediately.
    const againMs = isEnded ? 0 : isEnding ? retryAfterMs : rescheduleAfterMs;
    const success = againMs === undefined ? "success" : againMs === 0 ? "requeue" : "requeue_after";
    const result = isFailed ? "error" : success;
    const own = [controller];
    const queue = [controller, controller];
    const metrics = this.#metrics;
    metrics.controller_runtime_reconcile_total.add([controller, result]);
    if (isFailed) metrics.controller_runtime_reconcile_errors_total.add(own);
    if (isFailed && findError(error, "TerminalError") !== undefined)
      metrics.controller_runtime_terminal_reconcile_errors_total.add(own);
    metrics.controller_runtime_reconcile_time_seconds.observe(own, durationMs / 1000);
    metrics.workqueue_queue_duration_seconds.observe(queue, queuedMs / 1000);
    metrics.workqueue_work_duration_seconds.observe(queue, durationMs / 1000);
    if (retryAfterMs !== undefined) metrics.workqueue_retries_total.add(queue);
    for (const { dependent, outcome, durationMs: tookMs } of steps)
      metrics.gen_operator_dependent_duration_seconds.observe([controller, dependent, outcome], tookMs / 1000);
  }

  observeRequest({ method, status }: Pick<RequestObservation, "method" | "status">, host: string): void {
    this.#metrics.rest_client_requests_total.add([String(status ?? "<error>"), method, host]);
  }

  onLoop({ controller, dependent = "", kind }: LoopEvent): void {
    this.#metrics.gen_operator_write_loops_total.add([controller, dependent, kind]);
  }

  onForeignWrite({ controller }: { readonly controller: string }): void {
    this.#metrics.gen_operator_foreign_writes_total.add([controller]);
  }

  onExternalWrite({
    controller,
    dependent,
    verb,
  }: {
    readonly controller: string;
    readonly dependent: string;
    readonly verb: string;
  }): void {
    this.#metrics.gen_operator_external_writes_total.add([controller, dependent, verb]);
  }

  /** Renders all metrics in the Prometheus text format. */
  render(): string {
    this.#read();
    const lines: string[] = [];
    for (const metric of Object.values(this.#metrics)) metric.render(lines);
    this.#process.render(lines);
    return `${lines.join("\n")}\n`;
  }

  #read(): void {
    const metrics = this.#metrics;
    for (const metric of Object.values(metrics)) metric.reset();
    for (const controller of this.#subject.controllers()) {
      const { definition, waiting, givenUp, postponed, paused } = controller;
      const activity = controller.activity();
      const [own, queue] = [[definition.name], [definition.name, definition.name]];
      metrics.controller_runtime_active_workers.set(own, activity.running);
      metrics.controller_runtime_max_concurrent_reconciles.set(own, activity.maxRunning);
      metrics.workqueue_depth.set(queue, activity.queued);
      metrics.workqueue_adds_total.set(queue, activity.submissions);
      metrics.workqueue_unfinished_work_seconds.set(queue, activity.unfinishedMs / 1000);
      metrics.workqueue_longest_running_processor_seconds.set(queue, activity.longestMs / 1000);
      metrics.gen_operator_waiting_primaries.set(own, waiting.count);
      metrics.gen_operator_given_up_primaries.set(own, givenUp.count);
      metrics.gen_operator_postponed_writes.set(own, postponed.length);
      metrics.gen_operator_paused_primaries.set(own, paused);
    }
    this.#readInformers();
    const { leadership } = this.#subject.health();
    if (leadership !== undefined)
      metrics.leader_election_master_status.set([leadership.lease], leadership.isLeading ? 1 : 0);
  }

  #readInformers(): void {
    const metrics = this.#metrics;
    const now = performance.now();
    // A kind may be watched in many namespaces.
    const kinds = new Map<string, InformerActivity[]>();
    for (const each of this.#subject.informers()) kinds.set(each.kind, [...(kinds.get(each.kind) ?? []), each]);
    for (const [kind, informers] of kinds) {
      const sum = (of: (informer: InformerActivity) => number) => informers.reduce((all, each) => all + of(each), 0);
      const objects = sum((each) => each.objects);
      metrics.gen_operator_cached_objects.set([kind], objects);
      metrics.gen_operator_unknown_watches.set(
        [kind],
        sum(({ isKnown }) => (isKnown ? 0 : 1)),
      );
      const ages = informers.flatMap(({ receivedAt }) => (receivedAt === undefined ? [] : now - receivedAt));
      if (ages.length > 0) metrics.gen_operator_watch_last_event_age_seconds.set([kind], Math.max(...ages) / 1000);
      for (const reason of ["ended", "expired", "restored", "failed"] as const) {
        const ends = sum((each) => each.ends[reason] ?? 0);
        metrics.gen_operator_watch_ends_total.set([kind, reason], ends);
      }
    }
  }
}

// The table of metrics. Names and labels match controller-runtime and client-go where they have the metric, so that existing dashboards and alerts
// work; all other names begin with gen_operator. To limit the number of series, no label contains the name of an object.

export interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
}

// controller-runtime 0.22, pkg/internal/controller/metrics
const RECONCILE_SECONDS = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5],
  ...[1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60],
];
// client-go, util/workqueue
const QUEUE_SECONDS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000];
const DEPENDENT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const CONTROLLER_LABELS = ["controller"];
const QUEUE_LABELS = ["name", "controller"];
const KIND_LABELS = ["kind"];

/** All metrics by name. */
export const METRICS = {
  controller_runtime_reconcile_total: counter(
    "Reconciles by result: success, error, requeue (at once) or requeue_after.",
    ["controller", "result"],
  ),
  controller_runtime_reconcile_errors_total: counter("Reconciles that failed.", CONTROLLER_LABELS),
  controller_runtime_terminal_reconcile_errors_total: counter(
    "Reconciles that failed with a TerminalError, so that they are not tried again.",
    CONTROLLER_LABELS,
  ),
  controller_runtime_reconcile_time_seconds: histogram(
    "How long reconciles took.",
    CONTROLLER_LABELS,
    RECONCILE_SECONDS,
  ),
  controller_runtime_active_workers: gauge("Reconciles under way.", CONTROLLER_LABELS),
  controller_runtime_max_concurrent_reconciles: gauge("Reconciles that may be under way at once.", CONTROLLER_LABELS),
  workqueue_depth: gauge("Primaries that wait for their turn.", QUEUE_LABELS),
  workqueue_adds_total: counter("How often a primary was put into the queue.", QUEUE_LABELS),
  workqueue_queue_duration_seconds: histogram("How long a primary waited for its turn.", QUEUE_LABELS, QUEUE_SECONDS),
  workqueue_work_duration_seconds: histogram("How long the reconcile of a primary took.", QUEUE_LABELS, QUEUE_SECONDS),
  workqueue_retries_total: counter("Retries that were scheduled after a failure.", QUEUE_LABELS),
  workqueue_unfinished_work_seconds: gauge(
    "How long the reconciles under way have run so far, all together.",
    QUEUE_LABELS,
  ),
  workqueue_longest_running_processor_seconds: gauge(
    "How long the reconcile under way that began first has run so far.",
    QUEUE_LABELS,
  ),
  rest_client_requests_total: counter(
    "Attempts of requests, watches among them, by their status; <error> without an answer.",
    ["code", "method", "host"],
  ),
  leader_election_master_status: gauge("1 while this replica leads, 0 otherwise.", ["name"]),
  gen_operator_dependent_duration_seconds: histogram(
    "How long a dependent took in a reconcile, with what it waited for, by what became of it.",
    ["controller", "dependent", "outcome"],
    DEPENDENT_SECONDS,
  ),
  gen_operator_write_loops_total: counter(
    "Writes in a write loop: reverted by another client, or of desired content that changes each time.",
    ["controller", "dependent", "kind"],
  ),
  gen_operator_external_writes_total: counter(
    "Resources of external dependents that were created, updated or deleted, by verb.",
    ["controller", "dependent", "verb"],
  ),
  gen_operator_foreign_writes_total: counter(
    "Writes under the field manager of the controller that another process sent while this one led.",
    CONTROLLER_LABELS,
  ),
  gen_operator_postponed_writes: gauge("Writes postponed by a write loop.", CONTROLLER_LABELS),
  gen_operator_given_up_primaries: gauge(
    "Primaries whose last reconcile failed without a quick retry left.",
    CONTROLLER_LABELS,
  ),
  gen_operator_waiting_primaries: gauge(
    "Primaries that are not reconciled yet, because a watch of what may belong to them has not begun.",
    CONTROLLER_LABELS,
  ),
  gen_operator_unknown_watches: gauge(
    "Watches, one for each kind, namespace and cluster, whose objects are not known yet.",
    KIND_LABELS,
  ),
  gen_operator_paused_primaries: gauge("Paused primaries.", CONTROLLER_LABELS),
  gen_operator_watch_ends_total: counter(
    "Watches that ended and were begun anew, by reason: ended (in time, by the server), expired, restored or failed.",
    ["kind", "reason"],
  ),
  gen_operator_watch_last_event_age_seconds: gauge(
    "How long ago the watch of a kind that has been quiet longest brought anything; bookmarks count, which come every minute.",
    KIND_LABELS,
  ),
  gen_operator_cached_objects: gauge("Objects in the caches.", KIND_LABELS),
};

type MetricName = keyof typeof METRICS;

function counter(help: string, labels: readonly string[]): MetricDefinition {
  return { type: "counter", help, labels };
}

function gauge(help: string, labels: readonly string[]): MetricDefinition {
  return { type: "gauge", help, labels };
}

function histogram(help: string, labels: readonly string[], buckets: readonly number[]): MetricDefinition {
  return { type: "histogram", help, labels, buckets };
}

// A metric in the Prometheus text format.

/** Label values of a series, in the order of the definition. */
type LabelValues = readonly string[];

interface Series {
  readonly labels: LabelValues;
  /** The value, or the sum of a histogram. */
  value: number;
  count: number;
  /** The number of observations in each bucket, not cumulative. */
  readonly buckets: number[];
}

/** A metric with its series. */
export class Metric {
  readonly #name: string;
  readonly #definition: MetricDefinition;
  readonly #series = new Map<string, Series>();

  constructor(name: string, definition: MetricDefinition) {
    this.#name = name;
    this.#definition = definition;
  }

  /** Creates a series with value 0. */
  initialize(labels: LabelValues): void {
    this.#of(labels);
  }

  /** Increments a counter by `value`. */
  add(labels: LabelValues, value = 1): void {
    this.#of(labels).value += value;
  }

  /** Sets a gauge, or a counter that is maintained elsewhere. */
  set(labels: LabelValues, value: number): void {
    this.#of(labels).value = value;
  }

  /** Adds an observation to a histogram. */
  observe(labels: LabelValues, value: number): void {
    const series = this.#of(labels);
    series.value += value;
    series.count++;
    const { buckets = [] } = this.#definition;
    for (let index = 0; index < buckets.length; index++)
      if (value <= buckets[index]!) {
        series.buckets[index]!++;
        return;
      }
  }

  /** Removes all series of a gauge before a scrape sets the current ones. Counters and histograms are kept. */
  reset(): void {
    if (this.#definition.type === "gauge") this.#series.clear();
  }

  /** Appends the metric in the text format. */
  render(lines: string[]): void {
    const { type, help } = this.#definition;
    lines.push(
      `# HELP ${this.#name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${this.#name} ${type}`,
    );
    for (const series of this.#series.values()) {
      const { labels, value, count } = series;
      if (type !== "histogram") {
        lines.push(`${this.#name}${this.#labelled(labels)} ${numberText(value)}`);
        continue;
      }
      let below = 0;
      for (const [index, bound] of (this.#definition.buckets ?? []).entries()) {
        below += series.buckets[index]!;
        lines.push(`${this.#name}_bucket${this.#labelled(labels, numberText(bound))} ${below}`);
      }
      lines.push(
        `${this.#name}_bucket${this.#labelled(labels, "+Inf")} ${count}`,
        `${this.#name}_sum${this.#labelled(labels)} ${numberText(value)}`,
        `${this.#name}_count${this.#labelled(labels)} ${count}`,
      );
    }
  }

  #of(labels: LabelValues): Series {
    const key = labels.length === 1 ? labels[0]! : labels.join("\u0000");
    let series = this.#series.get(key);
    if (series === undefined) {
      const { buckets = [] } = this.#definition;
      series = { labels, value: 0, count: 0, buckets: buckets.map(() => 0) };
      this.#series.set(key, series);
    }
    return series;
  }

  #labelled(values: LabelValues, bound?: string): string {
    const pairs = this.#definition.labels.map((label, index) => `${label}="${escapedLabel(values[index] ?? "")}"`);
    if (bound !== undefined) pairs.push(`le="${bound}"`);
    return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
  }
}

function escapedLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function numberText(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}

// Metrics of the process and of Node.js, with the names of prom-client. Its own collectors observe every garbage collection and wake up a hundred
// times per second, which took 13% of an operator's CPU time.

const PROCESS_START = Date.now() / 1000 - process.uptime();

/** Process metrics, read at scrape time. */
export class ProcessMetrics {
  readonly #takeMaxDelayMs: () => number;

  /** `takeMaxDelayMs` returns the maximum event loop delay since the last call, in milliseconds. */
  constructor(takeMaxDelayMs: () => number) {
    this.#takeMaxDelayMs = takeMaxDelayMs;
  }

  /** Appends the metrics in the Prometheus text format. */
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
        "Maximum event loop delay since the last scrape.",
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

// /proc exists only on Linux.
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
