// Events about primaries: results of reconciles, pauses, waits for watches, and primaries that do not become ready or cannot be deleted.
import { hasFinalizer } from "../apply/resource-operations.js";
import { type EventSink, type Reporter, type WaitingPrimary, report } from "../base/activity.js";
import { type ApiError, findError } from "../base/errors.js";
import {
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  describeObject,
  isTerminating,
  keyOf,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { PAUSED, isPaused } from "../base/primary-link.js";
import { type Clock, sleep } from "../base/wait.js";
import type { ReconcileEvent } from "../queue/controller.js";
import { statusConditionsOf } from "./status-conditions.js";

// The API server rejected the object itself: bad request, too large, or invalid.
const REFUSALS: readonly number[] = [400, 413, 422];

/** Records that the API server rejected an object in a reconcile, or that objects were pruned. */
export function recordReconcile(
  events: EventSink,
  about: KubernetesObject | undefined,
  { controller, workflow, error }: ReconcileEvent,
): void {
  if (about === undefined) return;
  if (error !== undefined && REFUSALS.includes(findError<ApiError>(error, "ApiError")?.code ?? 0))
    events.record({ controller, about }, { type: "Warning", reason: "Rejected", note: messageOf(error) });
  for (const [name, outcome] of Object.entries(workflow?.removed ?? {}))
    if (outcome.kind === "deleted")
      events.record({ controller, about }, { reason: "Pruned", action: "Delete", note: `${name}: ${outcome.because}` });
}

/** Reports that a primary is not reconciled yet, because a watch of its secondaries has not started. */
export function recordWait(about: KubernetesObject, reason: string, { controller, logger, events }: Reporter): void {
  const note = `not reconciled yet: waiting for the watch of a secondary: ${reason}`;
  logger.info({ controller, primary: keyOf(about.metadata) }, note);
  events.record({ controller, about }, { type: "Warning", reason: "WaitingForWatch", action: "Watch", note });
}

/** Reports that a primary was paused or resumed. */
export function recordPause(
  about: KubernetesObject,
  isPaused: boolean,
  { controller, logger, events }: Reporter,
): void {
  const fields = { controller, primary: keyOf(about.metadata) };
  if (!isPaused) return logger.info(fields, "resumed: the primary is reconciled again");
  const message = `the annotation ${PAUSED} is "true": nothing is written and finalizers stay until it is removed`;
  logger.info(fields, `paused: ${message}`);
  events.record({ controller, about }, { reason: "Paused", action: "Pause", note: message });
}

// Stalled primaries: after some time, an Event reports what a primary waits for, so that no primary waits silently.

/** Longer than most rollouts take, and shorter than Kubernetes' own limit (`progressDeadlineSeconds`). */
const DEFAULT_STALLED_MS = 600_000;
/** Must be shorter than the TTL of Events in the API server, which is an hour. */
const STALLED_REPEAT_MS = 1_800_000;
const STALLED_CHECK_MS = 60_000;

interface StalledPrimariesOptions {
  readonly controller: string;
  /** The time until an Event is recorded, in milliseconds; 0 to disable. Default: 10 minutes */
  readonly afterMs?: number | undefined;
  readonly clock: Clock;
  readonly events: EventSink;
  /** Returns a primary from the cache. */
  find(key: ObjectKey): KubernetesObject | undefined;
  /** Reports whether a primary has a finalizer of the controller. */
  isHeld(primary: KubernetesObject): boolean;
}

interface StalledWait {
  /** The message of the last reconcile. */
  message: string;
  readonly since: number;
  dueAt: number;
}

/** Records an Event for each primary that has not become ready, or has not been cleaned up, for some time. */
export class StalledPrimaries {
  readonly #options: StalledPrimariesOptions;
  readonly #afterMs: number;
  readonly #waiting = new Map<ObjectKey, StalledWait>();
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: StalledPrimariesOptions) {
    this.#options = options;
    this.#afterMs = options.afterMs ?? DEFAULT_STALLED_MS;
  }

  onReconciled({ primary, kind, workflow, error, isEnded, isNamespaceTerminating }: ReconcileEvent): void {
    // Reconciles in progress may end after the stop.
    if (isEnded === true || this.#afterMs === 0 || this.#isClosed) return;
    const isCleanup = kind === "cleanup";
    const isReady = error === undefined && !isCleanup && workflow?.isReady !== false;
    // A primary is dropped after its cleanup has succeeded.
    if (isReady || isNamespaceTerminating === true) return this.forget(primary);
    const facts = { workflow, error, isCleanup, before: [], generation: undefined, now: new Date() };
    const message = statusConditionsOf(facts)[0]?.message ?? "";
    const known = this.#waiting.get(primary);
    if (known !== undefined) {
      known.message = message;
      return;
    }
    const since = this.#options.clock.now();
    this.#waiting.set(primary, { message, since, dueAt: since + this.#afterMs });
    this.#schedule();
  }

  forget(key: ObjectKey): void {
    this.#waiting.delete(key);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#waiting.clear();
  }

  #schedule(): void {
    this.#cancel ??= this.#options.clock.schedule(Math.min(STALLED_CHECK_MS, this.#afterMs), () => this.#check());
  }

  #check(): void {
    const { clock, find } = this.#options;
    this.#cancel = undefined;
    const now = clock.now();
    for (const [key, waiting] of this.#waiting) {
      if (waiting.dueAt > now) continue;
      const primary = find(key);
      if (primary === undefined) this.#waiting.delete(key);
      else this.#report(primary, waiting, now);
    }
    if (this.#waiting.size > 0) this.#schedule();
  }

  #report(primary: KubernetesObject, waiting: StalledWait, now: number): void {
    const { controller, events, isHeld } = this.#options;
    waiting.dueAt = now + STALLED_REPEAT_MS;
    const isDeleted = isTerminating(primary);
    // Paused primaries have an Event of their own, and finalizers of other controllers are not reported.
    if (isPaused(primary.metadata) || (isDeleted && !isHeld(primary))) return;
    const seconds = Math.round((now - waiting.since) / 1_000);
    const time = seconds < 60 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
    const what = isDeleted ? "has not been cleaned up" : "has not been ready";
    const note = `${keyOf(primary.metadata)} ${what} for ${time}: ${waiting.message}`;
    events.record({ controller, about: primary }, { type: "Warning", reason: "Stalled", note });
  }
}

