// Every metric of an operator. Names and labels are those of controller-runtime and client-go where these have one, so that dashboards and
// alerts for them work; what they lack begins with gen_operator. No label holds the name of an object: there would be one series for each.

/** How one metric is told. */
export interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  /** The upper bounds of a histogram, in seconds. */
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

const CONTROLLER = ["controller"];
const QUEUE = ["name", "controller"];
const KIND = ["kind"];

/** All metrics by their names. */
export const METRICS = {
  controller_runtime_reconcile_total: counter(
    "Reconciles by result: success, error, requeue (at once) or requeue_after.",
    ["controller", "result"],
  ),
  controller_runtime_reconcile_errors_total: counter("Reconciles that failed.", CONTROLLER),
  controller_runtime_terminal_reconcile_errors_total: counter(
    "Reconciles that failed with a TerminalError, so that they are not tried again.",
    CONTROLLER,
  ),
  controller_runtime_reconcile_time_seconds: histogram("How long reconciles took.", CONTROLLER, RECONCILE_SECONDS),
  controller_runtime_active_workers: gauge("Reconciles under way.", CONTROLLER),
  controller_runtime_max_concurrent_reconciles: gauge("Reconciles that may be under way at once.", CONTROLLER),
  workqueue_depth: gauge("Primaries that wait for their turn.", QUEUE),
  workqueue_adds_total: counter("How often a primary was put into the queue.", QUEUE),
  workqueue_queue_duration_seconds: histogram("How long a primary waited for its turn.", QUEUE, QUEUE_SECONDS),
  workqueue_work_duration_seconds: histogram("How long the reconcile of a primary took.", QUEUE, QUEUE_SECONDS),
  workqueue_retries_total: counter("Retries that were scheduled after a failure.", QUEUE),
  workqueue_unfinished_work_seconds: gauge("How long the reconciles under way have run so far, all together.", QUEUE),
  workqueue_longest_running_processor_seconds: gauge(
    "How long the reconcile under way that began first has run so far.",
    QUEUE,
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
  gen_operator_write_loops_total: counter("Writes that repeat what was undone, or is desired otherwise each time.", [
    "controller",
    "dependent",
    "kind",
  ]),
  gen_operator_external_writes_total: counter(
    "Resources of external dependents that were created, updated or deleted, by verb.",
    ["controller", "dependent", "verb"],
  ),
  gen_operator_foreign_writes_total: counter(
    "Writes under the field manager of the controller that another process sent while this one led.",
    CONTROLLER,
  ),
  gen_operator_postponed_writes: gauge(
    "Writes that wait, because their objects were written over and over.",
    CONTROLLER,
  ),
  gen_operator_given_up_primaries: gauge(
    "Primaries whose last reconcile failed without a quick retry left.",
    CONTROLLER,
  ),
  gen_operator_waiting_primaries: gauge(
    "Primaries that are not reconciled yet, because a watch of what may belong to them has not begun.",
    CONTROLLER,
  ),
  gen_operator_unknown_watches: gauge(
    "Watches, one for each kind, namespace and cluster, whose objects are not known yet.",
    KIND,
  ),
  gen_operator_paused_primaries: gauge("Primaries that somebody has paused.", CONTROLLER),
  gen_operator_watch_ends_total: counter(
    "Watches that ended and were begun anew, by reason: ended (in time, by the server), expired, restored or failed.",
    ["kind", "reason"],
  ),
  gen_operator_watch_last_event_age_seconds: gauge(
    "How long ago the watch of a kind that has been quiet longest brought anything; bookmarks count, which come every minute.",
    KIND,
  ),
  gen_operator_cached_objects: gauge("Objects in the caches.", KIND),
};

/** The name of a metric. */
export type MetricName = keyof typeof METRICS;

function counter(help: string, labels: readonly string[]): MetricDefinition {
  return { type: "counter", help, labels };
}

function gauge(help: string, labels: readonly string[]): MetricDefinition {
  return { type: "gauge", help, labels };
}

function histogram(help: string, labels: readonly string[], buckets: readonly number[]): MetricDefinition {
  return { type: "histogram", help, labels, buckets };
}
