// The state machine of one primary (JOSDK's EventProcessor and ResourceStateManager). It is a pure function from a state and an event to the next
// state and effects. It has no clock, queue, or cache; these belong to the controller.
//
// Guarantees: A primary never has two reconciles at once. After its last event there is a reconcile that sees it, unless the primary is deleted. No
// state of a deleted primary is kept. After a failure, only an edit of the primary is reconciled immediately: all other events wait for the retry, or
// for the end of a pause that grows from 3 to 15 s with each failure, whichever comes first.
import type { ReconcileReason } from "../base/activity.js";
import {
  type ApiError,
  type RetryAfterError,
  findError,
  flattenErrors,
  isAbsent,
  isMendedElsewhere,
  isNamespaceTerminating,
  stackOf,
} from "../base/errors.js";
import { type DecodedResource, describeObject, uidOf } from "../base/kubernetes-object.js";
import { type LineLevel, messageOf } from "../base/logger.js";

/** Events since the last reconcile started (JOSDK's ResourceState.EventingState). */
type Eventing =
  | "none"
  | "event"
  /** The controller has removed its finalizer: events are dropped until the primary is deleted or recreated. */
  | "finalizerRemoved"
  | "deleted"
  /** Another event followed the deletion. */
  | "additionalAfterDelete";

/** The purpose of a timer. `hold` ends the pause after a failure and processes the events that arrived during it. */
export type TimerKind = "retry" | "reschedule" | "resync" | "limit" | "hold";

export interface PrimaryState {
  readonly eventing: Eventing;
  /** Whether the reconcile in progress is for the primary or for its deletion. */
  readonly running: "nothing" | "primary" | "deletion";
  /** The first reasons for the next reconcile. */
  readonly reasons: readonly ReconcileReason[];
  readonly priority: ReconcilePriority;
  /** Whether the primary itself was edited, replaced, or deleted since its last reconcile started. */
  readonly isEdited: boolean;
  /** The retry state, with the time of the next attempt. */
  readonly retry: (RetryState & { readonly dueAt: number }) | undefined;
  /** Consecutive failed reconciles. */
  readonly failures: number;
  /** Whether the quick retries are exhausted. */
  readonly isGivenUp: boolean;
  /** The end of the pause after a failure; until then only edits are reconciled. */
  readonly heldUntil: number | undefined;
  /** Consecutive reconciles that requested another one almost immediately. */
  readonly hurries: number;
  readonly timer: TimerKind | undefined;
  /** The last state of a deleted primary; only set with `onAllEvents`. */
  readonly lastKnown: DecodedResource | undefined;
  /** Whether the watch missed the deletion. */
  readonly isFinalStateUnknown: boolean;
  /** The UID of the object from which the controller removed its finalizer. */
  readonly releasedUid: string | undefined;
}

/** The part of a reconcile's result that decides about the next reconcile. */
export interface ReconcileOutcome {
  /** The requested time until the next reconcile in milliseconds; 0 for immediately. */
  readonly rescheduleAfterMs?: number | undefined;
  /** Whether the controller removed its finalizer, so that the deletion can complete. */
  readonly isFinalizerRemoved: boolean;
  /** `isHandled`: updateErrorStatus() has reported the error, so it is not logged as a warning while retries are left. */
  readonly failure?: { readonly error: unknown; readonly isHandled: boolean };
}

