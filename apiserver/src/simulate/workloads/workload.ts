// What the controllers of workloads have in common.
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

/** What the specs of the workloads have in common; the server has filled in the defaults. */
export interface WorkloadSpec {
  replicas?: number;
  selector?: LabelSelector;
  template: PodTemplate;
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
}

/** A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job. */
export interface Workload<Spec extends WorkloadSpec = WorkloadSpec> extends KubernetesObject {
  spec: Spec;
  status?: WorkloadStatus;
}

/** A status of a workload. */
export interface WorkloadStatus {
  conditions?: StatusCondition[];
  [member: string]: unknown;
}

/** Leaves out what is zero, as Kubernetes does with most counts. */
export function nonZero(counts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}

/** A count in a status; 0 where it is left out. */
export function countAt(status: object | undefined, field: string): number {
  const value = (status as Record<string, unknown> | undefined)?.[field];
  return typeof value === "number" ? value : 0;
}

/** A short name for a pod template, like those that the names of replica sets and revisions end with. */
export function templateHash(template: unknown, collisions = 0): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(template ?? null) + (collisions === 0 ? "" : String(collisions)))
    .digest();
  return [...digest.subarray(0, 10)].map((byte) => NAME_CHARACTERS[byte % NAME_CHARACTERS.length]).join("");
}

/** A new Pod of a workload, without a name. */
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

/** Creates a Pod of a workload, and tells so; tells why, too, if it cannot be created. */
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

/** Deletes a Pod of a workload, and tells so. */
export async function deletePod(cluster: Cluster, { kind, object }: Owner, pod: Pod): Promise<void> {
  await cluster.remove("pods.", pod);
  cluster.record(kind, object, { reason: "SuccessfulDelete", message: `Deleted pod: ${pod.metadata.name}` });
}

/** A workload, and its kind by `plural.group`. */
export interface Owner {
  kind: string;
  object: KubernetesObject;
}

/** How many Pods are ready and available, and when the next one will be. */
export function readiness(pods: Pod[], minReadySeconds: number | undefined, now: Date): Readiness {
  const waits = pods.map((pod) => msUntilAvailable(pod, minReadySeconds, now)).filter((ms) => ms !== undefined);
  const pending = waits.filter((ms) => ms > 0);
  return {
    ready: waits.length,
    available: waits.length - pending.length,
    ...(pending.length === 0 ? {} : { again: Math.min(...pending) }),
  };
}

/** Counts of Pods. */
export interface Readiness {
  ready: number;
  available: number;
  again?: number;
}

/**
 * Lets the Pods of a selector belong to a workload, as far as nobody controls them, and lets go of those that no longer match.
 *
 * Returns those that belong to it.
 */
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

/** The keys of the workloads of a kind that a Pod belongs to, or may come to belong to. */
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
