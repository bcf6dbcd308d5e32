// Resources outside Kubernetes (JOSDK's ExternalResourceCachingEventSource): the interface of their event sources, and the core shared by polling and
// inbound sources: start and stop, the cache, and fetches, of which only one runs at a time for the same resources.
import { type KubernetesObject, type ObjectKey, keyOf } from "../base/kubernetes-object.js";
import { userCalls } from "../base/user-calls.js";
import { requireFunctions, requireNumbers } from "../base/validation.js";
import { type Semaphore, untilAborted, withDeadline } from "../base/wait.js";
import type { EventFilters } from "../cache/resource-view.js";
import { type EventSource, type EventSourceContext, HealthRecord, createEventGate } from "./event-source.js";
import { CREATION_GRACE_MS, ExternalCache, type IdOf } from "./external-cache.js";

/** An event source of resources outside Kubernetes. */
export interface ExternalSource<Resource> extends EventSource<Resource> {
  /** Records a resource that the controller created, so that its next reconcile reads it. Causes no event. */
  recordCreated(primary: ObjectKey, resource: Resource): void;
  /** Records a resource that the controller updated from `previous`, unless a newer state is known. Causes no event. */
  recordUpdated(primary: ObjectKey, resource: Resource, previous: Resource): void;
  /** Records that the controller deleted a resource. Causes no event. */
  recordDeleted(primary: ObjectKey, resource: Resource): void;
  /** Marks the resources of a primary as uncertain after a failed write, which may have taken effect: its next `load` fetches them again. */
  invalidate(primary: ObjectKey): void;
}

/** Options common to all event sources of external resources. */
export interface ExternalSourceOptions<Resource> {
  /** Unique in its controller. */
  readonly name: string;
  /** A custom type name, by which a reconciler looks up the resources. */
  readonly type?: string;
  /** Returns the ID of a resource, unique among the resources of its primary. Use `singleResource` if there is at most one. */
  readonly idOf: IdOf<Resource>;
  readonly filters?: EventFilters<Resource>;
  /**
   * The timeout of a fetch in milliseconds. After it the signal is aborted, and the fetch fails. Default: 60,000
   *
   * @example fetchTimeoutMs: 10_000
   */
  readonly fetchTimeoutMs?: number;
  /**
   * How long a fetch may lag behind creations, updates, and deletions by the controller itself, in milliseconds. During this time an own write takes
   * precedence, unless a fetch shows it, or shows a new state. Independent of that, a resource that is missing from one fetch is kept until the next
   * fetch lacks it, too. 0: every fetch is current, for a service whose lists never lag behind. Default: 30,000. Example: `creationGraceMs: 120_000`
   */
  readonly creationGraceMs?: number;
}

/** The last argument of a `fetch` function. */
export interface FetchContext {
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal;
  /** The known dependents and resources of the fetched primary, by name of the dependent or event source. */
  readonly secondary?: object;
}

export type MaybePromise<Result> = Result | Promise<Result>;

const FETCH_TIMEOUT_MS = 60_000;
/** The maximum time until the next poll if the last one lacked a known resource. */
const CONFIRM_MS = 1_000;

/** The members in which the kinds of external event sources differ. */
interface OwnParts extends Pick<EventSource, "load" | "onPrimaryChange" | "startsWhenLeading"> {
  onStart?(context: EventSourceContext): void | Promise<void>;
  onStop(): void;
}

/** How a reconcile loads the resources of its primary. */
interface PrimaryLoad {
  readonly signal: AbortSignal;
  /** Fetches the resources unless they are known. */
  fetch(): Promise<unknown>;
  /** Fetches uncertain resources, with a fetch that starts after this call. */
  refetch(): Promise<unknown>;
}

/** The core of one event source of external resources. */
export class ExternalCore<Resource, Taken = void> {
  readonly name: string;
  readonly idOf: IdOf<Resource>;
  readonly cache: ExternalCache<Resource>;
  readonly record: HealthRecord;
  /** Undefined while the source is stopped. */
  context: EventSourceContext | undefined;
  readonly #timeoutMs: number;
  /** Limits concurrent fetches. */
  readonly #slots: Semaphore | undefined;
  readonly #fetches = new Map<string, SingleFetch<Taken>>();
  /** Primaries whose resources are uncertain, each with a token of when that was recorded. */
  readonly #stale = new Map<ObjectKey, symbol>();
  /** Primaries whose load failed. They are requeued after the next successful fetch, because their retries may be exhausted. */
  readonly #refused = new Set<ObjectKey>();

