import { checkFunctions } from "../../base/checks.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import { untilAborted } from "../../base/promises.js";
import { ExternalCore } from "./external-core.js";
import type { ExternalSource, ExternalSourceOptions, FetchContext, MaybePromise } from "./external-source.js";

/** Where the user's code hands over external resources, such as those that a webhook brings; what comes while nothing takes them is lost. */
export interface Inbound<Resource> {
  /** Takes one resource of a primary; others that it has stay. */
  put(primary: ObjectKey, resource: Resource): void;
  /** Takes all resources of a primary; others that it had are gone. */
  replace(primary: ObjectKey, resources: readonly Resource[]): void;
  /** Takes that a resource of this id is gone. */
  delete(primary: ObjectKey, id: string): void;
}

/** The way from the user's code to the event sources that take what it hands over: those that run, of which there usually is one. */
export interface InboundChannel<Resource> extends Inbound<Resource> {
  /** Hands everything on to `target`, too, until the function that is returned is called. */
  connect(target: Inbound<Resource>): () => void;
}

/** Creates a channel that is connected to nothing yet. */
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

/** How a caching inbound source is configured. */
export interface CachingInboundSourceOptions<Resource> extends ExternalSourceOptions<Resource> {
  /** Returns the resources of a primary; called once for each, by its first reconcile, unless `replace` told all before. Default: nothing is fetched. */
  fetch?(primary: KubernetesObject, context: FetchContext): MaybePromise<readonly Resource[]>;
  /** Hands over what is pushed to it while the source runs. */
  readonly channel?: InboundChannel<Resource>;
}

/** An event source to which user code pushes resources (JOSDK CachingInboundEventSource); what is pushed while it is stopped is lost. */
export interface CachingInboundSource<Resource> extends ExternalSource<Resource>, Inbound<Resource> {}

/** Creates an event source that remembers what is pushed to it. */
export function cachingInboundSource<Resource>(
  options: CachingInboundSourceOptions<Resource>,
): CachingInboundSource<Resource> {
  checkFunctions(`event source "${options.name}"`, { fetch: options.fetch });
  const core = new ExternalCore(options);
  const { cache } = core;
  /** Of a primary whose resources are complete, by a fetch or a push, `all`; else the ids that were pushed as gone since its fetch began. */
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
          // What was pushed meanwhile is newer. Whoever loads is about to read it, so there is no event.
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
      // The fetch under way may have begun too early: another set in place of its own says that this is not all.
      else if (gone !== undefined) known.set(primary, new Set(gone));
    },
  });
  return source;
}
