/** Assembles the server: the objects, the HTTP endpoint, the listener, and the fault injection for tests. */
import { AdmissionChain } from "./admission/admission-chain.js";
import { MutatingPolicies } from "./admission/policy/mutating-policies.js";
import { ValidatingPolicies } from "./admission/policy/validating-policies.js";
import { WebhookAdmission } from "./admission/webhook-admission.js";
import { followDefinitions } from "./bootstrap/custom-resource-definitions.js";
import { createFirstObjects, publishClientAuthorities } from "./bootstrap/first-objects.js";
import { installDefinitions, installObjects } from "./bootstrap/install-objects.js";
import { machineTime, withShiftedTime } from "./clock.js";
import { checkNames } from "./did-you-mean.js";
import { internalError, tooLarge } from "./errors/status-error.js";
import { FAULT_PATHS, FaultRequests, faultControlOf, kindOf } from "./faults/fault-control.js";
import {
  type AskedFor,
  type FaultControl,
  type FaultRule,
  FaultRules,
  answerWithFaults,
  checkRule,
} from "./faults/fault-injection.js";
import { WatchFaults } from "./faults/watch-faults.js";
import { AuditLog } from "./http/audit-log.js";
import { type Authorized, answerRequest } from "./http/endpoint.js";
import { Listener, holdProcess } from "./http/listener.js";
import { RequestMetrics } from "./http/metrics.js";
import { renderFailure } from "./http/representation.js";
import { type Answer, type ApiRequest, type StreamAnswer, verbOf } from "./http/request-info.js";
import { type StaticUser, createIdentity } from "./identity/authenticator.js";
import { type Secrets, adminTokenOf, servingCertificateOf } from "./identity/secrets.js";
import {
  type Accesses,
  type CertificateAccess,
  type UserAccess,
  createAccesses,
  writePrivateFile,
} from "./identity/user-access.js";
import type { JsonObject } from "./json.js";
import { Registry } from "./registry/registry.js";
import { type Simulated, type Simulation, checkSimulated, isSimulated, startSimulationOf } from "./simulated.js";
import type { DataFolder } from "./storage/data-folder.js";
import { conversionWebhooks } from "./webhooks/conversion-webhook.js";
import { WebhookClient } from "./webhooks/webhook-client.js";
import { putOwnStatus } from "./write/managed-fields.js";

/** Options of `startApiServer`. */
export interface ApiServerOptions {
  /** The port to listen on. Default: 0, any free port */
  port?: number;
  /** The address to listen on, for example `0.0.0.0` to be reachable from containers. Default: `127.0.0.1` */
  host?: string;
  /**
   * Additional DNS names and IP addresses of the serving certificate, for example `["host.docker.internal"]`. `url` and kubeconfigs contain the first
   * one.
   */
  certificateNames?: readonly string[];
  /**
   * Lets the process exit while the server is open. Default: false; a warning is printed on standard error if nothing else keeps the process alive
   */
  unref?: boolean;
  /** Whether to serve HTTPS, with a generated CA, instead of HTTP. Default: true */
  tls?: boolean;
  /** The bearer token of the administrator. Default: random */
  token?: string;
  /** The user of `token` and `kubeconfig`, for example `system:serviceaccount:web:operator`. Default: the administrator */
  as?: string;
  /** Users with static tokens, as in kube-apiserver's `--token-auth-file`. */
  users?: readonly StaticUser[];
  /** Additional CA certificates in PEM for client certificates. The server's own CA is always trusted. */
  clientCa?: string;
  /** CustomResourceDefinitions to install first: objects, or paths of YAML or JSON files. */
  crds?: readonly (string | object)[];
  /** Objects to create after the CRDs, such as roles and bindings: objects, or paths of YAML or JSON files. */
  objects?: readonly (string | object)[];
  /**
   * Runs the controllers of `@gen-operator/apiserver/simulate` against the server: all (`true`), a list of names, or those that the options select.
   * Default: none
   */
  simulate?: Simulated;
  /**
   * Enables the admission plugin `ServiceAccount`: each Pod needs an existing ServiceAccount, whose token is mounted into its containers. Default:
   * true if the simulated controller `namespace-contents` runs, which creates the ServiceAccount `default` of each namespace.
   */
  serviceAccountAdmission?: boolean;
  /** Fault rules that are active from the start. */
  faults?: readonly FaultRule[];
  /** A file for audit events, one JSON line per request: the user, the request, the authorization decision, and the response code. */
  auditLog?: string;
  /**
   * A folder in which all objects are stored, so that a server that is started with it later continues with them. Requires the package
   * `classic-level`.
   */
  dataDir?: string;
  /** Called when the data folder can no longer be written. From then on every request fails with 500. */
  onFailure?: (error: Error) => void;
  /** Number of writes per resource that are kept for watches. A watch from an older resourceVersion gets 410. Default: 10,000 */
  historyLimit?: number;
}

