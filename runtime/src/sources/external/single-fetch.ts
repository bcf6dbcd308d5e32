import type { Clock } from "../../base/clock.js";
import { untilAborted } from "../../base/promises.js";
import type { Semaphore } from "../../base/semaphore.js";
import type { HealthRecord } from "../health-record.js";
import type { MaybePromise } from "./external-source.js";

/** What becomes of what is fetched. */
export interface FetchOptions<Fetched, Taken> {
  readonly turns?: Semaphore;
  /** Takes what was fetched; `since` is the mark of the time at which the fetch began. */
  take(fetched: Fetched, since: number): Taken;
}

interface SingleFetchOptions<Fetched, Taken> extends FetchOptions<Fetched, Taken> {
  /** What the health calls it. */
  readonly part: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly record: HealthRecord;
  now(): number;
}

/** Fetches one thing, once at a time for all who ask. If it misses its deadline, its signal is aborted and its answer is not taken. */
export class SingleFetch<Fetched, Taken> {
  readonly #options: SingleFetchOptions<Fetched, Taken>;
  #underWay: { readonly ended: Promise<Taken>; readonly abort: AbortController } | undefined;
  #closed: Error | undefined;

  constructor(options: SingleFetchOptions<Fetched, Taken>) {
    this.#options = options;
  }

  /** Fetches, or joins the fetch that is under way. */
  run(fetch: (signal: AbortSignal) => MaybePromise<Fetched>): Promise<Taken> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (this.#underWay !== undefined) return this.#underWay.ended;
    const abort = new AbortController();
    const ended = this.#run(fetch, abort);
    this.#underWay = { ended, abort };
    return ended;
  }

  /** Fetches after the fetch that is under way, which may have begun too early to see a change. */
  async again(fetch: (signal: AbortSignal) => MaybePromise<Fetched>): Promise<Taken> {
    await this.#underWay?.ended.catch(() => {});
    return this.run(fetch);
  }

  /** Ends the fetch that is under way; nothing is fetched any more. */
  close(reason: Error): void {
    this.#closed = reason;
    this.#underWay?.abort.abort(reason);
    this.#underWay = undefined;
  }

  async #run(fetch: (signal: AbortSignal) => MaybePromise<Fetched>, abort: AbortController): Promise<Taken> {
    const { part, record, now, take, timeoutMs, clock, turns } = this.#options;
    const { signal } = abort;
    try {
      // Whoever starts a fetch relies on its begin, so there is no turn without a need.
      const turn = turns?.acquire(signal);
      if (turn !== undefined) await turn;
      const miss = () => abort.abort(new Error(`no answer within ${timeoutMs} ms`));
      const cancelDeadline = clock.schedule(timeoutMs, miss);
      const since = now();
      const call = async () => fetch(signal);
      const fetched = await untilAborted(call(), signal).finally(() => {
        cancelDeadline();
        turns?.release();
      });
      // It may have been closed in the turn in which the answer came.
      signal.throwIfAborted();
      const taken = take(fetched, since);
      record.succeed(part);
      return taken;
    } catch (error) {
      if (this.#underWay?.abort === abort) record.fail(part, error);
      throw error;
    } finally {
      if (this.#underWay?.abort === abort) this.#underWay = undefined;
    }
  }
}
