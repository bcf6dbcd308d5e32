// Built-in conditions. `ready` uses the criteria of `kubectl rollout status` and `kubectl wait` (kubectl 1.36, polymorphichelpers).
import { isDeepStrictEqual } from "node:util";
import {
  type Defined,
  type JsonValue,
  type KubernetesObject,
  type ResourceDefinition,
  type StatusCondition,
  crdNameOf,
  isReachable,
  isTerminating,
  keyOf,
} from "../base/kubernetes-object.js";
import type { ServedKind } from "../sources/crd-source.js";
import type { Condition, ConditionArguments, ConditionResult } from "./workflow-definition.js";

// As in JOSDK's CRDPresentActivationCondition: the result for an absent kind is cached for 10 s, that for a present kind forever.
const CHECK_AGAIN_AFTER_MS = 10_000;
// If the CRD is watched, only an aggregated API server can serve the kind without one.
const CHECK_AGGREGATED_AFTER_MS = 600_000;

const PROVISIONER = ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];
const STALE = "its status is older than its spec";

/**
 * Met when the object is ready: all replicas of a workload are updated and available, a Job is complete, a PersistentVolumeClaim can be used by a Pod
 * (`Bound` or `Pending`), a load balancer has an address, and the conditions `Ready` and `Available` of any other kind are true. Kinds without these
 * conditions are ready as soon as they exist. A status older than the spec is ignored. The detail describes what is missing.
 */
export const ready: Condition<unknown, unknown, string> = ({ live }) => {
  const result = judged(live, "is not ready", missingForReady);
  const waits = result === true ? waitOfClaim(live as KubernetesObject) : undefined;
  return waits === undefined ? result : { isMet: true, detail: waits };
};

/**
 * Met when a PersistentVolumeClaim or PersistentVolume is bound. If its StorageClass waits for the first consumer, a claim is only bound after a Pod
 * uses it, so the dependent that creates the Pod must not depend on the claim. The detail describes what a pending claim waits for.
 *
 * @example { readyPostcondition: bound }
 */
export const bound: Condition<unknown, unknown, string> = ({ live }) => judged(live, "is not bound", missingForBound);

// Conditions that read nothing but the object itself.
const ofLive = new WeakSet<object>([ready, bound]);

/** Reports whether a condition reads nothing but the object of its dependent, like the built-in conditions of objects. */
export function readsLiveAlone(condition: object | undefined): boolean {
  return condition !== undefined && ofLive.has(condition);
}

function ofLiveAlone<Each extends object>(condition: Each): Each {
  ofLive.add(condition);
  return condition;
}

/** Met when the object no longer exists. As a deletePostcondition, it delays the deletion of what the dependent depends on until then. */
export const deleted: Condition<unknown, unknown, never> = ({ live }) => live === undefined;

/** Met when the object has this condition with this status, and the condition is not older than the spec. The detail describes the actual state. */
export function conditionIs(condition: Pick<StatusCondition, "type" | "status">): Condition<unknown, unknown, string> {
  return ofLiveAlone(({ live }) =>
    judged(live, `lacks ${condition.type}=${condition.status}`, (object) => missingCondition(object, condition)),
  );
}

/** Met when a field has this value. `path` is a path such as `status.phase`. The detail contains the field but not its value, which may be secret. */
export function fieldEquals(path: string, value: JsonValue): Condition<unknown, unknown, string> {
  const names = path.split(".");
  return ofLiveAlone(({ live }) =>
    judged(live, "is not as awaited", (object) => {
      let field: unknown = object;
      for (const name of names) {
        if (typeof field !== "object" || field === null || !Object.hasOwn(field, name)) return `it has no ${path}`;
        field = (field as { [name: string]: unknown })[name];
      }
      return isDeepStrictEqual(field, value) ? undefined : `its ${path} has another value`;
    }),
  );
}

// The detail contains the name of the object. An external resource may have no kind and no name.
function judged(
  live: unknown,
  problem: string,
  missingIn: (object: KubernetesObject) => string | undefined,
): boolean | ConditionResult<string> {
  if (live === undefined) return { isMet: false, detail: "it does not exist yet" };
  const { kind, metadata } = live as Partial<KubernetesObject>;
  const missing = missingIn(live as KubernetesObject);
  if (missing === undefined) return true;
  const name = metadata?.name === undefined ? "" : `${kind} ${keyOf(metadata)} `;
  return { isMet: false, detail: `${name}${problem}: ${missing}` };
}