/** An event of a primary. `isKnown`: the cache has an object of this name now. */
export type ProcessorEvent =
  | {
      readonly kind: "changed";
      readonly reason: ReconcileReason;
      readonly uid: string | undefined;
      readonly isMarkedForDeletion: boolean;
      /** Whether the primary was edited, replaced, or deleted since the last reconcile started. */
      readonly isEdit: boolean;
    }
  | {
      readonly kind: "deleted";
      readonly reason: ReconcileReason;
      readonly entry: DecodedResource;
      readonly isFinalStateUnknown: boolean;
      readonly isKnown: boolean;
      /** Whether the controller has started. Deletions before the start are not reconciled. */
      readonly isStarted: boolean;
    }
  | { readonly kind: "secondary"; readonly reason: ReconcileReason; readonly isKnown: boolean }
  | { readonly kind: "timer" }
  | { readonly kind: "limited"; readonly delayMs: number }
  | { readonly kind: "started" }
  /** The primary is no longer in the cache, for example because its namespace is no longer watched. */
  | { readonly kind: "missed" }
  | {
      readonly kind: "finished";
      readonly outcome: ReconcileOutcome;
      /** Whether the controller aborted it, because the primary is being deleted or was paused. */
      readonly isEnded: boolean;
      readonly now: number;
      /** The reconciled object. */
      readonly entry: DecodedResource;
      /** Whether the cache now has an object of the same name with another UID. */
      readonly isReplaced: boolean;
      readonly isKnown: boolean;
    };

/** An effect of a transition. The controller applies effects in order. */
export type ProcessorEffect =
  /** Enqueue the primary with the priority of the new state. */
  | { readonly kind: "submit" }
  | { readonly kind: "schedule"; readonly delayMs: number }
  /** `at` is a time of the clock; it may be in the past. */
  | { readonly kind: "scheduleAt"; readonly at: number }
  | { readonly kind: "scheduleResync" }
  | { readonly kind: "cancelTimer" }
  /** The object is deleted: remove it from the queue and drop all of its state. */
  | { readonly kind: "release" }
  | { readonly kind: "log"; readonly level: LineLevel; readonly message: string; readonly fields: object };

/** The result of an event. If `state` is undefined, the state of the primary is dropped. */
export interface Transition {
  readonly state: PrimaryState | undefined;
  readonly effects: readonly ProcessorEffect[];
}

/** The retry state of one primary; reset by each success. */
export interface RetryState {
  /** Retries granted so far. */
  readonly attempt: number;
  /** The time until the last granted retry, in milliseconds. */
  readonly intervalMs: number;
  /** Whether the quick retries are exhausted, so that health lists the primary under `givenUp`. Default: false */
  readonly isSlow?: boolean;
}

/** Decides whether and when a failed reconcile is retried. Implement it for anything that exponential intervals do not cover. */
export interface Retry {
  /**
   * Returns the retry state after one more failure, with the time to wait in `intervalMs`; undefined if no retry is left. `state` is the previous
   * result for this primary; undefined for the first failure since a success.
   */
  next(state: RetryState | undefined, error: unknown): RetryState | undefined;
  /** Reports whether no quick retry is left after the current attempt. */
  isLastAttempt(state: RetryState | undefined): boolean;
}

export interface ProcessorSettings {
  readonly retry: Retry;
  /** The resync interval in milliseconds; undefined to disable. */
  readonly resyncAfterMs: number | undefined;
  readonly onAllEvents: boolean;
}

/** The state of a primary without events. Not frozen, because copying a frozen object takes three times as long. */
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

const NO_EFFECTS: readonly ProcessorEffect[] = [];
const SUBMIT: readonly ProcessorEffect[] = [{ kind: "submit" }];
const CANCEL_TIMER: readonly ProcessorEffect[] = [{ kind: "cancelTimer" }];
const CANCEL_AND_SUBMIT: readonly ProcessorEffect[] = [...CANCEL_TIMER, ...SUBMIT];
const SCHEDULE_RESYNC: readonly ProcessorEffect[] = [{ kind: "scheduleResync" }];
const RELEASE: readonly ProcessorEffect[] = [{ kind: "release" }];

const RUNNING_STATE: PrimaryState = { ...NEW_STATE, running: "primary" };

// Most reconciles start with this transition.
const STARTED: Transition = { state: RUNNING_STATE, effects: NO_EFFECTS };

/** The transition after a success without further events. Most primaries share this state until their resync. */
const REST: Transition = { state: { ...NEW_STATE, timer: "resync" }, effects: SCHEDULE_RESYNC };