// Stuck primaries, which no reconcile reports, because they do not match the selector or were deleted.

// Another instance may be cleaning up, and watches may lag behind.
const SETTLE_MS = 5_000;
const FIRST_CHECK_MS = 10_000;
const LAST_CHECK_MS = 600_000;
const RESPONSIBLE_CHECK_MS = 300_000;

interface StuckPrimariesOptions extends Reporter {
  readonly definition: ResourceDefinition;
  /** Undefined if the controller has none. */
  readonly finalizer: string | undefined;
  /** The selector of primaries; undefined if all are selected. */
  readonly selector: string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Cleans up a terminating primary that does not match the selector; undefined unless the controller has `cleanUpUnselected`. */
  readonly cleanUp?: ((primary: KubernetesObject) => void) | undefined;
  /** Lists the metadata of all primaries in the controller's namespaces, in pages, whether or not they match the selector. */
  list(signal: AbortSignal): AsyncIterable<readonly KubernetesObject[]>;
  /** Reports whether a primary matches the selector, or may match it because its namespace is not synced. */
  isSelected(primary: KubernetesObject): boolean;
  /** Reports whether the API server confirms the deletion of a primary. */
  isGone(primary: KubernetesObject, signal: AbortSignal): Promise<boolean>;
  /** Returns the names of a primary's objects that only the operator deletes, and that are not being deleted. */
  leftOf(primary: KubernetesObject): readonly string[];
  /** Returns the unknown primaries to which such objects are linked. */
  linked(): readonly KubernetesObject[];
}

