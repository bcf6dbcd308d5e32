// Types in which parts of the runtime report their work and its causes, for logs, metrics, traces and Events. Times are on the clock of the
// controller (`performance.now()`).
import { type KubernetesObject, type ObjectKey, keyOf } from "./kubernetes-object.js";
import type { Logger } from "./logger.js";

/** The time that a dependent took in one run of a workflow, including waits for a worker, retries, user functions and the API server. */
export interface StepTiming {
  readonly dependent: string;
  readonly startedAt: number;
  readonly durationMs: number;
  /** The kind of the outcome: `created`, `updated`, `unchanged`, `waiting`, `deleted`, `inactive`, `left` or `failed`. */
  readonly outcome: string;
}

/** The activity of a controller at one point in time. */
export interface ControllerActivity {
  /** How often primaries were enqueued since the start (`workqueue_adds_total`). */
  readonly submissions: number;
  readonly queued: number;
  readonly running: number;
  /** The maximum number of concurrent reconciles. */
  readonly maxRunning: number;
  /** How long all reconciles in progress have been running, in total (`workqueue_unfinished_work_seconds`, in milliseconds). */
  readonly unfinishedMs: number;
  /** How long the longest reconcile in progress has been running. */
  readonly longestMs: number;
}

/**
 * Why a watch ended: regularly at its timeout, because its resourceVersion was too old (410 Gone), because etcd was restored to an older state, or
 * with an error.
 */
export type WatchEnd = "ended" | "expired" | "restored" | "failed";

/** The activity of an informer since its start. */
export interface InformerActivity {
  /** `Kind.version.group` */
  readonly kind: string;
  /** Absent if the informer watches all namespaces. */
  readonly namespace: string | undefined;
  readonly server: string;
  readonly objects: number;
  /** Whether the objects of the kind are known: they have been listed, or the API server does not serve the kind. */
  readonly isKnown: boolean;
  /** When the watch last received data. Absent before it did. */
  readonly receivedAt: number | undefined;
  /** The number of watches that ended, by reason. */
  readonly ends: Readonly<Partial<Record<WatchEnd, number>>>;
}

/** The health of the watch of one kind in one namespace. */
export interface NamespaceHealth {
  /** `unknown` until the first list has succeeded or failed; `failing` after a failure of the watch until its next success. */
  readonly status: "unknown" | "synced" | "failing";
  /** Why the watch fails. */
  readonly reason?: string;
}

/** The health of an event source. `reason` is text for logs and the health endpoint. */
export interface SourceHealth {
  readonly status: "healthy" | "unhealthy" | "unknown";
  readonly reason?: string;
  /** Whether the source is unhealthy only because the API server does not serve its kind, so that no objects of it exist. */
  readonly isUnserved?: true;
  /** Set if the source watches a list of namespaces and not all of them are synced. */
  readonly namespaces?: { readonly [namespace: string]: NamespaceHealth };
}

/** A primary that is not reconciled yet because its secondaries have not been listed. */
export interface WaitingPrimary {
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
  /** What has not been listed, and why. */
  readonly reason: string;
}

/** The primaries that wait until their secondaries have been listed. */
export interface WaitingPrimaries {
  readonly count: number;
  /** The first ten of these primaries. */
  readonly primaries: readonly WaitingPrimary[];
}

/** An attempt of a request that got a response or failed. */
export interface RequestObservation {
  readonly method: string;
  readonly path: string;
  /** The HTTP status code. Absent without a response. */
  readonly status?: number | undefined;
  readonly durationMs: number;
}

/** Describes a reconcile that starts. */
export interface ReconcileFacts {
  readonly controller: string;
  /** `namespace/name` */
  readonly primary: string;
  /** The number of preceding failures; 0 unless the previous reconcile failed. */
  readonly attempt: number;
  /** How long the primary waited in the queue. */
  readonly queuedMs: number;
  readonly reasons: readonly string[];
}

/** Returns at most `limit` paths of fields that differed from the desired object, such as `spec.replicas`. Never contains a value. */
export type ChangedPaths = (limit: number) => readonly string[];

/** A write that is postponed because of a write loop. It is sent after the backoff. */
export interface PostponedWrite {
  /** The kind of the object, such as `Deployment.v1.apps`. */
  readonly kind: string;
  /** `namespace/name` of the object. */
  readonly object: ObjectKey;
  /** `undone`: the writes have the same content each time. `unsettled`: their content changes each time. */
  readonly loop: "undone" | "unsettled";
  /** The number of writes of the loop so far. */
  readonly writes: number;
  /** The fields that differ, such as `spec.replicas`. Empty if the whole object is missing. */
  readonly paths: readonly string[];
  /** The field managers that last wrote these fields, according to `managedFields`. */
  readonly managers: readonly string[];
  readonly retryAfterMs: number;
}

/** The primary and the dependent for which an object is written. */
export interface WrittenFor {
  readonly primary?: KubernetesObject | undefined;
  readonly dependent?: string | undefined;
}

/** Used in place of the kind in reports about external dependents. */
export const EXTERNAL_KIND = "ExternalResource";

/** A write of a loop, with the fields that differed before it. */
export interface LoopWrite extends Omit<PostponedWrite, "retryAfterMs" | "managers"> {
  /** Whether this write made it a loop. */
  readonly isNew: boolean;
  /** How long no further write is sent to the object. */
  readonly pauseMs: number;
}

