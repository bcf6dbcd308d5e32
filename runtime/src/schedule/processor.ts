// When a primary is reconciled: the state machine of JOSDK's EventProcessor and ResourceStateManager, without time and without queues.
//
// Promises: never two reconciles of one primary at once; after the last event of a primary there is a reconcile that sees it, unless
// the primary is gone; of a primary that is gone nothing is kept. After a failure only an edit of the primary runs at once: every other
// event waits for the retry, or for the end of a pause that grows from 3 to 15 s with each failure, whichever comes first.
import { uidOf } from "../base/decoded-resource.js";
import { describeObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import {
  CANCEL_TIMER,
  isDeleted,
  isDeletionNext,
  logOf,
  markState,
  NEW_STATE,
  resync,
  runAgainAfter,
  RUNNING_STATE,
  waitFor,
  withLog,
  type PrimaryState,
  type ProcessorEffect,
  type ProcessorEvent,
  type ProcessorSettings,
  type Transition,
} from "./processor-state.js";
import { afterFailure } from "./processor-failure.js";

const NO_EFFECTS: readonly ProcessorEffect[] = [];
// Most reconciles begin with this state.
const STARTED: Transition = { state: RUNNING_STATE, effects: NO_EFFECTS };
const RELEASE: readonly ProcessorEffect[] = [{ kind: "release" }];
const SUBMIT: readonly ProcessorEffect[] = [{ kind: "submit" }];
const CANCEL_AND_SUBMIT: readonly ProcessorEffect[] = [...CANCEL_TIMER, ...SUBMIT];
// JOSDK's shortest wait for the rate limit.
const SHORTEST_LIMIT_MS = 50;
/** The reason to reconcile an object that was re-created before the deletion of its predecessor was seen. */
const RECREATED = { kind: "primary", change: "added", isInitial: false } as const;

type EventOf<Kind extends ProcessorEvent["kind"]> = ProcessorEvent & { readonly kind: Kind };

/** Returns the state and the effects after an event; `state` is `undefined` for an unknown primary. */
export function transitionOf(
  state: PrimaryState | undefined,
  event: ProcessorEvent,
  settings: ProcessorSettings,
): Transition {
  if (event.kind === "changed") return afterChange(state ?? NEW_STATE, event, settings);
  if (event.kind === "deleted") return afterDeletion(state, event, settings);
  if (event.kind === "secondary" && event.isKnown) return afterSecondary(state ?? NEW_STATE, event, settings);
  // An unknown primary gets an event of its own later.
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

// The end of the running reconcile submits events that came during it.
function submit(state: PrimaryState): Transition {
  return { state, effects: state.running === "nothing" ? SUBMIT : NO_EFFECTS };
}

// A success makes the pending timer needless.
function submitAnew(state: PrimaryState): Transition {
  return { state, effects: CANCEL_AND_SUBMIT };
}

// During the pause after a failure, the timer of the retry or of the pause submits the event, whichever comes first.
function submitUnlessHeld(state: PrimaryState): Transition {
  const { heldUntil: at, retry, timer, running, isEdited } = state;
  if (at === undefined || isEdited || running !== "nothing") return submit(state);
  if (timer === "hold" || (timer === "retry" && retry !== undefined && retry.dueAt <= at)) return stay(state);
  return { state: { ...state, timer: "hold" }, effects: [{ kind: "scheduleAt", at }] };
}

function afterChange(state: PrimaryState, event: EventOf<"changed">, settings: ProcessorSettings): Transition {
  const { uid, isMarkedForDeletion } = event;
  // The deletion event may have been missed: a re-created object counts, even if it is terminating as well.
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
  const log = logOf("info", `${describeObject(object, object.metadata)} is gone, or no longer watched`);
  // The running reconcile notices at its end.
  if (state.running !== "nothing")
    return withLog(stay({ ...state, eventing: "deleted", reasons: [], priority: "background" }), log);
  return withLog(gone(isKnown), log);
}

function withDeletion(state: PrimaryState, { reason, entry, isFinalStateUnknown }: EventOf<"deleted">): PrimaryState {
  const { lastKnown, running } = state;
  // The running reconcile is for the deletion of the predecessor with this name.
  const isAnother = lastKnown !== undefined && lastKnown.object.metadata.uid !== entry.object.metadata.uid;
  const eventing = running === "deletion" && isAnother ? "additionalAfterDelete" : "deleted";
  const retry = isAnother ? undefined : state.retry;
  return { ...markState(state, eventing, { reason, isEdit: true }), retry, lastKnown: entry, isFinalStateUnknown };
}

function afterTimer(state: PrimaryState): Transition {
  const { eventing, timer } = state;
  // The end of the running reconcile sets a new timer.
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
  // The reconciled object is gone, and with it the meaning of the outcome.
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

// Where warnings of failures ended, the log says so.
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

function afterDeletionRun(running: PrimaryState, event: EventOf<"finished">, settings: ProcessorSettings): Transition {
  const { outcome, entry, isKnown } = event;
  if (outcome.failure !== undefined) {
    const next = afterFailure(running, event, settings);
    // The successor cannot wait for a deletion that has no quick retry left.
    const isGivenUp = running.eventing === "deleted" && next.state?.isGivenUp === true;
    return isGivenUp && isKnown ? recreated(NEW_STATE, [...next.effects, ...RELEASE]) : next;
  }
  const wasReplaced = running.lastKnown?.object.metadata.uid !== uidOf(entry);
  const next = wasReplaced ? submitAnew(succeeded(running)) : gone(isKnown);
  if (outcome.rescheduleAfterMs === undefined) return next;
  return withLog(next, logOf("warn", "a deleted primary is not reconciled again; its reschedule is ignored"));
}

// A successor with the same name may exist, and its event may have been dropped.
function gone(isKnown: boolean): Transition {
  return isKnown ? recreated(NEW_STATE, RELEASE) : { state: undefined, effects: RELEASE };
}

function recreated({ reasons, priority }: PrimaryState, effects: readonly ProcessorEffect[]): Transition {
  const waiting: PrimaryState = { ...NEW_STATE, reasons, priority, eventing: "event" };
  const state = reasons.length > 0 ? waiting : markState(waiting, "event", { reason: RECREATED });
  return { state, effects: [...effects, ...SUBMIT] };
}