/** A request that was answered. */
export interface RequestRecord {
  /** The Kubernetes verb: get, list, watch, create, update, patch, delete, deletecollection. */
  verb: string;
  method: string;
  path: string;
  /** The query without its question mark. */
  query: string;
  userAgent: string;
  status: number;
  /** Whether a successful update or patch changed nothing. Removing the last finalizer of a terminating object is a change. */
  changedNothing: boolean;
}

/** A running server. Its token and kubeconfig are those of the user of the option `as`. */
export interface ApiServer extends UserAccess, AsyncDisposable {
  /** Access as administrator, with all permissions. */
  readonly admin: UserAccess;
  /** Returns access as another user, subject to RBAC. A ServiceAccount need not exist. */
  as(...user: Parameters<Accesses["ofUser"]>): UserAccess;
  /** Returns access as another user, with a client certificate instead of a token. */
  withCertificate(...user: Parameters<Accesses["ofCertificate"]>): CertificateAccess;
  readonly faults: FaultControl;
  /** The latest requests, oldest first. */
  readonly requests: readonly RequestRecord[];
  writeKubeconfig(file: string): Promise<void>;
  close(): Promise<void>;
}

const MAX_RECORDS = 10_000;
const DEFAULT_HOST = "127.0.0.1";
/** A description of the valid values of an option, and the check. */
type OptionType = readonly [words: string, is: (value: unknown) => boolean];

const TEXT: OptionType = ["a non-empty string", (value) => typeof value === "string" && value !== ""];
const FLAG: OptionType = ["true or false", (value) => typeof value === "boolean"];
const listOf = ([, is]: OptionType, many: string): OptionType => [
  `a list of ${many}`,
  (value) => Array.isArray(value) && value.every(is),
];
const RECORD: OptionType = ["an object", (value) => typeof value === "object" && value !== null];
const FILE_OR_OBJECT: OptionType = ["a file path or an object", (value) => TEXT[1](value) || RECORD[1](value)];
const integer = (least: number, most: number): OptionType => [
  `an integer from ${least} to ${most}`,
  (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
];

const OPTIONS: Record<keyof ApiServerOptions, OptionType> = {
  port: integer(0, 65_535),
  ...{ host: TEXT, certificateNames: listOf(TEXT, "strings"), unref: FLAG, tls: FLAG },
  token: ["a string without spaces", (value) => typeof value === "string" && /^\S+$/.test(value)],
  ...{ as: TEXT, users: listOf(RECORD, "users") },
  clientCa: [
    "PEM-encoded certificates",
    (value) => typeof value === "string" && value.includes("-----BEGIN CERTIFICATE-----"),
  ],
  ...{
    crds: listOf(FILE_OR_OBJECT, "file paths and objects"),
    objects: listOf(FILE_OR_OBJECT, "file paths and objects"),
  },
  simulate: [
    "true, false, a list of controller names, or an object with options",
    (value) => FLAG[1](value) || RECORD[1](value),
  ],
  ...{ serviceAccountAdmission: FLAG, faults: listOf(RECORD, "rules"), auditLog: TEXT, dataDir: TEXT },
  onFailure: ["a function", (value) => typeof value === "function"],
  historyLimit: integer(1, Number.MAX_SAFE_INTEGER),
};

/** Throws an Error for unknown options and invalid values, before anything is started. */
async function checkOptions(options: ApiServerOptions): Promise<void> {
  checkNames(options, { known: Object.keys(OPTIONS), what: "option" });
  for (const [name, value] of Object.entries(options)) {
    const [words, is] = OPTIONS[name as keyof ApiServerOptions];
    if (value !== undefined && !is(value))
      throw new Error(
        `invalid value ${name === "token" ? "" : `${describe(value)} `}of option ${name}: must be ${words}`,
      );
  }
  for (const rule of options.faults ?? []) checkRule(rule);
  await checkSimulated(options.simulate);
}

function describe(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 100);
}

