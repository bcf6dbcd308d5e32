// The table of settings that can be changed without a rebuild. The settings file and its JSON Schema, environment variables, flags, `--help`, and the
// options of the operator derive from it.
import { LOG_LEVELS } from "../base/logger.js";
import {
  type SettingType,
  type SettingValue,
  address,
  boolean,
  choice,
  duration,
  fieldSelector,
  file,
  integer,
  labelSelector,
  localAddress,
  namespace,
  namespaces,
  number,
  objectName,
  readSetting,
  secondsOrOff,
} from "./setting-types.js";

export interface Setting {
  /** The path in the file, such as `leaderElection.name`. Settings of a controller are below `controllers.NAME`. */
  readonly path: string;
  readonly type: SettingType;
  readonly help: string;
  readonly flag: string;
  /** Undefined if no environment variable sets it. */
  readonly env: string | undefined;
  /** The path in the options of the operator, or in the definition of the controller. Undefined if it is applied in another way. */
  readonly option: string | undefined;
  /** Whether a change in the file takes effect without a restart. */
  readonly isLive?: true;
}

type Table = { readonly [path: string]: Pick<Setting, "type" | "help"> & Partial<Setting> };

const level = choice(...LOG_LEVELS);

/** Settings of the operator. Flags have the names that kubebuilder uses where it has them. */
export const OPERATOR_SETTINGS = settingsIn({
  logLevel: { type: level, help: "Which lines are written. Default: info", option: undefined, isLive: true },
  logFormat: {
    type: choice("json", "pretty"),
    help: "How lines are written. Default: pretty in a terminal, json elsewhere",
    option: undefined,
  },
  // loadConnection reads KUBECONFIG, which may list several files.
  kubeconfig: { type: file, help: "A kubeconfig file, in place of KUBECONFIG", env: undefined },
  namespaces: {
    type: namespaces,
    help: "Namespaces of controllers that set none",
    env: "WATCH_NAMESPACES",
    option: undefined,
  },
  "leaderElection.enabled": {
    type: boolean,
    flag: "leader-elect",
    help: "Replicas agree on one. Default: in a cluster",
  },
  "leaderElection.name": { type: objectName, flag: "leader-election-id", help: "The name of the Lease" },
  "leaderElection.namespace": {
    type: namespace,
    flag: "leader-election-namespace",
    help: "The namespace of the Lease",
  },
  "leaderElection.leaseDuration": {
    type: duration,
    flag: "leader-elect-lease-duration",
    help: "How long standby replicas wait after the last renewal before they acquire the Lease. Default: 15s",
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
    help: "What to do when the lease is lost: exit or standby. Default: exit",
  },
  "proofKey.name": { type: objectName, help: "The Secret with the key for proofs. Default: gen-operator-proof-key" },
  "proofKey.namespace": { type: namespace, help: "The namespace of that Secret. Default: the one of the operator" },
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
    type: secondsOrOff,
    flag: "watchdog-timeout",
    help: "How long the main thread may hang before a watchdog thread (up to 12 MB) reports the running function; 0s disables it. Default: 0s",
  },
  "watchdog.onHang": {
    type: choice("report", "exit"),
    flag: "watchdog-on-hang",
    help: "What the watchdog does: report, or exit to terminate the process as well. Default: report",
  },
  startTimeout: { type: duration, help: "Ends with 1 if the start takes longer. Default: never" },
  stopTimeout: { type: duration, help: "How long reconciles may take at the stop. Default: 25s" },
});

/** Settings of each controller, with the names of `spec.controller` in the workflow spec. */
export const CONTROLLER_SETTINGS = settingsIn({
  logLevel: { type: level, help: "Which lines of this controller are written", option: undefined, isLive: true },
  namespaces: { type: namespaces, help: "What it watches, current for that of the operator" },
  labelSelector: { type: labelSelector, help: "Limits it to primaries with these labels" },
  fieldSelector: { type: fieldSelector, help: "Limits it to primaries with these fields" },
  maxConcurrentReconciles: { type: integer(1), help: "How many primaries are reconciled at once", isLive: true },
  maxReconciliationInterval: { type: duration, help: "Reconciles again when nothing happened for so long" },
  reconcileTimeout: { type: duration, help: "After how long a reconcile is aborted, 0s for never" },
  "retry.maxRetries": { type: integer(-1), help: "Quick retries after a failure, -1 for no end" },
  "retry.initialInterval": { type: duration, help: "The time to the first retry" },
  "retry.multiplier": { type: number(1), help: "By how much it grows" },
  "retry.maxInterval": { type: duration, help: "The longest time between two quick retries" },
  "retry.jitter": {
    type: number(0, 1),
    help: "Maximum random increase of each retry interval, as a fraction of it (0.2 adds up to 20%)",
  },
  "rateLimit.maxReconciliations": { type: integer(1), help: "How often one primary is reconciled at most" },
  "rateLimit.within": { type: duration, help: "In which time" },
});

