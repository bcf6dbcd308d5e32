import { checkCounts, requireFunctions, requireNumbers } from "../../base/checks.js";
import { synchronous } from "../../base/promises.js";
import { Semaphore } from "../../base/semaphore.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import { ExternalCore } from "./external-core.js";
import type { ExternalSource, ExternalSourceOptions, FetchContext, MaybePromise } from "./external-source.js";

/** What a polling source of single primaries polls. */
export interface PerPrimaryPollingSourceOptions<
  Resource,
  Primary extends KubernetesObject = KubernetesObject,
> extends ExternalSourceOptions<Resource> {
  /** The time from the end of one poll to the next, and from the appearance of a primary to its first. */
  readonly intervalMs: number;
  /** Returns all resources of one primary; what was there and is missing is gone. What it throws leaves them as they are known. */
  fetch(primary: Primary, context: FetchContext): MaybePromise<readonly Resource[]>;
  /** Returns the time to the next poll of a primary. Default: `intervalMs`. */
  intervalOf?(primary: Primary, resources: readonly Resource[]): number | undefined;
  /** Tells whether a primary is polled; called again for each change of it. Default: every primary is polled. */
  isPolled?(primary: Primary): boolean;
  /** How many polls run at once. Default: 10. */
  readonly maxConcurrentPolls?: number;
}

/**
 * Creates an event source that asks for the resources of each primary at an interval of its own (JOSDK PerResourcePollingEventSource). The first
 * reconcile of a primary fetches them, if no poll did. If that fails, the primary is reconciled after the next poll that succeeds.
 */
export function perPrimaryPollingSource<Resource, Primary extends KubernetesObject = KubernetesObject>(
  options: PerPrimaryPollingSourceOptions<Resource, Primary>,
): ExternalSource<Resource> {
  const { name, type, intervalMs, intervalOf, maxConcurrentPolls = 10 } = options;
  requireFunctions(`event source "${name}"`, { fetch: options.fetch });
  requireNumbers(`event source "${name}"`, { intervalMs: [intervalMs, 1] });
  checkCounts(`event source "${name}"`, { maxConcurrentPolls: [maxConcurrentPolls, 1] });
  // A fetch tells whether it brought an event.
  const core = new ExternalCore<Resource, boolean>(options, new Semaphore(maxConcurrentPolls));
  const { cache, record } = core;
  /** The poll loop of each primary, which ends when it is aborted. */
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
  /** A reconcile may still wait for the fetch that is under way. */
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
