import { type KubernetesObject, type ObjectKey, keyOf } from "../base/kubernetes-object.js";
import { checkFunctions } from "../base/validation.js";
import { untilAborted } from "../base/wait.js";
import {
  ExternalCore,
  type ExternalSource,
  type ExternalSourceOptions,
  type FetchContext,
  type MaybePromise,
} from "./external-source.js";

/** Receives external resources from your code, for example from a webhook. Without a running source they are dropped. */
export interface Inbound<Resource> {
  /** Adds or replaces one resource of a primary. Its other resources stay. */
  put(primary: ObjectKey, resource: Resource): void;
  /** Replaces all resources of a primary. */
  replace(primary: ObjectKey, resources: readonly Resource[]): void;
  /** Removes the resource with this ID. */
  delete(primary: ObjectKey, id: string): void;
}

/** Forwards resources from your code to all running event sources, usually a single one. */
export interface InboundChannel<Resource> extends Inbound<Resource> {
  /** Also forwards everything to `target`, until the returned function is called. */
  connect(target: Inbound<Resource>): () => void;
}

/** Creates a channel without targets. */
export function createInbound<Resource>(): InboundChannel<Resource> {
  const targets = new Set<Inbound<Resource>>();
  return Object.freeze<InboundChannel<Resource>>({
    put: (...args) => targets.forEach((target) => target.put(...args)),
    replace: (...args) => targets.forEach((target) => target.replace(...args)),
    delete: (...args) => targets.forEach((target) => target.delete(...args)),
    connect(target) {
      targets.add(target);
      return () => void targets.delete(target);
    },
  });
}

export interface CachingInboundSourceOptions<Resource> extends ExternalSourceOptions<Resource> {
  /**
   * Returns the resources of a primary. Called once per primary, before its first reconcile, unless `replace` was called. Default: nothing is fetched
   */
  fetch?(primary: KubernetesObject, context: FetchContext): MaybePromise<readonly Resource[]>;
  /**
   * A channel from which the source receives resources while it runs.
   *
   * @example channel: createInbound<Page>()
   */
  readonly channel?: InboundChannel<Resource>;
}

/** An event source to which your code pushes resources (JOSDK's CachingInboundEventSource). Resources pushed while it is stopped are dropped. */
export interface CachingInboundSource<Resource> extends ExternalSource<Resource>, Inbound<Resource> {}

/** Creates an event source that caches pushed resources. */
export function cachingInboundSource<Resource>(
  options: CachingInboundSourceOptions<Resource>,
): CachingInboundSource<Resource> {
  checkFunctions(`event source "${options.name}"`, { fetch: options.fetch });
  const core = new ExternalCore(options);
  const { cache } = core;
  /** By primary: `all` when its resources are complete, by a fetch or `replace`; until then, the IDs deleted since its fetch started. */
  const known = new Map<ObjectKey, "all" | Set<string>>();
  const noteGone = (primary: ObjectKey, id: string) => {
    const gone = known.get(primary);
    if (gone !== "all") gone?.add(id);
  };
  let disconnect = () => {};

  const notifyIf = (primary: ObjectKey, change: () => boolean) => {
    if (core.context !== undefined && change()) core.context.notify([primary]);
  };

  const source = core.createSource(options.type, {
    onStart() {
      disconnect = options.channel?.connect(source) ?? disconnect;
    },
    onStop() {
      disconnect();
      known.clear();
    },
    async load(primary, signal) {
      const key = keyOf(primary.metadata);
      if (core.context === undefined || options.fetch === undefined || known.get(key) === "all") return;
      const fetched = core.fetchOf(key).run(async (given) => {
        const begun = new Set<string>();
        known.set(key, begun);
        const resources = (await options.fetch?.(primary, core.contextOf(primary, given))) ?? [];
        return () => {
          // Resources pushed during the fetch are newer. There is no event, because the reconcile that triggered the fetch reads the result.
          const gone = known.get(key);
          if (gone === "all") return;
          for (const each of resources) if (gone?.has(core.idOf(each)) !== true) cache.recordCreated(key, each);
          if (gone === begun) known.set(key, "all");
        };
      });
      await untilAborted(fetched, signal);
    },
    onPrimaryChange({ kind, key }) {
      if (kind !== "deleted") return;
      core.forget(key);
      known.delete(key);
    },
    put: (primary: ObjectKey, resource: Resource) => notifyIf(primary, () => cache.put(primary, resource)),
    replace(primary: ObjectKey, resources: readonly Resource[]) {
      if (core.context !== undefined) known.set(primary, "all");
      notifyIf(primary, () => cache.replace(primary, resources));
    },
    delete(primary: ObjectKey, id: string) {
      noteGone(primary, id);
      notifyIf(primary, () => cache.delete(primary, id));
    },
    recordDeleted(primary: ObjectKey, resource: Resource) {
      noteGone(primary, core.idOf(resource));
      cache.recordDeleted(primary, resource);
    },
    invalidate(primary: ObjectKey) {
      const gone = known.get(primary);
      if (gone === "all") known.delete(primary);
      // The fetch in progress may have started before the write. Replacing its set prevents that its result counts as complete.
      else if (gone !== undefined) known.set(primary, new Set(gone));
    },
  });
  return source;
}
