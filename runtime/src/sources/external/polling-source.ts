import { requireFunctions, requireNumbers } from "../../base/checks.js";
import { Backoff } from "../../base/clock.js";
import { keyOf, type ObjectKey } from "../../base/kubernetes-object.js";
import { typeNameOf } from "../mappers.js";
import { ExternalCore } from "./external-core.js";
import type { ExternalSource, ExternalSourceOptions, FetchContext, MaybePromise } from "./external-source.js";

/** What a polling source polls. */
export interface PollingSourceOptions<Resource> extends ExternalSourceOptions<Resource> {
  /** The time from the end of one poll to the next. */
  readonly intervalMs: number;
  /** Returns all resources of all primaries; what was there and is missing is gone. What it throws leaves everything as it is known. */
  fetch(context: FetchContext): MaybePromise<ReadonlyMap<ObjectKey, readonly Resource[]>>;
}

// The start waits for the first success, so the first attempts come sooner than the interval says.
const START_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 30_000 };

/**
 * Creates an event source that asks for everything at an interval (JOSDK PollingEventSource); one poll at a time. Its start resolves after
 * the first poll that succeeds; unless it `isAwaited`, after the first poll even if that fails: then `load` throws why. A primary whose
 * reconcile failed for a fetch is reconciled after the next one that succeeds.
 */
export function pollingSource<Resource>(
  options: PollingSourceOptions<Resource>,
  { isAwaited = true }: { readonly isAwaited?: boolean } = {},
): ExternalSource<Resource> {
  const { name, type, intervalMs } = options;
  requireFunctions(`event source "${name}"`, { fetch: options.fetch });
  requireNumbers(`event source "${name}"`, { intervalMs: [intervalMs, 1] });
  const core = new ExternalCore(options);
  const { cache } = core;
  let running = new AbortController();
  /** Whether a poll has succeeded since the start. */
  let isSynced = false;
  /** Why nothing is known yet, if that is so. */
  let failure: { readonly error: unknown } | undefined;

  const fetch = async (signal: AbortSignal) => {
    const since = cache.now;
    const all = await options.fetch({ signal });
    if (typeof (all as Partial<typeof all> | undefined)?.get !== "function")
      throw new TypeError(`it returned ${typeNameOf(all)}, and not a Map of lists by the keys of primaries`);
    return () => {
      const primaries = new Set([...cache.replaceAll(all, since), ...core.takeRefused()]);
      if (primaries.size > 0) core.context?.notify(primaries, { isInitial: !isSynced });
      isSynced = true;
      failure = undefined;
    };
  };
  const pollForever = (onSynced: () => void) => {
    const { signal } = (running = new AbortController());
    const backoff = new Backoff(START_BACKOFF);
    const delayMs = () => (isSynced ? intervalMs : Math.min(intervalMs, backoff.next()));
    const poll = async () => {
      try {
        await core.fetchOf().run(fetch);
      } catch (error) {
        if (!isSynced && !isAwaited && !signal.aborted) failure = { error };
      }
      if (isSynced || !isAwaited) onSynced();
    };
    // A source that is stopped while it starts must not keep the operator waiting.
    signal.addEventListener("abort", onSynced);
    void poll().then(() => core.pollUntil(signal, delayMs, poll));
  };

  return core.createSource(type, {
    startsWhenLeading: true,
    onStart: () => new Promise<void>((resolve) => pollForever(resolve)),
    onStop() {
      running.abort();
      isSynced = false;
      failure = undefined;
    },
    async load({ metadata }, signal) {
      const key = keyOf(metadata);
      await core.load(key, {
        signal,
        refetch: async () => core.context && core.fetchOf().again(fetch),
        async fetch() {
          if (failure !== undefined) throw failure.error;
        },
      });
      core.confirm(key, running.signal, () =>
        core
          .fetchOf()
          .run(fetch)
          .catch(() => {}),
      );
    },
    onPrimaryChange: ({ kind, key }) => void (kind === "deleted" && core.takeRefused([key])),
  });
}