/** A write of a loop: another client reverts the object each time, or its desired state changes each time. */
export interface LoopEvent extends LoopWrite {
  readonly controller: string;
  /** Absent if the object does not belong to a dependent. */
  readonly dependent?: string;
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
}

/** Called for each write of a write loop. Must not throw. */
export type LoopObserver = (event: LoopEvent) => void;

/** Notified of writes that are part of a loop. Must not throw. */
export interface LoopListener {
  /** Returns a string that identifies the input of a write: the user-edited state of the primary. Writes with different inputs are not a loop. */
  inputOf(primary: KubernetesObject | undefined): string;
  /** Called after each write of a loop. `isUrgent` writes are never postponed. */
  onLoop(written: LoopWrite & { readonly isUrgent?: boolean }, cause: WrittenFor): void;
  /** Called when a write is postponed. The primary must be reconciled again after `retryAfterMs`. */
  onPostponed(postponed: PostponedWrite, cause: WrittenFor): void;
}

/** Records work as spans. Calls `work` immediately and returns its result. */
export interface Tracing {
  reconcile<Outcome extends { readonly failure?: { readonly error: unknown } }>(
    facts: ReconcileFacts,
    work: () => Promise<Outcome>,
  ): Promise<Outcome>;
  /** A string outcome is the reason why the dependent does not claim an object in this run. */
  dependent<Outcome extends string | { readonly kind: string }>(
    name: string,
    work: () => Promise<Outcome>,
  ): Promise<Outcome>;
  /** Records a change of an object by the dependent in progress. A created object has no changed paths. */
  changed(pathsOf: ChangedPaths): void;
  /** Records an attempt of a request that has ended. */
  request(request: RequestObservation): void;
}

/** An Event, as specified by the user. */
export interface EventDraft {
  /** Default: `Normal` */
  readonly type?: "Normal" | "Warning" | undefined;
  /** Why the Event is recorded: one word in UpperCamelCase. */
  readonly reason: string;
  /** What happened. If the same Event is recorded again, the note of the first one is kept. */
  readonly note: string;
  /** What the controller did: one word in UpperCamelCase. Default: `Reconcile` */
  readonly action?: string | undefined;
  /** Another object that the Event relates to. */
  readonly related?: KubernetesObject | undefined;
}

/** The controller that records an Event, and the object that the Event regards. */
export interface EventSourceName {
  readonly controller: string;
  readonly about: KubernetesObject;
}

/** Records Events on behalf of controllers. */
export interface EventSink {
  /** Records an Event, or increments the count of an equal one. Returns immediately; an Event that cannot be written is logged and dropped. */
  record(source: EventSourceName, draft: EventDraft): void;
}

/** Destinations of a controller's reports about its primaries. */
export interface Reporter {
  readonly controller: string;
  readonly logger: Logger;
  readonly events: EventSink;
}

/** A problem of a primary. Its note is used for the Event and for the log line. */
interface Report extends EventDraft {
  readonly type: "Warning";
  /** Additional fields of the log line. */
  readonly fields?: object;
}

/** Logs a problem of a primary and records it as a Warning Event. */
export function report(
  { controller, logger, events }: Reporter,
  about: KubernetesObject,
  { fields, ...draft }: Report,
): void {
  logger.warn({ controller, primary: keyOf(about.metadata), ...fields }, draft.note);
  events.record({ controller, about }, draft);
}

/** Why a primary is reconciled, for logs and observers. The reconcile itself is level-based and sees only state. */
export type ReconcileReason =
  /** The primary changed. `isInitial`: the change was found by a list, at the start or after a lost watch, not by a watch event. */
  | { readonly kind: "primary"; readonly change: "added" | "updated" | "deleted"; readonly isInitial: boolean }
  /** A secondary resource of the primary changed, according to this event source. `type` is its kind, if it is a Kubernetes object. */
  | {
      readonly kind: "secondary";
      readonly source: string;
      readonly type?: string;
      readonly object?: ObjectKey;
      readonly isInitial: boolean;
      /** Whether nothing changed: a timer of the runtime expired, such as the backoff of a postponed write. */
      readonly isTimer?: boolean;
    }
  /** The previous reconcile failed. `attempt` starts at 1. */
  | { readonly kind: "retry"; readonly attempt: number }
  /** The previous reconcile asked to be rescheduled. */
  | { readonly kind: "reschedule" }
  /** The maximum reconcile interval has passed without a reconcile. */
  | { readonly kind: "resync" };

/** Returns a description of a reason for log lines, such as `primary updated`, `web home/page changed` or `retry 2`. */
export function describeReason(reason: ReconcileReason): string {
  switch (reason.kind) {
    case "primary":
      return `primary ${reason.change}`;
    case "secondary":
      return reason.object === undefined ? `${reason.source} changed` : `${reason.source} ${reason.object} changed`;
    case "retry":
      return `retry ${reason.attempt}`;
    default:
      return reason.kind;
  }
}

/** Describes a change reported by an event source, apart from the primaries that it affects. */
export interface SecondaryCause {
  /** The dependent that the object belongs to. Default: the name of the event source */
  readonly source?: string;
  /** The kind of the object. */
  readonly type?: string;
  readonly object?: ObjectKey;
  /** Whether a list found the change, not a watch event. */
  readonly isInitial?: boolean;
  /** Whether nothing changed: a timer of the runtime expired. */
  readonly isTimer?: boolean;
}

/** Enqueues a primary of the controller. */
export type Requeue = (primary: ObjectKey, cause: SecondaryCause & { readonly source: string }) => void;
