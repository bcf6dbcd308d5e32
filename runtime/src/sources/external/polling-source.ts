import { Backoff } from "../../base/backoff.js";
import { keyOf, type ObjectKey } from "../../base/kubernetes-object.js";
import type { EventSourceContext } from "../event-source.js";
import { ExternalCore } from "./external-core.js";
import {
  checkInterval,
  type ExternalSource,
  type ExternalSourceOptions,
  type FetchContext,
  type MaybePromise,
} from "./external-source.js";
import { startPollLoop } from "./poll-loop.js";
import type { SingleFetch } from "./single-fetch.js";

type All<Resource> = ReadonlyMap<ObjectKey, readonly Resource[]>;

/** What a polling source polls. */
export interface PollingSourceOptions<Resource> extends ExternalSourceOptions<Resource> {
  /** The time from the end of one poll to the next. */
  readonly intervalMs: number;
  /** Returns all resources of all primaries; what was there and is missing is gone. What it throws leaves everything as it is known. */
  fetch(context: FetchContext): MaybePromise<All<Resource>>;
}

// The start waits for the first success, so the first attempts come sooner than the interval says.
const START_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 30_000 };

/**
 * Creates an event source that asks for everything at an interval (JOSDK PollingEventSource); one poll at a time.
 *
 * Its start resolves after the first poll that succeeds. A primary whose reconcile failed for a fetch is reconciled after the next one that
 * succeeds.
 */
export function pollingSource<Resource>(options: PollingSourceOptions<Resource>): ExternalSource<Resource> {
  return createPollingSource(options, { isAwaited: true });
}

/** Creates the same; unless it `isAwaited`, its start resolves after the first poll even if that fails: then `load` throws why. */
export function createPollingSource<Resource>(
  options: PollingSourceOptions<Resource>,
  { isAwaited }: { readonly isAwaited: boolean },
): ExternalSource<Resource> {
  const { name, type, intervalMs } = options;
  checkInterval(`the intervalMs of event source "${name}"`, intervalMs);
  const core = new ExternalCore(options);
  const { cache, loads } = core;
  const fetch = (signal: AbortSignal) => options.fetch({ signal });
  /** Absent while the source is stopped. */
  let single: SingleFetch<All<Resource>, void> | undefined;
  let stopPolls = () => {};
  /** Why nothing is known yet, if that is so. */
  let failure: { readonly error: unknown } | undefined;

  const pollForever = (context: EventSourceContext, onSynced: () => void) => {
    const { clock } = context;
    const backoff = new Backoff(START_BACKOFF);
    let isSynced = false;
    const own = (single = core.createFetch<All<Resource>, void>("fetch", {
      take(all, since) {
        const primaries = new Set([...cache.replaceAll(all, since), ...loads.releaseAll()]);
        if (primaries.size > 0) context.notify(primaries, { isInitial: !isSynced });
        isSynced = true;
        failure = undefined;
      },
    }));
    const endLoop = startPollLoop({
      clock,
      startsNow: true,
      delayMs: () => (isSynced ? intervalMs : Math.min(intervalMs, backoff.next())),
      async poll(isEnded) {
        try {
          await own.run(fetch);
        } catch (error) {
          if (!isSynced && !isAwaited && !isEnded()) failure = { error };
        }
        if (isSynced || !isAwaited) onSynced();
      },
    });
    stopPolls = () => {
      endLoop();
      own.close(new Error(`event source "${name}" was stopped`));
      // A source that is stopped while it starts must not keep the operator waiting.
      onSynced();
    };
  };

  return core.createSource(type, {
    onStart: (context) => new Promise<void>((resolve) => pollForever(context, resolve)),
    onStop() {
      stopPolls();
      single = failure = undefined;
    },
    load: ({ metadata }, signal) =>
      loads.load(keyOf(metadata), {
        signal,
        refetch: async () => single?.again(fetch),
        async fetch() {
          if (failure !== undefined) throw failure.error;
        },
      }),
    onPrimaryChange: ({ kind, key }) => void (kind === "deleted" && loads.release(key)),
  });
}
