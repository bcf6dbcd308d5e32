// What the event sources of external resources share: what they know and how they are, their start and stop, and their fetches.
import { requireFunctions, requireNumbers } from "../../base/checks.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import { untilAborted } from "../../base/promises.js";
import type { Semaphore } from "../../base/semaphore.js";
import type { EventSource, EventSourceContext } from "../event-source.js";
import { createEventGate } from "../filters.js";
import { HealthRecord } from "../health-record.js";
import { CREATION_GRACE_MS, ExternalCache, type IdOf } from "./external-cache.js";
import type { ExternalSource, ExternalSourceOptions, FetchContext } from "./external-source.js";
import { createSingleFetch, type SingleFetch } from "./single-fetch.js";

const FETCH_TIMEOUT_MS = 60_000;
/** After which time the next poll comes at the latest if the last one lacked something. */
const CONFIRM_MS = 1_000;

/** What an event source does besides what all of them do. */
interface OwnParts extends Pick<EventSource, "load" | "onPrimaryChange" | "startsWhenLeading"> {
  onStart?(context: EventSourceContext): void | Promise<void>;
  onStop(): void;
}

/** What a reconcile of a primary waits for. */
interface Load {
  readonly signal: AbortSignal;
  /** Fetches what is not known; called once what may be wrong has been fetched again. */
  fetch(): Promise<unknown>;
  /** Fetches, with a fetch that begins after this call. */
  refetch(): Promise<unknown>;
}

/** The core of one event source of external resources. */
export class ExternalCore<Resource, Taken = void> {
  readonly name: string;
  readonly idOf: IdOf<Resource>;
  readonly cache: ExternalCache<Resource>;
  readonly record: HealthRecord;
  readonly timeoutMs: number;
  /** Limits how many fetches run at once. */
  readonly turns: Semaphore | undefined;
  /** What the source was started with; absent while it is stopped. */
  context: EventSourceContext | undefined;
  readonly #fetches = new Map<string, SingleFetch<Taken>>();
  /** The primaries of which what is known may be wrong, each with a mark of when that was noted. */
  readonly #stale = new Map<ObjectKey, symbol>();
  /** The primaries whose load failed: as their retries may have ended, they are reconciled after the next fetch that succeeds. */
  readonly #refused = new Set<ObjectKey>();

  constructor(options: ExternalSourceOptions<Resource>, turns?: Semaphore) {
    const { name, idOf, filters, fetchTimeoutMs = FETCH_TIMEOUT_MS, creationGraceMs = CREATION_GRACE_MS } = options;
    this.name = name;
    this.turns = turns;
    requireFunctions(`event source "${name}"`, { idOf });
    requireNumbers(`event source "${name}"`, {
      fetchTimeoutMs: [fetchTimeoutMs, 1],
      creationGraceMs: [creationGraceMs, 0],
    });
    this.timeoutMs = fetchTimeoutMs;
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

  /** Returns the fetch of a primary, which ends with the primary, or that of everything. */
  fetchOf(key?: ObjectKey): SingleFetch<Taken> {
    const part = partOf(key);
    const fetch = this.#fetches.get(part) ?? createSingleFetch<Taken>(this, part);
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

  /** Polls once more, soon, if the last fetch lacked a resource of a primary: it decides whether that is gone. */
  confirm(primary: ObjectKey, signal: AbortSignal, poll: () => Promise<unknown>): void {
    const { context } = this;
    if (context === undefined || signal.aborted || !this.cache.isUnsure(primary)) return;
    const cancel = context.clock.schedule(CONFIRM_MS, () => {
      signal.removeEventListener("abort", cancel);
      if (this.cache.isUnsure(primary)) void poll();
    });
    signal.addEventListener("abort", cancel);
  }

  /** Fetches what a reconcile needs; throws if that fails, or the reconcile is given up. */
  async load(primary: ObjectKey, { signal, fetch, refetch }: Load): Promise<void> {
    this.#refused.delete(primary);
    const run = async () => {
      const noted = this.#stale.get(primary);
      if (noted !== undefined) await refetch();
      // What was noted meanwhile may have happened after that fetch began.
      if (this.#stale.get(primary) === noted) this.#stale.delete(primary);
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
    // What is under way would keep others waiting for their turn.
    this.#cancel(partOf(key), `the primary "${key}" is gone`);
    this.cache.forget(key);
    this.#stale.delete(key);
    this.#refused.delete(key);
    this.record.succeed(partOf(key));
  }

  /** Creates the event source; `own` is in what it differs from others. */
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

  #cancel(part: string, reason: string): void {
    this.#fetches.get(part)?.close(new Error(reason));
    this.#fetches.delete(part);
  }
}

function partOf(key: ObjectKey | undefined): string {
  return key === undefined ? "fetch" : `the fetch for "${key}"`;
}
