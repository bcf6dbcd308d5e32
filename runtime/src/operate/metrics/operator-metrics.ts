// The metrics of an operator. What happens is counted when it is told; what is so at one moment is read when somebody asks.
import type { ControllerActivity, InformerActivity } from "../../base/activity.js";
import { findError } from "../../base/errors.js";
import type { RequestObservation } from "../../client/requester.js";
import type { ReconcileEvent } from "../../schedule/reconcile-scope.js";
import type { LoopEvent } from "../loop-reporter.js";
import { METRICS, type MetricDefinition, type MetricName } from "./metric-table.js";

/** What metrics read when somebody asks for them. */
export interface MetricsSubject {
  controllers(): readonly {
    readonly name: string;
    readonly activity: ControllerActivity;
    readonly givenUp: number;
    readonly postponed: number;
    readonly paused: number;
  }[];
  informers(): readonly InformerActivity[];
  /** The name of the Lease, and whether this replica holds it; undefined without leader election. */
  leadership(): { readonly lease: string; readonly isLeading: boolean } | undefined;
}

type Library = typeof import("prom-client");
type Labels = { readonly [label: string]: string };

/** Counts what an operator does, and renders it for Prometheus. */
export class OperatorMetrics {
  readonly #library: Library;
  readonly #subject: MetricsSubject;
  readonly #registry: InstanceType<Library["Registry"]>;
  readonly #metrics = new Map<string, InstanceType<Library["Counter" | "Gauge" | "Histogram"]>>();

