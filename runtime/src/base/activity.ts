// What parts of the runtime say of their work, and why it is done, for logs, metrics, traces and Events. Times are by the clock of the controller (`performance.now()`).
import { type KubernetesObject, type ObjectKey, keyOf } from "./kubernetes-object.js";
import type { Logger } from "./logger.js";

/** The time that one dependent took in one run of a workflow, with its waits: for a worker, a retry, functions of the user, the API server. */
export interface StepTiming {
  readonly dependent: string;
  readonly startedAt: number;
  readonly durationMs: number;
  /** The kind of its outcome: `created`, `updated`, `unchanged`, `waiting`, `deleted`, `inactive`, `left` or `failed`. */
  readonly outcome: string;
}

/** The activity of a controller at one moment. */
export interface ControllerActivity {
  /** How often a primary was put into the queue since the start. */
  readonly submissions: number;
  readonly queued: number;
  readonly running: number;
  /** The limit of concurrent reconciles. */
  readonly maxRunning: number;
  /** The sum of the times that the reconciles in progress have run. */
  readonly unfinishedMs: number;
  /** The time that the longest of them has run. */
  readonly longestMs: number;
}

/** Why a watch ended: the server ended it in time, had forgotten its version, or was restored to an older state; or it failed. */
export type WatchEnd = "ended" | "expired" | "restored" | "failed";

/** The activity of an informer since its start. */
export interface InformerActivity {
  /** `Kind.version.group` */
  readonly kind: string;
  /** Absent for all namespaces. */
  readonly namespace: string | undefined;
  readonly server: string;
  readonly objects: number;
  /** Whether its objects are known: it was listed, or the API server does not serve the kind. */
  readonly isKnown: boolean;
  /** When its watch last received something; absent before. */
  readonly receivedAt: number | undefined;
  /** The number of watches that ended, by reason. */
  readonly ends: Readonly<Partial<Record<WatchEnd, number>>>;
}

/** The state of the watch of one kind in one namespace. */
export interface NamespaceHealth {
  /** `unknown` until the first list has ended or failed; `failing` from a failure of the watch to its next success. */
  readonly status: "unknown" | "synced" | "failing";
  /** Why it fails. */
  readonly reason?: string;
}

/** The health of an event source; `reason` is a text for the log and the health endpoint. */
export interface SourceHealth {
  readonly status: "healthy" | "unhealthy" | "unknown";
  readonly reason?: string;
  /** Whether it only fails because the API server does not serve the kind, so that it is known to have no objects. */
  readonly isUnserved?: true;
  /** The namespaces that the source watches, where it watches a list of them and not all of them are synced. */
  readonly namespaces?: { readonly [namespace: string]: NamespaceHealth };
}

/** A primary that is not reconciled yet, because its secondaries are not listed yet. */
export interface WaitingPrimary {
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
  /** What is not listed, and why. */
  readonly reason: string;
}

/** The primaries that wait until their secondaries are listed. */
export interface WaitingPrimaries {
  readonly count: number;
  /** The first ten of these primaries. */
  readonly primaries: readonly WaitingPrimary[];
}

/** An attempt of a request that was answered or has failed. */
export interface RequestObservation {
  readonly method: string;
  readonly path: string;
  /** Absent if there was no answer. */
  readonly status?: number | undefined;
  readonly durationMs: number;
}

/** The facts of a reconcile that begins. */
export interface ReconcileFacts {
  readonly controller: string;
  /** `namespace/name` */
  readonly primary: string;
  /** 0 unless the previous reconcile failed. */
  readonly attempt: number;
  /** How long the primary waited in the queue. */
  readonly queuedMs: number;
  readonly reasons: readonly string[];
}

/** Returns the places, `limit` at most, where an object was not as desired, such as `spec.replicas`; never a value. */
export type ChangedPaths = (limit: number) => readonly string[];

/** A write that is postponed because of a write loop; it is made after the pause. */
export interface PostponedWrite {
  /** The kind of the object, such as `Deployment.v1.apps`. */
  readonly kind: string;
  /** `namespace/name` of the object. */
  readonly object: ObjectKey;
  /** `undone`: the same content each time. `unsettled`: another content each time. */
  readonly loop: "undone" | "unsettled";
  /** How many writes belong to the loop so far. */
  readonly writes: number;
  /** The fields that differ, such as `spec.replicas`; empty if the object itself is missing. */
  readonly paths: readonly string[];
  /** The field managers that last wrote these fields, from `managedFields`. */
  readonly managers: readonly string[];
  readonly retryAfterMs: number;
}

/** The primary and the dependent that a write is for. */
export interface WrittenFor {
  readonly primary?: KubernetesObject | undefined;
  readonly dependent?: string | undefined;
}

/** Stands for the kind in reports of writes of external dependents. */
export const EXTERNAL_KIND = "ExternalResource";

/** A write that belongs to a loop, with the fields that differed before it. */
export interface LoopWrite extends Omit<PostponedWrite, "retryAfterMs" | "managers"> {
  /** Whether it made the writes a loop. */
  readonly isNew: boolean;
  /** How long the object is left as it is. */
  readonly pauseMs: number;
}