/** The reason to reconcile an object that was recreated before its deletion was observed. */
const RECREATED = { kind: "primary", change: "added", isInitial: false } as const;

// Reasons are only used in log lines and events.
const MAX_REASONS = 8;
// A shorter interval counts as immediate. After ten such requests in a row, the controller backs off.
const HURRY_MS = 100;
const FREE_HURRIES = 10;
const LONGEST_HURRY_MS = 1_000;
// Lower limit of the wait for the rate limiter, as in JOSDK.
const SHORTEST_LIMIT_MS = 50;
// A retry that is due later than this keeps its time, regardless of failures before it (JOSDK 5.4).
const SHORT_WAIT_MS = 5_000;
// The pause after a failure, for all events except edits.
const FIRST_HOLD_MS = 3_000;
const HOLD_FACTOR = 1.5;
const LONGEST_HOLD_MS = 15_000;

type EventOf<Kind extends ProcessorEvent["kind"]> = ProcessorEvent & { readonly kind: Kind };

/** Applies an event. `state` is undefined for an unknown primary. */
export function transitionOf(
  state: PrimaryState | undefined,
  event: ProcessorEvent,
  settings: ProcessorSettings,
): Transition {
  if (event.kind === "changed") return afterChange(state ?? NEW_STATE, event, settings);
  if (event.kind === "deleted") return afterDeletion(state, event, settings);
  if (event.kind === "secondary" && event.isKnown) return afterSecondary(state ?? NEW_STATE, event, settings);
  // An unknown primary gets its own event later.
  if (state === undefined) return stay(state);
  switch (event.kind) {
    case "secondary":
      return afterSecondary(state, event, settings);
    case "timer":
      return afterTimer(state);
    case "limited":
      return waitFor(state, "limit", Math.max(SHORTEST_LIMIT_MS, event.delayMs));
    case "started":
      return afterStart(state, settings);
    case "missed":
      if (state.running !== "nothing" || isDeletionNext(state, settings)) return stay(state);
      return { state: undefined, effects: RELEASE };
    case "finished":
      return afterFinish(state, event, settings);
  }
}

function stay(state: PrimaryState | undefined): Transition {
  return { state, effects: NO_EFFECTS };
}

// Events during a reconcile are processed at its end.
function submit(state: PrimaryState): Transition {
  return { state, effects: state.running === "nothing" ? SUBMIT : NO_EFFECTS };
}

function submitAnew(state: PrimaryState): Transition {
  return { state, effects: CANCEL_AND_SUBMIT };
}

// During the pause after a failure, the timer of the retry or of the pause enqueues the primary, whichever fires first.
function submitUnlessHeld(state: PrimaryState): Transition {
  const { heldUntil: at, retry, timer, running, isEdited } = state;
  if (at === undefined || isEdited || running !== "nothing") return submit(state);
  if (timer === "hold" || (timer === "retry" && retry !== undefined && retry.dueAt <= at)) return stay(state);
  return { state: { ...state, timer: "hold" }, effects: [{ kind: "scheduleAt", at }] };
}

function afterChange(state: PrimaryState, event: EventOf<"changed">, settings: ProcessorSettings): Transition {
  const { uid, isMarkedForDeletion } = event;
  // The watch may have missed the deletion: a recreated object has another UID, and is reconciled even if it is terminating as well.
  if (state.eventing === "finalizerRemoved" && isMarkedForDeletion && uid === state.releasedUid) return stay(state);
  return submitUnlessHeld(markState(state, isDeletionNext(state, settings) ? "additionalAfterDelete" : "event", event));
}

function afterSecondary(state: PrimaryState, event: EventOf<"secondary">, settings: ProcessorSettings): Transition {
  if (state.eventing === "finalizerRemoved") return stay(state);
  const isGone = isDeleted(state);
  if (isGone && !settings.onAllEvents) return stay(state);
  return submitUnlessHeld(markState(state, isGone ? "additionalAfterDelete" : "event", event));
}

