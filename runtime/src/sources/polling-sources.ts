import { type KubernetesObject, type ObjectKey, keyOf } from "../base/kubernetes-object.js";
import { synchronous } from "../base/user-calls.js";
import { checkCounts, requireFunctions, requireNumbers } from "../base/validation.js";
import { Backoff, Semaphore } from "../base/wait.js";
import { typeNameOf } from "./event-source.js";
import {
  ExternalCore,
  type ExternalSource,
  type ExternalSourceOptions,
  type FetchContext,
  type MaybePromise,
} from "./external-source.js";

export interface PollingSourceOptions<Resource> extends ExternalSourceOptions<Resource> {
  /** The time from the end of a poll until the next one, in milliseconds. */
  readonly intervalMs: number;
  /** Returns all resources of all primaries; resources missing from the result are deleted. If it throws, the known resources stay. */
  fetch(context: FetchContext): MaybePromise<ReadonlyMap<ObjectKey, readonly Resource[]>>;
}

// The start waits for the first success, so the first attempts use a backoff shorter than the interval.
const START_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 30_000 };

/**
 * Creates an event source that polls the resources of all primaries at an interval (JOSDK's PollingEventSource), one poll at a time. The start
 * resolves after the first successful poll; with `isAwaited: false`, it resolves after the first poll even if that fails, and `load` throws its
 * error. A primary whose reconcile failed because of a fetch is reconciled after the next successful fetch.
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
  /** The error of the last poll while none has succeeded yet. */
  let failure: { readonly error: unknown } | undefined;

  const fetch = async (signal: AbortSignal) => {
    const since = cache.now;
    const all = await options.fetch({ signal });
    if (typeof (all as Partial<typeof all> | undefined)?.get !== "function")
      throw new TypeError(`it returned ${typeNameOf(all)} instead of a Map from keys of primaries to arrays`);
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
    // The start must not wait for a poll once the source is stopped.
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

export interface PerPrimaryPollingSourceOptions<
  Resource,
  Primary extends KubernetesObject = KubernetesObject,
> extends ExternalSourceOptions<Resource> {
  /** The time from the end of a poll until the next one, and from the first event of a primary until its first poll, in milliseconds. */
  readonly intervalMs: number;
  /** Returns all resources of one primary; resources missing from the result are deleted. If it throws, the known resources stay. */
  fetch(primary: Primary, context: FetchContext): MaybePromise<readonly Resource[]>;
  /** Returns the time until the next poll of a primary, in milliseconds. Default: `intervalMs` */
  intervalOf?(primary: Primary, resources: readonly Resource[]): number | undefined;
  /** Reports whether a primary is polled. Called again after each change of the primary. Default: every primary is polled */
  isPolled?(primary: Primary): boolean;
  /** The maximum number of concurrent polls. Default: 10 */
  readonly maxConcurrentPolls?: number;
}

/**
 * Creates an event source that polls the resources of each primary at its own interval (JOSDK's PerResourcePollingEventSource). The first reconcile
 * of a primary fetches them if no poll has done so. If that fails, the primary is reconciled after the next successful poll.
 */
export function perPrimaryPollingSource<Resource, Primary extends KubernetesObject = KubernetesObject>(
  options: PerPrimaryPollingSourceOptions<Resource, Primary>,
): ExternalSource<Resource> {
  const { name, type, intervalMs, intervalOf, maxConcurrentPolls = 10 } = options;
  requireFunctions(`event source "${name}"`, { fetch: options.fetch });
  requireNumbers(`event source "${name}"`, { intervalMs: [intervalMs, 1] });
  checkCounts(`event source "${name}"`, { maxConcurrentPolls: [maxConcurrentPolls, 1] });
  // The result of a fetch is whether it causes an event.
  const core = new ExternalCore<Resource, boolean>(options, new Semaphore(maxConcurrentPolls));
  const { cache, record } = core;
  /** The poll loop of each primary; aborting the controller ends it. */
  const loops = new Map<ObjectKey, AbortController>();

  const primaryOf = (key: ObjectKey) => core.context?.primaries.get(key)?.object as Primary | undefined;
  const isPolled = (primary: KubernetesObject) =>
    options.isPolled === undefined || record.guard("isPolled", () => options.isPolled!(primary as Primary), true);
  const fetchFor = (primary: Primary) => async (signal: AbortSignal) => {
    const since = cache.now;
    const resources = await options.fetch(primary, core.contextOf(primary, signal));
    return () => cache.replace(keyOf(primary.metadata), resources, since);
  };
  const delayOf = (key: ObjectKey): number => {
    const primary = primaryOf(key);
    if (intervalOf === undefined || primary === undefined) return intervalMs;
    const choose = () => {
      const chosenMs = synchronous(intervalOf(primary, cache.of(key))) ?? intervalMs;
      requireNumbers("it", { "its result": [chosenMs, 1] });
      return chosenMs;
    };
    return record.guard("intervalOf", choose, intervalMs);
  };
  const poll = async (key: ObjectKey, signal: AbortSignal) => {
    const primary = primaryOf(key);
    if (primary === undefined) return;
    const fetched = core.fetchOf(key).run(fetchFor(primary));
    const hasEvent = await fetched.catch(() => undefined);
    const wasRefused = hasEvent !== undefined && core.takeRefused([key]).length > 0;
    if ((hasEvent === true || wasRefused) && !signal.aborted) core.context?.notify([key]);
  };
  const add = (key: ObjectKey) => {
    if (loops.has(key)) return;
    const loop = new AbortController();
    loops.set(key, loop);
    const delayMs = () => delayOf(key);
    core.pollUntil(loop.signal, delayMs, () => poll(key, loop.signal), key);
  };
  /** The fetch in progress continues, because a reconcile may wait for it. */
  const remove = (key: ObjectKey) => {
    loops.get(key)?.abort();
    loops.delete(key);
  };

  return core.createSource(type, {
    startsWhenLeading: true,
    onStart(context) {
      for (const { object } of context.primaries.list()) if (isPolled(object)) add(keyOf(object.metadata));
    },
    onStop() {
      for (const key of [...loops.keys()]) remove(key);
    },
    async load(primary, signal) {
      if (core.context === undefined) return;
      const key = keyOf(primary.metadata);
      const single = core.fetchOf(key);
      const fetch = fetchFor(primary as Primary);
      await core.load(key, {
        signal,
        refetch: () => single.again(fetch),
        fetch: async () => (cache.has(key) ? undefined : single.run(fetch)),
      });
      const loop = loops.get(key);
      if (loop !== undefined) core.confirm(key, loop.signal, () => poll(key, loop.signal));
    },
    onPrimaryChange({ kind, key, object }) {
      if (core.context === undefined) return;
      if (kind !== "deleted") return isPolled(object) ? add(key) : remove(key);
      remove(key);
      core.forget(key);
    },
  });
}
