// Keeps a view up to date through shared informers: one for all namespaces, or one for each.
// A change of the namespaces happens in one turn: until then the view shows the old ones, then all that the new informers know.
import type { SourceHealth } from "../../base/activity.js";
import { untilAborted } from "../../base/promises.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { ApiClient } from "../../client/api-client.js";
import type { InformerHandle, InformerRequest, SharedInformers } from "../../watch/informer-pool.js";

/** The namespaces to watch; all of them if undefined. */
export type Namespaces = readonly string[] | undefined;

/** How a watch is started: `startOrThrow` throws as soon as an attempt fails; further attempts are made all the same. */
export type StartMode = "start" | "startOrThrow";

// One share for each namespace; that of all namespaces has no name.
type Shares = ReadonlyMap<string | undefined, InformerHandle>;

/** Feeds one view, from a start to a stop, and then perhaps again. */
export class ViewWatch {
  readonly #view: ResourceView;
  readonly #request: Omit<InformerRequest, "namespace">;
  #informers: SharedInformers | undefined;
  #shares: Shares = new Map();
  #replaced = new AbortController();

  constructor(view: ResourceView, request: Omit<InformerRequest, "namespace">) {
    this.#view = view;
    this.#request = request;
  }

  get client(): ApiClient | undefined {
    if (this.#request.connection === undefined) return undefined;
    return [...this.#shares.values()][0]?.informer.client;
  }

  get health(): SourceHealth {
    const all = [...this.#shares.values()].map(({ informer }) => informer.health);
    const reasons = all.flatMap(({ status, reason }) => (status === "unhealthy" ? [reason] : []));
    if (reasons.length > 0) return { status: "unhealthy", reason: reasons.join("; ") };
    return { status: all.length > 0 && all.every(({ status }) => status === "healthy") ? "healthy" : "unknown" };
  }

  /** Shows what is known of these namespaces, and all that follows; resolves when all is known, or with `start` when it is stopped before. */
  async start(informers: SharedInformers, namespaces: Namespaces, mode: StartMode = "start"): Promise<void> {
    if (this.#informers === undefined) {
      this.#informers = informers;
      this.#show(this.#acquire(informers, this.#namesOf(namespaces)));
    }
    await this.#untilKnown(mode);
    if (mode === "startOrThrow" && this.#informers === undefined)
      throw new Error(`the watch of ${this.#view.definition.plural} was stopped`);
  }

  /** Shows nothing any more; resolves when the watches that nobody else needs have ended. */
  async stop(): Promise<void> {
    const shares = this.#shares;
    this.#informers = undefined;
    this.#show(new Map());
    await releaseAll(shares.values());
  }

  /** Watches these namespaces too, until their state is known; throws, and leaves everything as it was, if one cannot be watched now. */
  async prepare(namespaces: Namespaces) {
    const informers = this.#informers;
    const old = this.#shares;
    const names = this.#namesOf(namespaces);
    const missing = names.filter((name) => !old.has(name));
    const added: Shares = informers === undefined ? new Map() : this.#acquire(informers, missing);
    // What has to make room before it is shown is indexed by then.
    const indexed = [...added.values()].map(({ informer }) => this.#view.addIndexesTo(informer.cache));
    const removeIndexes = () => indexed.forEach((remove) => remove());
    // Once the watch was started or stopped since, the state that is known is not the one that is needed.
    const isCurrent = () => this.#informers === informers && this.#shares === old;
    const rollback = () => {
      removeIndexes();
      return releaseAll(added.values());
    };
    /** Shows the new namespaces and drops the old ones, at once; resolves when their watches have ended. */
    const commit = async () => {
      if (informers === undefined || !isCurrent()) return rollback();
      this.#show(new Map(names.map((name) => [name, added.get(name) ?? old.get(name)!])));
      removeIndexes();
      await releaseAll([...old].flatMap(([name, share]) => (names.includes(name) ? [] : [share])));
    };
    try {
      await Promise.all([...added.values()].map(({ informer }) => informer.startOrThrow()));
    } catch (error) {
      await rollback();
      throw error;
    }
    return { isCurrent, commit, rollback };
  }

  // What is not watched any more may never be known, so whoever waits looks again when the namespaces change.
  async #untilKnown(mode: StartMode): Promise<void> {
    for (let shares: Shares | undefined; shares !== this.#shares;) {
      shares = this.#shares;
      const starts = [...shares.values()].map(({ informer }) => informer[mode]());
      try {
        await untilAborted(Promise.all(starts), this.#replaced.signal);
      } catch (error) {
        // How it ends for what was dropped is of no interest.
        if (shares === this.#shares) throw error;
      }
    }
  }

  #show(shares: Shares): void {
    this.#shares = shares;
    this.#replaced.abort();
    this.#replaced = new AbortController();
    this.#view.show(new Map([...shares].map(([name, { informer }]) => [name, informer.cache])));
  }

  // The objects of a cluster-scoped kind are in no namespace, so those of a list would be none.
  #namesOf(namespaces: Namespaces): readonly (string | undefined)[] {
    const isEverywhere = this.#view.definition.scope === "Cluster" || namespaces === undefined;
    return isEverywhere ? [undefined] : [...new Set(namespaces)];
  }

  #acquire(informers: SharedInformers, names: readonly (string | undefined)[]): Shares {
    return new Map(names.map((namespace) => [namespace, informers.acquire({ ...this.#request, namespace })]));
  }
}

async function releaseAll(shares: Iterable<InformerHandle>): Promise<void> {
  await Promise.all([...shares].map((share) => share.release()));
}

/**
 * Shows the state of other namespaces in all watches that follow them, in one turn; throws, and leaves everything as it was, if one cannot
 * be watched now. Resolves when the watches that are not needed any more have ended. `following` returns the watches in their order; the
 * state is read again if these change meanwhile. `onSwitch` is called in the turn in which the state is shown, before it is.
 */
export async function switchNamespaces(
  namespaces: Namespaces,
  following: () => readonly ViewWatch[],
  onSwitch: () => void,
): Promise<void> {
  let outdated: readonly Awaited<ReturnType<ViewWatch["prepare"]>>[] = [];
  for (;;) {
    const watches = following();
    const settled = await Promise.allSettled(watches.map((watch) => watch.prepare(namespaces)));
    const changes = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    // What was prepared before is shared with the watches of now until then, so that it is not read twice.
    for (const change of outdated) await change.rollback();
    outdated = changes;
    const failed = settled.find((each) => each.status === "rejected");
    if (failed !== undefined) {
      for (const change of changes) await change.rollback();
      throw failed.reason;
    }
    const now = following();
    const isSame = now.length === watches.length && now.every((watch, index) => watch === watches[index]);
    if (!isSame || !changes.every((change) => change.isCurrent())) continue;
    onSwitch();
    await Promise.all(changes.map((change) => change.commit()));
    return;
  }
}