const served = new WeakMap<object, Map<string, { isServed: Promise<boolean>; checkedAt: number }>>();

type CrdArguments = ConditionArguments<unknown, unknown>;

/** The type of `crdPresent`, which can be called with another kind. The overload for conditions comes last, because types are inferred from it. */
interface CrdPresent {
  (resource: Defined): Condition<unknown, unknown, never>;
  (args: CrdArguments): ReturnType<Condition<unknown, unknown, never>>;
  readonly crd: "own";
}

/**
 * Met when the API server serves the kind of the dependent or event source, or another kind: its CustomResourceDefinition is installed and not being
 * deleted. Throws while the kind is served only in other versions, because objects may exist then: a cleanup waits.
 *
 * The controller watches the CRD, so that a change of it reconciles the primaries. If the controller is not allowed to watch CRDs, or the kind is
 * built-in, the API server is queried at most every 10 s until it serves the kind. A kind that never had a CRD may belong to an aggregated API
 * server, which is queried every 10 minutes, or every 10 s while it serves the kind.
 *
 * @example { activationCondition: crdPresent }
 * @example { reconcilePrecondition: not(crdPresent(Route)) }
 */
export const crdPresent: CrdPresent = Object.assign(
  ((given: Defined | CrdArguments): never => {
    if ("dependent" in given) return isPresent(given, given.dependent.definition) as never;
    const { definition } = given;
    return Object.assign((args: CrdArguments) => isPresent(args, definition), { crd: definition }) as never;
  }) as Pick<CrdPresent, never> as CrdPresent,
  { crd: "own" as const },
);

async function isPresent({ dependent, context }: CrdArguments, definition?: ResourceDefinition): Promise<boolean> {
  const { client = context.client } = dependent;
  if (definition === undefined)
    throw new Error("crdPresent is about kinds of Kubernetes, which this dependent is none of");
  const { connection } = client;
  const source = connection === context.client.connection ? context.eventSources.get(crdNameOf(definition)) : undefined;
  const { servedVersions, wasDefined = false } = (source ?? {}) as Partial<ServedKind>;
  if (servedVersions !== undefined && (isReachable(definition, servedVersions) || wasDefined))
    return servedVersions.length > 0;
  const checks = served.get(connection) ?? new Map<string, { isServed: Promise<boolean>; checkedAt: number }>();
  served.set(connection, checks);
  const isWatched = servedVersions !== undefined;
  const kind = `${definition.apiVersion}/${definition.kind}${isWatched ? " aggregated" : ""}`;
  const last = checks.get(kind);
  if (last !== undefined) {
    const isServed = await last.isServed;
    const againAfterMs = isWatched && !isServed ? CHECK_AGGREGATED_AFTER_MS : CHECK_AGAIN_AFTER_MS;
    if ((isServed && !isWatched) || performance.now() - last.checkedAt < againAfterMs) return isServed;
  }
  const isServed = client.servedVersions(definition).then((versions) => isReachable(definition, versions));
  checks.set(kind, { isServed, checkedAt: performance.now() });
  isServed.catch(() => checks.delete(kind));
  return isServed;
}

/** A definition of a dependent or event source, of which any member may be a condition that refers to a CRD. */
type Asking = { readonly resource?: ResourceDefinition | undefined } & object;

/** Returns the kinds whose CRDs are queried by conditions of dependents or event sources. */
export function kindsAskedFor(all: readonly Asking[]): ResourceDefinition[] {
  // CRDs of other clusters are not watched.
  const asked = all
    .filter((each) => !("cluster" in each) || each.cluster === undefined)
    .flatMap(({ resource, ...members }) =>
      Object.values(members as { readonly [member: string]: unknown }).flatMap((member) => {
        const { crd } = (typeof member === "function" ? member : {}) as { crd?: ResourceDefinition | "own" };
        return (crd === "own" ? resource : crd) ?? [];
      }),
    )
    .filter(({ isCustom }) => isCustom);
  return [...new Map(asked.map((each) => [crdNameOf(each), each])).values()];
}

