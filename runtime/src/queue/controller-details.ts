// A snapshot of the queue and the reconciles of a controller, for the debug endpoint and health. Ages are in milliseconds. Objects are only referred
// to by name.
import { type WaitingPrimaries, type WaitingPrimary, describeReason } from "../base/activity.js";
import type { ObjectKey } from "../base/kubernetes-object.js";
import type { ReconcilePriority, TimerKind } from "./processor.js";
import type { KnownPrimary, ReconcileRun } from "./controller.js";

/** The first items of a list, and the length of the whole list. */
export interface Listed<Item> {
  readonly count: number;
  readonly first: readonly Item[];
}

interface QueuedPrimary {
  readonly primary: ObjectKey;
  readonly priority: ReconcilePriority;
  readonly forMs: number;
  readonly reasons: readonly string[];
}

interface RunningReconcile extends Omit<QueuedPrimary, "priority"> {
  readonly attempt: number;
  /** User functions that have not returned. */
  readonly waitsFor: readonly { readonly what: string; readonly forMs: number }[];
  readonly isAborted: boolean;
  /** Whether it has not returned after its signal was aborted, so that its worker was freed. */
  readonly isHung: boolean;
}

/** A primary whose quick retries are exhausted. */
export interface GivenUpPrimary {
  /** `namespace/name` of the primary. */
  readonly primary: ObjectKey;
  /** Failed reconciles since the last success. */
  readonly failures: number;
  /** The error message of the last failure. */
  readonly error: string;
}

/** Primaries whose quick retries are exhausted. */
export interface GivenUp {
  readonly count: number;
  /** The first ten of them. */
  readonly primaries: readonly GivenUpPrimary[];
}

interface FailedPrimary extends Omit<GivenUpPrimary, "error"> {
  /** The time until the next reconcile in milliseconds; absent if it waits for a change. */
  readonly dueInMs?: number;
  readonly waitsFor?: TimerKind;
  readonly isGivenUp: boolean;
}

export interface ControllerDetails {
  /** The number of known primaries. */
  readonly primaries: number;
  /** The queue, longest wait first. */
  readonly queued: Listed<QueuedPrimary>;
  /** Reconciles in progress, longest first. */
  readonly running: Listed<RunningReconcile>;
  /** Primaries whose last reconcile failed, next retry first. */
  readonly failed: Listed<FailedPrimary>;
  readonly paused: Listed<ObjectKey>;
  /** Primaries that wait because some of their secondaries are not known yet. */
  readonly waiting: Listed<WaitingPrimary>;
  /** The number of timers of each kind. */
  readonly timers: { readonly [Kind in TimerKind]?: number };
}

// The response must stay readable with ten thousand queued primaries.
const LISTED = 100;
// Enough for a health report.
const MAX_GIVEN_UP = 10;

/** Creates a snapshot. `now` is a time of the controller's clock. */
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

/** Lists the primaries whose quick retries are exhausted. */
export function givenUpOf(known: Iterable<KnownPrimary>): GivenUp {
  const all = [...known].flatMap(({ key, state, lastError }) =>
    lastError === undefined ? [] : [{ primary: key, failures: state.failures, error: lastError }],
  );
  return { count: all.length, primaries: all.slice(0, MAX_GIVEN_UP) };
}

export function firstOf(waiting: readonly WaitingPrimary[]): WaitingPrimaries {
  return { count: waiting.length, primaries: waiting.slice(0, MAX_GIVEN_UP) };
}

/** Lists the primaries that were paused at their last reconcile. */
export function pausedIn(known: Iterable<KnownPrimary>): readonly KnownPrimary[] {
  return [...known].filter(({ seen }) => seen?.isPaused === true);
}

// Only formats the items that are shown.
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
