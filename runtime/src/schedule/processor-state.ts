import type { LineLevel } from "../base/logger.js";
import { priorityOf, type ReconcilePriority, type ReconcileReason } from "../base/reconcile-reason.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import type { PrimaryOutcome } from "./reconcile-scope.js";
import type { Retry, RetryState } from "./retry.js";

/** The events of a primary that no reconcile has seen yet (JOSDK ResourceState.EventingState). */
export type Eventing =
  | "none"
  | "event"
  /** Our finalizer was removed: events are dropped until the primary is gone or re-created. */
  | "finalizerRemoved"
  | "deleted"
  /** The primary is gone, and another event came after that. */
  | "additionalAfterDelete";

/** The meaning of a timer; `hold` ends the pause after a failure for events that came during it. */
export type TimerKind = "retry" | "reschedule" | "resync" | "limit" | "hold";

/** All that the processor knows of one primary. */
export interface PrimaryState {
  readonly eventing: Eventing;
  /** Whether the running reconcile is for the primary as it is, or for its deletion. */
  readonly running: "nothing" | "primary" | "deletion";
  /** Why the next reconcile runs: the first few reasons. */
  readonly reasons: readonly ReconcileReason[];
  readonly priority: ReconcilePriority;
  /** Whether the primary itself was edited, replaced or deleted since its last reconcile started. */
  readonly isEdited: boolean;
  /** Where its retries stand, with the time of the next one. */
  readonly retry: (RetryState & { readonly dueAt: number }) | undefined;
  /** Reconciles that failed since the last success. */
  readonly failures: number;
  /** Whether the last reconcile failed and no quick retry is left. */
  readonly isGivenUp: boolean;
  /** Until when events that are no edits wait, after a failure. */
  readonly heldUntil: number | undefined;
  /** Reconciles in a row that asked for another one almost at once. */
  readonly hurries: number;
  readonly timer: TimerKind | undefined;
  /** The last state of a primary that is gone, where deletions are reconciled. */
  readonly lastKnown: DecodedResource | undefined;
  /** Whether the deletion was not seen. */
  readonly isFinalStateUnknown: boolean;
  /** The object whose finalizer was removed. */
  readonly releasedUid: string | undefined;
}

/** What happens to a primary. `isKnown` tells whether the cache has an object of its name now. */
export type ProcessorEvent =
  | {
      readonly kind: "changed";
      readonly reason: ReconcileReason;
      readonly uid: string | undefined;
      readonly isMarkedForDeletion: boolean;
      /** Whether it is a new generation, a new object, or marked for deletion since the last reconcile started. */
      readonly isEdit: boolean;
    }
  | {
      readonly kind: "deleted";
      readonly reason: ReconcileReason;
      readonly entry: DecodedResource;
      readonly isFinalStateUnknown: boolean;
      readonly isKnown: boolean;
      /** Whether the controller has been started; primaries that came and went before are not reconciled. */
      readonly isStarted: boolean;
    }
  | { readonly kind: "secondary"; readonly reason: ReconcileReason; readonly isKnown: boolean }
  | { readonly kind: "timer" }
  | { readonly kind: "limited"; readonly delayMs: number }
  | { readonly kind: "started" }
  /** Its turn came, but the cache has lost it; or the namespaces changed. */
  | { readonly kind: "missed" }
  | {
      readonly kind: "finished";
      readonly outcome: PrimaryOutcome;
      /** Whether the run was ended early, because its primary is being deleted. */
      readonly isEnded: boolean;
      readonly now: number;
      /** What was reconciled. */
      readonly entry: DecodedResource;
      /** Whether the cache has another object of its name now. */
      readonly isReplaced: boolean;
      readonly isKnown: boolean;
    };

/** An effect of a transition; the controller carries effects out in order. */
export type ProcessorEffect =
  /** Put it into the queue, with the priority of the new state. */
  | { readonly kind: "submit" }
  | { readonly kind: "schedule"; readonly delayMs: number }
  /** Schedule it for this time of the clock, which may be over. */
  | { readonly kind: "scheduleAt"; readonly at: number }
  | { readonly kind: "scheduleResync" }
  | { readonly kind: "cancelTimer" }
  /** The object is gone: forget all that is kept for it, its place in the queue included. */
  | { readonly kind: "release" }
  | { readonly kind: "log"; readonly level: LineLevel; readonly message: string; readonly fields: object };

/** The new state and the effects of an event; without a state the primary is forgotten. */
export interface Transition {
  readonly state: PrimaryState | undefined;
  readonly effects: readonly ProcessorEffect[];
}

/** The settings of a controller that the processor needs. */
export interface ProcessorSettings {
  readonly retry: Retry;
  /** Undefined for never. */
  readonly resyncAfterMs: number | undefined;
  readonly onAllEvents: boolean;
}

/** The state of a primary without events. It is not frozen: copies of a frozen object take three times as long. */
export const NEW_STATE: PrimaryState = {
  eventing: "none",
  running: "nothing",
  reasons: [],
  priority: "background",
  isEdited: false,
  retry: undefined,
  failures: 0,
  isGivenUp: false,
  heldUntil: undefined,
  hurries: 0,
  timer: undefined,
  lastKnown: undefined,
  isFinalStateUnknown: false,
  releasedUid: undefined,
};