/** Names of the serving certificate besides the loopback ones. */
function namesOf({ host, certificateNames = [] }: ApiServerOptions): string[] {
  return host === undefined || ANY_HOST.includes(host) ? [...certificateNames] : [host, ...certificateNames];
}

const ANY_HOST = [DEFAULT_HOST, "localhost", "0.0.0.0", "::", "::1"];

/** Starts an API server. Throws an Error if an option is invalid or the port is in use. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  await checkOptions(options);
  if (options.dataDir === undefined) return startOn(undefined, options);
  const { DataFolder } = await import("./storage/data-folder.js");
  return startOn(await DataFolder.open(options.dataDir), options);
}

async function startOn(folder: DataFolder | undefined, options: ApiServerOptions): Promise<ApiServer> {
  const undo: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return await startUndoable(folder, options, { undo, close });
  } catch (error) {
    await close();
    throw error;
  }
}

/** Starts a server. The cleanup steps are collected in `undo`, even if the start fails. */
async function startUndoable(
  folder: DataFolder | undefined,
  options: ApiServerOptions,
  { undo, close }: { undo: (() => unknown)[]; close: () => Promise<void> },
): Promise<ApiServer> {
  const registry: Registry = new Registry({
    historyLimit: options.historyLimit,
    ask: (definition, request) => conversionWebhooks(webhooks)(definition, request),
  });
  const webhooks = new WebhookClient(registry);
  undo.push(
    () => folder?.close(),
    () => webhooks.close(),
  );
  const secrets: Secrets = folder ?? new Map<string, string>();
  const token = adminTokenOf(secrets, options.token);
  const before = folder?.restore(registry.store) ?? 0;
  followDefinitions(registry);
  await createFirstObjects(registry);
  const certificate = options.tls === false ? undefined : servingCertificateOf(secrets, namesOf(options));
  const clientAuthorities = [certificate?.ca, options.clientCa].filter((pem) => pem !== undefined);
  if (certificate !== undefined) await publishClientAuthorities(registry, clientAuthorities);
  await installDefinitions(registry, { sources: options.crds ?? [], before });
  await installObjects(registry, { sources: options.objects ?? [], before });

  const identity = createIdentity(registry, { adminToken: token, secrets, users: options.users ?? [] });
  const { authorizer } = identity;
  const admission = new AdmissionChain(authorizer, {
    registry,
    policies: {
      mutating: new MutatingPolicies(registry, authorizer),
      validating: new ValidatingPolicies(registry, authorizer),
    },
    webhooks: new WebhookAdmission(registry, { authorizer, client: webhooks }),
    putStatus: putOwnStatus,
    simulatesPods: isSimulated("pods", options.simulate),
    needsAccounts: options.serviceAccountAdmission ?? isSimulated("namespace-contents", options.simulate),
  });
  const rules = new FaultRules();
  for (const rule of options.faults ?? []) rules.add(rule, registry.store.revision);
  const requests: RequestRecord[] = [];
  const requestMetrics = new RequestMetrics(registry);
  const watches = new WatchFaults();
  const userOf = (request: ApiRequest) => identity.authenticator.userOfRequest(request, rules.token);
  const askedFor = (request: ApiRequest): AskedFor => ({
    path: request.path,
    namespace: request.target?.namespace,
    user: () => userOf(request)?.username,
    kind() {
      const type = request.target && registry.find(request.target)?.type;
      return type && kindOf(type);
    },
  });
  const listener: Listener = new Listener({
    port: options.port ?? 0,
    host: options.host ?? DEFAULT_HOST,
    publicName: options.certificateNames?.[0],
    ...(certificate === undefined
      ? {}
      : { tls: { cert: certificate.certificate, key: certificate.key, ca: clientAuthorities } }),
    onStream(stream, request) {
      // Hold the first lines until the writes that they may show are durable.
      folder?.pending?.then(stream.hold(), () => stream.abort());
      watches.admit(stream, askedFor(request));
    },
    onStreamEnd: (request) => requestMetrics.count(request, 200),
    answerTooLarge: (limit) => renderFailure(tooLarge(limit), { isPretty: false }),
    async answer(request) {
      if (folder?.failure !== undefined) return failureAnswer(folder.failure);
      const { revision } = registry.store;
      if (FAULT_PATHS.test(request.path)) return faultRequests.answer(request, () => userOf(request));
      const received = machineTime();
      let authorized: Authorized | undefined;
      const onDecision = (decided: Authorized): void => void (authorized = decided);
      const endpoint = {
        ...{ registry, admission, identity, replacedToken: rules.token, onDecision },
        requestMetrics: () => requestMetrics.lines(listener.streams.values()),
      };
      const serve = (given: ApiRequest) => answerRequest(endpoint, given);
      const answer = await atTimeOf(rules, () => answerWithFaults(rules, request, { asked: askedFor(request), serve }));
      // No response is sent before all writes that it may show are durable.
      const pending = folder?.pending;
      if (pending !== undefined && !(await isFulfilled(pending))) return failureAnswer(folder?.failure);
      record(requests, request, { answer, revision });
      if (answer.kind === "answer") requestMetrics.count(request, answer.status);
      auditLog?.write(request, { received, authorized, answer });
      return answer;
    },
  });
  const auditLog = options.auditLog === undefined ? undefined : await AuditLog.open(options.auditLog);
  undo.push(() => auditLog?.close());
  let simulation: Simulation | undefined;
  const clockChanged = (): void => simulation?.clockChanged();
  const faults = faultControlOf({ rules, watches, listener, registry, askedFor, clockChanged });
  const faultRequests = new FaultRequests(faults);
  await folder?.pending;
  folder?.onFailure((error) => {
    registry.store.endWatches();
    for (const stream of listener.streams.keys()) stream.abort();
    options.onFailure?.(error);
  });
  undo.push(() => listener.close());
  await listener.open();
  const {
    ofToken,
    ofUser: as,
    ofCertificate: withCertificate,
  } = createAccesses(listener.url, identity.authenticator, certificate);
  const admin = ofToken(token);
  const own = options.as === undefined ? admin : as(options.as);
  const ask = listener.ask.bind(listener);
  simulation = await startSimulationOf({ ...admin, url: listener.localUrl, ask }, options.simulate, {
    serving: certificate,
    now: () => new Date(machineTime().getTime() + rules.aheadMs),
  });
  undo.push(() => simulation?.close());
  if (options.unref !== true) undo.push(holdProcess(listener));
  listener.unref();
  return {
    ...own,
    admin,
    as,
    withCertificate,
    requests,
    faults,
    writeKubeconfig: (file) => writePrivateFile(file, own.kubeconfig),
    close,
    [Symbol.asyncDispose]: close,
  };
}