  constructor(options: ExternalSourceOptions<Resource>, slots?: Semaphore) {
    const { name, idOf, filters, fetchTimeoutMs = FETCH_TIMEOUT_MS, creationGraceMs = CREATION_GRACE_MS } = options;
    this.name = name;
    this.#slots = slots;
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

  /** Returns the fetch for a primary, which is closed when the primary is deleted, or the fetch for all primaries. */
  fetchOf(key?: ObjectKey): SingleFetch<Taken> {
    const part = partOf(key);
    const fetch = this.#fetches.get(part) ?? this.#createFetch(part);
    this.#fetches.set(part, fetch);
    return fetch;
  }

  /**
   * Polls until the signal is aborted. Each poll starts `delayMs()` after the end of the previous one, or sooner if the last fetch lacked a resource
   * of the primary, or of any primary. `poll` must not reject.
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

  /** Schedules an early poll if the last fetch lacked a resource of a primary: a second fetch confirms its deletion. */
  confirm(primary: ObjectKey, signal: AbortSignal, poll: () => Promise<unknown>): void {
    const { context } = this;
    if (context === undefined || signal.aborted || !this.cache.isUnsure(primary)) return;
    const cancel = context.clock.schedule(CONFIRM_MS, () => {
      signal.removeEventListener("abort", cancel);
      if (this.cache.isUnsure(primary)) void poll();
    });
    signal.addEventListener("abort", cancel);
  }

  /** Loads the resources of a primary for its reconcile. Throws if a fetch fails or the reconcile is aborted. */
  async load(primary: ObjectKey, { signal, fetch, refetch }: PrimaryLoad): Promise<void> {
    this.#refused.delete(primary);
    const run = async () => {
      const mark = this.#stale.get(primary);
      if (mark !== undefined) await refetch();
      // Another write that failed in the meantime may have taken effect after the fetch started.
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

  /** Removes and returns those of the given primaries whose load failed. Default: all primaries */
  takeRefused(primaries: Iterable<ObjectKey> = this.#refused): readonly ObjectKey[] {
    return [...primaries].filter((primary) => this.#refused.delete(primary));
  }

  forget(key: ObjectKey): void {
    // A fetch in progress would hold a slot that other fetches wait for.
    this.#cancel(partOf(key), `primary "${key}" was deleted`);
    this.cache.forget(key);
    this.#stale.delete(key);
    this.#refused.delete(key);
    this.record.succeed(partOf(key));
  }

  /** Creates the event source. */
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
    const limits = { timeoutMs: this.#timeoutMs, slots: this.#slots };
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

/** Fetches something. Returns the function that stores the result, which is not called if the fetch timed out or was canceled. */
type Fetch<Taken> = (signal: AbortSignal) => Promise<() => Taken>;

interface FetchOptions {
  /** The name of the event source. */
  readonly name: string;
  /** The name of the fetch in the health of the source. */
  readonly part: string;
  readonly record: HealthRecord;
  readonly timeoutMs: number;
  readonly slots: Semaphore | undefined;
  /** Returns the context of the source; undefined while it is stopped. */
  readonly context: () => EventSourceContext | undefined;
}

/**
 * A fetch of which only one is in progress at a time; concurrent callers share it. A fetch that exceeds its timeout is aborted, and its result is
 * dropped.
 */
class SingleFetch<Taken> {
  readonly #options: FetchOptions;
  #current: { readonly ended: Promise<Taken>; readonly abort: AbortController } | undefined;
  #closed: Error | undefined;

  constructor(options: FetchOptions) {
    this.#options = options;
  }

  /** Starts a fetch, or joins the one in progress. */
  run(fetch: Fetch<Taken>): Promise<Taken> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (this.#current !== undefined) return this.#current.ended;
    const abort = new AbortController();
    const ended = this.#begin(fetch, abort);
    this.#current = { ended, abort };
    return ended;
  }

  /** Starts a fetch after the one in progress, which may have started too early to show a change. */
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
    const { name, part, record, timeoutMs, slots, context } = this.#options;
    const { signal } = abort;
    try {
      // Callers rely on a synchronous start, so only await if necessary.
      const slot = slots?.acquire(signal);
      if (slot !== undefined) await slot;
      // Defined, because nothing is fetched before the start.
      const { clock, controller } = context()!;
      const call = { what: `${part} of event source "${name}"`, controller };
      const tracked = (late: AbortSignal) => userCalls.track(call, () => fetch(late));
      const take = await withDeadline(tracked, { timeoutMs, clock }, [signal]).finally(() => slots?.release());
      // The fetch may have been closed in the same turn of the event loop in which the response arrived.
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