function afterDeletion(
  state: PrimaryState | undefined,
  event: EventOf<"deleted">,
  { onAllEvents }: ProcessorSettings,
): Transition {
  const { isKnown, isStarted } = event;
  if (onAllEvents && (isStarted || (state?.running ?? "nothing") !== "nothing"))
    return submit(withDeletion(state ?? NEW_STATE, event));
  if (state === undefined) return isKnown ? recreated(NEW_STATE, NO_EFFECTS) : stay(state);
  const { object } = event.entry;
  const log = logOf("info", `${describeObject(object, object.metadata)} was deleted or is no longer watched`);
  // The end of the reconcile in progress handles the deletion.
  if (state.running !== "nothing")
    return withLog(stay({ ...state, eventing: "deleted", reasons: [], priority: "background" }), log);
  return withLog(gone(isKnown), log);
}

function withDeletion(state: PrimaryState, { reason, entry, isFinalStateUnknown }: EventOf<"deleted">): PrimaryState {
  const { lastKnown, running } = state;
  // The reconcile in progress is for the deletion of the previous object of this name.
  const isAnother = lastKnown !== undefined && lastKnown.object.metadata.uid !== entry.object.metadata.uid;
  const eventing = running === "deletion" && isAnother ? "additionalAfterDelete" : "deleted";
  const retry = isAnother ? undefined : state.retry;
  return { ...markState(state, eventing, { reason, isEdit: true }), retry, lastKnown: entry, isFinalStateUnknown };
}

function afterTimer(state: PrimaryState): Transition {
  const { eventing, timer } = state;
  // The end of the reconcile in progress sets a new timer.
  if (state.running !== "nothing" || eventing === "finalizerRemoved" || timer === undefined) return stay(state);
  const idle = { ...state, timer: undefined };
  if (timer === "limit" || timer === "hold") return submit(idle);
  const reason = timer === "retry" ? { kind: timer, attempt: state.retry?.attempt ?? 1 } : { kind: timer };
  return submit(markState(idle, eventing === "none" ? "event" : eventing, { reason }));
}

function afterStart(state: PrimaryState, settings: ProcessorSettings): Transition {
  const { retry, failures, isGivenUp, hurries, lastKnown, isFinalStateUnknown } = state;
  const past = { retry, failures, isGivenUp, hurries };
  if (isDeletionNext(state, settings))
    return stay({ ...NEW_STATE, ...past, eventing: "deleted", running: "deletion", lastKnown, isFinalStateUnknown });
  return failures === 0 && hurries === 0 ? STARTED : stay({ ...RUNNING_STATE, ...past });
}

function afterFinish(running: PrimaryState, event: EventOf<"finished">, settings: ProcessorSettings): Transition {
  if (running.running === "deletion") return afterDeletionRun(running, event, settings);
  const { outcome, entry, isReplaced, isKnown } = event;
  const isGone = isDeleted(running) || !isKnown;
  // The outcome for a deleted object does not apply to its successor.
  if ((isGone || isReplaced) && !isDeletionNext(running, settings)) {
    const next = isKnown ? recreated(isGone ? NEW_STATE : running, RELEASE) : { state: undefined, effects: RELEASE };
    if (outcome.failure === undefined) return next;
    const name = describeObject(entry.object, entry.object.metadata);
    const message = `${name} was deleted during its reconcile: ${messageOf(outcome.failure.error)}`;
    return withLog(next, logOf("debug", message));
  }
  if (outcome.failure !== undefined) return afterFailure(running, event, settings);
  return withRecovery(running, afterSuccess(succeeded(running), event, settings));
}

// Log the recovery after failures that were logged as warnings.
function withRecovery({ failures }: PrimaryState, next: Transition): Transition {
  if (failures === 0) return next;
  const attempts = failures === 1 ? "a failed attempt" : `${failures} failed attempts`;
  return withLog(next, logOf("info", `reconciled after ${attempts}`));
}

