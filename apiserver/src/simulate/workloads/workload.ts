import { createHash } from "node:crypto";
import type { KubernetesObject } from "../feed/kubernetes-object.js";

/** What is read from the specs of the workloads; the server has filled in their defaults. */
export interface WorkloadSpec {
  replicas?: number;
  paused?: boolean;
  strategy?: { type?: string; rollingUpdate?: { maxUnavailable?: number | string } };
  template?: unknown;
  /** Of a Job. */
  completions?: number;
  parallelism?: number;
  suspend?: boolean;
  /** Of a Pod. */
  containers?: Container[];
  initContainers?: Container[];
}

/** A container of a Pod. */
export interface Container {
  name: string;
  image?: string;
}

/** A Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or Pod. */
export interface Workload extends KubernetesObject {
  spec: WorkloadSpec;
  status?: Record<string, unknown>;
}

/** What a controller writes. */
export interface WorkloadUpdate {
  status: Record<string, unknown>;
  annotations?: Record<string, string>;
}

/** When, and in which state of its pods, the status of a workload is computed. */
export interface StatusContext {
  stage: "started" | "ready";
  /** RFC 3339, in seconds. */
  now: string;
}

/** Computes what the controller of a kind writes; undefined where it has nothing to say. */
export type ComputeUpdate = (workload: Workload, context: StatusContext) => WorkloadUpdate | undefined;

/** Leaves out what is zero, as Kubernetes does with most counts. */
export function nonZero(counts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}

/** A count in a status; 0 where it is left out. */
export function countAt(status: Record<string, unknown> | undefined, field: string): number {
  const value = status?.[field];
  return typeof value === "number" ? value : 0;
}

// The alphabet of generated names: no vowels, nothing that looks like another letter.
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/** A short name for a pod template, like those that the names of replica sets and revisions end with. */
export function templateHash(template: unknown): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(template ?? null))
    .digest();
  return [...digest.subarray(0, 10)].map((byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

/** A condition of a workload. */
export interface StatusCondition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason?: string;
  message?: string;
  lastTransitionTime: string;
  lastUpdateTime?: string;
  lastProbeTime?: string | null;
  observedGeneration?: number;
}

/** Takes over the times of the conditions before: of the transition while the status stays, of the update while all does. */
export function keepTimes(conditions: StatusCondition[], before: unknown): StatusCondition[] {
  const olds = Array.isArray(before) ? (before as StatusCondition[]) : [];
  return conditions.map((condition) => {
    const old = olds.find(({ type }) => type === condition.type);
    if (old?.status !== condition.status) return condition;
    const { lastTransitionTime, lastUpdateTime } = old;
    const isSame = old.reason === condition.reason && old.message === condition.message;
    return { ...condition, lastTransitionTime, ...(isSame && lastUpdateTime !== undefined ? { lastUpdateTime } : {}) };
  });
}