// Only a shifted clock has overhead.
async function atTimeOf<T extends Answer | StreamAnswer>(
  { aheadMs }: FaultRules,
  run: () => Promise<T>,
): Promise<Answer | StreamAnswer> {
  if (aheadMs === 0) return run();
  const answer = await withShiftedTime(aheadMs, run);
  const date = new Date(machineTime().getTime() + aheadMs).toUTCString();
  return answer.kind === "answer" ? { ...answer, headers: { ...answer.headers, Date: date } } : answer;
}

function isFulfilled(promise: Promise<void>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}

function failureAnswer(failure: Error | undefined): Answer {
  return renderFailure(internalError(failure?.message ?? "cannot write to the data folder"), { isPretty: false });
}

function record(
  requests: RequestRecord[],
  request: ApiRequest,
  { answer, revision }: { answer: Answer | StreamAnswer; revision: number },
): void {
  if (requests.length >= MAX_RECORDS) requests.splice(0, MAX_RECORDS / 2);
  const { method, path, query, headers } = request;
  const status = answer.kind === "answer" ? answer.status : 200;
  requests.push({
    verb: verbOf(request),
    method,
    path,
    query: query.toString(),
    userAgent: headers["user-agent"] ?? "",
    status,
    changedNothing: status < 300 && (method === "PATCH" || method === "PUT") && isOlder(answer, revision),
  });
}

// A write returns a resourceVersion newer than the revision before the request. The exception is a write that removes the last finalizer: it
// returns the previous version.
function isOlder(answer: Answer | StreamAnswer, revision: number): boolean {
  if (answer.kind !== "answer") return false;
  const body = String(answer.body);
  const version = /"resourceVersion":\s*"(\d+)"/.exec(body)?.[1];
  return version !== undefined && Number(version) <= revision && !isGone(JSON.parse(body) as JsonObject);
}

function isGone(object: JsonObject): boolean {
  const {
    deletionTimestamp,
    deletionGracePeriodSeconds = 0,
    finalizers = [],
  } = (object["metadata"] ?? {}) as JsonObject;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && (finalizers as unknown[]).length === 0;
}
