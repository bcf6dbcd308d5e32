// Keeps a view up to date through shared informers: one for all namespaces, or one for each.
//
// A change of the namespaces happens in one turn: until then the view shows the old ones, then all that the new informers know. What the
// view knew before is an event only if it has changed since; what goes with a dropped namespace is no event.
import { type ObjectKey, compareResourceVersions } from "../../base/kubernetes-object.js";
import type { ApiClient } from "../../client/api-client.js";
import type { DecodedResource } from "../../decode/decode-resource.js";
import type { ResourceChange } from "../../cache/resource-change.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { InformerHandle, InformerRequest, SharedInformers } from "../../watch/shared-informers.js";
import type { SourceHealth } from "../../base/health.js";

/** What a view shows, and what takes its changes. */
export interface ViewWatchOptions {
  readonly view: ResourceView;
  /** What is watched, in whichever namespaces. */
  readonly request: Omit<InformerRequest, "namespace">;
  onChange(change: ResourceChange): void;
}

/** A change of namespaces whose new state is known already. */
export interface NamespaceChange {
  /** False once the watch was started or stopped since: then the state that is known is not the one that is needed. */
  readonly isCurrent: boolean;
  /** Shows the new namespaces and drops the old ones, at once; resolves when their watches have ended. */
  commit(): Promise<void>;
  /** Leaves everything as it was. */
  rollback(): Promise<void>;
}

/** The namespaces to watch; all of them if undefined. */
export type Namespaces = readonly string[] | undefined;

// One share for each namespace; that of all namespaces has no name.
type Shares = ReadonlyMap<string | undefined, InformerHandle>;

/** Feeds one view, from a start to a stop, and then perhaps again. */
export class ViewWatch {
  readonly view: ResourceView;
  readonly #options: ViewWatchOptions;
  #informers: SharedInformers | undefined;
  #shares: Shares = new Map();
  /** Called when other shares replace them. */
  readonly #onShares = new Set<() => void>();
  /** What the view knew before the change of namespaces that is being made. */
  #before: ReadonlyMap<ObjectKey, DecodedResource> | undefined;

  constructor(options: ViewWatchOptions) {
    this.view = options.view;
    this.#options = options;
    this.view.onChange((change) => {
      const news = this.#before === undefined ? change : sinceBefore(change, this.#before);
      if (news !== undefined) options.onChange(news);
    });
  }

  get isRunning(): boolean {
    return this.#informers !== undefined;
  }

