// The metrics of an operator. What happens is counted when it is told; what is so at one moment is read when somebody asks.
import { EXTERNAL_KIND, type InformerActivity, type RequestObservation } from "../../base/activity.js";
import { findError } from "../../base/errors.js";
import { kindNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import type { ReconcileEvent } from "../../schedule/reconcile-scope.js";
import type { EventLoopMonitor } from "../event-loop-monitor.js";
import type { ObservedOperator } from "../health.js";
import type { LoopEvent } from "../loop-reporter.js";
import { Metric } from "./metric.js";
import { METRICS, type MetricName } from "./metric-table.js";
import { ProcessMetrics } from "./process-metrics.js";

/** The content type of what is rendered. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** A workflow, as far as its metrics need it; an external dependent has no `resource`. */
interface MeasuredWorkflow {
  readonly primary: ResourceDefinition;
  readonly dependents: readonly { readonly name: string; readonly resource?: ResourceDefinition }[];
}

/** A controller, as far as its metrics need it. */
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

/** Counts what an operator does, and renders it for Prometheus. */
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

  // A counter that begins with its first event hides it: increase() needs a value before.
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

  observeReconcile(event: ReconcileEvent): void {
    const { controller, durationMs, queuedMs, error, rescheduleAfterMs, retryAfterMs, steps, isEnded = false } = event;
    const isEnding = event.isNamespaceTerminating === true;
    const isFailed = "error" in event && !isEnded && !isEnding;
    // What was ended early runs again at once.
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

  observeLoop({ controller, dependent = "", kind }: LoopEvent): void {
    this.#metrics.gen_operator_write_loops_total.add([controller, dependent, kind]);
  }

  observeForeignWrite({ controller }: { readonly controller: string }): void {
    this.#metrics.gen_operator_foreign_writes_total.add([controller]);
  }

  observeExternalWrite({
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

  /** Returns all metrics in the text format of Prometheus. */
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
    // One kind may be watched in many namespaces.
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
