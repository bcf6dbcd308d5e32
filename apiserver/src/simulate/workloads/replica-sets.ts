import { ApiError } from "../feed/api-client.js";
import type { Cluster } from "../feed/cluster.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { isSame } from "../feed/kubernetes-object.js";
import { type Pod, type StatusCondition, isActive, isReady, timestamp } from "../pods/pod.js";
import { type Workload, claimPods, createPod, deletePod, nonZero, ownersOf, podFrom, readiness } from "./workload.js";

const KIND = "replicasets.apps";
const DELETION_COST = "controller.kubernetes.io/pod-deletion-cost";

/** Creates the controller of ReplicaSets. */
export function createReplicaSets(): Controller<Workload> {
  return {
    kind: KIND,
    watches: { "pods.": ownersOf({ plural: KIND, kind: "ReplicaSet" }) },
    async reconcile(set, context) {
      const { cluster } = context;
      const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", object: set };
      const pods = await claimPods(cluster, owner);
      const isLeaving = set.metadata.deletionTimestamp !== undefined;
      const failure = isLeaving ? undefined : await scale(cluster, set, pods.filter(isActive));
      const again = await writeStatus(set, failure, context);
      if (failure !== undefined) throw failure;
      return again;
    },
  };
}

/** Creates or deletes Pods; returns the error of a failed creation. */
async function scale(cluster: Cluster, set: Workload, active: Pod[]): Promise<ApiError | undefined> {
  const missing = (set.spec.replicas ?? 1) - active.length;
  if (missing < 0) {
    const surplus = [...active].sort(byWorth).slice(0, -missing);
    await Promise.all(surplus.map((pod) => deletePod(cluster, { kind: KIND, object: set }, pod)));
    return undefined;
  }
  for (let count = 0; count < missing; count++) {
    const pod = podFrom(set.spec.template, { apiVersion: "apps/v1", kind: "ReplicaSet", object: set });
    pod.metadata.generateName = `${set.metadata.name}-`;
    try {
      await createPod(cluster, { kind: KIND, object: set }, pod);
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 403 && error.status !== 422)) throw error;
      return error;
    }
  }
  return undefined;
}

/** Orders Pods for deletion: unscheduled, pending, not ready, low deletion cost, and young Pods come first. */
function byWorth(a: Pod, b: Pod): number {
  return (
    Number((a.spec.nodeName ?? "") !== "") - Number((b.spec.nodeName ?? "") !== "") ||
    Number(a.status?.phase === "Running") - Number(b.status?.phase === "Running") ||
    Number(isReady(a)) - Number(isReady(b)) ||
    costOf(a) - costOf(b) ||
    (b.metadata.creationTimestamp ?? "").localeCompare(a.metadata.creationTimestamp ?? "")
  );
}

function costOf({ metadata }: Pod): number {
  return Number(metadata.annotations?.[DELETION_COST] ?? 0) || 0;
}

async function writeStatus(
  set: Workload,
  failure: ApiError | undefined,
  { cluster, now }: ControllerContext,
): Promise<number | undefined> {
  const all = cluster.controlledBy<Pod>("pods.", set.metadata.uid);
  const active = all.filter(isActive);
  const template = Object.entries(set.spec.template.metadata?.labels ?? {});
  const labelled = active.filter(({ metadata }) => template.every(([key, value]) => metadata.labels?.[key] === value));
  const { ready, available, again } = readiness(active, set.spec.minReadySeconds, now());
  const conditions = conditionsOf(set, failure, now());
  const status = {
    replicas: active.length,
    ...nonZero({ fullyLabeledReplicas: labelled.length, readyReplicas: ready, availableReplicas: available }),
    terminatingReplicas: all.filter(({ metadata }) => metadata.deletionTimestamp !== undefined).length,
    observedGeneration: set.metadata.generation,
    ...(conditions.length === 0 ? {} : { conditions }),
  };
  if (!isSame(set.status, status)) await cluster.update(KIND, { ...set, status }, { subresource: "status" });
  return again;
}

function conditionsOf({ status }: Workload, failure: ApiError | undefined, now: Date): StatusCondition[] {
  const before = status?.conditions ?? [];
  const others = before.filter(({ type }) => type !== "ReplicaFailure");
  if (failure === undefined) return others;
  // The message contains a different Pod name each time. As in kube-controller-manager, the first one is kept: a changed status would trigger an
  // immediate retry.
  const present = before.find(({ type, reason }) => type === "ReplicaFailure" && reason === "FailedCreate");
  const condition: StatusCondition = {
    type: "ReplicaFailure",
    status: "True",
    lastTransitionTime: timestamp(now),
    reason: "FailedCreate",
    message: failure.detail,
  };
  return [...others, present ?? condition];
}