function succeeded(running: PrimaryState): PrimaryState {
  if (running === RUNNING_STATE) return NEW_STATE;
  const { retry, failures, isGivenUp, timer } = NEW_STATE;
  return { ...running, running: "nothing", retry, failures, isGivenUp, timer };
}

function afterSuccess(state: PrimaryState, event: EventOf<"finished">, settings: ProcessorSettings): Transition {
  const { outcome, entry } = event;
  if (isDeletionNext(state, settings)) return submitAnew(state);
  if (outcome.isFinalizerRemoved) {
    const nothing = { eventing: "finalizerRemoved", reasons: NEW_STATE.reasons, priority: "background" } as const;
    return { state: { ...state, ...nothing, releasedUid: uidOf(entry) }, effects: CANCEL_TIMER };
  }
  if (state.eventing === "event") return submitAnew(state);
  const { rescheduleAfterMs: askedMs } = outcome;
  return askedMs === undefined ? resync(NEW_STATE, settings) : runAgainAfter(state, "reschedule", askedMs);
}

function afterFailure(
  running: PrimaryState,
  { outcome, isEnded, now }: EventOf<"finished">,
  settings: ProcessorSettings,
): Transition {
  const { error = undefined, isHandled = false } = outcome.failure ?? {};
  const { retry } = running;
  const isPending = isImminent(running, settings);
  if (isPending && running.isEdited) {
    const state: PrimaryState = { ...running, running: "nothing" };
    const last = settings.retry.isLastAttempt(retry) ? "warn" : undefined;
    const log = isEnded
      ? logOf("debug", `the reconcile was ended early: ${messageOf(error)}`)
      : failureLog(error, { what: "requeued because of a newer change", isHandled, last });
    return { state, effects: [log, { kind: "submit" }] };
  }
  const failures = running.failures + 1;
  const holdMs = Math.min(FIRST_HOLD_MS * HOLD_FACTOR ** (failures - 1), LONGEST_HOLD_MS);
  const state: PrimaryState = { ...running, running: "nothing", failures, isGivenUp: false, heldUntil: now + holdMs };
  const giveUp = (): Transition => {
    const what = "not retrying until the next change";
    const log = failureLog(error, { what, isHandled, last: "error" });
    const given: PrimaryState = { ...state, isGivenUp: true };
    return withLog(isPending ? waitFor(given, "hold", holdMs) : resync(given, settings), log);
  };
  const retryIn = (waiting: PrimaryState, retryAfterMs: number): Transition => {
    const fields = { retryAfterMs, attempt: waiting.retry?.attempt ?? 0 };
    const slow = { what: "retrying with increasing backoff", last: "error" } as const;
    const isHeld = isPending && holdMs < retryAfterMs;
    const next = isHeld ? waitFor(waiting, "hold", holdMs) : runAgainAfter(waiting, "retry", retryAfterMs);
    return withLog(next, failureLog(error, { ...(waiting.isGivenUp && slow), isHandled, fields }));
  };
  if (flattenErrors(error).every((part) => findError(part, "TerminalError") !== undefined)) return giveUp();
  const askedMs = findError<RetryAfterError>(error, "RetryAfterError")?.retryAfterMs ?? NaN;
  // NaN or a negative number would result in no pause.
  if (Number.isFinite(askedMs) && askedMs >= 0) return retryIn(state, askedMs);
  const remainingMs = (retry?.dueAt ?? now) - now;
  if (remainingMs > SHORT_WAIT_MS) return retryIn({ ...state, isGivenUp: running.isGivenUp }, remainingMs);
  const next = settings.retry.next(retry, error);
  if (next === undefined) return giveUp();
  const { isSlow = false } = next;
  // A shorter resync interval still applies.
  const delayMs = isSlow ? Math.min(next.intervalMs, settings.resyncAfterMs ?? Infinity) : next.intervalMs;
  return retryIn(
    { ...state, isGivenUp: isSlow && !isEnding(error), retry: { ...next, dueAt: now + delayMs } },
    delayMs,
  );
}

