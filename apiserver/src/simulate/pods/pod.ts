import type { KubernetesObject, OwnerReference } from "../feed/kubernetes-object.js";
import type { ContainerStatus } from "./pod-status.js";
import type { Affinity } from "./schedule.js";

/** A condition in a status. */
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

/** A container of a Pod. */
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

/** A key of a Secret or ConfigMap. */
export interface KeySelector extends ObjectSelector {
  key: string;
}

/** A volume of a Pod. */
export interface Volume {
  name: string;
  persistentVolumeClaim?: { claimName: string };
  secret?: { secretName?: string; optional?: boolean; items?: { key: string }[] };
  configMap?: VolumeInput;
  projected?: { sources?: ProjectedSource[] | null };
}

/** A part of a projected volume. */
export interface ProjectedSource {
  secret?: VolumeInput;
  configMap?: VolumeInput;
}

interface VolumeInput extends ObjectSelector {
  items?: { key: string }[];
}

/** A toleration of a Pod. */
export interface Toleration {
  key?: string;
  operator?: string;
  effect?: string;
  value?: string;
  tolerationSeconds?: number;
}

/** What is read from the spec of a Pod. */
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

/** What is read from the status of a Pod. */
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

/** A Pod, as controllers see it. */
export interface Pod extends KubernetesObject {
  spec: PodSpec;
  status?: PodStatus;
}

/** The template of the Pods of a workload. */
export interface PodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string>; finalizers?: string[] };
  spec: PodSpec;
}

/** Has this Pod come to its end, by whoever's hand? */
export function isFinished({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** Does this Pod count as one that runs, or will? */
export function isActive(pod: Pod): boolean {
  return !isFinished(pod) && pod.metadata.deletionTimestamp === undefined;
}

/** The condition Ready, if it is true. */
function readyCondition({ status }: Pod): StatusCondition | undefined {
  return status?.conditions?.find(({ type, status }) => type === "Ready" && status === "True");
}

/** Is the Pod ready? */
export function isReady(pod: Pod): boolean {
  return readyCondition(pod) !== undefined;
}

/** How long it takes until a Pod counts as available: 0 once it does, `undefined` while it is not even ready. */
export function msUntilAvailable(pod: Pod, minReadySeconds: number | undefined, now: Date): number | undefined {
  const ready = readyCondition(pod);
  if (ready === undefined) return undefined;
  const since = Date.parse(ready.lastTransitionTime);
  return Math.max(0, (minReadySeconds ?? 0) * 1000 - (now.getTime() - since));
}

/** The reference that makes an object the controller of what it creates. */
export function controllerReference(apiVersion: string, kind: string, { metadata }: KubernetesObject): OwnerReference {
  const { name, uid } = metadata;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** RFC 3339, in seconds. */
export function timestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}

/** Takes over the times of the conditions before: of the transition while the status stays, of the update while all does. */
export function keepTimes(conditions: StatusCondition[], before: StatusCondition[] = []): StatusCondition[] {
  return conditions.map((condition) => {
    const old = before.find(({ type }) => type === condition.type);
    if (old?.status !== condition.status) return condition;
    const { lastTransitionTime, lastUpdateTime } = old;
    const isSame = old.reason === condition.reason && old.message === condition.message;
    return { ...condition, lastTransitionTime, ...(isSame && lastUpdateTime !== undefined ? { lastUpdateTime } : {}) };
  });
}

/** Sets conditions among those that are there, whose times stay where nothing changes. */
export function withConditions(before: StatusCondition[] = [], ours: StatusCondition[]): StatusCondition[] {
  const timed = keepTimes(ours, before);
  const replaced = before.map((condition) => timed.find(({ type }) => type === condition.type) ?? condition);
  return [...replaced, ...timed.filter(({ type }) => !before.some((condition) => condition.type === type))];
}
