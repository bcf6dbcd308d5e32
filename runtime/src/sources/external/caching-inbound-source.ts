import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { EventSourceContext } from "../event-source.js";
import type { Inbound, InboundChannel } from "./inbound.js";
import { createEventGate } from "../event-gate.js";
import { ExternalCache } from "./external-cache.js";
import type { ExternalSource, ExternalSourceOptions, FetchContext, MaybePromise } from "./external-source.js";
import { HealthRecord } from "../health-record.js";

/** What a caching inbound source is told. */
export interface CachingInboundSourceOptions<Resource> extends ExternalSourceOptions<Resource> {
  /** Returns the resources of a primary of which nothing was pushed yet; called once for each. Nothing is fetched unless given. */
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

interface Fetch {
  ended: Promise<void>;
  /** The ids that were told to be gone since it began. */
  readonly deleted: Set<string>;
}

/** Creates an event source that remembers what is pushed to it. */
export function cachingInboundSource<Resource>(
  options: CachingInboundSourceOptions<Resource>,
): CachingInboundSource<Resource> {
  const { name, type } = options;
  const record = new HealthRecord(name);
  const cache = new ExternalCache(options.idOf, createEventGate(options.filters, record));
  /** The primaries whose resources are complete, be it by a fetch or a push. */
  const complete = new Set<ObjectKey>();
  const fetches = new Map<ObjectKey, Fetch>();
  let context: EventSourceContext | undefined;
  let disconnect = () => {};

  const take = (primary: ObjectKey, change: () => boolean) => {
    if (context !== undefined && change()) context.notify([primary]);
  };
  const fetchAll = async (primary: KubernetesObject, { fetch, signal }: { fetch: Fetch; signal: AbortSignal }) => {
    const key = keyOf(primary.metadata);
    const isUseful = () => fetches.get(key) === fetch;
    try {
      const resources = (await options.fetch?.(primary, { signal })) ?? [];
      if (!isUseful()) return;
      // What was pushed meanwhile is newer. Whoever loads is about to read it, so there is no event.
      for (const resource of resources)
        if (!fetch.deleted.has(options.idOf(resource))) cache.recordCreated(key, resource);
      complete.add(key);
      record.succeed(`the fetch for "${key}"`);
    } catch (error) {
      if (isUseful()) record.fail(`the fetch for "${key}"`, error);
      throw error;
    } finally {
      if (isUseful()) fetches.delete(key);
    }
  };
  const forget = (key: ObjectKey) => {
    cache.forget(key);
    complete.delete(key);
    fetches.delete(key);
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
      fetches.clear();
    },
    secondariesOf: ({ metadata }) => cache.of(keyOf(metadata)),
    async load(primary, signal) {
      const key = keyOf(primary.metadata);
      if (context === undefined || options.fetch === undefined || complete.has(key)) return;
      let fetch = fetches.get(key);
      if (fetch === undefined) {
        fetches.set(key, (fetch = { deleted: new Set(), ended: Promise.resolve() }));
        fetch.ended = fetchAll(primary, { fetch, signal });
      }
      await fetch.ended;
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
