// Keeps a view up to date through shared informers: one for all namespaces, or one for each.
// A change of the namespaces happens in one turn: until then the view shows the old ones, then all that the new informers know.
import type { NamespaceHealth, SourceHealth } from "../../base/activity.js";
import { untilAborted } from "../../base/promises.js";
import { kindNameOf } from "../../base/resource-definition.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { ApiClient } from "../../client/api-client.js";
import type { InformerHandle, InformerRequest, SharedInformers } from "../../watch/informer-pool.js";

/** The namespaces to watch; all of them if undefined. */
export type Namespaces = readonly string[] | undefined;

/**
 * What the start of a watch waits for: `start`, until all of its namespaces are known; `startOrThrow`, the same, but it throws as soon as an
 * attempt fails; `settle`, until each is known or an attempt has failed. Further attempts are made in any case.
 */
export type StartMode = "start" | "startOrThrow" | "settle";

/** Tells whether a namespace matters. */
export type NamespaceTest = (namespace: string) => boolean;

const ALL: NamespaceTest = () => true;

// One share for each namespace; that of all namespaces has no name.
type Shares = ReadonlyMap<string | undefined, InformerHandle>;

/** Feeds one view, from a start to a stop, and then perhaps again. */
export class ViewWatch {
  readonly #view: ResourceView;
  readonly #request: Omit<InformerRequest, "namespace">;
  readonly #onKnown: () => void;
  #informers: SharedInformers | undefined;
  #shares: Shares = new Map();
  #endListening = () => {};
  #replaced = new AbortController();

  /** `onKnown` is called each time all objects of a namespace become known, or other namespaces are watched. */
  constructor(view: ResourceView, request: Omit<InformerRequest, "namespace">, onKnown = () => {}) {
    this.#view = view;
    this.#request = request;
    this.#onKnown = onKnown;
  }

