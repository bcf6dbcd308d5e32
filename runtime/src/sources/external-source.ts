// Resources outside Kubernetes (JOSDK ExternalResourceCachingEventSource): the contract of their event sources, and the core that polling and inbound
// sources share, with their start and stop, their cache, and one fetch at a time.
import { type KubernetesObject, type ObjectKey, keyOf } from "../base/kubernetes-object.js";
import { userCalls } from "../base/user-calls.js";
import { requireFunctions, requireNumbers } from "../base/validation.js";
import { type Semaphore, untilAborted, withDeadline } from "../base/wait.js";
import type { EventFilters } from "../cache/resource-view.js";
import { type EventSource, type EventSourceContext, HealthRecord, createEventGate } from "./event-source.js";
import { CREATION_GRACE_MS, ExternalCache, type IdOf } from "./external-cache.js";

/** An event source of resources outside Kubernetes. */
export interface ExternalSource<Resource> extends EventSource<Resource> {
  /** Records a resource that the controller created, so that its next reconcile reads it; without an event. */
  recordCreated(primary: ObjectKey, resource: Resource): void;
  /** Records a resource that the controller changed from `previous`, unless a newer state is known; without an event. */
  recordUpdated(primary: ObjectKey, resource: Resource, previous: Resource): void;
  /** Records that the controller deleted a resource; without an event. */
  recordDeleted(primary: ObjectKey, resource: Resource): void;
  /** Marks the resources of a primary as uncertain after a failed write, which may have had an effect: its next `load` fetches again. */
  invalidate(primary: ObjectKey): void;
}

/** The options that all event sources of external resources have. */
export interface ExternalSourceOptions<Resource> {
  /** Unique in its controller. */
  readonly name: string;
  /** The user's name for the type, by which a reconciler finds the resources. */
  readonly type?: string;
  /** Returns the id of a resource, unique among those of its primary: `singleResource` if there is one at most. */
  readonly idOf: IdOf<Resource>;
  readonly filters?: EventFilters<Resource>;
  /**
   * How long one fetch may take, in milliseconds; then its signal is aborted and the fetch has failed. Default: 60,000
   *
   * @example fetchTimeoutMs: 10_000
   */
  readonly fetchTimeoutMs?: number;
  /**
   * How long what is fetched may lag behind what the controller itself created, updated or deleted, in milliseconds; so long its own change counts,
   * unless a fetch shows it, or something new. Apart from that, a resource that one fetch lacks counts as there until the next one lacks it as
   * well. 0: every fetch is believed at once, for a service whose lists are never late. Default: 30,000. Example: `creationGraceMs: 120_000`
   */
  readonly creationGraceMs?: number;
}

/** The last argument of a `fetch` function. */
export interface FetchContext {
  /** Aborted when the result is not needed any more. */
  readonly signal: AbortSignal;
  /** The known dependents and resources of the primary that is fetched for, by the names of dependents and event sources. */
  readonly secondary?: object;
}

export type MaybePromise<Result> = Result | Promise<Result>;

const FETCH_TIMEOUT_MS = 60_000;
/** The longest time to the next poll after one that lacked a known resource. */
const CONFIRM_MS = 1_000;

/** The members in which event sources of external resources differ. */
interface OwnParts extends Pick<EventSource, "load" | "onPrimaryChange" | "startsWhenLeading"> {
  onStart?(context: EventSourceContext): void | Promise<void>;
  onStop(): void;
}

/** How a reconcile gets the resources of its primary. */
interface PrimaryLoad {
  readonly signal: AbortSignal;
  /** Fetches the resources if they are not known. */
  fetch(): Promise<unknown>;
  /** Fetches uncertain resources, with a fetch that begins after this call. */
  refetch(): Promise<unknown>;
}

/** The core of one event source of external resources. */
export class ExternalCore<Resource, Taken = void> {
  readonly name: string;
  readonly idOf: IdOf<Resource>;
  readonly cache: ExternalCache<Resource>;
  readonly record: HealthRecord;
  /** Absent while the source is stopped. */
  context: EventSourceContext | undefined;
  readonly #timeoutMs: number;
  /** Limits how many fetches run at once. */
  readonly #turns: Semaphore | undefined;
  readonly #fetches = new Map<string, SingleFetch<Taken>>();
  /** The primaries whose resources are uncertain, each with a mark of when they became so. */
  readonly #stale = new Map<ObjectKey, symbol>();
  /** The primaries whose load failed. Their retries may be exhausted, so they are reconciled after the next fetch that succeeds. */
  readonly #refused = new Set<ObjectKey>();

