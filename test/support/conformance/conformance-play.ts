import type { Agent } from "node:http";
import { apiRequest, createAgent, type ApiAnswer, type Connection } from "../api/api-request.js";
import type { Scenario, Step } from "./conformance-scenario.js";
import { waitFor } from "#apiserver/wait-for.js";
import { openWatch, type WatchClient } from "../api/watch-client.js";

/** The outcome of a step: a response, or the events of a watch. */
export interface StepOutcome {
  step: string;
  status?: number;
  contentType?: string;
  warnings?: string[];
  body?: unknown;
  events?: unknown[];
  /** Whether the server ended the watch. */
  ended?: boolean;
  /** The resourceVersion of the first page if the step reads another page of a list. Not recorded. */
  firstPageVersion?: string;
}

const CONTENT_TYPES: Record<string, string> = {
  merge: "application/merge-patch+json",
  "json-patch": "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
  yaml: "application/yaml",
};

const API_VERSIONS: Record<string, string> = {
  ConfigMap: "v1",
  Namespace: "v1",
  Secret: "v1",
  Pod: "v1",
  Service: "v1",
  ServiceAccount: "v1",
  PersistentVolumeClaim: "v1",
  Job: "batch/v1",
  CronJob: "batch/v1",
  Endpoints: "v1",
  Binding: "v1",
  Eviction: "policy/v1",
  PriorityClass: "scheduling.k8s.io/v1",
  CertificateSigningRequest: "certificates.k8s.io/v1",
  Deployment: "apps/v1",
  StatefulSet: "apps/v1",
  DaemonSet: "apps/v1",
  ReplicaSet: "apps/v1",
  Lease: "coordination.k8s.io/v1",
  Ingress: "networking.k8s.io/v1",
  NetworkPolicy: "networking.k8s.io/v1",
  PodDisruptionBudget: "policy/v1",
  HorizontalPodAutoscaler: "autoscaling/v2",
  Role: "rbac.authorization.k8s.io/v1",
  RoleBinding: "rbac.authorization.k8s.io/v1",
  Widget: "example.com/v1",
  Gadget: "example.com/v1",
  Sample: "example.com/v1",
  Record: "example.com/v1",
  CustomResourceDefinition: "apiextensions.k8s.io/v1",
  ResourceQuota: "v1",
  LimitRange: "v1",
  ClusterRole: "rbac.authorization.k8s.io/v1",
  ValidatingAdmissionPolicy: "admissionregistration.k8s.io/v1",
  ValidatingAdmissionPolicyBinding: "admissionregistration.k8s.io/v1",
  MutatingAdmissionPolicy: "admissionregistration.k8s.io/v1",
  MutatingAdmissionPolicyBinding: "admissionregistration.k8s.io/v1",
  SubjectAccessReview: "authorization.k8s.io/v1",
  SelfSubjectAccessReview: "authorization.k8s.io/v1",
  TokenReview: "authentication.k8s.io/v1",
  TokenRequest: "authentication.k8s.io/v1",
  SelfSubjectReview: "authentication.k8s.io/v1",
};