// The fields of an object that the conditions read. All of them may be missing.
interface Observed extends KubernetesObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly type?: string;
    readonly updateStrategy?: { readonly type?: string; readonly rollingUpdate?: { readonly partition?: number } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly currentRevision?: string;
    readonly updateRevision?: string;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
    readonly currentHealthy?: number;
    readonly desiredHealthy?: number;
    readonly phase?: string;
    readonly loadBalancer?: { readonly ingress?: readonly unknown[] };
    readonly conditions?: readonly StatusCondition[];
  };
}

/** Describes what is missing; undefined if nothing is. */
type Judge = (live: Observed) => string | undefined;

const JUDGES: { readonly [kind: string]: Judge } = {
  "apps/v1/Deployment": (live) => stalenessOf(live) ?? rolloutOf(live),
  "apps/v1/StatefulSet": (live) => stalenessOf(live) ?? readyReplicasOf(live) ?? updateOf(live),
  "apps/v1/ReplicaSet": (live) => stalenessOf(live) ?? readyReplicasOf(live),
  "v1/ReplicationController": (live) => stalenessOf(live) ?? readyReplicasOf(live),
  "apps/v1/DaemonSet": (live) => stalenessOf(live) ?? podsOf(live),
  "batch/v1/Job": jobOf,
  "v1/Pod": (live) => (live.status?.phase === "Succeeded" ? undefined : trueOf(live, "Ready")),
  // A Pod can use a pending claim; with WaitForFirstConsumer, the claim is only bound because of that.
  "v1/PersistentVolumeClaim": (live) => phaseOf(live, ["Bound", "Pending"]),
  "v1/PersistentVolume": (live) => phaseOf(live, ["Bound", "Available"]),
  "v1/Namespace": (live) => phaseOf(live, ["Active"]),
  "v1/Service": ({ spec, status }) =>
    spec?.type !== "LoadBalancer" || (status?.loadBalancer?.ingress?.length ?? 0) > 0
      ? undefined
      : "its load balancer has no address",
  "policy/v1/PodDisruptionBudget": (live) =>
    stalenessOf(live) ?? countOf(live.status?.currentHealthy, live.status?.desiredHealthy ?? 0, "pods healthy"),
  "apiextensions.k8s.io/v1/CustomResourceDefinition": (live) => trueOf(live, "Established"),
};

/** Describes what a live object lacks to be ready, such as "1 of 3 replicas updated". A status older than the spec is ignored. */
export function missingForReady(live: KubernetesObject): string | undefined {
  if (isTerminating(live)) return "it is being deleted";
  const judge = JUDGES[`${live.apiVersion}/${live.kind}`] ?? missingByItsConditions;
  return judge(live);
}

/** Describes what a claim or volume lacks to be bound. */
function missingForBound(live: KubernetesObject): string | undefined {
  if (isTerminating(live)) return "it is being deleted";
  const missing = phaseOf(live, ["Bound"]);
  const waits = missing === undefined ? undefined : waitOfClaim(live);
  return waits === undefined ? missing : `${missing}: ${waits}`;
}

/** Describes what a pending PersistentVolumeClaim waits for; undefined for any other object. */
function waitOfClaim(live: KubernetesObject): string | undefined {
  const { apiVersion, kind, metadata, spec = {}, status } = live as Claim;
  if (apiVersion !== "v1" || kind !== "PersistentVolumeClaim" || status?.phase !== "Pending") return undefined;
  const { annotations = {} } = metadata;
  const provisioner = PROVISIONER.map((name) => annotations[name]).find((each) => each !== undefined);
  const node = annotations["volume.kubernetes.io/selected-node"];
  const { storageClassName, volumeName } = spec;
  if (volumeName) return `it waits for PersistentVolume ${volumeName}`;
  if (provisioner !== undefined)
    return `it waits for the provisioner ${provisioner}${node === undefined ? "" : ` (a Pod on node ${node} uses it)`}`;
  if (storageClassName === undefined) return "it waits for a default StorageClass, or for a PersistentVolume that fits";
  if (storageClassName === "") return "it waits for a PersistentVolume that fits";
  return `it waits for a volume of StorageClass ${storageClassName}, or for the first Pod that uses it (volumeBindingMode: WaitForFirstConsumer)`;
}

