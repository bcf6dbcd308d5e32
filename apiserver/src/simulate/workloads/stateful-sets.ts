// Maintains the Pods of StatefulSets: ordered, with stable names, each with its own claims.
import { ApiError } from "../feed/api-client.js";
import type { Cluster, NewObject } from "../feed/cluster.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { type KubernetesObject, type OwnerReference, isSame } from "../feed/kubernetes-object.js";
import { type Pod, type PodTemplate, isActive, isFinished, isReady, msUntilAvailable } from "../pods/pod.js";
import {
  type ControllerRevision,
  cleanRevisions,
  currentRevision,
  revisionsOf,
  templateOf,
} from "./controller-revisions.js";
import { type Workload, type WorkloadSpec, claimPods, nonZero, ownersOf, podFrom, readiness } from "./workload.js";

const KIND = "statefulsets.apps";
const REVISION = "controller-revision-hash";

/** Creates the controller of StatefulSets. */
export function createStatefulSets(): Controller<StatefulSet> {
  return {
    kind: KIND,
    watches: {
      "pods.": ownersOf({ plural: KIND, kind: "StatefulSet" }),
      "controllerrevisions.apps": () => [],
      "persistentvolumeclaims.": () => [],
    },
    async reconcile(set, context) {
      const { cluster } = context;
      if (set.metadata.deletionTimestamp !== undefined) return undefined;
      const update = await currentRevision(cluster, set, {
        kind: "StatefulSet",
        hashLabel: "controller.kubernetes.io/hash",
      });
      const revisions = revisionsOf(cluster, set);
      const current = revisions.find(({ metadata }) => metadata.name === set.status?.["currentRevision"]) ?? update;
      const owner = { apiVersion: "apps/v1", kind: "StatefulSet", object: set };
      await keepClaims(cluster, set, await claimPods(cluster, owner));
      const plan = { set, update, current, context };
      const again = await step(plan);
      const waits = await writeStatus(plan);
      const pods = podsOfSet(plan).map(({ metadata }) => metadata.labels?.[REVISION] ?? "");
      await cleanRevisions(cluster, set, new Set([...pods, update.metadata.name, current.metadata.name]));
      return again ?? waits;
    },
  };
}

interface Plan {
  set: StatefulSet;
  update: ControllerRevision;
  current: ControllerRevision;
  context: ControllerContext;
}

function podsOfSet({ set, context }: Plan): Pod[] {
  const own = context.cluster.controlledBy<Pod>("pods.", set.metadata.uid);
  return own.sort((a, b) => ordinalOf(a) - ordinalOf(b));
}

/** Takes all steps that are currently allowed by the podManagementPolicy; returns the milliseconds until the next one. */
async function step(plan: Plan): Promise<number | undefined> {
  const { set, context } = plan;
  const { cluster } = context;
  const isParallel = set.spec.podManagementPolicy === "Parallel";
  const first = set.spec.ordinals?.start ?? 0;
  const last = first + (set.spec.replicas ?? 1) - 1;
  const pods = podsOfSet(plan);
  for (let ordinal = first; ordinal <= last; ordinal++) {
    const pod = pods.find((each) => ordinalOf(each) === ordinal);
    if (pod === undefined) {
      await createPod(plan, ordinal);
    } else if (isFinished(pod) && pod.metadata.deletionTimestamp === undefined) {
      await deletePod(plan, pod);
    } else {
      await createClaims(cluster, set, ordinal);
    }
    const waits = pod === undefined ? undefined : isHealthy(plan, pod);
    if (!isParallel && waits !== 0) return waits;
  }
  const surplus = pods.filter((pod) => ordinalOf(pod) < first || ordinalOf(pod) > last).reverse();
  for (const pod of surplus) {
    if (pod.metadata.deletionTimestamp === undefined) await deletePod(plan, pod);
    if (!isParallel) return undefined;
  }
  return updatePods(plan, { first, last });
}

/** Returns 0 if a Pod is available, the milliseconds until it is, or undefined if that is unknown. */
function isHealthy({ set, context }: Plan, pod: Pod): number | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined;
  return msUntilAvailable(pod, set.spec.minReadySeconds, context.now());
}

