import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { EventSourceContext } from "../event-source.js";
import { createEventGate } from "../event-gate.js";
import { ExternalCache } from "./external-cache.js";
import {
  checkInterval,
  type ExternalSource,
  type ExternalSourceOptions,
  type FetchContext,
  type MaybePromise,
} from "./external-source.js";
import { HealthRecord } from "../health-record.js";
import { RefusedPrimaries } from "./refused-primaries.js";
import { Reloads } from "./reloads.js";
import { Semaphore } from "./semaphore.js";

/** What a polling source of single primaries polls. */
export interface PerPrimaryPollingSourceOptions<
  Resource,
  Primary extends KubernetesObject = KubernetesObject,
> extends ExternalSourceOptions<Resource> {
  /** The time from the end of one poll to the next, and from the appearance of a primary to its first. */
  readonly intervalMs: number;
  /** Returns all resources of one primary; what was there and is missing is gone. What it throws leaves them as they are known. */
  fetch(primary: Primary, context: FetchContext): MaybePromise<readonly Resource[]>;
  /** Returns the time to the next poll of a primary; `intervalMs` if it returns nothing. */
  intervalOf?(primary: Primary, resources: readonly Resource[]): number | undefined;
  /** Tells whether a primary is polled; asked again at each of its changes. Every one is, unless given. */
  isPolled?(primary: Primary): boolean;
  /** How many polls run at once; 10 unless given. */
  readonly maxConcurrentPolls?: number;
}

const MAX_CONCURRENT_POLLS = 10;

/**
 * Creates an event source that asks for the resources of each primary at an interval of its own (JOSDK PerResourcePollingEventSource).
 *
 * The first reconcile of a primary fetches them, if no poll did; one poll of a primary at a time. If that fails, the next poll that succeeds tells
 * the primary.
 */
export function perPrimaryPollingSource<Resource, Primary extends KubernetesObject = KubernetesObject>(
  options: PerPrimaryPollingSourceOptions<Resource, Primary>,
): ExternalSource<Resource> {
  const { name, type } = options;
  checkInterval(`the intervalMs of event source "${name}"`, options.intervalMs);
  const record = new HealthRecord(name);
  const cache = new ExternalCache(options.idOf, createEventGate(options.filters, record));
  const reloads = new Reloads();
  const refused = new RefusedPrimaries();
  let polls: PrimaryPolls<Resource, Primary> | undefined;
  const partOf = (key: ObjectKey) => `the fetch for "${key}"`;
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
      polls = new PrimaryPolls(options, { context, cache, record, refused, partOf });
      for (const { object } of context.primaries.list()) if (isPolled(object)) polls.add(keyOf(object.metadata));
    },
    async stop() {
      polls?.stop();
      polls = undefined;
      record.stop();
      cache.forget();
      reloads.forget();
      refused.releaseAll();
    },
    secondariesOf: ({ metadata }) => cache.of(keyOf(metadata)),
    async load(primary) {
      const key = keyOf(primary.metadata);
      await refused.attempt(key, async () => {
        await reloads.load(key, async () => polls?.reload(key, primary as Primary));
        if (!cache.has(key)) await polls?.load(key, primary as Primary);
      });
    },
    onPrimaryChange({ kind, key, object }) {
      if (kind !== "deleted") return isPolled(object) ? polls?.add(key) : polls?.remove(key);
      polls?.forget(key);
      cache.forget(key);
      reloads.forget(key);
      refused.release(key);
      record.succeed(partOf(key));
    },
    recordCreated: (primary, resource) => cache.recordCreated(primary, resource),
    recordUpdated: (primary, resource, previous) => cache.recordUpdated(primary, resource, previous),
    recordDeleted: (primary, resource) => cache.recordDeleted(primary, resource),
    invalidate: (primary) => reloads.invalidate(primary),
  };
}

interface PrimaryPollsDependencies<Resource> {
  readonly context: EventSourceContext;
  readonly cache: ExternalCache<Resource>;
  readonly record: HealthRecord;
  readonly refused: RefusedPrimaries;
  partOf(key: ObjectKey): string;
}