  private constructor(library: Library, subject: MetricsSubject) {
    this.#library = library;
    this.#subject = subject;
    this.#registry = new library.Registry();
    for (const [name, definition] of Object.entries(METRICS)) this.#metrics.set(name, this.#create(name, definition));
    library.collectDefaultMetrics({ register: this.#registry });
    // Gauges with the suffix of a counter, which Prometheus' own check refuses.
    for (const what of ["handles", "requests", "resources"])
      this.#registry.removeSingleMetric(`nodejs_active_${what}_total`);
  }

  /** Loads the library, which an operator without metrics does not have in memory. */
  static async load(subject: MetricsSubject): Promise<OperatorMetrics> {
    const loaded = (await import("prom-client")) as unknown as { default?: Library } & Library;
    return new OperatorMetrics(loaded.default ?? loaded, subject);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  observeReconcile(event: ReconcileEvent): void {
    const { controller, durationMs, queuedMs, error, rescheduleAfterMs, retryAfterMs, steps } = event;
    const isFailed = "error" in event;
    const result = isFailed ? "error" : rescheduleAfterMs === undefined ? "success" : resultOf(rescheduleAfterMs);
    const queue = { name: controller, controller };
    this.#count("controller_runtime_reconcile_total", { controller, result });
    if (isFailed) this.#count("controller_runtime_reconcile_errors_total", { controller });
    if (isFailed && findError(error, "TerminalError") !== undefined)
      this.#count("controller_runtime_terminal_reconcile_errors_total", { controller });
    this.#observe("controller_runtime_reconcile_time_seconds", { controller }, durationMs);
    this.#observe("workqueue_queue_duration_seconds", queue, queuedMs);
    this.#observe("workqueue_work_duration_seconds", queue, durationMs);
    if (retryAfterMs !== undefined) this.#count("workqueue_retries_total", queue);
    for (const { dependent, outcome, durationMs: tookMs } of steps)
      this.#observe("gen_operator_dependent_duration_seconds", { controller, dependent, outcome }, tookMs);
  }

  observeRequest({ method, status }: RequestObservation, host: string): void {
    this.#count("rest_client_requests_total", { code: String(status ?? "<error>"), method, host });
  }

  observeLoop({ controller, dependent = "", kind }: LoopEvent): void {
    this.#count("gen_operator_write_loops_total", { controller, dependent, kind });
  }

  /** Returns all metrics in the text format of Prometheus. */
  async render(): Promise<string> {
    this.#read();
    return this.#registry.metrics();
  }

  #read(): void {
    for (const metric of this.#metrics.values()) if (metric instanceof this.#library.Gauge) metric.reset();
    for (const { name, activity, givenUp, postponed, paused } of this.#subject.controllers()) {
      const [controller, queue] = [{ controller: name }, { name, controller: name }];
      this.#set("controller_runtime_active_workers", controller, activity.running);
      this.#set("controller_runtime_max_concurrent_reconciles", controller, activity.maxRunning);
      this.#set("workqueue_depth", queue, activity.queued);
      this.#setTotal("workqueue_adds_total", queue, activity.submissions);
      this.#set("workqueue_unfinished_work_seconds", queue, activity.unfinishedMs / 1000);
      this.#set("workqueue_longest_running_processor_seconds", queue, activity.longestMs / 1000);
      this.#set("gen_operator_given_up_primaries", controller, givenUp);
      this.#set("gen_operator_postponed_writes", controller, postponed);
      this.#set("gen_operator_paused_primaries", controller, paused);
    }
    this.#readInformers();
    const leadership = this.#subject.leadership();
    if (leadership !== undefined)
      this.#set("leader_election_master_status", { name: leadership.lease }, leadership.isLeading ? 1 : 0);
  }

  #readInformers(): void {
    const now = performance.now();
    // One kind may be watched in many namespaces.
    for (const [kind, informers] of groupByKind(this.#subject.informers())) {
      const sum = (of: (informer: InformerActivity) => number) => informers.reduce((all, each) => all + of(each), 0);
      this.#set(
        "gen_operator_cached_objects",
        { kind },
        sum(({ objects }) => objects),
      );
      const ages = informers.flatMap(({ receivedAt }) => (receivedAt === undefined ? [] : now - receivedAt));
      if (ages.length > 0) this.#set("gen_operator_watch_last_event_age_seconds", { kind }, Math.max(...ages) / 1000);
      for (const reason of ["ended", "expired", "restored", "failed"] as const)
        this.#setTotal(
          "gen_operator_watch_ends_total",
          { kind, reason },
          sum(({ ends }) => ends[reason] ?? 0),
        );
    }
  }

  #create(name: string, { type, help, labels, buckets }: MetricDefinition) {
    const { Counter, Gauge, Histogram } = this.#library;
    const options = { name, help, labelNames: [...labels], registers: [this.#registry] };
    if (type === "counter") return new Counter(options);
    if (type === "gauge") return new Gauge(options);
    return new Histogram({ ...options, buckets: [...(buckets ?? [])] });
  }

  #count(name: MetricName, labels: Labels): void {
    (this.#metrics.get(name) as InstanceType<Library["Counter"]>).inc(labels);
  }

  #observe(name: MetricName, labels: Labels, ms: number): void {
    (this.#metrics.get(name) as InstanceType<Library["Histogram"]>).observe(labels, ms / 1000);
  }

  #set(name: MetricName, labels: Labels, value: number): void {
    (this.#metrics.get(name) as InstanceType<Library["Gauge"]>).set(labels, value);
  }

  /** Sets a counter to what was counted elsewhere. */
  #setTotal(name: MetricName, labels: Labels, total: number): void {
    const counter = this.#metrics.get(name) as InstanceType<Library["Counter"]>;
    counter.remove(labels);
    counter.inc(labels, total);
  }
}

function resultOf(rescheduleAfterMs: number): string {
  return rescheduleAfterMs === 0 ? "requeue" : "requeue_after";
}

function groupByKind(informers: readonly InformerActivity[]): Map<string, InformerActivity[]> {
  const kinds = new Map<string, InformerActivity[]>();
  for (const each of informers) kinds.set(each.kind, [...(kinds.get(each.kind) ?? []), each]);
  return kinds;
}
