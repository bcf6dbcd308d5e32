import type { KubernetesObject, OwnerReference } from "../feed/kubernetes-object.js";
import type { ContainerStatus } from "./pod-status.js";
import type { Affinity } from "./schedule.js";

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

export interface Container {
  name: string;
  image?: string;
  restartPolicy?: string;
  env?: { name: string; value?: string; valueFrom?: EnvironmentSource }[];
  resources?: { requests?: Record<string, string> };
  envFrom?: { secretRef?: ObjectSelector; configMapRef?: ObjectSelector }[];
  ports?: { name?: string; containerPort: number; protocol?: string }[];
}

interface EnvironmentSource {
  secretKeyRef?: KeySelector;
  configMapKeyRef?: KeySelector;
  fieldRef?: object;
}

interface ObjectSelector {
  name?: string;
  optional?: boolean;
}

/** Reference to a key of a Secret or ConfigMap. */
export interface KeySelector extends ObjectSelector {
  key: string;
}

export interface Volume {
  name: string;
  persistentVolumeClaim?: { claimName: string };
  secret?: { secretName?: string; optional?: boolean; items?: { key: string }[] };
  configMap?: VolumeInput;
  projected?: { sources?: ProjectedSource[] | null };
}

/** A source of a projected volume. */
export interface ProjectedSource {
  secret?: VolumeInput;
  configMap?: VolumeInput;
}

interface VolumeInput extends ObjectSelector {
  items?: { key: string }[];
}

export interface Toleration {
  key?: string;
  operator?: string;
  effect?: string;
  value?: string;
  tolerationSeconds?: number;
}

/** The fields of a Pod spec that the simulation reads. */
export interface PodSpec {
  nodeName?: string;
  hostname?: string;
  subdomain?: string;
  restartPolicy?: string;
  nodeSelector?: Record<string, string>;
  containers?: Container[];
  initContainers?: Container[];
  volumes?: Volume[];
  tolerations?: Toleration[];
  readinessGates?: { conditionType: string }[];
  schedulingGates?: object[];
  affinity?: Affinity;
  schedulerName?: string;
}

/** The fields of a Pod status that the simulation reads. */
export interface PodStatus {
  phase?: string;
  podIP?: string;
  podIPs?: { ip: string }[];
  startTime?: string;
  conditions?: StatusCondition[];
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: ContainerStatus[];
  [member: string]: unknown;
}

export interface Pod extends KubernetesObject {
  spec: PodSpec;
  status?: PodStatus;
}

export interface PodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string>; finalizers?: string[] };
  spec: PodSpec;
}

/** True if the phase is Succeeded or Failed. */
export function isFinished({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** True if the Pod is neither finished nor being deleted. */
export function isActive(pod: Pod): boolean {
  return !isFinished(pod) && pod.metadata.deletionTimestamp === undefined;
}

/** Returns the Ready condition if it is true. */
function readyCondition({ status }: Pod): StatusCondition | undefined {
  return status?.conditions?.find(({ type, status }) => type === "Ready" && status === "True");
}

export function isReady(pod: Pod): boolean {
  return readyCondition(pod) !== undefined;
}

/** Returns the milliseconds until a Pod is available: 0 if it is, undefined while it is not ready. */
export function msUntilAvailable(pod: Pod, minReadySeconds: number | undefined, now: Date): number | undefined {
  const ready = readyCondition(pod);
  if (ready === undefined) return undefined;
  const since = Date.parse(ready.lastTransitionTime);
  return Math.max(0, (minReadySeconds ?? 0) * 1000 - (now.getTime() - since));
}

/** Builds the controller reference to an owner. */
export function controllerReference(apiVersion: string, kind: string, { metadata }: KubernetesObject): OwnerReference {
  const { name, uid } = metadata;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** Formats as RFC 3339, in seconds. */
export function timestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}

/** Keeps the times of existing conditions: lastTransitionTime if the status is unchanged, lastUpdateTime if reason and message are unchanged, too. */
export function keepTimes(conditions: StatusCondition[], before: StatusCondition[] = []): StatusCondition[] {
  return conditions.map((condition) => {
    const old = before.find(({ type }) => type === condition.type);
    if (old?.status !== condition.status) return condition;
    const { lastTransitionTime, lastUpdateTime } = old;
    const isSame = old.reason === condition.reason && old.message === condition.message;
    return { ...condition, lastTransitionTime, ...(isSame && lastUpdateTime !== undefined ? { lastUpdateTime } : {}) };
  });
}

/** Replaces or appends conditions and keeps the times of unchanged ones. */
export function withConditions(before: StatusCondition[] = [], ours: StatusCondition[]): StatusCondition[] {
  const timed = keepTimes(ours, before);
  const replaced = before.map((condition) => timed.find(({ type }) => type === condition.type) ?? condition);
  return [...replaced, ...timed.filter(({ type }) => !before.some((condition) => condition.type === type))];
}