function afterDeletionRun(running: PrimaryState, event: EventOf<"finished">, settings: ProcessorSettings): Transition {
  const { outcome, entry, isKnown } = event;
  if (outcome.failure !== undefined) {
    const next = afterFailure(running, event, settings);
    // A recreated object must not wait for the retries of a deletion whose quick retries are exhausted.
    const isGivenUp = running.eventing === "deleted" && next.state?.isGivenUp === true;
    return isGivenUp && isKnown ? recreated(NEW_STATE, [...next.effects, ...RELEASE]) : next;
  }
  const wasReplaced = running.lastKnown?.object.metadata.uid !== uidOf(entry);
  const next = wasReplaced ? submitAnew(succeeded(running)) : gone(isKnown);
  if (outcome.rescheduleAfterMs === undefined) return next;
  return withLog(next, logOf("warn", "a deleted primary is not reconciled again; its reschedule is ignored"));
}

// The cache may have an object of the same name whose event was dropped.
function gone(isKnown: boolean): Transition {
  return isKnown ? recreated(NEW_STATE, RELEASE) : { state: undefined, effects: RELEASE };
}

function recreated({ reasons, priority }: PrimaryState, effects: readonly ProcessorEffect[]): Transition {
  const waiting: PrimaryState = { ...NEW_STATE, reasons, priority, eventing: "event" };
  const state = reasons.length > 0 ? waiting : markState(waiting, "event", { reason: RECREATED });
  return { state, effects: [...effects, ...SUBMIT] };
}

function isDeleted({ eventing }: PrimaryState): boolean {
  return eventing === "deleted" || eventing === "additionalAfterDelete";
}

/** Reports whether the next reconcile of a primary is for its deletion. */
export function isDeletionNext(state: PrimaryState, { onAllEvents }: ProcessorSettings): boolean {
  return onAllEvents && isDeleted(state);
}

/** Reports whether a primary is reconciled again immediately after the reconcile in progress. */
export function isImminent(state: PrimaryState, { onAllEvents }: ProcessorSettings): boolean {
  const { eventing, running } = state;
  if (eventing === "event") return true;
  return onAllEvents && (eventing === "additionalAfterDelete" || (eventing === "deleted" && running !== "deletion"));
}

/** Reports whether a reconcile failed only because a namespace is terminating, so that no objects can be created in it. */
export function isEnding(error: unknown): boolean {
  return flattenErrors(error).every(isNamespaceTerminating);
}

/** Returns the time until the next attempt after a failure with these effects, in milliseconds; undefined if there is none. */
export function retryAfterMsOf(effects: readonly ProcessorEffect[]): number | undefined {
  const next = effects.find(({ kind }) => kind === "release" || kind === "submit" || kind === "schedule");
  if (next?.kind === "submit") return 0;
  return next?.kind === "schedule" ? next.delayMs : undefined;
}

/** The priority of a reconcile: edits are reconciled before initial lists and resyncs. */
export type ReconcilePriority = "edit" | "background";

/** Returns the priority of a reason. */
export function priorityOf(reason: ReconcileReason): ReconcilePriority {
  if (reason.kind === "resync") return "background";
  return "isInitial" in reason && reason.isInitial ? "background" : "edit";
}

type Mark = { readonly reason: ReconcileReason; readonly isEdit?: boolean };

/** Adds a reason to reconcile. `isEdit`: the primary itself was edited, replaced, or deleted. */
function markState(state: PrimaryState, eventing: Eventing, { reason, isEdit = false }: Mark): PrimaryState {
  const { reasons } = state;
  const isNews =
    reasons.length === 0 || (reasons.length < MAX_REASONS && !reasons.some((known) => isSameReason(known, reason)));
  const priority = state.priority === "edit" ? "edit" : priorityOf(reason);
  const isEdited = state.isEdited || isEdit;
  const isSameMark = priority === state.priority && eventing === state.eventing && isEdited === state.isEdited;
  if (!isNews && isSameMark) return state;
  const all = !isNews ? reasons : reasons.length === 0 ? [reason] : [...reasons, reason];
  return Object.assign({}, state, { eventing, reasons: all, priority, isEdited });
}

