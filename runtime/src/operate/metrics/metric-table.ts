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

/** All metrics by their names. */
export const METRICS = {
  controller_runtime_reconcile_total: {
    type: "counter",
    help: "Reconciles by result: success, error, requeue (at once) or requeue_after.",
    labels: ["controller", "result"],
  },
  controller_runtime_reconcile_errors_total: {
    type: "counter",
    help: "Reconciles that failed.",
    labels: ["controller"],
  },
  controller_runtime_terminal_reconcile_errors_total: {
    type: "counter",
    help: "Reconciles that failed with a TerminalError, so that they are not tried again.",
    labels: ["controller"],
  },
  controller_runtime_reconcile_time_seconds: {
    type: "histogram",
    help: "How long reconciles took.",
    labels: ["controller"],
    buckets: RECONCILE_SECONDS,
  },
  controller_runtime_active_workers: {
    type: "gauge",
    help: "Reconciles under way.",
    labels: ["controller"],
  },
  controller_runtime_max_concurrent_reconciles: {
    type: "gauge",
    help: "Reconciles that may be under way at once.",
    labels: ["controller"],
  },
  workqueue_depth: {
    type: "gauge",
    help: "Primaries that wait for their turn.",
    labels: ["name", "controller"],
  },
  workqueue_adds_total: {
    type: "counter",
    help: "How often a primary was put into the queue.",
    labels: ["name", "controller"],
  },
  workqueue_queue_duration_seconds: {
    type: "histogram",
    help: "How long a primary waited for its turn.",
    labels: ["name", "controller"],
    buckets: QUEUE_SECONDS,
  },
  workqueue_work_duration_seconds: {
    type: "histogram",
    help: "How long the reconcile of a primary took.",
    labels: ["name", "controller"],
    buckets: QUEUE_SECONDS,
  },
  workqueue_retries_total: {
    type: "counter",
    help: "Retries that were scheduled after a failure.",
    labels: ["name", "controller"],
  },
  workqueue_unfinished_work_seconds: {
    type: "gauge",
    help: "How long the reconciles under way have run so far, all together.",
    labels: ["name", "controller"],
  },
  workqueue_longest_running_processor_seconds: {
    type: "gauge",
    help: "How long the reconcile under way that began first has run so far.",
    labels: ["name", "controller"],
  },
  rest_client_requests_total: {
    type: "counter",
    help: "Attempts of requests, watches among them, by their status; <error> without an answer.",
    labels: ["code", "method", "host"],
  },
  leader_election_master_status: {
    type: "gauge",
    help: "1 while this replica leads, 0 otherwise.",
    labels: ["name"],
  },
  gen_operator_dependent_duration_seconds: {
    type: "histogram",
    help: "How long a dependent took in a reconcile, with what it waited for, by what became of it.",
    labels: ["controller", "dependent", "outcome"],
    buckets: DEPENDENT_SECONDS,
  },
  gen_operator_write_loops_total: {
    type: "counter",
    help: "Writes that repeat what was undone, or is desired otherwise each time.",
    labels: ["controller", "dependent", "kind"],
  },
  gen_operator_postponed_writes: {
    type: "gauge",
    help: "Writes that wait, because their objects were written over and over.",
    labels: ["controller"],
  },
  gen_operator_given_up_primaries: {
    type: "gauge",
    help: "Primaries whose last reconcile failed without a quick retry left.",
    labels: ["controller"],
  },
  gen_operator_paused_primaries: {
    type: "gauge",
    help: "Primaries that somebody has paused.",
    labels: ["controller"],
  },
  gen_operator_watch_ends_total: {
    type: "counter",
    help: "Watches that ended and were begun anew, by reason: ended (in time, by the server), expired, restored or failed.",
    labels: ["kind", "reason"],
  },
  gen_operator_watch_last_event_age_seconds: {
    type: "gauge",
    help: "How long ago the watch of a kind that has been quiet longest brought anything; bookmarks count, which come every minute.",
    labels: ["kind"],
  },
  gen_operator_cached_objects: {
    type: "gauge",
    help: "Objects in the caches.",
    labels: ["kind"],
  },
} as const satisfies { readonly [name: string]: MetricDefinition };

/** The name of a metric. */
export type MetricName = keyof typeof METRICS;
