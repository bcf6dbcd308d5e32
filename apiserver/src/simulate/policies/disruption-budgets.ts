import type { Cluster } from "../feed/cluster.js";
import type { Controller } from "../feed/controller.js";
import { type KubernetesObject, type LabelSelector, controllerOf, isSame, selects } from "../feed/kubernetes-object.js";
import { type Pod, type StatusCondition, isActive, isReady, timestamp, withConditions } from "../pods/pod.js";
import { scaled } from "../workloads/deployment.js";
import type { Workload } from "../workloads/workload.js";

interface DisruptionBudget extends KubernetesObject {
  spec: { minAvailable?: number | string; maxUnavailable?: number | string; selector?: LabelSelector };
  status?: { conditions?: StatusCondition[]; disruptedPods?: Record<string, string>; [member: string]: unknown };
}

const KIND = "poddisruptionbudgets.policy";
/** How long an allowed eviction counts as a disruption if the Pod is not deleted. */
const DISRUPTION_MS = 120_000;
const SCALES: Record<string, string> = {
  ReplicaSet: "replicasets.apps",
  Deployment: "deployments.apps",
  StatefulSet: "statefulsets.apps",
  ReplicationController: "replicationcontrollers.",
};

/** Maintains status.disruptionsAllowed of PodDisruptionBudgets. */
export function createDisruptionBudgets(): Controller<DisruptionBudget> {
  return {
    kind: KIND,
    watches: {
      "pods.": (pod, cluster) =>
        cluster
          .list<DisruptionBudget>(KIND, pod.metadata.namespace)
          .filter(({ spec }) => selects(spec.selector, pod.metadata.labels))
          .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
      "replicasets.apps": () => [],
      "deployments.apps": () => [],
      "statefulsets.apps": () => [],
    },
    async reconcile(budget, { cluster, now }) {
      const { metadata, spec } = budget;
      const pods = cluster
        .list<Pod>("pods.", metadata.namespace)
        .filter((pod) => isActive(pod) && selects(spec.selector, pod.metadata.labels));
      const disruptedPods = stillDisrupted(budget, pods, now());
      const healthy = pods.filter((pod) => isReady(pod) && !(pod.metadata.name in disruptedPods)).length;
      const { expected, desired } = wantedOf(budget, pods, cluster);
      const allowed = expected > 0 ? Math.max(0, healthy - desired) : 0;
      const status = {
        ...(Object.keys(disruptedPods).length === 0 ? {} : { disruptedPods }),
        observedGeneration: metadata.generation,
        disruptionsAllowed: allowed,
        currentHealthy: healthy,
        desiredHealthy: desired,
        expectedPods: expected,
        conditions: withConditions(budget.status?.conditions, [conditionOf(allowed > 0, metadata.generation, now())]),
      };
      if (!isSame(budget.status, status)) {
        await cluster.update(KIND, { ...budget, status }, { subresource: "status" });
        if (pods.length === 0) cluster.record(KIND, budget, { reason: "NoPods", message: "No matching pods found" });
      }
      return Object.keys(disruptedPods).length === 0 ? undefined : DISRUPTION_MS;
    },
  };
}

function stillDisrupted({ status }: DisruptionBudget, pods: Pod[], now: Date): Record<string, string> {
  const entries = Object.entries(status?.disruptedPods ?? {});
  return Object.fromEntries(
    entries.filter(
      ([name, time]) =>
        pods.some(({ metadata }) => metadata.name === name) && now.getTime() - Date.parse(time) < DISRUPTION_MS,
    ),
  );
}

function wantedOf({ spec }: DisruptionBudget, pods: Pod[], cluster: Cluster): { expected: number; desired: number } {
  const { minAvailable, maxUnavailable } = spec;
  if (typeof minAvailable === "number") return { expected: pods.length, desired: minAvailable };
  const expected = expectedPods(pods, cluster);
  if (maxUnavailable !== undefined) {
    return { expected, desired: Math.max(0, expected - scaled(maxUnavailable, expected, Math.ceil)) };
  }
  return { expected, desired: minAvailable === undefined ? 0 : scaled(minAvailable, expected, Math.ceil) };
}

/** Returns the sum of the replicas of the Pods' controllers; Pods without a controller are not counted. */
function expectedPods(pods: Pod[], cluster: Cluster): number {
  const scales = new Map<string, number>();
  for (const pod of pods) {
    const owner = topOwner(pod, cluster);
    if (owner !== undefined) scales.set(owner.metadata.uid, owner.spec.replicas ?? 1);
  }
  return [...scales.values()].reduce((sum, replicas) => sum + replicas, 0);
}

function topOwner(object: KubernetesObject, cluster: Cluster): Workload | undefined {
  const reference = controllerOf(object);
  const kind = SCALES[reference?.kind ?? ""];
  if (reference === undefined || kind === undefined) return undefined;
  const owner = cluster.get<Workload>(kind, `${object.metadata.namespace}/${reference.name}`);
  return owner === undefined ? undefined : (topOwner(owner, cluster) ?? owner);
}

function conditionOf(isAllowed: boolean, observedGeneration: number | undefined, now: Date): StatusCondition {
  return {
    type: "DisruptionAllowed",
    status: isAllowed ? "True" : "False",
    reason: isAllowed ? "SufficientPods" : "InsufficientPods",
    message: "",
    lastTransitionTime: timestamp(now),
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
  };
}