  /** The client of the cluster that is watched, if it is another one than the operator's. */
  get client(): ApiClient | undefined {
    if (this.#options.request.connection === undefined) return undefined;
    return [...this.#shares.values()][0]?.informer.client;
  }

  /** Unhealthy if the watch of any namespace is. */
  get health(): SourceHealth {
    const all = [...this.#shares.values()].map(({ informer }) => informer.health);
    const reasons = all.flatMap(({ status, reason }) => (status === "unhealthy" ? [reason] : []));
    if (reasons.length > 0) return { status: "unhealthy", reason: reasons.join("; ") };
    return { status: all.length > 0 && all.every(({ status }) => status === "healthy") ? "healthy" : "unknown" };
  }

  /** Shows what is known of these namespaces, and all that follows; resolves when the whole state is known. */
  async start(informers: SharedInformers, namespaces: Namespaces): Promise<void> {
    this.#begin(informers, namespaces);
    await this.#untilKnown((informer) => informer.start());
  }

  /** Starts as `start` does, but throws as soon as an attempt fails, or it is stopped; further attempts are made all the same. */
  async startOrThrow(informers: SharedInformers, namespaces: Namespaces): Promise<void> {
    this.#begin(informers, namespaces);
    await this.#untilKnown((informer) => informer.startOrThrow());
    if (this.#informers === undefined) throw new Error(`the watch of ${this.view.definition.plural} was stopped`);
  }

  /** Shows nothing any more; resolves when the watches that nobody else needs have ended. */
  async stop(): Promise<void> {
    const shares = this.#shares;
    this.#informers = undefined;
    this.#setShares(new Map());
    this.view.clear();
    await releaseAll(shares.values());
  }

  /** Watches these namespaces too, until their state is known; throws, and leaves everything as it was, if one cannot be watched now. */
  async prepare(namespaces: Namespaces): Promise<NamespaceChange> {
    const informers = this.#informers;
    const old = this.#shares;
    const isCurrent = () => this.#informers === informers && this.#shares === old;
    const changeOf = (commit: () => Promise<void>, rollback: () => Promise<void>): NamespaceChange => ({
      get isCurrent() {
        return isCurrent();
      },
      commit,
      rollback,
    });
    const nothing = async () => {};
    if (informers === undefined) return changeOf(nothing, nothing);
    const added = this.#acquire(
      informers,
      this.#namesOf(namespaces).filter((name) => !old.has(name)),
    );
    // What has to make room before it is shown is indexed by then.
    const indexed = [...added.values()].map(({ informer }) => this.view.addIndexesTo(informer.cache));
    const removeIndexes = () => {
      for (const remove of indexed) remove();
    };
    const rollback = () => {
      removeIndexes();
      return releaseAll(added.values());
    };
    try {
      await Promise.all([...added.values()].map(({ informer }) => informer.startOrThrow()));
    } catch (error) {
      await rollback();
      throw error;
    }
    const commit = async () => {
      // It may have been stopped meanwhile.
      if (!isCurrent()) return rollback();
      const switched = this.#switch(namespaces, added);
      removeIndexes();
      await switched;
    };
    return changeOf(commit, rollback);
  }

  #begin(informers: SharedInformers, namespaces: Namespaces): void {
    if (this.#informers !== undefined) return;
    this.#informers = informers;
    this.#setShares(this.#acquire(informers, this.#namesOf(namespaces)));
    for (const [name, { informer }] of this.#shares) this.view.attach(informer.cache, name);
  }

  // What is not watched any more may never be known, so whoever waits looks again when the namespaces change.
  async #untilKnown(start: (informer: InformerHandle["informer"]) => Promise<void>): Promise<void> {
    for (;;) {
      const shares = this.#shares;
      let onChange = () => {};
      const changed = new Promise<void>((resolve) => (onChange = resolve));
      this.#onShares.add(onChange);
      try {
        await Promise.race([changed, Promise.all([...shares.values()].map(({ informer }) => start(informer)))]);
      } catch (error) {
        // How it ends for what was dropped is of no interest.
        if (shares === this.#shares) throw error;
      } finally {
        this.#onShares.delete(onChange);
      }
      if (shares === this.#shares) return;
    }
  }

  #setShares(shares: Shares): void {
    this.#shares = shares;
    for (const resolve of this.#onShares) resolve();
    this.#onShares.clear();
  }

  async #switch(namespaces: Namespaces, added: Shares): Promise<void> {
    const names = this.#namesOf(namespaces);
    const dropped = [...this.#shares].filter(([name]) => !names.includes(name));
    // Only a change between one namespace and all of them brings again what is known.
    const overlaps = added.has(undefined) || dropped.some(([name]) => name === undefined);
    const before = overlaps ? this.#entriesIn(names) : new Map<ObjectKey, DecodedResource>();
    this.#setShares(new Map(names.map((name) => [name, added.get(name) ?? this.#shares.get(name)!])));
    this.#before = before;
    const held: ResourceChange[] = [];
    try {
      for (const [name] of dropped) held.push(...this.view.detach(name));
      for (const [name, { informer }] of added) {
        // An answer to an own write that the new watch has not come to stays readable.
        for (const entry of before.values())
          if (name === undefined || entry.object.metadata.namespace === name) informer.cache.put(entry);
        this.view.attach(informer.cache, name);
      }
    } finally {
      this.#before = undefined;
    }
    // What was held back for a write under way is known already, so that the new caches do not bring it.
    for (const change of held) if (isIn(names, change.key)) this.#options.onChange(change);
    for (const [key, { object }] of before)
      if (!this.view.has(key))
        this.#options.onChange({
          kind: "deleted",
          key,
          object,
          old: object,
          isInitial: true,
          isFinalStateUnknown: true,
        });
    await releaseAll(dropped.map(([, share]) => share));
  }

  #entriesIn(names: readonly (string | undefined)[]): ReadonlyMap<ObjectKey, DecodedResource> {
    const entries = new Map<ObjectKey, DecodedResource>();
    for (const key of this.view.keys()) {
      const entry = isIn(names, key) ? this.view.peek(key) : undefined;
      if (entry !== undefined) entries.set(key, entry);
    }
    return entries;
  }

  // The objects of a cluster-scoped kind are in no namespace, so those of a list would be none.
  #namesOf(namespaces: Namespaces): readonly (string | undefined)[] {
    const { definition } = this.#options.request;
    return definition.scope === "Cluster" || namespaces === undefined ? [undefined] : [...new Set(namespaces)];
  }

  #acquire(informers: SharedInformers, names: readonly (string | undefined)[]): Shares {
    const { request } = this.#options;
    return new Map(names.map((namespace) => [namespace, informers.acquire({ ...request, namespace })]));
  }
}

function isIn(names: readonly (string | undefined)[], key: ObjectKey): boolean {
  return names.some((name) => name === undefined || key.startsWith(`${name}/`));
}

async function releaseAll(shares: Iterable<InformerHandle>): Promise<void> {
  await Promise.all([...shares].map((share) => share.release()));
}

// A cache that is attached brings everything that it knows.
function sinceBefore(
  change: ResourceChange,
  before: ReadonlyMap<ObjectKey, DecodedResource>,
): ResourceChange | undefined {
  const known = before.get(change.key)?.object;
  if (known === undefined) return change;
  const versions = [change.object.metadata.resourceVersion ?? "0", known.metadata.resourceVersion ?? "0"] as const;
  return compareResourceVersions(...versions) > 0 ? { ...change, kind: "updated", old: known } : undefined;
}
