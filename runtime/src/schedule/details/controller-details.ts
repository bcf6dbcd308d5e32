// What a controller knows of its primaries at one moment, in words for people. Ages are milliseconds; nothing of an object but its name is told.
import type { WaitingPrimaries, WaitingPrimary } from "../../base/activity.js";
import type { ObjectKey } from "../../base/kubernetes-object.js";
import { describeReason, type ReconcilePriority } from "../../base/reconcile-reason.js";
import type { KnownPrimary } from "../known-primary.js";
import type { TimerKind } from "../processor-state.js";
import type { ReconcileRun } from "../reconcile-run.js";
import type { GivenUp, GivenUpPrimary } from "../reconcile-scope.js";

/** The first of many, and how many there are. */
export interface Listed<Item> {
  readonly count: number;
  readonly first: readonly Item[];
}

/** A primary that waits for its turn. */
export interface QueuedPrimary {
  readonly primary: ObjectKey;
  readonly priority: ReconcilePriority;
  readonly forMs: number;
  readonly reasons: readonly string[];
}

/** A reconcile under way. */
export interface RunningReconcile extends Omit<QueuedPrimary, "priority"> {
  readonly attempt: number;
  /** The functions of the user that it waits for. */
  readonly waitsFor: readonly { readonly what: string; readonly forMs: number }[];
  /** Whether its signal was aborted. */
  readonly isAborted: boolean;
  /** Whether others have its slot, because it goes on although its signal was aborted. */
  readonly isHung: boolean;
}

/** A primary whose last reconcile failed. */
export interface FailedPrimary extends Omit<GivenUpPrimary, "error"> {
  /** When it is reconciled again; absent if only a change does that. */
  readonly dueInMs?: number;
  /** The time that it waits for. */
  readonly waitsFor?: TimerKind;
  readonly isGivenUp: boolean;
}

/** What a controller knows of its primaries. */
export interface ControllerDetails {
  /** How many primaries it knows. */
  readonly primaries: number;
  /** The primaries in the queue, the longest wait first. */
  readonly queued: Listed<QueuedPrimary>;
  /** The reconciles under way, the longest first. */
  readonly running: Listed<RunningReconcile>;
  /** The primaries that failed, the next retry first. */
  readonly failed: Listed<FailedPrimary>;
  /** The primaries that somebody has paused. */
  readonly paused: Listed<ObjectKey>;
  /** The primaries that wait until what may belong to them is known. */
  readonly waiting: Listed<WaitingPrimary>;
  /** How many primaries wait for each kind of time. */
  readonly timers: { readonly [Kind in TimerKind]?: number };
}

// A page that somebody reads, also while ten thousand primaries wait.
const LISTED = 100;
// Health is for people, and the first given-up primaries say enough.
const MAX_GIVEN_UP = 10;

/** Returns what is known of these primaries at a time of their clock. */
export function detailsOf(
  known: Iterable<KnownPrimary>,
  now: number,
  waiting: readonly WaitingPrimary[] = [],
): ControllerDetails {
  const primaries = [...known];
  const queued = primaries.filter(({ waiting }) => waiting !== undefined).sort((a, b) => a.queuedAt - b.queuedAt);
  const running = primaries.flatMap(({ run }) => run ?? []).sort((a, b) => a.startedAt - b.startedAt);
  const failed = primaries.filter(({ state }) => state.failures > 0).sort((a, b) => dueOf(a) - dueOf(b));
  const timers: { [Kind in TimerKind]?: number } = {};
  for (const { timer, state } of primaries)
    if (timer.isSet && state.timer !== undefined) timers[state.timer] = (timers[state.timer] ?? 0) + 1;
  return {
    primaries: primaries.length,
    queued: shown(queued, (each) => queuedOf(each, now)),
    running: shown(running, (each) => runningOf(each, now)),
    failed: shown(failed, (each) => failedOf(each, now)),
    paused: shown(pausedIn(primaries), ({ key }) => key),
    waiting: shown(waiting, (each) => each),
    timers,
  };
}

/** Returns the primaries whose last reconcile failed without a quick retry left. */
export function givenUpOf(known: Iterable<KnownPrimary>): GivenUp {
  const all = [...known].flatMap(({ key, state, lastError }) =>
    lastError === undefined ? [] : [{ primary: key, failures: state.failures, error: lastError }],
  );
  return { count: all.length, primaries: all.slice(0, MAX_GIVEN_UP) };
}

/** Returns the first of the primaries that wait, and how many do. */
export function firstOf(waiting: readonly WaitingPrimary[]): WaitingPrimaries {
  return { count: waiting.length, primaries: waiting.slice(0, MAX_GIVEN_UP) };
}

/** Returns the primaries that the last reconcile found paused. */
export function pausedIn(known: Iterable<KnownPrimary>): readonly KnownPrimary[] {
  return [...known].filter(({ seen }) => seen?.isPaused === true);
}

// Only what is shown is put into words.
function shown<Known, Item>(all: readonly Known[], show: (each: Known) => Item): Listed<Item> {
  return { count: all.length, first: all.slice(0, LISTED).map(show) };
}

function queuedOf({ key, waiting = "background", queuedAt, state }: KnownPrimary, now: number): QueuedPrimary {
  return { primary: key, priority: waiting, forMs: sinceOf(queuedAt, now), reasons: state.reasons.map(describeReason) };
}

function runningOf(run: ReconcileRun, now: number): RunningReconcile {
  return {
    primary: run.key,
    forMs: sinceOf(run.startedAt, now),
    attempt: run.retry.attempt,
    reasons: run.reasons.map(describeReason),
    waitsFor: run.tasks.running.map(({ what, startedAt }) => ({ what, forMs: sinceOf(startedAt, now) })),
    isAborted: run.signal.aborted,
    isHung: run.endOfSlot === Infinity,
  };
}

function failedOf({ key, state, timer: { dueAt } }: KnownPrimary, now: number): FailedPrimary {
  const { failures, isGivenUp, timer } = state;
  const isWaiting = dueAt !== undefined && timer !== undefined;
  return {
    ...{ primary: key, failures, isGivenUp },
    ...(isWaiting && { dueInMs: Math.max(0, Math.round(dueAt - now)), waitsFor: timer }),
  };
}

function dueOf({ timer: { dueAt } }: KnownPrimary): number {
  return dueAt ?? Number.MAX_VALUE;
}

function sinceOf(then: number, now: number): number {
  return Math.max(0, Math.round(now - then));
}
