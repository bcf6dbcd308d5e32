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
  const { name, type } = options;
  checkInterval(`the intervalMs of event source "${name}"`, options.intervalMs);
  fetchTimeoutOf(options);
  const record = new HealthRecord(name);
  const cache = new ExternalCache(options.idOf, createEventGate(options.filters, record));
  const loads = new PrimaryLoads();
  let polls: PrimaryPolls<Resource, Primary> | undefined;
  const isPolled = (primary: KubernetesObject) =>
    options.isPolled === undefined || record.guard("isPolled", () => options.isPolled!(primary as Primary), true);

  return {
    name,
    type,
    get health() {
      return record.health;
    },
    async start(context) {
      if (polls !== undefined) throw new Error(`event source "${name}" is started already`);
      record.start(context.logger);
      polls = new PrimaryPolls(options, { context, cache, record, loads });
      for (const { object } of context.primaries.list()) if (isPolled(object)) polls.add(keyOf(object.metadata));
    },
    async stop() {
      polls?.stop();
      polls = undefined;
      record.stop();
      cache.forget();
      loads.forget();
    },
    secondariesOf: ({ metadata }) => cache.of(keyOf(metadata)),
    async load(primary, signal) {
      const key = keyOf(primary.metadata);
      await loads.load(key, {
        signal,
        refetch: async () => polls?.refetch(key, primary as Primary),
        fetch: async () => (cache.has(key) ? undefined : polls?.fetch(key, primary as Primary)),
      });
    },
    onPrimaryChange({ kind, key, object }) {
      if (kind !== "deleted") return isPolled(object) ? polls?.add(key) : polls?.remove(key);
      polls?.forget(key);
      cache.forget(key);
      loads.forget(key);
    },
    recordCreated: (primary, resource) => cache.recordCreated(primary, resource),
    recordUpdated: (primary, resource, previous) => cache.recordUpdated(primary, resource, previous),
    recordDeleted: (primary, resource) => cache.recordDeleted(primary, resource),
    invalidate: (primary) => loads.invalidate(primary),
  };
}

interface PrimaryPollsDependencies<Resource> {
  readonly context: EventSourceContext;
  readonly cache: ExternalCache<Resource>;
  readonly record: HealthRecord;
  readonly loads: PrimaryLoads;
}

/** The polls of all primaries from one start to the next stop. */
class PrimaryPolls<Resource, Primary extends KubernetesObject> {
  readonly #options: PerPrimaryPollingSourceOptions<Resource, Primary>;
  readonly #dependencies: PrimaryPollsDependencies<Resource>;
  readonly #turns: Semaphore;
  /** How to end the poll loop of each primary. */
  readonly #loops = new Map<ObjectKey, () => void>();
  /** The fetch of each primary; resolves with whether it brought an event. */
  readonly #fetches = new Map<ObjectKey, SingleFetch<readonly Resource[], boolean>>();

  constructor(
    options: PerPrimaryPollingSourceOptions<Resource, Primary>,
    dependencies: PrimaryPollsDependencies<Resource>,
  ) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#turns = new Semaphore(options.maxConcurrentPolls ?? MAX_CONCURRENT_POLLS);
  }

  /** Polls a primary from now on, unless it is polled already. */
  add(key: ObjectKey): void {
    if (this.#loops.has(key)) return;
    const { clock } = this.#dependencies.context;
    const delayMs = () => this.#delayOf(key);
    const poll = (isEnded: () => boolean) => this.#poll(key, isEnded);
    this.#loops.set(key, startPollLoop({ clock, delayMs, poll }));
  }

  /** Polls a primary no longer; a reconcile may still wait for the fetch that is under way. */
  remove(key: ObjectKey): void {
    this.#loops.get(key)?.();
    this.#loops.delete(key);
  }

  /** Ends what is under way for a primary that is gone: it would keep others waiting for their turn. */
  forget(key: ObjectKey): void {
    this.remove(key);
    this.#cancel(key, new Error(`the primary "${key}" is gone`));
    this.#dependencies.record.succeed(partOf(key));
  }

  stop(): void {
    for (const key of [...this.#loops.keys()]) this.remove(key);
    const reason = new Error(`event source "${this.#options.name}" was stopped`);
    for (const key of [...this.#fetches.keys()]) this.#cancel(key, reason);
  }

  /** Fetches, or joins the fetch under way, for a reconcile, which sees the result without an event. */
  fetch(key: ObjectKey, primary: Primary): Promise<boolean> {
    return this.#fetchOf(key).run((signal) => this.#fetch(primary, signal));
  }

  /** Fetches after the fetch that is under way. */
  refetch(key: ObjectKey, primary: Primary): Promise<boolean> {
    return this.#fetchOf(key).again((signal) => this.#fetch(primary, signal));
  }

  #fetch(primary: Primary, signal: AbortSignal): MaybePromise<readonly Resource[]> {
    const { context } = this.#dependencies;
    return this.#options.fetch(primary, { signal, secondary: context.secondaryOf?.(primary) ?? {} });
  }

  #cancel(key: ObjectKey, reason: Error): void {
    this.#fetches.get(key)?.cancel(reason);
    this.#fetches.delete(key);
  }

  #fetchOf(key: ObjectKey): SingleFetch<readonly Resource[], boolean> {
    const { context, cache, record } = this.#dependencies;
    let fetch = this.#fetches.get(key);
    if (fetch === undefined) {
      fetch = new SingleFetch({
        part: partOf(key),
        timeoutMs: fetchTimeoutOf(this.#options),
        clock: context.clock,
        record,
        turns: this.#turns,
        now: () => cache.now,
        take: (resources, since) => cache.replace(key, resources, since),
      });
      this.#fetches.set(key, fetch);
    }
    return fetch;
  }

  #delayOf(key: ObjectKey): number {
    const { context, cache, record } = this.#dependencies;
    const { intervalMs, intervalOf } = this.#options;
    const primary = context.primaries.get(key)?.object as Primary | undefined;
    if (intervalOf === undefined || primary === undefined) return intervalMs;
    const chosen = () => checkInterval("what it returned", intervalOf(primary, cache.of(key)));
    return record.guard("intervalOf", chosen, undefined) ?? intervalMs;
  }

  async #poll(key: ObjectKey, isEnded: () => boolean): Promise<void> {
    const { context, loads } = this.#dependencies;
    const primary = context.primaries.get(key)?.object as Primary | undefined;
    if (primary === undefined) return;
    const hasEvent = await this.fetch(key, primary).catch(() => undefined);
    const wasRefused = hasEvent !== undefined && loads.release(key);
    if ((hasEvent === true || wasRefused) && !isEnded()) context.notify([key]);
  }
}

function partOf(key: ObjectKey): string {
  return `the fetch for "${key}"`;
}