/** Returns the variables for paths that scenarios can use, in a namespace. */
function pathsOf(namespace: string): Record<string, string> {
  const core = `/api/v1/namespaces/${namespace}`;
  const inGroup = (group: string, plural: string) => `/apis/${group}/namespaces/${namespace}/${plural}`;
  return {
    ns: namespace,
    cm: `${core}/configmaps`,
    secret: `${core}/secrets`,
    pod: `${core}/pods`,
    ep: `${core}/endpoints`,
    pc: "/apis/scheduling.k8s.io/v1/priorityclasses",
    csr: "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    svc: `${core}/services`,
    sa: `${core}/serviceaccounts`,
    rc: `${core}/replicationcontrollers`,
    pvc: `${core}/persistentvolumeclaims`,
    job: inGroup("batch/v1", "jobs"),
    cronjob: inGroup("batch/v1", "cronjobs"),
    deploy: inGroup("apps/v1", "deployments"),
    sts: inGroup("apps/v1", "statefulsets"),
    ds: inGroup("apps/v1", "daemonsets"),
    rs: inGroup("apps/v1", "replicasets"),
    lease: inGroup("coordination.k8s.io/v1", "leases"),
    ingress: inGroup("networking.k8s.io/v1", "ingresses"),
    netpol: inGroup("networking.k8s.io/v1", "networkpolicies"),
    pdb: inGroup("policy/v1", "poddisruptionbudgets"),
    hpa: inGroup("autoscaling/v2", "horizontalpodautoscalers"),
    role: inGroup("rbac.authorization.k8s.io/v1", "roles"),
    rolebinding: inGroup("rbac.authorization.k8s.io/v1", "rolebindings"),
    widget: inGroup("example.com/v1", "widgets"),
    sample: inGroup("example.com/v1", "samples"),
    record: inGroup("example.com/v1", "records"),
    newrecord: inGroup("example.com/v2", "records"),
    gadget: "/apis/example.com/v1/gadgets",
    crd: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    quota: `${core}/resourcequotas`,
    limits: `${core}/limitranges`,
    clusterrole: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    vap: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    vapb: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    map: "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    mapb: "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
    sar: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    ssar: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    tr: "/apis/authentication.k8s.io/v1/tokenreviews",
    who: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
  };
}

/** Runs a scenario in a new namespace. */
export async function playScenario(
  connection: Connection,
  { steps, title }: Scenario,
  namespace: string,
): Promise<StepOutcome[]> {
  const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
  const agent = createAgent(connection);
  const play: Play = { connection, agent, paths: pathsOf(namespace), saved: {}, watches: {} };
  const outcomes: StepOutcome[] = [];
  try {
    await apiRequest(connection, "POST /api/v1/namespaces", { body, agent });
    for (const [index, step] of steps.entries()) {
      const outcome = await playStep(play, step).catch((cause: unknown) => {
        throw new Error(`${title}: step ${index + 1}, ${step.method} ${step.target}`, { cause });
      });
      if (step.silent !== true) outcomes.push({ step: `${step.method} ${step.target}`, ...outcome });
    }
  } finally {
    for (const watch of Object.values(play.watches)) watch[Symbol.dispose]();
    agent.destroy();
  }
  return outcomes;
}

interface Play {
  connection: Connection;
  agent: Agent;
  paths: Record<string, string>;
  saved: Record<string, unknown>;
  watches: Record<string, WatchClient>;
}

async function playStep(play: Play, step: Step): Promise<Omit<StepOutcome, "step">> {
  if (step.method === "EVENTS") return readEvents(watchOrThrow(play, step.target), step);
  const path = encodeURI(fillIn(play, step.target) as string);
  if (step.method !== "WATCH") return send(play, step, path);
  const watch = await openWatch(play.connection, path, step.accept === undefined ? {} : { accept: step.accept });
  const name = step.open ?? `${step.target} ${Object.keys(play.watches).length}`;
  play.watches[name] = watch;
  if (watch.status !== 200 || step.open === undefined)
    return { status: watch.status, ...(await readEvents(watch, step)) };
  return { status: watch.status };
}

function watchOrThrow({ watches }: Play, name: string): WatchClient {
  const watch = watches[name];
  if (watch === undefined) throw new Error(`no watch is open as ${name}`);
  return watch;
}

async function readEvents(watch: WatchClient, { count, last, lastName }: Step): Promise<Omit<StepOutcome, "step">> {
  const events: unknown[] = [];
  while (events.length < (count ?? Infinity)) {
    const event = await watch.next();
    if (event === undefined) return { events, ended: true };
    events.push(event);
    if (event.type === last || (lastName !== undefined && event.object.metadata.name === lastName)) break;
  }
  return { events };
}

