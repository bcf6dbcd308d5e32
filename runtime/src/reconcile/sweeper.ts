import { Backoff, type Clock } from "../base/clock.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { Semaphore } from "../base/semaphore.js";

const BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 60_000 };
const BUSY_MS = 100;
const MAX_CONCURRENT = 5;

interface SweeperOptions {
  readonly clock: Clock;
  /** Tells whether a reconcile of this very primary is under way, which may still write. */
  isReconciling(primary: KubernetesObject): boolean;
  /** Deletes what is left of a primary. Resolves with after how long that has to be looked at again, 0 if nothing is left. */
  cleanUp(primary: KubernetesObject, signal: AbortSignal): Promise<number>;
  onFailure(primary: KubernetesObject, error: unknown, retryAfterMs: number): void;
}

interface Job {
  primary: KubernetesObject;
  readonly backoff: Backoff;
  problem?: unknown;
  cancel?: () => void;
}

/** Cleans up after primaries that are gone, for a controller without a finalizer (`cleanupPolicy: "sweep"`). */
export class Sweeper {
  readonly #options: SweeperOptions;
  /** By the uid of the primary. */
  readonly #jobs = new Map<string, Job>();
  readonly #slots = new Semaphore(MAX_CONCURRENT);
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  /** Cleans up after a primary that seems to be gone, until nothing is left. */
  add(primary: KubernetesObject): void {
    const { uid } = primary.metadata;
    if (uid === undefined || this.#jobs.has(uid) || this.#stopping.signal.aborted) return;
    const job: Job = { primary, backoff: new Backoff(BACKOFF) };
    this.#jobs.set(uid, job);
    this.#start(uid, job);
  }

  /** The primaries of which something is left, as the last attempt failed, each with the error. */
  get failures(): readonly { readonly primary: KubernetesObject; readonly error: unknown }[] {
    return [...this.#jobs.values()].flatMap(({ primary, problem }) =>
      problem === undefined ? [] : [{ primary, error: problem }],
    );
  }

  /** Starts nothing more; resolves when what is under way has ended. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error("the controller was stopped"));
    for (const { cancel } of this.#jobs.values()) cancel?.();
    this.#jobs.clear();
    await Promise.all(this.#running);
  }

  #start(uid: string, job: Job): void {
    const running: Promise<void> = this.#attempt(uid, job).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #attempt(uid: string, job: Job): Promise<void> {
    const { isReconciling, cleanUp, onFailure } = this.#options;
    const { signal } = this.#stopping;
    if (isReconciling(job.primary)) return this.#again(uid, job, BUSY_MS);
    try {
      await this.#slots.acquire(signal);
      try {
        const afterMs = await cleanUp(job.primary, signal);
        delete job.problem;
        job.backoff.reset();
        if (afterMs > 0) this.#again(uid, job, afterMs);
        else this.#jobs.delete(uid);
      } finally {
        this.#slots.release();
      }
    } catch (error) {
      if (signal.aborted) return;
      const retryAfterMs = job.backoff.next();
      job.problem = error;
      onFailure(job.primary, error, retryAfterMs);
      this.#again(uid, job, retryAfterMs);
    }
  }

  #again(uid: string, job: Job, afterMs: number): void {
    if (this.#stopping.signal.aborted) return;
    job.cancel = this.#options.clock.schedule(afterMs, () => this.#start(uid, job));
  }
}