function isSameReason(one: ReconcileReason, other: ReconcileReason): boolean {
  if (one === other) return true;
  if (one.kind === "primary" && other.kind === "primary")
    return one.change === other.change && one.isInitial === other.isInitial;
  if (one.kind === "secondary" && other.kind === "secondary")
    return one.source === other.source && one.object === other.object && one.isInitial === other.isInitial;
  return one.kind === other.kind && one.kind !== "primary" && one.kind !== "secondary";
}

function withLog({ state, effects }: Transition, log: ProcessorEffect): Transition {
  return { state, effects: [log, ...effects] };
}

function logOf(level: LineLevel, message: string, fields: object = {}): ProcessorEffect {
  return { kind: "log", level, message, fields };
}

function waitFor(state: PrimaryState, timer: Exclude<TimerKind, "resync">, delayMs: number): Transition {
  return { state: { ...state, timer }, effects: [{ kind: "schedule", delayMs }] };
}

/** Schedules the next reconcile as requested, but backs off if the interval is repeatedly almost 0. */
function runAgainAfter(state: PrimaryState, timer: "retry" | "reschedule", askedMs: number): Transition {
  const hurries = askedMs < HURRY_MS ? state.hurries + 1 : 0;
  const excess = hurries - FREE_HURRIES;
  const pauseMs = excess <= 0 ? 0 : Math.min(10 * 2 ** (excess - 1), LONGEST_HURRY_MS);
  const next = waitFor({ ...state, hurries }, timer, Math.max(askedMs, pauseMs));
  if (excess !== 1) return next;
  const message =
    `${timer === "retry" ? "the wait for a retry" : "rescheduleAfterMs"} was below ${HURRY_MS} ms ${hurries} times in a row; ` +
    `backing off the reconciles of this primary, up to ${LONGEST_HURRY_MS} ms`;
  return withLog(next, logOf("warn", message));
}

/** Waits for an event or the resync. */
function resync(state: PrimaryState, { resyncAfterMs }: ProcessorSettings): Transition {
  if (resyncAfterMs === undefined) return { state: { ...state, timer: undefined }, effects: CANCEL_TIMER };
  return state === NEW_STATE ? REST : { state: { ...state, timer: "resync" }, effects: SCHEDULE_RESYNC };
}

interface FailureLog {
  readonly what?: string;
  readonly isHandled: boolean;
  /** The log level if no quick retry is left; absent if one is. */
  readonly last?: "warn" | "error" | undefined;
  readonly fields?: object;
}

// A failure with retries left is a warning. A conflict is normal, and errors that updateErrorStatus() handled are reported already.
function failureLog(error: unknown, { what, isHandled, last, fields = {} }: FailureLog): ProcessorEffect {
  const isConflict = flattenErrors(error).every((part) => findError<ApiError>(part, "ApiError")?.code === 409);
  const level = isEnding(error) ? "info" : (last ?? (isConflict ? "info" : isHandled ? "debug" : "warn"));
  const message = `reconcile failed${what === undefined ? "" : `, ${what}`}: ${messageOf(error)}`;
  const stack = stackOf(error);
  return logOf(level, message, stack === undefined ? fields : { ...fields, stack });
}

/**
 * When a failed reconcile is retried. Defaults are those of JOSDK's GenericRetry. Jitter increases every interval.
 *
 * No interval is shorter than a Retry-After of the API server, up to 10 minutes. When the quick retries are exhausted, slow retries follow: after 1
 * minute at first, doubling to 10 minutes. While the API server is unreachable, rejects the credentials, or is overloaded, retries continue at the
 * last quick interval; while it does not serve the kind, every minute. Problems that another client has to fix (an object that blocks a write, a
 * namespace that is missing or terminating) are retried after 10 s, doubling to 60 s. Slow retries are never sooner than the last quick interval.
 */
