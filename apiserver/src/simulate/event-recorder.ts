// Records Events as the event recorder of client-go does: sequentially and asynchronously. A write is retried if it gets no answer or the
// server is busy; an Event that the server rejects is dropped.
import { sleep } from "../clock.js";
import { type ApiClient, ApiError, isNotFound } from "./feed/api-client.js";
import type { Manager } from "./feed/cluster.js";
import { type KubernetesObject, type ResourceKind, apiVersionOf } from "./feed/kubernetes-object.js";
import { timestamp } from "./pods/pod.js";

/** The content of an Event. */
export interface EventDetail {
  reason: string;
  message: string;
  /** Default: Normal */
  type?: "Normal" | "Warning";
  /** Path of the part of the object that the Event is about, such as `spec.containers{web}`. */
  fieldPath?: string;
  /** The reporting component. Default: the controller of the kind of the object */
  by?: Teller;
}

/** A reporting component other than the controllers: the kubelet of a Node, the scheduler with its action, or a component by name. */
type Teller = { kubelet: string } | { action: "Binding" | "Scheduling" } | { component: string };

export interface EventRecorder {
  record(kind: ResourceKind, object: KubernetesObject, detail: EventDetail): void;
}

const COMPONENTS: Record<string, string> = {
  Deployment: "deployment-controller",
  ReplicaSet: "replicaset-controller",
  StatefulSet: "statefulset-controller",
  DaemonSet: "daemonset-controller",
  Job: "job-controller",
  CronJob: "cronjob-controller",
  HorizontalPodAutoscaler: "horizontal-pod-autoscaler",
  PodDisruptionBudget: "controllermanager",
  PersistentVolumeClaim: "persistentvolume-controller",
};
/** Creates a recorder that records until the signal is aborted. */
export function createEventRecorder(
  client: ApiClient,
  { signal, now: timeOf }: { signal: AbortSignal; now: () => Date },
): EventRecorder {
  const correlator = new EventCorrelator();
  let sent: Promise<unknown> = Promise.resolve();
  return {
    record(kind, object, detail) {
      const now = timeOf();
      const { metadata, ...event } = eventOf(kind, object, detail);
      const { source, reportingComponent, involvedObject, type, reason, message } = event;
      const subject = JSON.stringify([source, reportingComponent, { ...involvedObject, resourceVersion: "" }]);
      const occurrence = { subject, type, reason, message };
      const told = correlator.correlate(occurrence, { nowMs: now.getTime(), name: nameOf(object, now) });
      if (told === undefined) return;
      const { name, count } = told;
      const path = `/api/v1/namespaces/${metadata.namespace}/events`;
      const query = `?fieldManager=${managerOf(detail.by)}`;
      const times = timesOf(now, count, detail.by);
      const component = told.isCombined ? { reportingComponent: "" } : {};
      const body = { metadata: { ...metadata, name }, ...event, ...component, ...times, message: told.message };
      const create = () => client.request({ method: "POST", path: path + query, body });
      const write = async (): Promise<unknown> => {
        if (count === 1) return create();
        const { firstTimestamp: _, ...change } = times;
        const patch = {
          method: "PATCH",
          path: `${path}/${name}${query}`,
          body: { ...change, message: told.message },
        } as const;
        return client.request(patch).catch((error: unknown) => {
          if (isNotFound(error)) return create();
          throw error;
        });
      };
      sent = sent.then(() => writeWithRetries(write, signal));
    },
  };
}

/** Attempts for an Event (maxTriesPerEvent in client-go). */
const MAX_ATTEMPTS = 12;
/** Shorter than in client-go, where it is 10 s. */
const RETRY_MS = 500;

async function writeWithRetries(write: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS && !signal.aborted; attempt++) {
    try {
      await write();
      return;
    } catch (error) {
      const isRejected = error instanceof ApiError && error.status < 500 && error.status !== 429;
      if (isRejected) return;
      await sleep(RETRY_MS, { signal, ref: false });
    }
  }
}

function eventOf(
  kind: ResourceKind,
  { metadata }: KubernetesObject,
  { reason, message, type, fieldPath, by }: EventDetail,
) {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    // Events of cluster-scoped objects are in namespace `default`.
    metadata: { namespace: namespace ?? "default" },
    involvedObject: {
      ...{ apiVersion: apiVersionOf(kind), kind: kind.kind, name, uid, resourceVersion },
      ...(namespace === undefined ? {} : { namespace }),
      ...(fieldPath === undefined ? {} : { fieldPath }),
    },
    ...{ reason, message, type: type ?? "Normal" },
    ...sourceOf(kind, by),
  };
}

