// Every setting that a platform team may change without a rebuild: the one table that the file, its JSON Schema, the environment, the flags
// and `--help` are made of.

/** What a setting may be. */
export type SettingType =
  | { readonly kind: "text" }
  | { readonly kind: "boolean" }
  | { readonly kind: "integer"; readonly least: number }
  | { readonly kind: "number"; readonly least: number; readonly most?: number }
  /** Such as `500ms`, `15s` or `1h30m`; kept in milliseconds. */
  | { readonly kind: "duration" }
  | { readonly kind: "list" }
  /** Where a server listens; `reach` says who may reach it. */
  | { readonly kind: "address"; readonly reach: "all" | "machine" }
  | { readonly kind: "choice"; readonly of: readonly string[] };

/** One setting. */
export interface Setting {
  /** Where it stands in the file, such as `leaderElection.name`; that of a controller is below `controllers.NAME`. */
  readonly path: string;
  readonly type: SettingType;
  readonly help: string;
  readonly flag: string;
  /** Absent if no variable of the environment sets it. */
  readonly env: string | undefined;
  /** Whether a change of the file is taken over while the operator runs. */
  readonly isLive?: true;
}

const text = { kind: "text" } as const;
const boolean = { kind: "boolean" } as const;
const duration = { kind: "duration" } as const;
const list = { kind: "list" } as const;
const count = { kind: "integer", least: 1 } as const;
const address = { kind: "address", reach: "all" } as const;
const level = { kind: "choice", of: ["debug", "info", "warn", "error", "silent"] } as const;

const ofOperator = (setting: Omit<Setting, "env"> & Partial<Pick<Setting, "env">>): Setting => ({
  env: setting.flag.toUpperCase().replaceAll("-", "_"),
  ...setting,
});

/** The settings of an operator, with kubebuilder's flags where it has some. */
export const OPERATOR_SETTINGS: readonly Setting[] = [
  ofOperator({
    path: "logLevel",
    type: level,
    flag: "log-level",
    help: "Which lines are written. Default: info",
    isLive: true,
  }),
  ofOperator({
    path: "logFormat",
    type: { kind: "choice", of: ["json", "pretty"] },
    flag: "log-format",
    help: "How lines are written. Default: pretty in a terminal, json elsewhere",
  }),
  // KUBECONFIG may list several files, and is read where connections are looked for.
  ofOperator({
    path: "kubeconfig",
    type: text,
    flag: "kubeconfig",
    help: "A kubeconfig file, in place of KUBECONFIG",
    env: undefined,
  }),
  ofOperator({
    path: "namespaces",
    type: list,
    flag: "namespaces",
    help: "What controllers watch that state no namespaces",
    env: "WATCH_NAMESPACES",
  }),
  ofOperator({
    path: "leaderElection.enabled",
    type: boolean,
    flag: "leader-elect",
    help: "Replicas agree on one. Default: in a cluster",
  }),
  ofOperator({ path: "leaderElection.name", type: text, flag: "leader-election-id", help: "The name of the Lease" }),
  ofOperator({
    path: "leaderElection.namespace",
    type: text,
    flag: "leader-election-namespace",
    help: "The namespace of the Lease",
  }),
  ofOperator({
    path: "leaderElection.leaseDuration",
    type: duration,
    flag: "leader-elect-lease-duration",
    help: "How long others wait. Default: 15s",
  }),
  ofOperator({
    path: "leaderElection.renewDeadline",
    type: duration,
    flag: "leader-elect-renew-deadline",
    help: "How long the leader writes after its last renewal. Default: 10s",
  }),
  ofOperator({
    path: "leaderElection.retryPeriod",
    type: duration,
    flag: "leader-elect-retry-period",
    help: "The time between two attempts. Default: 2s",
  }),
  ofOperator({
    path: "leaderElection.onLoss",
    type: { kind: "choice", of: ["exit", "standby"] },
    flag: "leader-election-on-loss",
    help: "What a leader does that leads no more. Default: exit",
  }),
  ofOperator({
    path: "healthProbeBindAddress",
    type: address,
    flag: "health-probe-bind-address",
    help: "Where probes are answered, 0 for nowhere. Default: :8081 in a pod",
  }),
  ofOperator({
    path: "metricsBindAddress",
    type: address,
    flag: "metrics-bind-address",
    help: "Where /metrics is, 0 for nowhere. Default: :8080 in a pod",
  }),
  ofOperator({
    path: "metricsAuthentication",
    type: boolean,
    flag: "metrics-authentication",
    help: "Only tokens that may get /metrics",
  }),
  ofOperator({
    path: "debugBindAddress",
    type: { kind: "address", reach: "machine" },
    flag: "debug-bind-address",
    help: "Where /debug is, on a loopback address only, 0 for nowhere. Default: 0",
  }),
  ofOperator({
    path: "debugTokenFile",
    type: text,
    flag: "debug-token-file",
    help: "A file with the token that /debug asks for. Default: one is made, and the log names its file",
  }),
  ofOperator({
    path: "checkCrds",
    type: boolean,
    flag: "check-crds",
    help: "Compares the CustomResourceDefinitions, with their schemas, before the start",
  }),
  ofOperator({
    path: "requestTimeout",
    type: duration,
    flag: "request-timeout",
    help: "How long the API server may take for an answer, 0s for any time. Default: 1m",
  }),
  ofOperator({
    path: "maxConnections",
    type: count,
    flag: "max-connections",
    help: "How many requests are under way at once, besides watches. Default: 16",
  }),
  ofOperator({
    path: "startTimeout",
    type: duration,
    flag: "start-timeout",
    help: "Ends with 1 if the start takes longer. Default: never",
  }),
  ofOperator({
    path: "stopTimeout",
    type: duration,
    flag: "stop-timeout",
    help: "How long reconciles may take at the stop. Default: 25s",
  }),
];