/** A write loop: another client reverts the object each time, or its desired state never settles. */
export interface LoopEvent extends LoopWrite {
  readonly controller: string;
  /** Absent if no dependent manages the object. */
  readonly dependent?: string;
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
}

/** Called for every write of a write loop; must not throw. */
export type LoopObserver = (event: LoopEvent) => void;

/** Notified of writes that belong to a loop; must not throw. */
export interface LoopListener {
  /** Returns the input of a write, the primary as it was edited: writes with different inputs are no loop. */
  inputOf(primary: KubernetesObject | undefined): string;
  /** Called after every write of a loop; `isUrgent`: the write is never postponed. */
  onLoop(written: LoopWrite & { readonly isUrgent?: boolean }, cause: WrittenFor): void;
  /** Called when a write is postponed, so that its primary is reconciled again after `retryAfterMs`. */
  onPostponed(postponed: PostponedWrite, cause: WrittenFor): void;
}

/** Records work as spans: calls `work` at once, and returns its result. */
export interface Tracing {
  reconcile<Outcome extends { readonly failure?: { readonly error: unknown } }>(
    facts: ReconcileFacts,
    work: () => Promise<Outcome>,
  ): Promise<Outcome>;
  /** The outcome is a text, the reason, if the dependent has no claim to an object in this run. */
  dependent<Outcome extends string | { readonly kind: string }>(
    name: string,
    work: () => Promise<Outcome>,
  ): Promise<Outcome>;
  /** Records a change of an object of the dependent in progress; a created object has no changed paths. */
  changed(pathsOf: ChangedPaths): void;
  /** Takes an attempt of a request that has ended. */
  request(request: RequestObservation): void;
}

/** An Event as the user describes it. */
export interface EventDraft {
  /** Default: `Normal`. */
  readonly type?: "Normal" | "Warning" | undefined;
  /** Why, in one word in upper camel case. */
  readonly reason: string;
  /** What happened. If the same Event is recorded again, the first note stays. */
  readonly note: string;
  /** What was done, in one word in upper camel case. Default: `Reconcile`. */
  readonly action?: string | undefined;
  /** Another object that the Event is about. */
  readonly related?: KubernetesObject | undefined;
}

/** The controller that records an Event, and the object that the Event is about. */
export interface EventSourceName {
  readonly controller: string;
  readonly about: KubernetesObject;
}

/** Takes Events about objects, in the names of controllers. */
export interface EventSink {
  /** Records an Event, or counts one more; returns at once. What cannot be written is logged, and lost. */
  record(source: EventSourceName, draft: EventDraft): void;
}

/** Where a controller reports what happens to its primaries. */
export interface Reporter {
  readonly controller: string;
  readonly logger: Logger;
  readonly events: EventSink;
}

/** A problem of a primary: the note is the Event and the log line. */
interface Report extends EventDraft {
  readonly type: "Warning";
  /** Further fields of the log line. */
  readonly fields?: object;
}

/** Logs a problem of a primary, and records it as an Event. */
export function report(
  { controller, logger, events }: Reporter,
  about: KubernetesObject,
  { fields, ...draft }: Report,
): void {
  logger.warn({ controller, primary: keyOf(about.metadata), ...fields }, draft.note);
  events.record({ controller, about }, draft);
}

/** Why a primary is reconciled, for logs and observers; the reconcile itself sees state, never an event. */
export type ReconcileReason =
  /** The primary changed; `isInitial` if a list brought it (at the start, or after a watch was lost), and not an edit. */
  | { readonly kind: "primary"; readonly change: "added" | "updated" | "deleted"; readonly isInitial: boolean }
  /** Something that belongs to the primary changed, as this event source reports; `type` is the kind of an object of Kubernetes. */
  | {
      readonly kind: "secondary";
      readonly source: string;
      readonly type?: string;
      readonly object?: ObjectKey;
      readonly isInitial: boolean;
      /** Whether nothing changed: a time that the runtime itself keeps is over, such as the pause of a write. */
      readonly isTimer?: boolean;
    }
  /** A reconcile before failed; `attempt` counts from 1. */
  | { readonly kind: "retry"; readonly attempt: number }
  /** The reconcile before asked for it. */
  | { readonly kind: "reschedule" }
  /** Nothing happened for the longest interval. */
  | { readonly kind: "resync" };

/** Returns a reason in words, as log lines show it: `primary updated`, `web home/page changed`, `retry 2`. */
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

/** The facts of a change that an event source reports, besides the primaries. */
export interface SecondaryCause {
  /** The dependent that the object is of. Default: the name of the event source. */
  readonly source?: string;
  /** The kind of the object. */
  readonly type?: string;
  readonly object?: ObjectKey;
  /** Whether a list brought it, and not an edit. */
  readonly isInitial?: boolean;
  /** Whether nothing changed, and a time that the runtime keeps is over. */
  readonly isTimer?: boolean;
}

/** Puts a primary into the queue of its controller. */
export type Requeue = (primary: ObjectKey, cause: SecondaryCause & { readonly source: string }) => void;