async function createPod(plan: Plan, ordinal: number): Promise<void> {
  const { set, update, current, context } = plan;
  await createClaims(context.cluster, set, ordinal);
  const first = set.spec.ordinals?.start ?? 0;
  const currentReplicas = Number(set.status?.["currentReplicas"] ?? 0);
  // Pods below the partition, and those that the update has not reached, use the previous revision.
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  const isBefore = type !== "OnDelete" && ordinal < first + (rollingUpdate?.partition ?? currentReplicas);
  const revision = isBefore ? current : update;
  const pod = statefulPod(set, { ordinal, revision: revision.metadata.name, template: templateOf(revision.data) });
  try {
    await context.cluster.create("pods.", pod);
  } catch (error) {
    if (error instanceof ApiError) recordPod(plan, "Create", { ...pod, problem: error.detail });
    throw error;
  }
  recordPod(plan, "Create", pod);
}

async function deletePod(plan: Plan, pod: Pod): Promise<void> {
  await plan.context.cluster.remove("pods.", pod);
  recordPod(plan, "Delete", pod);
}

function recordPod(
  { set, context }: Plan,
  verb: "Create" | "Delete",
  { metadata, problem }: { metadata: { name?: string }; problem?: string },
): void {
  const [type, outcome, end] =
    problem === undefined
      ? (["Normal", "Successful", "successful"] as const)
      : (["Warning", "Failed", `failed error: ${problem}`] as const);
  const message = `${verb} Pod ${metadata.name} in StatefulSet ${set.metadata.name} ${end}`;
  context.cluster.record(KIND, set, { type, reason: outcome + verb, message });
}

/** Replaces outdated Pods, from the highest ordinal down to the partition. */
async function updatePods(plan: Plan, { first, last }: { first: number; last: number }): Promise<number | undefined> {
  const { set, update } = plan;
  if (set.spec.updateStrategy?.type === "OnDelete") return undefined;
  const partition = first + (set.spec.updateStrategy?.rollingUpdate?.partition ?? 0);
  const pods = podsOfSet(plan).filter((pod) => ordinalOf(pod) >= partition && ordinalOf(pod) <= last);
  for (const pod of pods.reverse()) {
    const isOld = pod.metadata.labels?.[REVISION] !== update.metadata.name;
    if (isOld && pod.metadata.deletionTimestamp === undefined) {
      await deletePod(plan, pod);
      return undefined;
    }
    const waits = isHealthy(plan, pod);
    if (waits !== 0) return waits;
  }
  return undefined;
}

async function writeStatus(plan: Plan): Promise<number | undefined> {
  const { set, update, current, context } = plan;
  const pods = podsOfSet(plan);
  const active = pods.filter(isActive);
  const having = (revision: ControllerRevision) =>
    active.filter(({ metadata }) => metadata.labels?.[REVISION] === revision.metadata.name).length;
  const { ready, available, again } = readiness(active.filter(isReady), set.spec.minReadySeconds, context.now());
  const replicas = set.spec.replicas ?? 1;
  const isComplete =
    set.spec.updateStrategy?.type !== "OnDelete" &&
    having(update) === replicas &&
    ready === replicas &&
    pods.length === replicas;
  const shown = isComplete ? update : current;
  const status = {
    observedGeneration: set.metadata.generation,
    replicas: pods.length,
    ...nonZero({ readyReplicas: ready, currentReplicas: having(shown), updatedReplicas: having(update) }),
    currentRevision: shown.metadata.name,
    updateRevision: update.metadata.name,
    collisionCount: 0,
    availableReplicas: available,
  };
  if (!isSame(set.status, status)) await context.cluster.update(KIND, { ...set, status }, { subresource: "status" });
  return again;
}

/** The fields of a StatefulSet spec that the controller reads. */
interface StatefulSetSpec extends WorkloadSpec {
  serviceName?: string;
  podManagementPolicy?: string;
  ordinals?: { start?: number };
  updateStrategy?: { type?: string; rollingUpdate?: { partition?: number } };
  volumeClaimTemplates?: ClaimTemplate[];
  persistentVolumeClaimRetentionPolicy?: { whenDeleted?: string; whenScaled?: string };
}

/** A volumeClaimTemplate. */
interface ClaimTemplate {
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  spec: object;
}

type StatefulSet = Workload<StatefulSetSpec>;

/** Returns the ordinal at the end of the name of a Pod, or -1. */
function ordinalOf({ metadata }: KubernetesObject): number {
  const number = /-(\d+)$/.exec(metadata.name)?.[1];
  return number === undefined ? -1 : Number(number);
}