async function send(play: Play, step: Step, path: string): Promise<Omit<StepOutcome, "step">> {
  const body = bodyOf(play, step);
  const request = () =>
    apiRequest<unknown>(play.connection, `${step.method} ${path}`, {
      agent: play.agent,
      ...(body === undefined ? {} : { body }),
      ...(step.as === undefined ? {} : { contentType: CONTENT_TYPES[step.as] ?? step.as }),
      // The User-Agent is the default field manager, so it must be constant.
      headers: {
        "user-agent": "conformance/1",
        ...(step.accept === undefined ? {} : { accept: step.accept }),
        ...(fillIn(play, step.headers ?? {}) as Record<string, string>),
      },
    });
  let answer = await request();
  const isAnswered = async () => {
    if (isReached(step.until, answer)) return true;
    answer = await request();
    return isReached(step.until, answer);
  };
  // kube-apiserver caches the authentication of a token for ten seconds.
  await waitFor(`${step.method} ${path} answers ${step.until}`, isAnswered, { timeoutMs: 15_000 });
  if (step.save !== undefined) play.saved[step.save] = answer.body;
  return { ...outcomeOf(answer, step.pick), ...firstPageOf(play, step) };
}

function firstPageOf({ saved }: Play, { target }: Step): Pick<StepOutcome, "firstPageVersion"> {
  const name = /[?&]continue=\$\{(\w+)\.metadata\.continue\}/.exec(target)?.[1];
  if (name === undefined) return {};
  return { firstPageVersion: String(readPath(saved, [name, "metadata", "resourceVersion"])) };
}

function isReached(until: string | number | undefined, answer: ApiAnswer<unknown>): boolean {
  if (typeof until === "number") return answer.status === until;
  return until === undefined || new RegExp(until).test(answer.text);
}

function outcomeOf(answer: ApiAnswer<unknown>, pick: string[] | undefined): Omit<StepOutcome, "step"> {
  const contentType = answer.headers["content-type"] ?? "";
  const warnings = answer.headers["warning"];
  const body =
    pick === undefined
      ? answer.body
      : Object.fromEntries(pick.map((name) => [name, (answer.body as Record<string, unknown>)[name]]));
  return {
    status: answer.status,
    ...(contentType === "application/json" ? {} : { contentType }),
    // Node.js joins repeated headers. Warning texts are quoted, so the headers can be split.
    ...(warnings === undefined ? {} : { warnings: String(warnings).split(/, (?=299 - )/) }),
    body,
  };
}

function bodyOf(play: Play, { kind, body, base }: Step): unknown {
  if (body === undefined && base === undefined && kind === undefined) return undefined;
  const filled = fillIn(play, body);
  const whole = base === undefined ? filled : merged(structuredClone(play.saved[base]), filled);
  if (kind === undefined) return whole;
  return { apiVersion: API_VERSIONS[kind], kind, ...(whole as object) };
}

/** Applies a merge patch (RFC 7386), so that a scenario can send a saved response with changes. */
function merged(target: unknown, patch: unknown): unknown {
  if (patch === undefined) return target;
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    target !== null && typeof target === "object" && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

function fillIn(play: Play, value: unknown): unknown {
  if (typeof value === "string") return fillInText(play, value);
  if (Array.isArray(value)) return value.map((item) => fillIn(play, item));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [fillInText(play, key), fillIn(play, member)]),
  );
}

function fillInText({ paths, saved }: Play, text: string): string {
  return text
    .replace(/\$\{([\w.]+)\}/g, (_, path: string) => String(readPath(saved, path.split("."))))
    .replace(/\$([a-z]+)/g, (whole, name: string) => paths[name] ?? whole);
}

function readPath(value: unknown, path: string[]): unknown {
  return path.reduce((member: unknown, name) => (member as Record<string, unknown> | undefined)?.[name], value);
}
