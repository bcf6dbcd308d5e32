import { untilAborted } from "../../base/promises.js";
import type { ExternalCore } from "./external-core.js";

/** Fetches something, and returns how to take it, which is called unless the fetch was too late. */
export type Fetch<Taken> = (signal: AbortSignal) => Promise<() => Taken>;

/** Fetches one thing, once at a time for all who ask. If it misses its deadline, its signal is aborted and its answer is not taken. */
export class SingleFetch<Taken> {
  readonly #core: Pick<ExternalCore<never, never>, "context" | "record" | "timeoutMs" | "turns">;
  readonly #part: string;
  #underWay: { readonly ended: Promise<Taken>; readonly abort: AbortController } | undefined;
  #closed: Error | undefined;

  /** The health calls it `part`. */
  constructor(core: Pick<ExternalCore<never, never>, "context" | "record" | "timeoutMs" | "turns">, part: string) {
    this.#core = core;
    this.#part = part;
  }

  /** Fetches, or joins the fetch that is under way. */
  run(fetch: Fetch<Taken>): Promise<Taken> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (this.#underWay !== undefined) return this.#underWay.ended;
    const abort = new AbortController();
    const ended = this.#run(fetch, abort);
    this.#underWay = { ended, abort };
    return ended;
  }

  /** Fetches after the fetch that is under way, which may have begun too early to see a change. */
  async again(fetch: Fetch<Taken>): Promise<Taken> {
    await this.#underWay?.ended.catch(() => {});
    return this.run(fetch);
  }

  /** Ends the fetch that is under way; nothing is fetched any more. */
  close(reason: Error): void {
    this.#closed = reason;
    this.#underWay?.abort.abort(reason);
    this.#underWay = undefined;
  }

  async #run(fetch: Fetch<Taken>, abort: AbortController): Promise<Taken> {
    const { context, record, timeoutMs, turns } = this.#core;
    const { signal } = abort;
    try {
      // Whoever starts a fetch relies on its begin, so there is no turn without a need.
      const turn = turns?.acquire(signal);
      if (turn !== undefined) await turn;
      const miss = () => abort.abort(new Error(`no answer within ${timeoutMs} ms`));
      // Nothing is fetched before the start.
      const cancelDeadline = context!.clock.schedule(timeoutMs, miss);
      const take = await untilAborted(fetch(signal), signal).finally(() => {
        cancelDeadline();
        turns?.release();
      });
      // It may have been closed in the turn in which the answer came.
      signal.throwIfAborted();
      const taken = take();
      record.succeed(this.#part);
      return taken;
    } catch (error) {
      if (this.#underWay?.abort === abort) record.fail(this.#part, error);
      throw error;
    } finally {
      if (this.#underWay?.abort === abort) this.#underWay = undefined;
    }
  }
}