/** Returns the name of the claim of a Pod for a template. */
function claimName(template: ClaimTemplate, set: StatefulSet, ordinal: number): string {
  return `${template.metadata.name}-${set.metadata.name}-${ordinal}`;
}

/** Builds the Pod with this ordinal. */
function statefulPod(
  set: StatefulSet,
  { ordinal, revision, template }: { ordinal: number; revision: string; template: PodTemplate },
): NewObject & Pick<Pod, "spec"> {
  const pod = podFrom(template, { apiVersion: "apps/v1", kind: "StatefulSet", object: set });
  const name = `${set.metadata.name}-${ordinal}`;
  pod.metadata.name = name;
  Object.assign(pod.metadata.labels, {
    "controller-revision-hash": revision,
    "statefulset.kubernetes.io/pod-name": name,
    "apps.kubernetes.io/pod-index": String(ordinal),
  });
  const claims = set.spec.volumeClaimTemplates ?? [];
  const names = new Set(claims.map(({ metadata }) => metadata.name));
  const volumes = [
    ...claims.map((claim) => ({
      name: claim.metadata.name,
      persistentVolumeClaim: { claimName: claimName(claim, set, ordinal) },
    })),
    ...(template.spec.volumes ?? []).filter((volume) => !names.has(volume.name)),
  ];
  const { serviceName } = set.spec;
  pod.spec = {
    ...template.spec,
    hostname: name,
    ...(serviceName === undefined ? {} : { subdomain: serviceName }),
    ...(volumes.length === 0 ? {} : { volumes }),
  };
  return pod;
}

const CLAIMS = "persistentvolumeclaims.";

/** Creates the missing claims of a Pod. */
async function createClaims(cluster: Cluster, set: StatefulSet, ordinal: number): Promise<void> {
  const { namespace = "" } = set.metadata;
  for (const template of set.spec.volumeClaimTemplates ?? []) {
    const name = claimName(template, set, ordinal);
    if (cluster.get(CLAIMS, `${namespace}/${name}`) !== undefined) continue;
    const { labels, annotations } = template.metadata;
    await cluster.create(CLAIMS, {
      metadata: {
        name,
        namespace,
        labels: { ...labels, ...set.spec.selector?.matchLabels },
        ...(annotations === undefined ? {} : { annotations }),
      },
      spec: template.spec,
    });
    const message = `Create Claim ${name} Pod ${set.metadata.name}-${ordinal} in StatefulSet ${set.metadata.name} success`;
    cluster.record("statefulsets.apps", set, { reason: "SuccessfulCreate", message });
  }
}

/** Applies the persistentVolumeClaimRetentionPolicy: sets owner references to the StatefulSet or to the Pod. */
async function keepClaims(cluster: Cluster, set: StatefulSet, pods: Pod[]): Promise<void> {
  const { whenDeleted = "Retain", whenScaled = "Retain" } = set.spec.persistentVolumeClaimRetentionPolicy ?? {};
  if (whenDeleted === "Retain" && whenScaled === "Retain") return;
  const { name, namespace = "", uid } = set.metadata;
  const last = (set.spec.ordinals?.start ?? 0) + (set.spec.replicas ?? 1) - 1;
  for (const pod of pods) {
    const ordinal = ordinalOf(pod);
    for (const template of set.spec.volumeClaimTemplates ?? []) {
      const claim = cluster.get<KubernetesObject>(CLAIMS, `${namespace}/${claimName(template, set, ordinal)}`);
      if (claim === undefined) continue;
      const others = (claim.metadata.ownerReferences ?? []).filter(
        (owner) => owner.uid !== uid && owner.kind !== "Pod",
      );
      const ownerReferences: OwnerReference[] = [
        ...others,
        ...(whenDeleted === "Delete" && !(whenScaled === "Delete" && ordinal > last)
          ? [{ apiVersion: "apps/v1", kind: "StatefulSet", name, uid, controller: true, blockOwnerDeletion: true }]
          : []),
        ...(whenScaled === "Delete" && ordinal > last
          ? [
              {
                apiVersion: "v1",
                kind: "Pod",
                name: pod.metadata.name,
                uid: pod.metadata.uid,
                controller: true,
                blockOwnerDeletion: true,
              },
            ]
          : []),
      ];
      if (isSame(claim.metadata.ownerReferences ?? [], ownerReferences)) continue;
      await cluster.update(CLAIMS, { ...claim, metadata: { ...claim.metadata, ownerReferences } });
    }
  }
}