  constructor(options: ExternalSourceOptions<Resource>, turns?: Semaphore) {
    const { name, idOf, filters, fetchTimeoutMs = FETCH_TIMEOUT_MS, creationGraceMs = CREATION_GRACE_MS } = options;
    this.name = name;
    this.#turns = turns;
    requireFunctions(`event source "${name}"`, { idOf });
    requireNumbers(`event source "${name}"`, {
      fetchTimeoutMs: [fetchTimeoutMs, 1],
      creationGraceMs: [creationGraceMs, 0],
    });
    this.#timeoutMs = fetchTimeoutMs;
    this.record = new HealthRecord(name);
    this.idOf = (resource) => this.record.run("idOf", () => idOf(resource));
    this.cache = new ExternalCache(this.idOf, createEventGate(filters, this.record), {
      graceMs: creationGraceMs,
      time: () => this.context?.clock.now() ?? 0,
    });
  }

  contextOf(primary: KubernetesObject, signal: AbortSignal): FetchContext {
    return { signal, secondary: this.context?.secondaryOf?.(primary) ?? {} };
  }

  /** Returns the fetch for a primary, which is closed when the primary is deleted, or that for all primaries. */
  fetchOf(key?: ObjectKey): SingleFetch<Taken> {
    const part = partOf(key);
    const fetch = this.#fetches.get(part) ?? this.#createFetch(part);
    this.#fetches.set(part, fetch);
    return fetch;
  }

  /**
   * Polls until the signal is aborted: after a delay, and then a delay after each poll has ended; sooner if the last one lacked a resource of
   * the primary, or of any. A poll must not reject.
   */
  pollUntil(signal: AbortSignal, delayMs: () => number, poll: () => Promise<void>, primary?: ObjectKey): void {
    if (signal.aborted) return;
    const nextMs = this.cache.isUnsure(primary) ? Math.min(CONFIRM_MS, delayMs()) : delayMs();
    const cancel = this.context!.clock.schedule(nextMs, () => {
      signal.removeEventListener("abort", cancel);
      void poll().then(() => this.pollUntil(signal, delayMs, poll, primary));
    });
    signal.addEventListener("abort", cancel);
  }

  /** Polls once more, soon, if the last fetch lacked a resource of a primary: the second fetch confirms that it is deleted. */
  confirm(primary: ObjectKey, signal: AbortSignal, poll: () => Promise<unknown>): void {
    const { context } = this;
    if (context === undefined || signal.aborted || !this.cache.isUnsure(primary)) return;
    const cancel = context.clock.schedule(CONFIRM_MS, () => {
      signal.removeEventListener("abort", cancel);
      if (this.cache.isUnsure(primary)) void poll();
    });
    signal.addEventListener("abort", cancel);
  }

