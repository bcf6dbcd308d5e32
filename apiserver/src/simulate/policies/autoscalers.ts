import { ApiError } from "../feed/api-client.js";
import type { Controller } from "../feed/controller.js";
import { type KubernetesObject, isSame } from "../feed/kubernetes-object.js";
import { type StatusCondition, timestamp, withConditions } from "../pods/pod.js";
import type { Workload } from "../workloads/workload.js";

interface Autoscaler extends KubernetesObject {
  spec: {
    scaleTargetRef: { apiVersion?: string; kind: string; name: string };
    minReplicas?: number;
    maxReplicas: number;
  };
  status?: {
    currentReplicas?: number;
    desiredReplicas?: number;
    conditions?: StatusCondition[];
    [member: string]: unknown;
  };
}

const KIND = "horizontalpodautoscalers.autoscaling";
const TARGETS: Record<string, string> = {
  Deployment: "deployments.apps",
  ReplicaSet: "replicasets.apps",
  StatefulSet: "statefulsets.apps",
};
/** Sync period of an autoscaler. */
const PERIOD_MS = 15_000;

/** Keeps the replicas of targets between minReplicas and maxReplicas of their HorizontalPodAutoscalers. Metrics are not simulated. */
export function createAutoscalers(): Controller<Autoscaler> {
  const targeting =
    (kind: string) =>
    ({ metadata }: KubernetesObject, cluster: Parameters<NonNullable<Controller["watches"]>[string]>[1]) =>
      cluster
        .list<Autoscaler>(KIND, metadata.namespace)
        .filter(({ spec }) => spec.scaleTargetRef.kind === kind && spec.scaleTargetRef.name === metadata.name)
        .map((autoscaler) => `${autoscaler.metadata.namespace}/${autoscaler.metadata.name}`);
  return {
    kind: KIND,
    watches: Object.fromEntries(Object.entries(TARGETS).map(([kind, plural]) => [plural, targeting(kind)])),
    async reconcile(autoscaler, { cluster, now }) {
      const { metadata, spec } = autoscaler;
      const kind = TARGETS[spec.scaleTargetRef.kind];
      const target =
        kind === undefined
          ? undefined
          : cluster.get<Workload>(kind, `${metadata.namespace}/${spec.scaleTargetRef.name}`);
      const { conditions, desired } = decide(autoscaler, target, timestamp(now()));
      const current = target?.spec.replicas ?? 1;
      if (kind !== undefined && target !== undefined && desired !== current) {
        const bound = desired > current ? "below Spec.MinReplicas" : "above Spec.MaxReplicas";
        const message = `New size: ${desired}; reason: Current number of replicas ${bound}`;
        await cluster
          .update(kind, { ...target, spec: { ...target.spec, replicas: desired } })
          .then(() => cluster.record(KIND, autoscaler, { reason: "SuccessfulRescale", message }), ignoreConflict);
      }
      const status = {
        ...autoscaler.status,
        ...(target === undefined ? {} : { currentReplicas: current }),
        desiredReplicas:
          target === undefined || desired === current ? (autoscaler.status?.desiredReplicas ?? 0) : desired,
        ...(desired !== current && target !== undefined ? { lastScaleTime: timestamp(now()) } : {}),
        conditions: withConditions(autoscaler.status?.conditions, conditions),
      };
      if (!isSame(autoscaler.status, status))
        await cluster.update(KIND, { ...autoscaler, status }, { subresource: "status" });
      return PERIOD_MS;
    },
  };
}

function decide(
  { spec }: Autoscaler,
  target: Workload | undefined,
  lastTransitionTime: string,
): { conditions: StatusCondition[]; desired: number } {
  const condition = ([type, status]: [string, "True" | "False"], reason: string, message: string): StatusCondition => ({
    ...{ type, status, reason, message, lastTransitionTime },
  });
  const { kind, name } = spec.scaleTargetRef;
  if (target === undefined) {
    const plural = `${kind.toLowerCase()}s.apps`;
    const message = `the HPA controller was unable to get the target's current scale: ${plural} "${name}" not found`;
    return { desired: 0, conditions: [condition(["AbleToScale", "False"], "FailedGetScale", message)] };
  }
  const current = target.spec.replicas ?? 1;
  const { minReplicas = 1, maxReplicas } = spec;
  if (current === 0 && minReplicas !== 0) {
    const message = "scaling is disabled since the replica count of the target is zero";
    return {
      desired: 0,
      conditions: [
        condition(
          ["AbleToScale", "True"],
          "SucceededGetScale",
          "the HPA controller was able to get the target's current scale",
        ),
        condition(["ScalingActive", "False"], "ScalingDisabled", message),
      ],
    };
  }
  if (current > maxReplicas || current < minReplicas) {
    const desired = current > maxReplicas ? maxReplicas : minReplicas;
    const message = `the HPA controller was able to update the target scale to ${desired}`;
    return { desired, conditions: [condition(["AbleToScale", "True"], "SucceededRescale", message)] };
  }
  const problem = "the HPA was unable to compute the replica count: there are no metrics in a simulated cluster";
  return {
    desired: current,
    conditions: [
      condition(
        ["AbleToScale", "True"],
        "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
      ),
      condition(["ScalingActive", "False"], "FailedGetResourceMetric", problem),
    ],
  };
}

function ignoreConflict(error: unknown): void {
  if (!(error instanceof ApiError) || error.status !== 409) throw error;
}