interface Claim extends KubernetesObject {
  readonly spec?: { readonly storageClassName?: string; readonly volumeName?: string };
  readonly status?: { readonly phase?: string };
}

// `Ready` and `Available` have to be true if the object has them. An object without them is ready as soon as it exists.
function missingByItsConditions(live: Observed): string | undefined {
  const { observedGeneration, conditions = [] } = live.status ?? {};
  if (observedGeneration !== undefined && observedGeneration < (live.metadata.generation ?? 0)) return STALE;
  const telling = conditions.filter(({ type }) => type === "Ready" || type === "Available");
  return telling.map(({ type }) => trueOf(live, type)).find((missing) => missing !== undefined);
}

function stalenessOf({ metadata, status }: Observed): string | undefined {
  const observed = status?.observedGeneration;
  return observed !== undefined && observed >= (metadata.generation ?? 0) ? undefined : STALE;
}

function rolloutOf({ spec, status }: Observed): string | undefined {
  const wanted = spec?.replicas ?? 1;
  const { updatedReplicas = 0, availableReplicas, replicas = 0 } = status ?? {};
  const old = replicas - updatedReplicas;
  return (
    countOf(updatedReplicas, wanted, "replicas updated") ??
    (old > 0 ? `${old} old ${old === 1 ? "replica" : "replicas"} still there` : undefined) ??
    countOf(availableReplicas, wanted, "replicas available")
  );
}

function updateOf({ spec, status }: Observed): string | undefined {
  const { updateStrategy, replicas = 1 } = spec ?? {};
  const { updatedReplicas, currentRevision, updateRevision } = status ?? {};
  // With OnDelete, Pods are only updated after another client deletes them.
  if (updateStrategy?.type === "OnDelete") return undefined;
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
  // Compare revisions: they show an update before the replica counts do.
  const isUpdated = partition === 0 && updateRevision !== undefined && updateRevision === currentRevision;
  return isUpdated ? undefined : countOf(updatedReplicas, replicas - partition, "replicas updated");
}

function podsOf({ spec, status }: Observed): string | undefined {
  const { desiredNumberScheduled = 0, updatedNumberScheduled, numberAvailable } = status ?? {};
  const isOnDelete = spec?.updateStrategy?.type === "OnDelete";
  return (
    (isOnDelete ? undefined : countOf(updatedNumberScheduled, desiredNumberScheduled, "pods updated")) ??
    countOf(numberAvailable, desiredNumberScheduled, "pods available")
  );
}

function readyReplicasOf({ spec, status }: Observed): string | undefined {
  return countOf(status?.readyReplicas, spec?.replicas ?? 1, "replicas ready");
}

function countOf(have = 0, wanted: number, what: string): string | undefined {
  return have >= wanted ? undefined : `${have} of ${wanted} ${what}`;
}

function phaseOf({ status }: Observed, phases: readonly string[]): string | undefined {
  const phase = status?.phase;
  if (phase === undefined) return "it has no phase yet";
  return phases.includes(phase) ? undefined : `its phase is ${phase}`;
}

function jobOf(live: Observed): string | undefined {
  const failure = live.status?.conditions?.find(({ type, status }) => type === "Failed" && status === "True");
  const missing = trueOf(live, "Complete");
  if (missing === undefined || failure === undefined) return missing;
  return `it failed${causeOf(failure)}`;
}

function trueOf(live: Observed, type: string): string | undefined {
  return missingCondition(live, { type, status: "True" });
}

/** Describes what is wrong with a condition of a live object; undefined if it has this status and is not older than the spec. */
function missingCondition(
  live: Observed,
  { type, status }: Pick<StatusCondition, "type" | "status">,
): string | undefined {
  const { generation = 0 } = live.metadata;
  const found = live.status?.conditions?.filter((each) => each.type === type) ?? [];
  if (found.some((each) => each.status === status && (each.observedGeneration ?? generation) >= generation))
    return undefined;
  const [condition] = found;
  if (condition === undefined) return `it has no condition ${type}`;
  if (condition.status === status) return `its condition ${type} is older than its spec`;
  return `its condition ${type} is ${condition.status}${causeOf(condition)}`;
}

function causeOf({ message, reason }: StatusCondition): string {
  return message || reason ? `: ${message || reason}` : "";
}
