// Every setting that a platform team may change without a rebuild: the one table that the file, its JSON Schema, the environment, the flags,
// `--help` and the options of the operator are made of.
import { LOG_LEVELS } from "./log-levels.js";
import { address, boolean, choice, duration, file, integer, list, localAddress, number, text } from "./setting-type.js";
import type { SettingType } from "./setting-type.js";

/** One setting. */
export interface Setting {
  /** Where it stands in the file, such as `leaderElection.name`; that of a controller is below `controllers.NAME`. */
  readonly path: string;
  readonly type: SettingType;
  readonly help: string;
  readonly flag: string;
  /** Absent if no variable of the environment sets it. */
  readonly env: string | undefined;
  /** Where it stands in the options of the operator, or in the definition of the controller. Absent if it is applied otherwise. */
  readonly option: string | undefined;
  /** Whether a change of the file is taken over while the operator runs. */
  readonly isLive?: true;
}

type Table = { readonly [path: string]: Pick<Setting, "type" | "help"> & Partial<Setting> };

const level = choice(...LOG_LEVELS);

/** The settings of an operator, with kubebuilder's flags where it has some. */
export const OPERATOR_SETTINGS = settingsIn({
  logLevel: { type: level, help: "Which lines are written. Default: info", option: undefined, isLive: true },
  logFormat: {
    type: choice("json", "pretty"),
    help: "How lines are written. Default: pretty in a terminal, json elsewhere",
    option: undefined,
  },
  // KUBECONFIG may list several files, and is read where connections are looked for.
  kubeconfig: { type: file, help: "A kubeconfig file, in place of KUBECONFIG", env: undefined },
  namespaces: {
    type: list,
    help: "What controllers watch that state no namespaces",
    env: "WATCH_NAMESPACES",
    option: undefined,
  },
  "leaderElection.enabled": {
    type: boolean,
    flag: "leader-elect",
    help: "Replicas agree on one. Default: in a cluster",
  },
  "leaderElection.name": { type: text, flag: "leader-election-id", help: "The name of the Lease" },
  "leaderElection.namespace": { type: text, flag: "leader-election-namespace", help: "The namespace of the Lease" },
  "leaderElection.leaseDuration": {
    type: duration,
    flag: "leader-elect-lease-duration",
    help: "How long others wait. Default: 15s",
  },
  "leaderElection.renewDeadline": {
    type: duration,
    flag: "leader-elect-renew-deadline",
    help: "How long the leader writes after its last renewal. Default: 10s",
  },
  "leaderElection.retryPeriod": {
    type: duration,
    flag: "leader-elect-retry-period",
    help: "The time between two attempts. Default: 2s",
  },
  "leaderElection.onLoss": {
    type: choice("exit", "standby"),
    flag: "leader-election-on-loss",
    help: "What a leader does that leads no more. Default: exit",
  },
  "proofKey.name": { type: text, help: "The Secret with the key for proofs. Default: gen-operator-proof-key" },
  "proofKey.namespace": { type: text, help: "The namespace of that Secret. Default: the one of the operator" },
  healthProbeBindAddress: { type: address, help: "Where probes are answered, 0 for nowhere. Default: :8081 in a pod" },
  metricsBindAddress: { type: address, help: "Where /metrics is, 0 for nowhere. Default: :8080 in a pod" },
  metricsAuthentication: { type: boolean, help: "Only tokens that may get /metrics" },
  debugBindAddress: {
    type: localAddress,
    help: "Where /debug is, on a loopback address only, 0 for nowhere. Default: 0",
  },
  debugTokenFile: {
    type: file,
    help: "A file with the token that /debug asks for. Default: one is made, and the log names its file",
  },
  checkCrds: { type: boolean, help: "Compares the CustomResourceDefinitions, with their schemas, before the start" },
  requestTimeout: {
    type: duration,
    help: "How long the API server may take for an answer, 0s for any time. Default: 1m",
  },
  maxConnections: { type: integer(1), help: "How many requests are under way at once, besides watches. Default: 16" },
  "watchdog.timeout": {
    type: duration,
    flag: "watchdog-timeout",
    help: "How long the main thread may hang before a thread of 8 to 13 MB names what runs, 0s for no such thread. Default: 0s",
  },
  "watchdog.onHang": {
    type: choice("report", "exit"),
    flag: "watchdog-on-hang",
    help: "What that thread does besides: exit breaks off what hangs and ends the process. Default: report",
  },
  startTimeout: { type: duration, help: "Ends with 1 if the start takes longer. Default: never" },
  stopTimeout: { type: duration, help: "How long reconciles may take at the stop. Default: 25s" },
});

/** The settings of each controller, in the words of `spec.controller` of workflow.yaml. */
export const CONTROLLER_SETTINGS = settingsIn({
  logLevel: { type: level, help: "Which lines of this controller are written", option: undefined, isLive: true },
  namespaces: { type: list, help: "What it watches, current for that of the operator" },
  labelSelector: { type: text, help: "Limits it to primaries with these labels" },
  fieldSelector: { type: text, help: "Limits it to primaries with these fields" },
  maxConcurrentReconciles: { type: integer(1), help: "How many primaries are reconciled at once", isLive: true },
  maxReconciliationInterval: { type: duration, help: "Reconciles again when nothing happened for so long" },
  reconcileTimeout: { type: duration, help: "After how long a reconcile is aborted" },
  "retry.maxRetries": { type: integer(-1), help: "Quick retries after a failure, -1 for no end" },
  "retry.initialInterval": { type: duration, help: "The time to the first retry" },
  "retry.multiplier": { type: number(1), help: "By how much it grows" },
  "retry.maxInterval": { type: duration, help: "The longest time between two quick retries" },
  "retry.jitter": { type: number(0, 1), help: "By which part of itself a time gets longer at most, at random" },
  "rateLimit.maxReconciliations": { type: integer(1), help: "How often one primary is reconciled at most" },
  "rateLimit.within": { type: duration, help: "In which time" },
});

/** Returns all settings of an operator with these controllers, under their whole names. */
export function settingsOf(controllers: readonly string[]): readonly Setting[] {
  const ofControllers = controllers.flatMap((controller) => {
    const prefix = `controllers.${controller}`;
    const variables = `CONTROLLERS_${controller.toUpperCase().replace(/[^A-Z0-9]/g, "_")}`;
    return CONTROLLER_SETTINGS.map(({ path, flag, env, ...setting }) => {
      return { ...setting, path: `${prefix}.${path}`, flag: `${prefix}.${flag}`, env: `${variables}_${env}` };
    });
  });
  return [...OPERATOR_SETTINGS, ...ofControllers];
}

function settingsIn(table: Table): readonly Setting[] {
  return Object.entries(table).map(([path, stated]) => {
    const { flag = path.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), type } = stated;
    const option = type === duration ? `${path}Ms` : path;
    return { path, flag, env: flag.toUpperCase().replace(/[-.]/g, "_"), option, ...stated };
  });
}
