// What parts of the runtime say of their work, for metrics, traces and reports. Times are by the clock of the controller (`performance.now()`).
import type { KubernetesObject, ObjectKey } from "./kubernetes-object.js";

/** How long one dependent took in one run of a workflow, with what it waited for inside: a slot, a retry, the user's functions, the server. */
export interface StepTiming {
  readonly dependent: string;
  readonly startedAt: number;
  readonly durationMs: number;
  /** The kind of its outcome: `created`, `updated`, `unchanged`, `waiting`, `deleted`, `inactive`, `left` or `failed`. */
  readonly outcome: string;
}

/** What a controller does at one moment. */
export interface ControllerActivity {
  /** How often a primary was put into the queue since the start. */
  readonly submissions: number;
  readonly queued: number;
  readonly running: number;
  /** How many reconciles may run at once. */
  readonly maxRunning: number;
  /** How long the reconciles under way have run so far, all together. */
  readonly unfinishedMs: number;
  /** How long the one that has run longest has done so. */
  readonly longestMs: number;
}

/** Why a watch ended: the server ended it in time, had forgotten its version, or was restored to an older state; or it failed. */
export type WatchEnd = "ended" | "expired" | "restored" | "failed";

/** What an informer has done so far. */
export interface InformerActivity {
  /** `Kind.version.group` */
  readonly kind: string;
  /** Absent for all namespaces. */
  readonly namespace: string | undefined;
  readonly server: string;
  readonly objects: number;
  /** Whether its objects are known: it was listed, or the API server does not serve the kind. */
  readonly isKnown: boolean;
  /** When its watch brought something last; absent before. */
  readonly receivedAt: number | undefined;
  /** How many watches ended, by why. */
  readonly ends: Readonly<Partial<Record<WatchEnd, number>>>;
}

/** What is known of one kind in one namespace. */
export interface NamespaceHealth {
  /** `unknown` until the first list has ended or failed; `failing` from a failure of the watch to its next success. */
  readonly status: "unknown" | "synced" | "failing";
  /** Why it fails. */
  readonly reason?: string;
}

/** How an event source is doing; `reason` says what is wrong, in words for the log and the health endpoint. */
export interface SourceHealth {
  readonly status: "healthy" | "unhealthy" | "unknown";
  readonly reason?: string;
  /** Whether it only fails because the API server does not serve the kind, so that it is known to have no objects. */
  readonly isUnserved?: true;
  /** The namespaces that the source watches, where it watches a list of them and not all of them are synced. */
  readonly namespaces?: { readonly [namespace: string]: NamespaceHealth };
}

/** A primary that is not reconciled yet, because what may belong to it is not known. */
export interface WaitingPrimary {
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
  /** What is not known, and why. */
  readonly reason: string;
}

/** The primaries that wait until what may belong to them is known. */
export interface WaitingPrimaries {
  readonly count: number;
  /** The first ten of these primaries. */
  readonly primaries: readonly WaitingPrimary[];
}

/** A request as an observer sees it, once it is answered or failed. */
export interface RequestObservation {
  readonly method: string;
  readonly path: string;
  /** Absent if there was no answer. */
  readonly status?: number | undefined;
  readonly durationMs: number;
}

/** What is known of a reconcile when it begins. */
export interface ReconcileFacts {
  readonly controller: string;
  /** `namespace/name` */
  readonly primary: string;
  /** 0 unless the reconciles before failed. */
  readonly attempt: number;
  /** How long it had waited for its turn. */
  readonly queuedMs: number;
  readonly reasons: readonly string[];
}

/** Returns the places, `limit` at most, where an object was not as desired, such as `spec.replicas`; never a value. */
export type ChangedPaths = (limit: number) => readonly string[];

/** A write that is not made now, because its object is written over and over; it is made when the pause is over. */
export interface PostponedWrite {
  /** The kind of the object, such as `Deployment.v1.apps`. */
  readonly kind: string;
  /** `namespace/name` of the object. */
  readonly object: ObjectKey;
  /** `undone`: the same content each time. `unsettled`: another content each time. */
  readonly loop: "undone" | "unsettled";
  /** How many writes belong to the loop so far. */
  readonly writes: number;
  /** What differs, such as `spec.replicas`; empty if the object itself is missing. */
  readonly paths: readonly string[];
  /** The field managers that last wrote what differs, from `managedFields`. */
  readonly managers: readonly string[];
  readonly retryAfterMs: number;
}

/** For whom an object is written. */
export interface WrittenFor {
  readonly primary?: KubernetesObject | undefined;
  readonly dependent?: string | undefined;
}

/** The kind of what external dependents write, where the kind of an object stands. */
export const EXTERNAL_KIND = "ExternalResource";

/** A write that belongs to a loop, with what differed before it. */
export interface LoopWrite extends Omit<PostponedWrite, "retryAfterMs" | "managers"> {
  /** Whether it made the writes a loop. */
  readonly isNew: boolean;
  /** How long the object is left as it is. */
  readonly pauseMs: number;
}

/** Told of writes that belong to a loop; must not throw. */
export interface LoopListener {
  /** Returns what a write follows from, for which there is no loop among writes that follow from different ones: the primary as it was edited. */
  inputOf(primary: KubernetesObject | undefined): string;
  /** Told after every write of a loop. */
  onLoop(written: LoopWrite, cause: WrittenFor): void;
  /** Told when a write is postponed, so that its primary is reconciled again after `retryAfterMs`. */
  onPostponed(postponed: PostponedWrite, cause: WrittenFor): void;
}

/** Follows work as spans: calls `work` at once, and returns what that returns. */
export interface Tracing {
  reconcile<Outcome extends { readonly failure?: { readonly error: unknown } }>(
    facts: ReconcileFacts,
    work: () => Promise<Outcome>,
  ): Promise<Outcome>;
  /** The outcome is a text if the dependent turned out not to be wanted. */
  dependent<Outcome extends string | { readonly kind: string }>(
    name: string,
    work: () => Promise<Outcome>,
  ): Promise<Outcome>;
  /** Takes a change of an object of the dependent that is under way; of what is created nothing was different before. */
  changed(pathsOf: ChangedPaths): void;
  /** Takes an attempt of a request that has ended. */
  request(request: RequestObservation): void;
}

/** An Event as the user states it. */
export interface EventDraft {
  /** Default: `Normal`. */
  readonly type?: "Normal" | "Warning" | undefined;
  /** Why, in one word in upper camel case. */
  readonly reason: string;
  /** What happened, in words. If the same Event is recorded again, the first note stays. */
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