export interface RetryOptions {
  /** Quick retries after the first failure; -1 for no limit, 0 for no retries at all. Default: 5 */
  readonly maxRetries?: number;
  /** The interval before the first two retries in milliseconds. Default: 2000 */
  readonly initialIntervalMs?: number;
  /** The factor by which later intervals grow. Default: 1.5 */
  readonly multiplier?: number;
  /** The maximum interval of quick retries in milliseconds; -1 for no maximum. Default: 15187.5, or the initial interval if that is longer */
  readonly maxIntervalMs?: number;
  /** The maximum random increase of an interval, as a fraction of it from 0 to 1. Default: 0.2 */
  readonly jitter?: number;
}

const LONGEST_QUICK_MS = 2000 * 1.5 ** 5;
const FIRST_SLOW_MS = 60_000;
const LONGEST_SLOW_MS = 600_000;
// For errors that another client has to fix: no event reports the fix, and an attempt costs one request.
const FIRST_LOOK_MS = 10_000;
const LONGEST_LOOK_MS = 60_000;
// 500 is missing, because the API server also rejects some objects with it.
const OUTAGES: readonly number[] = [401, 429, 502, 503, 504];

/** Creates the default retry: the first two retries wait for the initial interval, later intervals grow (JOSDK's GenericRetryExecution). */
export function createRetry(options: RetryOptions = {}, random: () => number = Math.random): Retry {
  // Thousands of primaries may fail at once, for example because a webhook is down. The jitter spreads their retries.
  const { maxRetries = 5, initialIntervalMs = 2000, multiplier = 1.5, jitter = 0.2 } = options;
  const { maxIntervalMs = Math.max(LONGEST_QUICK_MS, initialIntervalMs) } = options;
  const isLastAttempt = (state: RetryState | undefined) => maxRetries >= 0 && (state?.attempt ?? 0) >= maxRetries;
  const jittered = (intervalMs: number, error: unknown) =>
    Math.max(intervalMs, Math.min(askedMs(error), LONGEST_SLOW_MS)) * (1 + jitter * random());
  const quickMs = (attempt: number) => {
    const grown = initialIntervalMs * multiplier ** Math.max(0, attempt - 2);
    return attempt <= 2 || maxIntervalMs < 0 ? grown : Math.min(grown, maxIntervalMs);
  };
  return {
    isLastAttempt,
    next(state, error) {
      const attempt = (state?.attempt ?? 0) + 1;
      if (!isLastAttempt(state)) return { attempt, intervalMs: jittered(quickMs(attempt), error) };
      if (state === undefined) return undefined;
      const lastQuickMs = quickMs(maxRetries);
      if (flattenErrors(error).some(isOutage))
        return { attempt: state.attempt, intervalMs: jittered(lastQuickMs, error) };
      const growth = 2 ** (attempt - maxRetries - 1);
      // The CRD of a kind that is not served may be installed soon.
      const grownMs = flattenErrors(error).some(isUnserved) ? FIRST_SLOW_MS : FIRST_SLOW_MS * growth;
      const slowMs = flattenErrors(error).some(isMendedElsewhere)
        ? Math.min(FIRST_LOOK_MS * growth, LONGEST_LOOK_MS)
        : Math.min(grownMs, LONGEST_SLOW_MS);
      return { attempt, intervalMs: jittered(Math.max(slowMs, lastQuickMs), error), isSlow: true };
    },
  };
}

function askedMs(error: unknown): number {
  return Math.max(0, ...flattenErrors(error).map((part) => findError<ApiError>(part, "ApiError")?.retryAfterMs ?? 0));
}

function isOutage(part: unknown): boolean {
  const answer = findError<ApiError>(part, "ApiError");
  return answer === undefined ? findError(part, "ConnectionError") !== undefined : OUTAGES.includes(answer.code);
}

function isUnserved(part: unknown): boolean {
  const answer = findError<ApiError>(part, "ApiError");
  return answer?.code === 404 && !isAbsent(answer);
}
