// Nothing hangs silently: whatever a primary waits for, an Event says so after some time.
import type { EventSink } from "../base/activity.js";
import type { Clock } from "../base/clock.js";
import { isTerminating, keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { isPaused } from "../base/primary-link.js";
import { statusConditionsOf } from "../reconcile/status/status-conditions.js";
import type { ReconcileEvent } from "../schedule/reconcile-scope.js";

/** Longer than most rollouts take, and shorter than what Kubernetes itself calls stalled (`progressDeadlineSeconds`). */
const DEFAULT_STALLED_MS = 600_000;
/** The API server forgets Events after an hour. */
const REPEAT_MS = 1_800_000;
const CHECK_MS = 60_000;

interface StalledPrimariesOptions {
  readonly controller: string;
  /** After how long an Event is recorded; 0 for never. Default: 10 minutes */
  readonly afterMs?: number | undefined;
  readonly clock: Clock;
  readonly events: EventSink;
  /** Returns a primary as it is known now. */
  find(key: ObjectKey): KubernetesObject | undefined;
  /** Tells whether a primary has a finalizer of the controller. */
  isHeld(primary: KubernetesObject): boolean;
}

interface Waiting {
  /** What the last reconcile found. */
  message: string;
  readonly since: number;
  dueAt: number;
}

/** Records an Event about each primary that has not become ready, or has not been cleaned up, for some time. */
export class StalledPrimaries {
  readonly #options: StalledPrimariesOptions;
  readonly #afterMs: number;
  readonly #waiting = new Map<ObjectKey, Waiting>();
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: StalledPrimariesOptions) {
    this.#options = options;
    this.#afterMs = options.afterMs ?? DEFAULT_STALLED_MS;
  }

  /** Takes note of the end of a reconcile. */
  onReconciled({ primary, kind, workflow, error, isEnded, isNamespaceTerminating }: ReconcileEvent): void {
    // Reconciles that are in progress at the stop end after it.
    if (isEnded === true || this.#afterMs === 0 || this.#isClosed) return;
    const isCleanup = kind === "cleanup";
    const isReady = error === undefined && !isCleanup && workflow?.isReady !== false;
    // After a cleanup that has succeeded the primary is forgotten.
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
    this.#cancel ??= this.#options.clock.schedule(Math.min(CHECK_MS, this.#afterMs), () => this.#check());
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

  #report(primary: KubernetesObject, waiting: Waiting, now: number): void {
    const { controller, events, isHeld } = this.#options;
    waiting.dueAt = now + REPEAT_MS;
    const isDeleted = isTerminating(primary);
    // A paused primary has an Event of its own; one that other clients hold waits for them.
    if (isPaused(primary.metadata) || (isDeleted && !isHeld(primary))) return;
    const seconds = Math.round((now - waiting.since) / 1_000);
    const time = seconds < 60 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
    const what = isDeleted ? "has not been cleaned up" : "has not been ready";
    const note = `${keyOf(primary.metadata)} ${what} for ${time}: ${waiting.message}`;
    events.record({ controller, about: primary }, { type: "Warning", reason: "Stalled", note });
  }
}
