import { withDeadline } from "../../base/promises.js";
import { userCalls } from "../../base/user-calls.js";
import type { ExternalCore } from "./external-core.js";

/** Fetches something, and returns how to take it, which is called unless the fetch was too late. */
export type Fetch<Taken> = (signal: AbortSignal) => Promise<() => Taken>;

/** Fetches one thing, once at a time for all who ask. */
export type SingleFetch<Taken> = ReturnType<typeof createSingleFetch<Taken>>;

/** Creates a fetch, which the health calls `part`. If it misses its deadline, its signal is aborted and its answer is not taken. */
export function createSingleFetch<Taken>(
  core: Pick<ExternalCore<never, never>, "context" | "name" | "record" | "timeoutMs" | "turns">,
  part: string,
) {
  let underWay: { readonly ended: Promise<Taken>; readonly abort: AbortController } | undefined;
  let closed: Error | undefined;

  const begin = async (fetch: Fetch<Taken>, abort: AbortController): Promise<Taken> => {
    const { context, name, record, timeoutMs, turns } = core;
    const { signal } = abort;
    try {
      // Whoever starts a fetch relies on its begin, so there is no turn without a need.
      const turn = turns?.acquire(signal);
      if (turn !== undefined) await turn;
      // Nothing is fetched before the start.
      const { clock, controller } = context!;
      const call = { what: `${part} of event source "${name}"`, controller };
      const marked = (late: AbortSignal) => userCalls.track(call, () => fetch(late));
      const take = await withDeadline(marked, { timeoutMs, clock }, [signal]).finally(() => turns?.release());
      // It may have been closed in the turn in which the answer came.
      signal.throwIfAborted();
      const taken = take();
      record.succeed(part);
      return taken;
    } catch (error) {
      if (underWay?.abort === abort) record.fail(part, error);
      throw error;
    } finally {
      if (underWay?.abort === abort) underWay = undefined;
    }
  };
  /** Fetches, or joins the fetch that is under way. */
  const run = (fetch: Fetch<Taken>): Promise<Taken> => {
    if (closed !== undefined) return Promise.reject(closed);
    if (underWay !== undefined) return underWay.ended;
    const abort = new AbortController();
    const ended = begin(fetch, abort);
    underWay = { ended, abort };
    return ended;
  };
  return {
    run,
    /** Fetches after the fetch that is under way, which may have begun too early to see a change. */
    async again(fetch: Fetch<Taken>): Promise<Taken> {
      await underWay?.ended.catch(() => {});
      return run(fetch);
    },
    /** Ends the fetch that is under way; nothing is fetched any more. */
    close(reason: Error): void {
      closed = reason;
      underWay?.abort.abort(reason);
      underWay = undefined;
    },
  };
}
