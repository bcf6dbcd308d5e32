import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { EventSourceContext } from "../event-source.js";
import type { Inbound, InboundChannel } from "./inbound.js";
import { createEventGate } from "../event-gate.js";
import { ExternalCache } from "./external-cache.js";
import {
  fetchTimeoutOf,
  type ExternalSource,
  type ExternalSourceOptions,
  type FetchContext,
  type MaybePromise,
} from "./external-source.js";
import { HealthRecord } from "../health-record.js";
import { untilAborted } from "../../base/promises.js";
import { SingleFetch } from "./single-fetch.js";

/** How a caching inbound source is configured. */
export interface CachingInboundSourceOptions<Resource> extends ExternalSourceOptions<Resource> {
  /** Returns the resources of a primary of which nothing was pushed yet; called once for each. Default: nothing is fetched. */
  fetch?(primary: KubernetesObject, context: FetchContext): MaybePromise<readonly Resource[]>;
  /** Hands over what is pushed to it while the source runs. */
  readonly channel?: InboundChannel<Resource>;
}

/**
 * An event source to which the user's code pushes resources, such as from a webhook (JOSDK CachingInboundEventSource).
 *
 * What is pushed while it is stopped is lost.
 */
export interface CachingInboundSource<Resource> extends ExternalSource<Resource>, Inbound<Resource> {}

interface PrimaryFetch<Resource> {
  readonly single: SingleFetch<readonly Resource[], void>;
  /** The ids that were pushed as gone since the fetch began. */
  readonly deleted: Set<string>;
}

/** Creates an event source that remembers what is pushed to it. */
export function cachingInboundSource<Resource>(
  options: CachingInboundSourceOptions<Resource>,
): CachingInboundSource<Resource> {
  const { name, type } = options;
  const timeoutMs = fetchTimeoutOf(options);
  const record = new HealthRecord(name);
  const cache = new ExternalCache(options.idOf, createEventGate(options.filters, record));
  /** The primaries whose resources are complete, be it by a fetch or a push. */
  const complete = new Set<ObjectKey>();
  const fetches = new Map<ObjectKey, PrimaryFetch<Resource>>();
  let context: EventSourceContext | undefined;
  let disconnect = () => {};

  const take = (primary: ObjectKey, change: () => boolean) => {
    if (context !== undefined && change()) context.notify([primary]);
  };
  const createFetch = (key: ObjectKey, { clock }: EventSourceContext): PrimaryFetch<Resource> => {
    const deleted = new Set<string>();
    const single = new SingleFetch<readonly Resource[], void>({
      ...{ part: `the fetch for "${key}"`, timeoutMs, clock, record, now: () => cache.now },
      take(resources) {
        // What was pushed meanwhile is newer. Whoever loads is about to read it, so there is no event.
        for (const resource of resources) if (!deleted.has(options.idOf(resource))) cache.recordCreated(key, resource);
        complete.add(key);
        fetches.delete(key);
      },
    });
    return { single, deleted };
  };
  const cancel = (key: ObjectKey, reason: string) => {
    fetches.get(key)?.single.close(new Error(reason));
    fetches.delete(key);
  };
  const forget = (key: ObjectKey) => {
    cache.forget(key);
    complete.delete(key);
    cancel(key, `the primary "${key}" is gone`);
    record.succeed(`the fetch for "${key}"`);
  };

  const source: CachingInboundSource<Resource> = {
    name,
    type,
    get health() {
      return record.health;
    },
    async start(given) {
      context = given;
      record.start(given.logger);
      disconnect();
      disconnect = options.channel?.connect(source) ?? disconnect;
    },
    async stop() {
      disconnect();
      context = undefined;
      record.stop();
      cache.forget();
      complete.clear();
      for (const key of [...fetches.keys()]) cancel(key, `event source "${name}" was stopped`);
    },
    secondariesOf: ({ metadata }) => cache.of(keyOf(metadata)),
    async load(primary, signal) {
      const key = keyOf(primary.metadata);
      if (context === undefined || options.fetch === undefined || complete.has(key)) return;
      const fetch = fetches.get(key) ?? createFetch(key, context);
      fetches.set(key, fetch);
      const secondary = context.secondaryOf?.(primary) ?? {};
      const ended = fetch.single.run((given) => {
        fetch.deleted.clear();
        return options.fetch?.(primary, { signal: given, secondary }) ?? [];
      });
      await untilAborted(ended, signal);
    },
    onPrimaryChange({ kind, key }) {
      if (kind === "deleted") forget(key);
    },
    put: (primary, resource) => take(primary, () => cache.put(primary, resource)),
    replace(primary, resources) {
      if (context !== undefined) complete.add(primary);
      take(primary, () => cache.replace(primary, resources));
    },
    delete(primary, id) {
      fetches.get(primary)?.deleted.add(id);
      take(primary, () => cache.delete(primary, id));
    },
    recordCreated: (primary, resource) => cache.recordCreated(primary, resource),
    recordUpdated: (primary, resource, previous) => cache.recordUpdated(primary, resource, previous),
    recordDeleted(primary, resource) {
      fetches.get(primary)?.deleted.add(options.idOf(resource));
      cache.recordDeleted(primary, resource);
    },
    invalidate: (primary) => void complete.delete(primary),
  };
  return source;
}