  /** Gets the resources of a primary for its reconcile; throws if a fetch fails, or the reconcile is aborted. */
  async load(primary: ObjectKey, { signal, fetch, refetch }: PrimaryLoad): Promise<void> {
    this.#refused.delete(primary);
    const run = async () => {
      const mark = this.#stale.get(primary);
      if (mark !== undefined) await refetch();
      // A write that failed meanwhile may have had its effect after that fetch began.
      if (this.#stale.get(primary) === mark) this.#stale.delete(primary);
      await fetch();
    };
    try {
      await untilAborted(run(), signal);
    } catch (error) {
      if (!signal.aborted) this.#refused.add(primary);
      throw error;
    }
  }

  /** Returns the given primaries whose load failed, and forgets their failure. Default: all primaries */
  takeRefused(primaries: Iterable<ObjectKey> = this.#refused): readonly ObjectKey[] {
    return [...primaries].filter((primary) => this.#refused.delete(primary));
  }

  forget(key: ObjectKey): void {
    // A fetch in progress would keep a turn that other fetches wait for.
    this.#cancel(partOf(key), `primary "${key}" was deleted`);
    this.cache.forget(key);
    this.#stale.delete(key);
    this.#refused.delete(key);
    this.record.succeed(partOf(key));
  }

  /** Creates the event source of this core. */
  createSource<Own extends OwnParts>(type: string | undefined, own: Own): ExternalSource<Resource> & Own {
    const { cache, record } = this;
    const name = this.name;
    const source: ExternalSource<Resource> = {
      name,
      type,
      get health() {
        return record.health;
      },
      start: async (context) => {
        if (this.context !== undefined) throw new Error(`event source "${name}" is started already`);
        this.context = context;
        record.start(context);
        await own.onStart?.(context);
      },
      stop: async () => {
        this.context = undefined;
        own.onStop();
        for (const part of [...this.#fetches.keys()]) this.#cancel(part, `event source "${name}" was stopped`);
        record.stop();
        cache.forget();
        this.#stale.clear();
        this.#refused.clear();
      },
      secondariesOf: ({ metadata }) => cache.of(keyOf(metadata)),
      recordCreated: (primary, resource) => cache.recordCreated(primary, resource),
      recordUpdated: (primary, resource, previous) => cache.recordUpdated(primary, resource, previous),
      recordDeleted: (primary, resource) => cache.recordDeleted(primary, resource),
      invalidate: (primary) => void this.#stale.set(primary, Symbol()),
    };
    return Object.assign(source, own);
  }

  #createFetch(part: string): SingleFetch<Taken> {
    const { name, record } = this;
    const limits = { timeoutMs: this.#timeoutMs, turns: this.#turns };
    return new SingleFetch({ name, part, record, ...limits, context: () => this.context });
  }

  #cancel(part: string, reason: string): void {
    this.#fetches.get(part)?.close(new Error(reason));
    this.#fetches.delete(part);
  }
}

function partOf(key: ObjectKey | undefined): string {
  return key === undefined ? "fetch" : `the fetch for "${key}"`;
}

/** Fetches something, and returns how to take it, which is called unless the fetch was too late. */
type Fetch<Taken> = (signal: AbortSignal) => Promise<() => Taken>;

interface FetchOptions {
  /** The name of the event source. */
  readonly name: string;
  /** What the health of the source calls the fetch. */
  readonly part: string;
  readonly record: HealthRecord;
  readonly timeoutMs: number;
  readonly turns: Semaphore | undefined;
  /** Returns the context of the source; undefined while it is stopped. */
  readonly context: () => EventSourceContext | undefined;
}

/** Fetches one thing, once at a time for all callers. A fetch that misses its deadline is aborted, and its answer is not taken. */
class SingleFetch<Taken> {
  readonly #options: FetchOptions;
  #current: { readonly ended: Promise<Taken>; readonly abort: AbortController } | undefined;
  #closed: Error | undefined;

  constructor(options: FetchOptions) {
    this.#options = options;
  }

  /** Fetches, or joins the fetch in progress. */
  run(fetch: Fetch<Taken>): Promise<Taken> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (this.#current !== undefined) return this.#current.ended;
    const abort = new AbortController();
    const ended = this.#begin(fetch, abort);
    this.#current = { ended, abort };
    return ended;
  }

  /** Fetches after the fetch in progress, which may have begun too early to see a change. */
  async again(fetch: Fetch<Taken>): Promise<Taken> {
    await this.#current?.ended.catch(() => {});
    return this.run(fetch);
  }

  /** Aborts the fetch in progress, and rejects all further ones. */
  close(reason: Error): void {
    this.#closed = reason;
    this.#current?.abort.abort(reason);
    this.#current = undefined;
  }

  async #begin(fetch: Fetch<Taken>, abort: AbortController): Promise<Taken> {
    const { name, part, record, timeoutMs, turns, context } = this.#options;
    const { signal } = abort;
    try {
      // The caller of a fetch relies on its begin, so there is no await without a need.
      const turn = turns?.acquire(signal);
      if (turn !== undefined) await turn;
      // Nothing is fetched before the start.
      const { clock, controller } = context()!;
      const call = { what: `${part} of event source "${name}"`, controller };
      const tracked = (late: AbortSignal) => userCalls.track(call, () => fetch(late));
      const take = await withDeadline(tracked, { timeoutMs, clock }, [signal]).finally(() => turns?.release());
      // It may have been closed in the turn in which the answer came.
      signal.throwIfAborted();
      const taken = take();
      record.succeed(part);
      return taken;
    } catch (error) {
      if (this.#current?.abort === abort) record.fail(part, error);
      throw error;
    } finally {
      if (this.#current?.abort === abort) this.#current = undefined;
    }
  }
}