  get client(): ApiClient | undefined {
    if (this.#request.connection === undefined) return undefined;
    return [...this.#shares.values()][0]?.informer.client;
  }

  get health(): SourceHealth {
    const informers = [...this.#shares.values()].map(({ informer }) => informer);
    const all = informers.map(({ health }) => health);
    if (all.length > 0 && all.every(({ status }) => status === "healthy")) return { status: "healthy" };
    const failing = informers.filter(({ health }) => health.status === "unhealthy");
    const reasons = new Set(failing.map(({ health }) => health.reason));
    const namespaces = this.#shares.has(undefined) || all.length === 0 ? {} : { namespaces: this.#namespaces() };
    if (failing.length === 0) return { status: "unknown", ...namespaces };
    const isUnserved = failing.every((each) => each.isUnserved) && ({ isUnserved: true } as const);
    return { status: "unhealthy", reason: [...reasons].join("; "), ...isUnserved, ...namespaces };
  }

  #namespaces(): { readonly [namespace: string]: NamespaceHealth } {
    const healthOf = ({ informer: { health } }: InformerHandle): NamespaceHealth =>
      health.status === "unhealthy"
        ? { status: "failing", ...(health.reason !== undefined && { reason: health.reason }) }
        : { status: health.status === "healthy" ? "synced" : "unknown" };
    return Object.fromEntries([...this.#shares].map(([name = "", share]) => [name, healthOf(share)]));
  }

  /** Whether the objects of some namespace were listed. */
  get isPartlySynced(): boolean {
    return [...this.#shares.values()].some(({ informer }) => informer.isSynced);
  }

  /** Whether no namespace can be watched. */
  get isFailing(): boolean {
    return [...this.#shares.values()].every(({ informer }) => informer.health.status === "unhealthy");
  }

  /** Tells whether a namespace is watched, by itself or with all others. */
  covers(namespace: string | undefined): boolean {
    return this.#shares.has(undefined) || this.#shares.has(namespace);
  }

  /** Says what is not known of the objects in some of the watched namespaces; undefined if all is. What is stopped has none. */
  unknownIn(isConcerned: NamespaceTest = ALL): string | undefined {
    for (const [namespace, { informer }] of this.#shares) {
      if (informer.isKnown || (namespace !== undefined && !isConcerned(namespace))) continue;
      const { health } = informer;
      if (health.status === "unhealthy" && health.reason !== undefined) return health.reason;
      const where = namespace === undefined ? "" : ` in namespace "${namespace}"`;
      return `${kindNameOf(this.#view.definition)}${where} has not been listed yet`;
    }
    return undefined;
  }

  /**
   * Shows what is known of these namespaces, and all that follows; resolves when all that `isConcerned` is known, and, but for `startOrThrow`,
   * when it is stopped before.
   */
  async start(
    informers: SharedInformers,
    namespaces: Namespaces,
    mode: StartMode = "start",
    isConcerned: NamespaceTest = ALL,
  ): Promise<void> {
    if (this.#informers === undefined) {
      this.#informers = informers;
      this.#show(this.#acquire(informers, this.#namesOf(namespaces)));
    }
    await this.#untilKnown(mode, isConcerned);
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

  /**
   * Watches these namespaces too, until their state is known; throws, and leaves everything as it was, if one cannot be watched now. With
   * `settle` a namespace that fails is watched as well; but not in place of all namespaces, or all in place of some: what is known of it
   * would be taken for deleted.
   */
  async prepare(namespaces: Namespaces, mode: Exclude<StartMode, "start"> = "startOrThrow") {
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
      const isRestricted = old.has(undefined) !== names.includes(undefined) && old.size > 0;
      const starts = isRestricted ? "startOrThrow" : mode;
      await Promise.all([...added.values()].map(({ informer }) => startOf(informer, starts)));
    } catch (error) {
      await rollback();
      throw error;
    }
    return { isCurrent, commit, rollback };
  }

  // What is not watched any more may never be known, so whoever waits looks again when the namespaces change.
  async #untilKnown(mode: StartMode, isConcerned: NamespaceTest): Promise<void> {
    for (let shares: Shares | undefined; shares !== this.#shares;) {
      shares = this.#shares;
      const concerned = [...shares].filter(([name]) => name === undefined || isConcerned(name));
      // All of them begin.
      for (const { informer } of shares.values()) void informer.start();
      const starts = concerned.map(([, { informer }]) => startOf(informer, mode));
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
    this.#endListening();
    const listening = [...shares.values()].map(({ informer }) => informer.onKnown(this.#onKnown));
    this.#endListening = () => listening.forEach((end) => end());
    this.#replaced.abort();
    this.#replaced = new AbortController();
    this.#view.show(new Map([...shares].map(([name, { informer }]) => [name, informer.cache])));
    // Others may have listed them before, and what is not watched any more is not waited for.
    if (shares.size > 0) this.#onKnown();
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

async function startOf(informer: InformerHandle["informer"], mode: StartMode): Promise<void> {
  if (mode !== "settle") return informer[mode]();
  await informer.startOrThrow().catch(() => {});
}

async function releaseAll(shares: Iterable<InformerHandle>): Promise<void> {
  await Promise.all([...shares].map((share) => share.release()));
}

/**
 * Shows the state of other namespaces in all watches that follow them, in one turn; throws, and leaves everything as it was, if one cannot
 * be watched now, unless the mode is `settle`. Resolves when the watches that are not needed any more have ended. `following` returns the watches in their order; the
 * state is read again if these change meanwhile. `onSwitch` is called in the turn in which the state is shown, before it is.
 */
export async function switchNamespaces(
  namespaces: Namespaces,
  following: () => readonly ViewWatch[],
  onSwitch: () => void,
  mode?: Exclude<StartMode, "start">,
): Promise<void> {
  let outdated: readonly Awaited<ReturnType<ViewWatch["prepare"]>>[] = [];
  for (;;) {
    const watches = following();
    const settled = await Promise.allSettled(watches.map((watch) => watch.prepare(namespaces, mode)));
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