/** Returns all settings of an operator with these controllers, with their full paths. */
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
    const option = type === duration || type === secondsOrOff ? `${path}Ms` : path;
    return { path, flag, env: flag.toUpperCase().replace(/[-.]/g, "_"), option, ...stated };
  });
}

// Sources of settings, in order of precedence: flags, environment variables, the file, the code.

/** Values from one source by setting path. Paths of a controller begin with `controllers.NAME.`. */
export type SettingValues = ReadonlyMap<string, SettingValue>;

/** Thrown for invalid settings. The message lists all problems of one source, one per line. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
  }
}

/** Reads the settings from environment variables. Throws a SettingsError if any is invalid. */
export function readEnvironment(settings: readonly Setting[], env: NodeJS.ProcessEnv): SettingValues {
  const problems: string[] = [];
  const values = new Map<string, SettingValue>();
  for (const { path, env: name = "", type } of settings) {
    const given = env[name];
    if (given) collectProblem(problems, name, () => values.set(path, readSetting(type, given)));
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return values;
}

/** Parses flags: `--name=value`, `--name value`, and `--name` alone for booleans. Throws a SettingsError if any is invalid. */
export function readFlags(settings: readonly Setting[], args: readonly string[]) {
  const problems: string[] = [];
  const values = new Map<string, SettingValue>();
  const rest = [...args];
  let config: string | undefined;
  let wantsHelp = false;
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, name = "", inline] = /^--?([^=]+)(?:=([^]*))?$/.exec(arg) ?? [];
    if (name === "help" || name === "h") {
      wantsHelp = true;
      continue;
    }
    const setting = settings.find(({ flag }) => flag === name);
    if (setting === undefined && name !== "config") {
      problems.push(`${name === "" ? JSON.stringify(arg) : `--${name}`}: unknown flag; see --help`);
      continue;
    }
    const isSwitch = setting?.type === boolean && !/^(true|false)$/i.test(rest[0] ?? "");
    const given = inline ?? (isSwitch ? "true" : rest.shift());
    if (given === undefined || (setting === undefined && given === "")) problems.push(`--${name} needs a value`);
    else if (setting === undefined) config = given;
    else collectProblem(problems, `--${name}`, () => values.set(setting.path, readSetting(setting.type, given)));
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return { values: values as SettingValues, wantsHelp, config };
}

/** Merges the values of several sources; later ones take precedence. */
export function mergeSettings(...all: readonly SettingValues[]): SettingValues {
  return new Map(all.flatMap((each) => [...each]));
}

/** Runs `read`; if it throws, adds the message to `problems`. */
export function collectProblem(problems: string[], where: string, read: () => unknown): void {
  try {
    read();
  } catch (error) {
    problems.push(`${where} ${(error as Error).message}`);
  }
}

/** Returns the output of `--help`. */
export function helpOf(settings: readonly Setting[]): string {
  const isOfController = ({ path }: Setting) => path.startsWith("controllers.");
  const own = settings.filter((each) => !isOfController(each));
  const ofControllers = settings.filter(isOfController);
  return [
    "Settings of this operator: a flag, or a variable of the environment, or a line of the file that --config or CONFIG_FILE names.",
    "Flags override environment variables, which override the file, which overrides the code.",
    "",
    rowOf("--config", "CONFIG_FILE", "A file of settings, YAML or JSON"),
    ...own.map(({ flag, env, help }) => rowOf(`--${flag}`, env, help)),
    "",
    ...ofControllers.map(({ flag, env, help, type }) => rowOf(`--${flag}`, env, `${help}: ${type.words}`)),
    "",
  ].join("\n");
}

function rowOf(flag: string, env: string | undefined, help: string): string {
  return `  ${flag}\n      ${help}${env === undefined ? "" : ` [${env}]`}`;
}
