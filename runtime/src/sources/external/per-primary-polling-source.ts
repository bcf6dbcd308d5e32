import { Semaphore } from "../../base/semaphore.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { EventSourceContext } from "../event-source.js";
import { createEventGate } from "../event-gate.js";
import { ExternalCache } from "./external-cache.js";
import {
  checkInterval,
  fetchTimeoutOf,
  type ExternalSource,
  type ExternalSourceOptions,
  type FetchContext,
  type MaybePromise,
} from "./external-source.js";
import { HealthRecord } from "../health-record.js";
import { startPollLoop } from "./poll-loop.js";
import { PrimaryLoads } from "./primary-loads.js";
import { SingleFetch } from "./single-fetch.js";

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

const MAX_CONCURRENT_POLLS = 10;

/**
 * Creates an event source that asks for the resources of each primary at an interval of its own (JOSDK PerResourcePollingEventSource).
 *
 * The first reconcile of a primary fetches them, if no poll did; one poll of a primary at a time. If that fails, the primary is reconciled
 * after the next poll that succeeds.
 */
export function perPrimaryPollingSource<Resource, Primary extends KubernetesObject = KubernetesObject>(
  options: PerPrimaryPollingSourceOptions<Resource, Primary>,
): ExternalSource<Resource> {
  const { name, type, intervalMs, intervalOf, maxConcurrentPolls = MAX_CONCURRENT_POLLS } = options;
  checkInterval(`the intervalMs of event source "${name}"`, intervalMs);
  const timeoutMs = fetchTimeoutOf(options);
  const record = new HealthRecord(name);
  const cache = new ExternalCache(options.idOf, createEventGate(options.filters, record));
  const loads = new PrimaryLoads();
  const turns = new Semaphore(maxConcurrentPolls);
  /** How to end the poll loop of each primary. */
  const loops = new Map<ObjectKey, () => void>();
  /** The fetch of each primary; resolves with whether it brought an event. */
  const fetches = new Map<ObjectKey, SingleFetch<readonly Resource[], boolean>>();
  let context: EventSourceContext | undefined;

  const partOf = (key: ObjectKey) => `the fetch for "${key}"`;
  const primaryOf = (key: ObjectKey) => context?.primaries.get(key)?.object as Primary | undefined;
  const isPolled = (primary: KubernetesObject) =>
    options.isPolled === undefined || record.guard("isPolled", () => options.isPolled!(primary as Primary), true);
  const fetchFor = (primary: Primary) => (signal: AbortSignal) =>
    options.fetch(primary, { signal, secondary: context?.secondaryOf?.(primary) ?? {} });
  const fetchOf = (key: ObjectKey, { clock }: EventSourceContext) => {
    const fetch =
      fetches.get(key) ??
      new SingleFetch<readonly Resource[], boolean>({
        ...{ part: partOf(key), timeoutMs, clock, record, turns, now: () => cache.now },
        take: (resources, since) => cache.replace(key, resources, since),
      });
    fetches.set(key, fetch);
    return fetch;
  };
  const delayOf = (key: ObjectKey): number => {
    const primary = primaryOf(key);
    if (intervalOf === undefined || primary === undefined) return intervalMs;
    const chosen = () => checkInterval("what it returned", intervalOf(primary, cache.of(key)));
    return record.guard("intervalOf", chosen, undefined) ?? intervalMs;
  };
  const poll = async (key: ObjectKey, isEnded: () => boolean) => {
    const primary = primaryOf(key);
    if (primary === undefined || context === undefined) return;
    const hasEvent = await fetchOf(key, context)
      .run(fetchFor(primary))
      .catch(() => undefined);
    const wasRefused = hasEvent !== undefined && loads.release(key);
    if ((hasEvent === true || wasRefused) && !isEnded()) context.notify([key]);
  };
  const add = (key: ObjectKey, { clock }: EventSourceContext) => {
    if (loops.has(key)) return;
    loops.set(key, startPollLoop({ clock, delayMs: () => delayOf(key), poll: (isEnded) => poll(key, isEnded) }));
  };
  /** A reconcile may still wait for the fetch that is under way. */
  const remove = (key: ObjectKey) => {
    loops.get(key)?.();
    loops.delete(key);
  };
  /** Ends what is under way: it would keep others waiting for their turn. */
  const cancel = (key: ObjectKey, reason: string) => {
    fetches.get(key)?.close(new Error(reason));
    fetches.delete(key);
  };

  return {
    name,
    type,
    get health() {
      return record.health;
    },
    async start(given) {
      if (context !== undefined) throw new Error(`event source "${name}" is started already`);
      context = given;
      record.start(given.logger);
      for (const { object } of given.primaries.list()) if (isPolled(object)) add(keyOf(object.metadata), given);
    },
    async stop() {
      context = undefined;
      for (const key of [...loops.keys()]) remove(key);
      for (const key of [...fetches.keys()]) cancel(key, `event source "${name}" was stopped`);
      record.stop();
      cache.forget();
      loads.forget();
    },
    secondariesOf: ({ metadata }) => cache.of(keyOf(metadata)),
    async load(primary, signal) {
      if (context === undefined) return;
      const key = keyOf(primary.metadata);
      const single = fetchOf(key, context);
      const fetch = fetchFor(primary as Primary);
      await loads.load(key, {
        signal,
        refetch: () => single.again(fetch),
        fetch: async () => (cache.has(key) ? undefined : single.run(fetch)),
      });
    },
    onPrimaryChange({ kind, key, object }) {
      if (context === undefined) return;
      if (kind !== "deleted") return isPolled(object) ? add(key, context) : remove(key);
      remove(key);
      cancel(key, `the primary "${key}" is gone`);
      cache.forget(key);
      loads.forget(key);
      record.succeed(partOf(key));
    },
    recordCreated: (primary, resource) => cache.recordCreated(primary, resource),
    recordUpdated: (primary, resource, previous) => cache.recordUpdated(primary, resource, previous),
    recordDeleted: (primary, resource) => cache.recordDeleted(primary, resource),
    invalidate: (primary) => loads.invalidate(primary),
  };
}
