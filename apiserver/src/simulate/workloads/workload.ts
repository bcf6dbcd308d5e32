import { createHash } from "node:crypto";
import { NAME_CHARACTERS } from "@gen-operator/schema";
import { ApiError } from "../feed/api-client.js";
import type { Cluster, NewObject } from "../feed/cluster.js";
import {
  type KubernetesObject,
  type LabelSelector,
  controllerOf,
  keyOfObject,
  selects,
} from "../feed/kubernetes-object.js";
import {
  type Pod,
  type PodTemplate,
  type StatusCondition,
  controllerReference,
  isActive,
  msUntilAvailable,
} from "../pods/pod.js";

/** Common fields of workload specs; the server has set their defaults. */
export interface WorkloadSpec {
  replicas?: number;
  selector?: LabelSelector;
  template: PodTemplate;
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
}

/** A Deployment, ReplicaSet, StatefulSet, DaemonSet, or Job. */
export interface Workload<Spec extends WorkloadSpec = WorkloadSpec> extends KubernetesObject {
  spec: Spec;
  status?: WorkloadStatus;
}

export interface WorkloadStatus {
  conditions?: StatusCondition[];
  [member: string]: unknown;
}

/** Omits counts that are 0, as Kubernetes does for most of them. */
export function nonZero(counts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}

/** Returns a count of a status, or 0 if it is absent. */
export function countAt(status: object | undefined, field: string): number {
  const value = (status as Record<string, unknown> | undefined)?.[field];
  return typeof value === "number" ? value : 0;
}

/** Returns a hash of a Pod template, used as suffix of the names of ReplicaSets and ControllerRevisions. */
export function templateHash(template: unknown, collisions = 0): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(template ?? null) + (collisions === 0 ? "" : String(collisions)))
    .digest();
  return [...digest.subarray(0, 10)].map((byte) => NAME_CHARACTERS[byte % NAME_CHARACTERS.length]).join("");
}

/** Builds a Pod of a workload, without a name. */
export function podFrom(
  template: PodTemplate,
  owner: { apiVersion: string; kind: string; object: KubernetesObject },
): NewObject & { metadata: { labels: Record<string, string> }; spec: PodTemplate["spec"] } {
  const { labels = {}, annotations, finalizers } = template.metadata ?? {};
  const { namespace } = owner.object.metadata;
  return {
    metadata: {
      ...(namespace === undefined ? {} : { namespace }),
      labels: { ...labels },
      ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
      ...(finalizers === undefined ? {} : { finalizers }),
      ownerReferences: [controllerReference(owner.apiVersion, owner.kind, owner.object)],
    },
    spec: template.spec,
  };
}

/** Creates a Pod of a workload and records an Event for the success or failure. */
export async function createPod(cluster: Cluster, owner: Owner, pod: NewObject): Promise<Pod> {
  const { kind, object } = owner;
  try {
    const created = await cluster.create<Pod>("pods.", pod);
    cluster.record(kind, object, { reason: "SuccessfulCreate", message: `Created pod: ${created.metadata.name}` });
    return created;
  } catch (error) {
    if (error instanceof ApiError && !error.detail.includes("is being terminated")) {
      const message = `Error creating: ${error.detail}`;
      cluster.record(kind, object, { type: "Warning", reason: "FailedCreate", message });
    }
    throw error;
  }
}

/** Deletes a Pod of a workload and records an Event. */
export async function deletePod(cluster: Cluster, { kind, object }: Owner, pod: Pod): Promise<void> {
  await cluster.remove("pods.", pod);
  cluster.record(kind, object, { reason: "SuccessfulDelete", message: `Deleted pod: ${pod.metadata.name}` });
}

/** A workload and its kind as `plural.group`. */
export interface Owner {
  kind: string;
  object: KubernetesObject;
}

/** Counts ready and available Pods, and returns the milliseconds until the next one becomes available. */
export function readiness(pods: Pod[], minReadySeconds: number | undefined, now: Date): Readiness {
  const waits = pods.map((pod) => msUntilAvailable(pod, minReadySeconds, now)).filter((ms) => ms !== undefined);
  const pending = waits.filter((ms) => ms > 0);
  return {
    ready: waits.length,
    available: waits.length - pending.length,
    ...(pending.length === 0 ? {} : { again: Math.min(...pending) }),
  };
}

export interface Readiness {
  ready: number;
  available: number;
  again?: number;
}

/** Adopts orphaned Pods that match the selector, and releases owned Pods that no longer match. Returns the owned Pods. */
export async function claimPods(
  cluster: Cluster,
  owner: { apiVersion: string; kind: string; object: Workload },
): Promise<Pod[]> {
  const { metadata, spec } = owner.object;
  const own: Pod[] = [];
  const candidates = metadata.deletionTimestamp === undefined ? cluster.orphans<Pod>("pods.", metadata.namespace) : [];
  for (const pod of [...cluster.controlledBy<Pod>("pods.", metadata.uid), ...candidates]) {
    const controller = controllerOf(pod);
    const matches = selects(spec.selector, pod.metadata.labels);
    if (controller?.uid === metadata.uid) {
      if (matches || pod.metadata.deletionTimestamp !== undefined) own.push(pod);
      else
        await cluster.update("pods.", {
          ...pod,
          metadata: { ...pod.metadata, ownerReferences: withoutOwner(pod, metadata.uid) },
        });
    } else if (controller === undefined && matches && isActive(pod)) {
      const reference = controllerReference(owner.apiVersion, owner.kind, owner.object);
      const ownerReferences = [...(pod.metadata.ownerReferences ?? []), reference];
      own.push(await cluster.update("pods.", { ...pod, metadata: { ...pod.metadata, ownerReferences } }));
    }
  }
  return own;
}

function withoutOwner({ metadata }: Pod, owner: string) {
  return (metadata.ownerReferences ?? []).filter(({ uid }) => uid !== owner);
}

/** Maps a Pod to the keys of the workloads that own it or could adopt it. */
export function ownersOf(kind: {
  plural: string;
  kind: string;
}): (changed: KubernetesObject, cluster: Cluster) => string[] {
  return (changed, cluster) => {
    const controller = controllerOf(changed);
    const { namespace = "", labels } = changed.metadata;
    if (controller !== undefined) return controller.kind === kind.kind ? [`${namespace}/${controller.name}`] : [];
    const workloads = cluster.list<Workload>(kind.plural, namespace);
    return workloads.filter(({ spec }) => selects(spec.selector, labels)).map(({ metadata }) => keyOfObject(metadata));
  };
}
