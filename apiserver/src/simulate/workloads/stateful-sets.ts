// Keeps the Pods of StatefulSets: numbered, in order, each with claims of its own.
import { ApiError } from "../feed/api-client.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { type Pod, isActive, isFinished, isReady, msUntilAvailable } from "../pods/pod.js";
import { isSame } from "../pods/same.js";
import {
  cleanRevisions,
  currentRevision,
  revisionsOf,
  templateOf,
  type ControllerRevision,
} from "./controller-revisions.js";
import { createClaims, keepClaims } from "./stateful-claims.js";
import { type StatefulSet, ordinalOf, statefulPod } from "./stateful-pod.js";
import { claimPods, nonZero, ownersOf, readiness } from "./workload.js";

const KIND = "statefulsets.apps";
const REVISION = "controller-revision-hash";

/** Makes the controller of StatefulSets. */
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

/** Takes the next steps; all of those that do not have to wait for one another. */
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

/** 0 if a Pod counts as well, the milliseconds until it does, `undefined` if nobody knows. */
function isHealthy({ set, context }: Plan, pod: Pod): number | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined;
  return msUntilAvailable(pod, set.spec.minReadySeconds, context.now());
}

async function createPod(plan: Plan, ordinal: number): Promise<void> {
  const { set, update, current, context } = plan;
  await createClaims(context.cluster, set, ordinal);
  const first = set.spec.ordinals?.start ?? 0;
  const currentReplicas = Number(set.status?.["currentReplicas"] ?? 0);
  // Below the partition, and where the update has not come to, the earlier template counts.
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

/** Replaces Pods of the earlier template, from the last to the partition. */
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
