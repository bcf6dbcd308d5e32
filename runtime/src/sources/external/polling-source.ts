import { Backoff } from "../../base/backoff.js";
import { keyOf, type ObjectKey } from "../../base/kubernetes-object.js";
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

/** What a polling source polls. */
export interface PollingSourceOptions<Resource> extends ExternalSourceOptions<Resource> {
  /** The time from the end of one poll to the next. */
  readonly intervalMs: number;
  /** Returns all resources of all primaries; what was there and is missing is gone. What it throws leaves everything as it is known. */
  fetch(context: FetchContext): MaybePromise<ReadonlyMap<ObjectKey, readonly Resource[]>>;
}

/** The polls from one start to the next stop. */
interface Running {
  readonly abort: AbortController;
  /** Why nothing is known yet, if that is so. */
  failure: { readonly error: unknown } | undefined;
  cancel(): void;
  refetch(): Promise<void>;
}

// The start waits for the first success, so the first attempts come sooner than the interval says.
const START_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 30_000 };

/**
 * Creates an event source that asks for everything at an interval (JOSDK PollingEventSource); one poll at a time.
 *
 * Its start resolves after the first poll that succeeds. A primary whose reconcile failed for a fetch is told by the next one that succeeds.
 */
export function pollingSource<Resource>(options: PollingSourceOptions<Resource>): ExternalSource<Resource> {
  return createPollingSource(options, { isAwaited: true });
}

/**
 * Creates the same; unless it `isAwaited`, its start resolves after the first poll even if that fails. Then `load` throws why, and the
 * primaries that it was called for are told when a poll succeeds.
 */
export function createPollingSource<Resource>(
  options: PollingSourceOptions<Resource>,
  { isAwaited }: { readonly isAwaited: boolean },
): ExternalSource<Resource> {
  const { name, type, intervalMs } = options;
  checkInterval(`the intervalMs of event source "${name}"`, intervalMs);
  const record = new HealthRecord(name);
  const cache = new ExternalCache(options.idOf, createEventGate(options.filters, record));
  const reloads = new Reloads();
  const refused = new RefusedPrimaries();
  let running: Running | undefined;

  const pollForever = (context: EventSourceContext, onSynced: () => void) => {
    const abort = new AbortController();
    const { signal } = abort;
    const backoff = new Backoff(START_BACKOFF);
    let isSynced = false;
    let isFetching = false;
    let fetching: Promise<void> = Promise.resolve();
    const fetchAll = async () => {
      const since = cache.now;
      try {
        const all = await options.fetch({ signal });
        if (signal.aborted) return;
        const told = new Set([...cache.replaceAll(all, since), ...refused.releaseAll()]);
        record.succeed("fetch");
        if (told.size > 0) context.notify(told, { isInitial: !isSynced });
        isSynced = true;
        run.failure = undefined;
        onSynced();
      } finally {
        isFetching = false;
      }
    };
    const fetchOnce = () => {
      if (isFetching) return fetching;
      isFetching = true;
      return (fetching = fetchAll());
    };
    const run: Running = {
      abort,
      failure: undefined,
      cancel: () => {},
      async refetch() {
        // The one under way may have begun too early to see what it is about.
        await fetching.catch(() => {});
        if (!signal.aborted) await fetchOnce();
      },
    };
    const poll = async () => {
      try {
        await fetchOnce();
        if (signal.aborted) return;
      } catch (error) {
        if (signal.aborted) return;
        record.fail("fetch", error);
        if (!isSynced && !isAwaited) {
          run.failure = { error };
          onSynced();
        }
      }
      const delayMs = isSynced ? intervalMs : Math.min(intervalMs, backoff.next());
      run.cancel = context.clock.schedule(delayMs, () => void poll());
    };
    running = run;
    void poll();
  };

  return {
    name,
    type,
    get health() {
      return record.health;
    },
    async start(context) {
      if (running !== undefined) throw new Error(`event source "${name}" is started already`);
      record.start(context.logger);
      await new Promise<void>((resolve) => {
        pollForever(context, resolve);
        // A source that is stopped while it starts must not keep the operator waiting.
        running?.abort.signal.addEventListener("abort", () => resolve(), { once: true });
      });
    },
    async stop() {
      running?.abort.abort(new Error(`event source "${name}" was stopped`));
      running?.cancel();
      running = undefined;
      record.stop();
      cache.forget();
      reloads.forget();
      refused.releaseAll();
    },
    secondariesOf: ({ metadata }) => cache.of(keyOf(metadata)),
    load({ metadata }) {
      const key = keyOf(metadata);
      return refused.attempt(key, async () => {
        if (running?.failure !== undefined) throw running.failure.error;
        await reloads.load(key, async () => running?.refetch());
      });
    },
    onPrimaryChange: ({ kind, key }) => void (kind === "deleted" && refused.release(key)),
    recordCreated: (primary, resource) => cache.recordCreated(primary, resource),
    recordUpdated: (primary, resource, previous) => cache.recordUpdated(primary, resource, previous),
    recordDeleted: (primary, resource) => cache.recordDeleted(primary, resource),
    invalidate: (primary) => reloads.invalidate(primary),
  };
}