/** The polls of all primaries from one start to the next stop. */
class PrimaryPolls<Resource, Primary extends KubernetesObject> {
  readonly #options: PerPrimaryPollingSourceOptions<Resource, Primary>;
  readonly #dependencies: PrimaryPollsDependencies<Resource>;
  readonly #semaphore: Semaphore;
  /** How to cancel the wait for the next poll, by primary. */
  readonly #waits = new Map<ObjectKey, () => void>();
  readonly #fetches = new Map<ObjectKey, { readonly ended: Promise<boolean>; readonly abort: AbortController }>();
  #isStopped = false;

  constructor(
    options: PerPrimaryPollingSourceOptions<Resource, Primary>,
    dependencies: PrimaryPollsDependencies<Resource>,
  ) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#semaphore = new Semaphore(options.maxConcurrentPolls ?? MAX_CONCURRENT_POLLS);
  }

  /** Polls a primary from now on, unless it is polled already. */
  add(key: ObjectKey): void {
    if (!this.#waits.has(key)) this.#wait(key);
  }

  remove(key: ObjectKey): void {
    this.#waits.get(key)?.();
    this.#waits.delete(key);
    // A fetch that is under way tells of a primary that is not polled any more.
    this.#fetches.delete(key);
  }

  /** Ends what is under way for a primary that is gone: it would keep others waiting for their turn. */
  forget(key: ObjectKey): void {
    this.#fetches.get(key)?.abort.abort(new Error(`the primary "${key}" is gone`));
    this.remove(key);
  }

  stop(): void {
    const reason = new Error(`event source "${this.#options.name}" was stopped`);
    this.#isStopped = true;
    for (const { abort } of this.#fetches.values()) abort.abort(reason);
    for (const key of [...this.#waits.keys()]) this.remove(key);
  }

  /** Fetches once for a reconcile, which sees the result without an event. */
  async load(key: ObjectKey, primary: Primary): Promise<void> {
    await this.#fetch(key, primary);
  }

  /** Fetches once more, whatever is under way: that may have begun too early. */
  async reload(key: ObjectKey, primary: Primary): Promise<void> {
    await this.#fetches.get(key)?.ended.catch(() => {});
    await this.#fetch(key, primary);
  }

  #wait(key: ObjectKey): void {
    const { context, cache, record } = this.#dependencies;
    const { intervalMs, intervalOf } = this.#options;
    const primary = context.primaries.get(key)?.object as Primary | undefined;
    const chosenMs =
      intervalOf === undefined || primary === undefined
        ? undefined
        : record.guard(
            "intervalOf",
            () => checkInterval("what it returned", intervalOf(primary, cache.of(key))),
            undefined,
          );
    this.#waits.set(
      key,
      context.clock.schedule(chosenMs ?? intervalMs, () => void this.#poll(key)),
    );
  }

  async #poll(key: ObjectKey): Promise<void> {
    const { context, refused } = this.#dependencies;
    const wait = this.#waits.get(key);
    const primary = context.primaries.get(key)?.object as Primary | undefined;
    if (primary !== undefined) {
      const hasEvent = await this.#fetch(key, primary).catch(() => undefined);
      const wasRefused = hasEvent !== undefined && refused.release(key);
      if ((hasEvent === true || wasRefused) && this.#waits.get(key) === wait) context.notify([key]);
    }
    // It may have been removed, and even added again, meanwhile.
    if (this.#waits.get(key) === wait) this.#wait(key);
  }

  #fetch(key: ObjectKey, primary: Primary): Promise<boolean> {
    const known = this.#fetches.get(key);
    if (known !== undefined) return known.ended;
    const { cache, record, partOf } = this.#dependencies;
    const abort = new AbortController();
    const { signal } = abort;
    const isUseful = () => !this.#isStopped && this.#fetches.get(key)?.abort === abort;
    const run = async () => {
      try {
        let since = 0;
        const resources = await this.#semaphore.run(() => {
          signal.throwIfAborted();
          since = cache.now;
          return this.#options.fetch(primary, { signal });
        });
        if (!isUseful()) return false;
        const hasEvent = cache.replace(key, resources, since);
        record.succeed(partOf(key));
        return hasEvent;
      } catch (error) {
        if (isUseful()) record.fail(partOf(key), error);
        throw error;
      } finally {
        if (isUseful()) this.#fetches.delete(key);
      }
    };
    // One turn later, so that it is known here before it ends.
    const ended = Promise.resolve().then(run);
    this.#fetches.set(key, { ended, abort });
    return ended;
  }
}