/**
 * Reports unselected primaries whose deletion is blocked by this controller's finalizer, and objects of primaries that were deleted without a
 * cleanup.
 */
export class StuckPrimaries {
  readonly #options: StuckPrimariesOptions;
  /** Terminating unselected primaries that have the finalizer, by UID. */
  readonly #unselected = new Map<string, { readonly primary: KubernetesObject; isReported: boolean }>();
  /** Primaries that were deleted without a cleanup, by UID. */
  readonly #left = new Map<string, KubernetesObject>();
  #next: { readonly dueAt: number; readonly cancel: () => void } | undefined;
  #nextMs = FIRST_CHECK_MS;
  #isChecking = false;
  /** Whether to keep checking: an unselected primary that has the finalizer may be deleted later, which no watch reports. */
  #mayFollow = false;

  constructor(options: StuckPrimariesOptions) {
    this.#options = options;
  }

  /** All reported primaries, with the reasons. */
  get all(): readonly WaitingPrimary[] {
    const { leftOf } = this.#options;
    const waiting = [...this.#unselected.values()].filter(({ isReported }) => isReported);
    for (const [uid, primary] of this.#left) if (leftOf(primary).length === 0) this.#left.delete(uid);
    return [
      ...waiting.map(({ primary }) => ({ primary: keyOf(primary.metadata), reason: this.#unselectedNote(primary) })),
      ...[...this.#left.values()].map((primary) => ({
        primary: keyOf(primary.metadata),
        reason: this.#leftNote(primary, leftOf(primary)),
      })),
    ];
  }

  /** Finds primaries that were stuck before the start. Call it once this replica leads. */
  async start(): Promise<void> {
    if (this.#options.finalizer === undefined) return;
    const linked = new Map(this.#options.linked().map((primary) => [primary.metadata.uid, primary]));
    if (this.#options.selector !== undefined)
      await this.#check((page) => page.forEach(({ metadata: { uid } }) => linked.delete(uid)));
    await Promise.all([...linked.values()].map((primary) => this.#reportLeft(primary, [])));
  }

  close(): void {
    this.#next?.cancel();
  }

  /**
   * Called when a primary has left the watch. `isReleased`: its cleanup has ended. `external` returns the names of resources that may remain outside
   * Kubernetes.
   */
  onDeleted(primary: KubernetesObject, facts: { isReleased: boolean; external: () => readonly string[] }): void {
    const { finalizer, selector, leftOf } = this.#options;
    const { uid, deletionTimestamp } = primary.metadata;
    if (finalizer === undefined || uid === undefined || facts.isReleased) return;
    const isMarked = hasFinalizer(primary, finalizer);
    // The API server does not delete an object with finalizers: the object only stopped matching the selector.
    if (isMarked && deletionTimestamp === undefined) {
      if (selector !== undefined) this.#schedule(FIRST_CHECK_MS);
      return;
    }
    const external = facts.external();
    if (isMarked || external.length > 0 || leftOf(primary).length > 0) void this.#reportLeft(primary, external);
  }

  onSelected({ metadata: { uid = "" } }: KubernetesObject): void {
    this.#unselected.delete(uid);
  }

  // Keep an earlier check, so that a stream of primaries does not postpone it.
  #schedule(afterMs: number): void {
    const { clock } = this.#options;
    const dueAt = clock.now() + afterMs;
    if (this.#next !== undefined && this.#next.dueAt <= dueAt) return;
    this.#next?.cancel();
    const check = () => {
      this.#next = undefined;
      void this.#check();
    };
    this.#next = { dueAt, cancel: clock.schedule(afterMs, check) };
  }

  async #check(onPage: (page: readonly KubernetesObject[]) => void = () => {}): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { list, signal, finalizer, isSelected, logger, controller, definition, cleanUp } = this.#options;
    const seen = new Set<string>();
    this.#mayFollow = false;
    try {
      for await (const page of list(signal)) {
        onPage(page);
        for (const primary of page) if (hasFinalizer(primary, finalizer!)) this.#judge(primary, seen);
      }
      for (const [uid, { primary }] of this.#unselected)
        if (!seen.has(uid) || isSelected(primary)) this.#unselected.delete(uid);
    } catch (error) {
      if (signal.aborted) return;
      this.#mayFollow = true;
      const what = `${definition.plural} with finalizer "${finalizer}" that do not match the selector could not be listed`;
      logger.warn({ controller }, `${what}: ${messageOf(error)}`);
    } finally {
      this.#isChecking = false;
    }
    if (signal.aborted) return;
    if (this.#unselected.size === 0 && !this.#mayFollow && cleanUp === undefined) {
      this.#nextMs = FIRST_CHECK_MS;
      return;
    }
    const nextMs = this.#nextMs;
    this.#schedule(cleanUp === undefined ? nextMs : Math.min(nextMs, RESPONSIBLE_CHECK_MS));
    this.#nextMs = Math.min(2 * nextMs, LAST_CHECK_MS);
  }

  #judge(primary: KubernetesObject, seen: Set<string>): void {
    const { isSelected, cleanUp } = this.#options;
    const { uid = "", deletionTimestamp } = primary.metadata;
    seen.add(uid);
    if (isSelected(primary)) return;
    const known = this.#unselected.get(uid);
    // Another instance may reconcile it.
    if (deletionTimestamp === undefined) {
      this.#mayFollow = true;
      return;
    }
    if (cleanUp !== undefined) return cleanUp(primary);
    const isSettled = Date.now() - Date.parse(deletionTimestamp) >= SETTLE_MS;
    const isReported = known?.isReported === true || isSettled;
    this.#unselected.set(uid, { primary, isReported });
    if (isReported && known?.isReported !== true) this.#report(primary, "NotSelected", this.#unselectedNote(primary));
  }

  #unselectedNote(primary: KubernetesObject): string {
    const { finalizer, selector, definition } = this.#options;
    return (
      `${describeObject(definition, primary.metadata)} is being deleted and holds finalizer "${finalizer}", but is not selected (${selector}): its ` +
      "deletion blocks until it matches again, the finalizer is removed, or a controller with cleanUpUnselected cleans it up"
    );
  }

  async #reportLeft(primary: KubernetesObject, external: readonly string[]): Promise<void> {
    const { clock, signal, isGone, leftOf, logger, controller, finalizer, selector } = this.#options;
    try {
      // The deletion event contains the finalizers of the previous state.
      if (!(await isGone(primary, signal))) {
        if (finalizer !== undefined && selector !== undefined && hasFinalizer(primary, finalizer))
          this.#schedule(SETTLE_MS);
        return;
      }
      await sleep(SETTLE_MS, signal, clock);
      const left = [...leftOf(primary), ...external];
      if (left.length === 0) return;
      if (leftOf(primary).length > 0) this.#left.set(primary.metadata.uid!, primary);
      this.#report(primary, "LeftBehind", this.#leftNote(primary, left));
    } catch (error) {
      if (signal.aborted) return;
      logger.warn({ controller, primary: keyOf(primary.metadata) }, `${messageOf(error)}; objects of it may be left`);
    }
  }

  #leftNote(primary: KubernetesObject, left: readonly string[]): string {
    const { finalizer, definition } = this.#options;
    const name = describeObject(definition, primary.metadata);
    return `${name} was deleted without a cleanup, as its finalizer "${finalizer}" was removed by another client; delete what is left: ${left.join(", ")}`;
  }

  #report(about: KubernetesObject, reason: string, note: string): void {
    report(this.#options, about, { type: "Warning", reason, action: "Delete", note });
  }
}