const ofController = (setting: Omit<Setting, "env" | "flag">): Setting => {
  const flag = setting.path.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return { ...setting, flag, env: flag.toUpperCase().replace(/[-.]/g, "_") };
};

/** The settings of each controller, in the words of `spec.controller` of workflow.yaml. */
export const CONTROLLER_SETTINGS: readonly Setting[] = [
  ofController({ path: "logLevel", type: level, help: "Which lines of this controller are written", isLive: true }),
  ofController({ path: "namespaces", type: list, help: "What it watches, current for that of the operator" }),
  ofController({ path: "labelSelector", type: text, help: "Limits it to primaries with these labels" }),
  ofController({ path: "fieldSelector", type: text, help: "Limits it to primaries with these fields" }),
  ofController({
    path: "maxConcurrentReconciles",
    type: count,
    help: "How many primaries are reconciled at once",
    isLive: true,
  }),
  ofController({
    path: "maxReconciliationInterval",
    type: duration,
    help: "Reconciles again when nothing happened for so long",
  }),
  ofController({ path: "reconcileTimeout", type: duration, help: "After how long a reconcile is aborted" }),
  ofController({
    path: "retry.maxRetries",
    type: { kind: "integer", least: -1 },
    help: "Quick retries after a failure, -1 for no end",
  }),
  ofController({ path: "retry.initialInterval", type: duration, help: "The time to the first retry" }),
  ofController({ path: "retry.multiplier", type: { kind: "number", least: 1 }, help: "By how much it grows" }),
  ofController({ path: "retry.maxInterval", type: duration, help: "The longest time between two quick retries" }),
  ofController({
    path: "retry.jitter",
    type: { kind: "number", least: 0, most: 1 },
    help: "By which part of itself a time gets longer at most, at random",
  }),
  ofController({
    path: "rateLimit.maxReconciliations",
    type: count,
    help: "How often one primary is reconciled at most",
  }),
  ofController({ path: "rateLimit.within", type: duration, help: "In which time" }),
];