/** The effect of a transition that only cancels the timer. */
export const CANCEL_TIMER: readonly ProcessorEffect[] = [{ kind: "cancelTimer" }];

const SCHEDULE_RESYNC: readonly ProcessorEffect[] = [{ kind: "scheduleResync" }];

// A wait below this is meant as "at once". The first ten in a row are taken as that; later ones wait longer and longer.
const HURRY_MS = 100;
const FREE_HURRIES = 10;
const LONGEST_HURRY_MS = 1_000;

// Reasons are for people, who read no more than eight.
const MAX_REASONS = 8;

/** A primary that is reconciled for the first time, or after a success. */
export const RUNNING_STATE: PrimaryState = { ...NEW_STATE, running: "primary" };

/** The transition after a success without events: most primaries wait for the longest interval, and share this. */
const REST: Transition = { state: { ...NEW_STATE, timer: "resync" }, effects: SCHEDULE_RESYNC };

type Mark = { readonly reason: ReconcileReason; readonly isEdit?: boolean };

/** Returns the state with one more reason to reconcile; `isEdit` tells whether the primary itself changed. */
export function markState(state: PrimaryState, eventing: Eventing, { reason, isEdit = false }: Mark): PrimaryState {
  const { reasons } = state;
  const isNews =
    reasons.length === 0 || (reasons.length < MAX_REASONS && !reasons.some((known) => isSame(known, reason)));
  const priority = state.priority === "edit" ? "edit" : priorityOf(reason);
  const isEdited = state.isEdited || isEdit;
  const isSameMark = priority === state.priority && eventing === state.eventing && isEdited === state.isEdited;
  if (!isNews && isSameMark) return state;
  const all = !isNews ? reasons : reasons.length === 0 ? [reason] : [...reasons, reason];
  return Object.assign({}, state, { eventing, reasons: all, priority, isEdited });
}

/** Tells whether a primary is gone as far as the processor was told. */
export function isDeleted({ eventing }: PrimaryState): boolean {
  return eventing === "deleted" || eventing === "additionalAfterDelete";
}

/** Tells whether the next reconcile of a primary is the one of its deletion. */
export function isDeletionNext(state: PrimaryState, { onAllEvents }: ProcessorSettings): boolean {
  return onAllEvents && isDeleted(state);
}

/** Tells whether a primary is reconciled again as soon as the reconcile under way ends. */
export function isImminent(state: PrimaryState, { onAllEvents }: ProcessorSettings): boolean {
  const { eventing, running } = state;
  if (eventing === "event") return true;
  return onAllEvents && (eventing === "additionalAfterDelete" || (eventing === "deleted" && running !== "deletion"));
}

/** Returns a transition with one more effect, which comes first. */
export function withLog({ state, effects }: Transition, log: ProcessorEffect): Transition {
  return { state, effects: [log, ...effects] };
}

/** Returns the effect of a line in the log. */
export function logOf(level: LineLevel, message: string, fields: object = {}): ProcessorEffect {
  return { kind: "log", level, message, fields };
}

/** Returns the state of a primary that waits for the clock. */
export function waitFor(state: PrimaryState, timer: Exclude<TimerKind, "resync">, delayMs: number): Transition {
  return { state: { ...state, timer }, effects: [{ kind: "schedule", delayMs }] };
}

/** Returns the state of a primary whose reconcile is to run again: as soon as it asks for, unless that is almost at once over and over. */
export function runAgainAfter(state: PrimaryState, timer: "retry" | "reschedule", askedMs: number): Transition {
  const hurries = askedMs < HURRY_MS ? state.hurries + 1 : 0;
  const excess = hurries - FREE_HURRIES;
  const pauseMs = excess <= 0 ? 0 : Math.min(10 * 2 ** (excess - 1), LONGEST_HURRY_MS);
  const next = waitFor({ ...state, hurries }, timer, Math.max(askedMs, pauseMs));
  if (excess !== 1) return next;
  const message =
    `${timer === "retry" ? "the wait for a retry" : "rescheduleAfterMs"} was below ${HURRY_MS} ms ${hurries} times in a row; ` +
    `the next reconciles of this primary wait longer and longer, up to ${LONGEST_HURRY_MS} ms`;
  return withLog(next, logOf("warn", message));
}

/** Returns the state of a primary that waits for an event, or for the end of the longest interval. */
export function resync(state: PrimaryState, { resyncAfterMs }: ProcessorSettings): Transition {
  if (resyncAfterMs === undefined) return { state: { ...state, timer: undefined }, effects: CANCEL_TIMER };
  return state === NEW_STATE ? REST : { state: { ...state, timer: "resync" }, effects: SCHEDULE_RESYNC };
}

function isSame(one: ReconcileReason, other: ReconcileReason): boolean {
  if (one === other) return true;
  if (one.kind === "primary" && other.kind === "primary")
    return one.change === other.change && one.isInitial === other.isInitial;
  if (one.kind === "secondary" && other.kind === "secondary")
    return one.source === other.source && one.object === other.object && one.isInitial === other.isInitial;
  return one.kind === other.kind && one.kind !== "primary" && one.kind !== "secondary";
}