function sourceOf({ kind }: ResourceKind, by: Teller | undefined) {
  if (by !== undefined && "action" in by) {
    const reportingComponent = "default-scheduler";
    return { source: {}, action: by.action, reportingComponent, reportingInstance: `${reportingComponent}-simulated` };
  }
  if (by !== undefined && "kubelet" in by) {
    const source = { component: "kubelet", host: by.kubelet };
    return { source, reportingComponent: "kubelet", reportingInstance: by.kubelet };
  }
  const component = by?.component ?? COMPONENTS[kind] ?? "controllermanager";
  return { source: { component }, reportingComponent: component, reportingInstance: "" };
}

/** The scheduler uses events.k8s.io Events, which count repetitions in a series. */
function timesOf(now: Date, count: number, by: Teller | undefined) {
  const micro = now.toISOString().replace("Z", "000Z");
  if (by !== undefined && "action" in by)
    return count === 1 ? { eventTime: micro } : { eventTime: micro, series: { count, lastObservedTime: micro } };
  const lastTimestamp = timestamp(now);
  return { firstTimestamp: lastTimestamp, lastTimestamp, count };
}

function managerOf(by: Teller | undefined): Manager {
  if (by === undefined || "component" in by) return "kube-controller-manager";
  return "kubelet" in by ? "kubelet" : "kube-scheduler";
}

let names = 0n;

/** The name of an Event ends with its time in nanoseconds; a Date has milliseconds only, so a counter supplies the rest. */
function nameOf({ metadata }: KubernetesObject, now: Date): string {
  names = (names + 1n) % 1_000_000n;
  return `${metadata.name}.${(BigInt(now.getTime()) * 1_000_000n + names).toString(16)}`;
}

// Correlates Events as the EventCorrelator of client-go 0.36 does: repeated Events are counted, similar ones are aggregated, and the spam filter
// limits the rate per object.

/** An Event before correlation; the strings identify its source and object. */
interface Occurrence {
  /** The reporting component and the involved object. */
  subject: string;
  type: string;
  reason: string;
  message: string;
}

/** The Event to write. A count of 1 creates it; otherwise the existing Event is updated. */
interface Correlated {
  name: string;
  count: number;
  message: string;
  isCombined: boolean;
}

const COMBINED_FROM = 10;
const COMBINED_WITHIN_MS = 600_000;
const BURST = 25;
const REFILL_MS = 300_000;
const CACHE_LIMIT = 4_096;

/** Keeps the state of aggregation, counting, and rate limiting. */
export class EventCorrelator {
  readonly #similar = new Map<string, { messages: Set<string>; last: number }>();
  readonly #told = new Map<string, { name: string; count: number }>();
  readonly #allowances = new Map<string, { left: number; at: number }>();

  /** Returns the Event to write, with `name` if it is new; undefined if the object exceeds its rate limit. */
  correlate(occurrence: Occurrence, { nowMs, name }: { nowMs: number; name: string }): Correlated | undefined {
    const { subject, type, reason, message } = occurrence;
    const group = [subject, type, reason].join("\n");
    const isCombined = this.#isOneOfMany(group, message, nowMs);
    const key = isCombined ? group : `${group}\n${message}`;
    const known = this.#told.get(key);
    const told = { name: known?.name ?? name, count: (known?.count ?? 0) + 1 };
    remember(this.#told, key, told);
    if (!this.#isAllowed(subject, nowMs)) return undefined;
    return { ...told, message: isCombined ? `(combined from similar events): ${message}` : message, isCombined };
  }

  #isOneOfMany(group: string, message: string, nowMs: number): boolean {
    const known = this.#similar.get(group);
    const messages =
      known === undefined || nowMs - known.last > COMBINED_WITHIN_MS ? new Set<string>() : known.messages;
    messages.add(message);
    remember(this.#similar, group, { messages, last: nowMs });
    if (messages.size < COMBINED_FROM) return false;
    messages.delete(messages.values().next().value as string);
    return true;
  }

  #isAllowed(subject: string, nowMs: number): boolean {
    const { left, at } = this.#allowances.get(subject) ?? { left: BURST, at: nowMs };
    const refilled = Math.min(BURST, left + (nowMs - at) / REFILL_MS);
    const isAllowed = refilled >= 1;
    remember(this.#allowances, subject, { left: isAllowed ? refilled - 1 : refilled, at: nowMs });
    return isAllowed;
  }
}

// Evicts the least recently used entry.
function remember<Value>(cache: Map<string, Value>, key: string, value: Value): void {
  cache.delete(key);
  cache.set(key, value);
  if (cache.size > CACHE_LIMIT) cache.delete(cache.keys().next().value as string);
}
