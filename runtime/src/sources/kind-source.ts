// The objects of one kind, as watched by one controller (controller-runtime's source.Kind, JOSDK's InformerEventSource with its InformerManager).
//
// A source holds a handle of one informer for all namespaces, or one per namespace. A change of namespaces is atomic: the view switches from the
// objects of the old namespaces to those of the new ones in one turn of the event loop.
import type { NamespaceHealth, SourceHealth } from "../base/activity.js";
import {
  type KubernetesObject,
  type ObjectKey,
  type ObjectRef,
  type ResourceDefinition,
  keyFrom,
  keyOf,
  kindNameOf,
  sortedByKey,
} from "../base/kubernetes-object.js";
import { DEPENDENT_NAME, PRIMARY_INDEX } from "../base/primary-link.js";
import { untilAborted } from "../base/wait.js";
import { type ResourceChange, unmeasured } from "../cache/resource-cache.js";
import { type EventFilters, type ListOptions, ResourceView } from "../cache/resource-view.js";
import type { ApiClient } from "../client/api-client.js";
import { type Connection, namespaceOf } from "../client/connection.js";
import type { InformerHandle, InformerRequest, SharedInformers } from "../watch/shared-informers.js";
import {
  type EventGate,
  type EventSource,
  type EventSourceContext,
  HealthRecord,
  type SourceCondition,
  createEventGate,
} from "./event-source.js";
import {
  type Mapping,
  type MappingOptions,
  type NamespaceTest,
  type PrimaryOrNamespace,
  READ_INDEX,
  createMapping,
  isHomeOf,
} from "./secondary-mapping.js";

interface SharingDependent {
  readonly name: string;
  /** Names of the dependent in earlier versions. */
  readonly movedFrom?: readonly string[] | undefined;
}

/** Options of a source for one kind. They are untyped; `informerSource` has the typed and documented ones. */
export interface KindSourceOptions extends MappingOptions {
  readonly filters?: EventFilters | undefined;
  readonly indexes?: { readonly [name: string]: (object: KubernetesObject) => readonly string[] } | undefined;
  readonly startPriority?: "first" | "default";
  readonly activationCondition?: SourceCondition | undefined;
  readonly request: Omit<InformerRequest, "namespace">;
  /** Whether the source is internal to the runtime: lookups by type do not find it, and it provides no secondaries. */
  readonly isInternal?: boolean;
  /** The dependents that share the source. The cause of an event names one of them. */
  readonly dependents?: readonly SharingDependent[];
  /** Called before each reconcile of a primary, which fails if it throws. */
  readonly onLoad?: (primary: KubernetesObject, signal: AbortSignal) => Promise<void>;
  /** Whether the objects are the primaries themselves, which need no mapping. */
  readonly isOfPrimaries?: boolean;
}

type PrimarySourceOptions = KindSourceOptions["request"] & Pick<KindSourceOptions, "indexes">;

/** Creates the event source for the primaries of a controller. Its name, "primary", is reserved. */
export function createPrimarySource({ indexes, ...request }: PrimarySourceOptions): KindSource {
  return new KindSource({ name: "primary", request, indexes, isOfPrimaries: true });
}

/** The namespaces to watch; undefined for all. */
export type Namespaces = readonly string[] | undefined;

/**
 * What the start waits for. `start`: until all namespaces have synced. `startOrThrow`: the same, but it throws as soon as an attempt fails. `settle`:
 * until each namespace has synced or an attempt for it has failed. The informers keep retrying in any case.
 */
type StartMode = "start" | "startOrThrow" | "settle";

/** Informer handles by namespace; the key undefined stands for all namespaces. */
type Shares = ReadonlyMap<string | undefined, InformerHandle>;

/** The context of a source for a kind. `crdSource` starts its own without callbacks. */
export interface KindSourceContext extends EventSourceContext {
  /** Called whenever all objects of a namespace become known, or the watched namespaces change. */
  onKnown?(): void;
  /** Called for each change that contains a write of the operator's field managers, with the primaries of the object. */
  onWritten?(change: ResourceChange, primaries: Iterable<ObjectKey>): void;
}

/** State from a start until the stop. */
interface Running {
  readonly context: KindSourceContext;
  /** Undefined for a source of primaries. */
  readonly mapping: Mapping | undefined;
}

/** A prepared change of the namespaces that does not affect the view yet. */
interface NamespaceChange {
  /** Whether the source has not been stopped, started, or switched to other informers since. */
  isCurrent(): boolean;
  /** Synchronously switches the view to the new namespaces. Resolves when the old informers have been released. */
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** An event source of the objects of one kind. */
export class KindSource implements EventSource<KubernetesObject> {
  readonly name: string;
  readonly type: ResourceDefinition | undefined;
  readonly startPriority;
  readonly activationCondition;
  readonly view: ResourceView;
  readonly connection: Connection | undefined;
  /** The watched namespaces if they differ from those of the controller; `all` for all namespaces. */
  ownNamespaces: readonly string[] | "all" | undefined;
  readonly #options: KindSourceOptions;
  readonly #gate: EventGate<KubernetesObject>;
  readonly #record: HealthRecord;
  readonly #lastSeen = new LastSeen();
  #running: Running | undefined;
  #shares: Shares = new Map();
  /** Aborted when the informers are replaced. */
  #replaced = new AbortController();
  #endListening = () => {};

  constructor(options: KindSourceOptions) {
    const { name, request, namespaces, isInternal = false, isOfPrimaries = false } = options;
    this.name = name;
    this.type = isInternal || isOfPrimaries ? undefined : request.definition;
    this.startPriority = options.startPriority ?? "default";
    this.activationCondition = options.activationCondition;
    this.connection = request.connection;
    // The namespace for "current" is only known at the start.
    this.ownNamespaces = namespaces === "sameAsController" || namespaces === "current" ? undefined : namespaces;
    this.#options = options;
    const record = (this.#record = new HealthRecord(name));
    this.#gate = createEventGate(options.filters, record);
    const { mapper, primaryToSecondary } = options;
    const byPrimary = { [PRIMARY_INDEX]: unmeasured((object) => this.#running?.mapping?.indexedOf?.(object) ?? []) };
    const byRead = { [READ_INDEX]: unmeasured((object) => this.#running?.mapping?.readsOf?.(object) ?? []) };
    const isMapped = !isOfPrimaries && (primaryToSecondary === undefined || mapper !== undefined);
    const indexes = { ...options.indexes, ...(isMapped && byPrimary), ...(mapper && byRead) };
    this.view = new ResourceView(request.definition, indexes, {
      isPartial: request.isMetadataOnly === true || request.projection !== undefined,
      onIndexFailure: (index, key, error) => {
        const part = `the index "${index}" for ${key}`;
        if (error === undefined) record.succeed(part);
        else record.fail(part, error);
      },
    });
    if (!isOfPrimaries) this.view.onChange((change) => this.#onChange(change));
  }

  /** The client of the other cluster that it watches, while the source runs; undefined for the operator's cluster. */
  get client(): ApiClient | undefined {
    if (this.connection === undefined) return undefined;
    return [...this.#shares.values()][0]?.informer.client;
  }

  get health(): SourceHealth {
    const health = healthOf(this.#shares);
    return health.status === "healthy" ? this.#record.health : health;
  }

  /** Whether at least one namespace has synced. */
  get isPartlySynced(): boolean {
    return [...this.#shares.values()].some(({ informer }) => informer.isSynced);
  }

  /** Whether all namespaces fail, or the source is stopped. */
  get isFailing(): boolean {
    return [...this.#shares.values()].every(({ informer }) => informer.health.status === "unhealthy");
  }

  /** Whether primaries name its objects (`primaryToSecondary`). */
  get isNamed(): boolean {
    return this.#options.primaryToSecondary !== undefined;
  }

  /** This source if it watches the controller's namespaces; otherwise undefined. */
  get following(): KindSource | undefined {
    const { namespaces = "sameAsController" } = this.#options;
    return namespaces === "sameAsController" ? this : undefined;
  }

  /**
   * Shows the known objects of the namespaces, and watches them. `primary` limits the wait to namespaces that may hold its secondaries. A stop ends
   * the wait; only `startOrThrow` throws then.
   */
  async start(context: KindSourceContext, mode: StartMode = "start", primary?: KubernetesObject): Promise<void> {
    if (this.#options.namespaces === "current")
      this.ownNamespaces = [namespaceOf(this.connection ?? context.client.connection, "it")];
    const isFirst = this.#running === undefined;
    if (isFirst) {
      this.#record.start(context);
      this.#running = { context, mapping: this.#createMapping(context) };
    }
    const isConcerned = primary === undefined ? undefined : this.#concernOf(primary);
    // While the caches are shown, the indexes of the view call the mapping.
    if (isFirst) {
      const { ownNamespaces = context.namespaces } = this;
      const names = this.#namesOf(ownNamespaces === "all" ? undefined : ownNamespaces);
      this.#show(this.#acquire(context.informers, names));
    }
    await this.#untilKnown(mode, isConcerned);
    if (mode === "startOrThrow" && this.#running === undefined)
      throw new Error(`the watch of ${this.view.definition.plural} was stopped`);
  }

  async stop(): Promise<void> {
    this.#running?.mapping?.end?.();
    this.#lastSeen.clear();
    this.#running = undefined;
    this.#record.stop();
    const shares = this.#shares;
    // Synchronously, so that a start after this call finds no handles.
    this.#show(new Map());
    await releaseShares(shares.values());
  }

  /**
   * Also watches other namespaces until they have synced. Throws, and changes nothing, if one of them cannot be watched. With `settle`, a failing
   * namespace is accepted, unless single namespaces replace the watch of all or vice versa: then known objects would be mistaken for deleted ones.
   */
  async prepare(namespaces: Namespaces, mode: Exclude<StartMode, "start"> = "startOrThrow"): Promise<NamespaceChange> {
    const running = this.#running;
    const old = this.#shares;
    const names = this.#namesOf(namespaces);
    const missing = names.filter((name) => !old.has(name));
    const added: Shares = running === undefined ? new Map() : this.#acquire(running.context.informers, missing);
    // A bounded cache may evict objects before the view shows them, so index it from the start.
    const indexed = [...added.values()].map(({ informer }) => this.view.addIndexesTo(informer.cache));
    const removeIndexes = () => indexed.forEach((remove) => remove());
    const isCurrent = () => this.#running === running && this.#shares === old;
    const rollback = () => {
      removeIndexes();
      return releaseShares(added.values());
    };
    const commit = async () => {
      if (running === undefined || !isCurrent()) return rollback();
      this.#show(new Map(names.map((name) => [name, added.get(name) ?? old.get(name)!])));
      removeIndexes();
      await releaseShares([...old].flatMap(([name, share]) => (names.includes(name) ? [] : [share])));
    };
    try {
      const isRestricted = old.has(undefined) !== names.includes(undefined) && old.size > 0;
      const starts = isRestricted ? "startOrThrow" : mode;
      await Promise.all([...added.values()].map(({ informer }) => startInformer(informer, starts)));
    } catch (error) {
      await rollback();
      throw error;
    }
    return { isCurrent, commit, rollback };
  }

  secondariesOf(primary: KubernetesObject): readonly KubernetesObject[] {
    const mapping = this.#running?.mapping;
    if (mapping === undefined || this.#options.isInternal === true) return [];
    return [...mapping.secondariesOf(primary)].sort().flatMap((key) => this.get(key) ?? []);
  }

  /** Returns the last states of a primary's objects that other clients deleted since the source started. */
  lastSeenOf({ metadata }: KubernetesObject): readonly KubernetesObject[] {
    return this.#lastSeen.of(keyOf(metadata)).filter((object) => !this.view.has(keyOf(object.metadata)));
  }

  get(ref: ObjectRef | ObjectKey): KubernetesObject | undefined {
    return this.view.get(keyFrom(ref))?.object;
  }

  byIndex(index: string, value: string): readonly KubernetesObject[] {
    return sortedByKey(this.view.byIndex(index, value).map(({ object }) => object));
  }

  list(options?: ListOptions): readonly KubernetesObject[] {
    return sortedByKey(this.view.list(options).map(({ object }) => object));
  }

  /**
   * Describes objects that are not known yet and may belong to a primary, or to any primary of a namespace; undefined if all are known or the source
   * is stopped.
   */
  unknownFor(primary: PrimaryOrNamespace): string | undefined {
    // Fast path: usually everything is known.
    if (this.#unknownWhere() === undefined) return undefined;
    return this.#unknownWhere(this.#concernOf(primary));
  }

  /** Describes objects that are not known yet in a namespace, by default in any; undefined if all are known. */
  unknownIn(namespace?: string): string | undefined {
    return this.#unknownWhere((each) => namespace === undefined || each === namespace);
  }

  async load(primary: KubernetesObject, signal: AbortSignal): Promise<void> {
    await this.#options.onLoad?.(primary, signal);
    const mapping = this.#running?.mapping;
    mapping?.nameSecondaries?.(primary);
    if (!this.#isBounded || mapping === undefined) return;
    await this.view.load(mapping.secondariesOf(primary), { holder: keyOf(primary.metadata), signal });
  }

  release(primary: ObjectKey): void {
    if (this.#isBounded) this.view.release(primary);
  }

  onPrimaryChange(change: ResourceChange): void {
    if (change.kind === "deleted") this.#lastSeen.release(change.key);
    this.#running?.mapping?.onPrimaryChange?.(change);
  }

  /**
   * Calls `primaryToSecondary` again for those of these primaries whose result depends on other secondaries. Returns the primaries whose result has
   * changed.
   */
  nameAgain(primaries: Iterable<ObjectKey>): readonly ObjectKey[] {
    return this.#running?.mapping?.nameAgain?.(primaries) ?? [];
  }

  get #isBounded(): boolean {
    return this.#options.request.maxCachedObjects !== undefined;
  }

  #createMapping(context: EventSourceContext): Mapping | undefined {
    if (this.#options.isOfPrimaries === true) return undefined;
    const isElsewhere = this.connection !== undefined;
    return createMapping(this.#options, { view: this.view, context, record: this.#record, isElsewhere });
  }

  #onChange(change: ResourceChange): void {
    if (this.#running?.mapping === undefined) return;
    const { context, mapping } = this.#running;
    const { key, object, old, isInitial, madeFor = "" } = change;
    // The primaries of the old state are notified as well.
    const before = old === undefined ? [] : mapping.primariesOf(key, old);
    const primaries = new Set([...mapping.primariesOf(key, object), ...before]);
    context.noteSecondaries?.(primaries);
    primaries.delete(madeFor as ObjectKey);
    if (change.written !== undefined) context.onWritten?.(change, primaries);
    this.#noteLastSeen(change, primaries);
    if (primaries.size === 0 || !this.#passes(change)) return;
    const { request, dependents } = this.#options;
    const dependent = dependents && dependentOf(object, dependents);
    const cause = { type: request.definition.kind, object: key, isInitial };
    context.notify(primaries, dependent === undefined ? cause : { source: dependent, ...cause });
  }

  #noteLastSeen({ kind, key, object }: ResourceChange, primaries: ReadonlySet<ObjectKey>): void {
    if (kind !== "deleted") return this.#lastSeen.delete(key, primaries);
    const known = [...primaries].filter((primary) => this.#running?.context.primaries.has(primary));
    if (!this.view.isEvicted(object)) this.#lastSeen.add(key, object, known);
  }

  #passes({ kind, object, old, isFinalStateUnknown = false }: ResourceChange): boolean {
    if (kind === "deleted") return this.#gate.passesDelete(object, isFinalStateUnknown);
    if (old === undefined) return this.#gate.passesAdd(object);
    // An evicted state cannot be compared, and no event may be lost.
    return this.view.isEvicted(old) ? this.#gate.passesGeneric(object) : this.#gate.passesUpdate(object, old);
  }

  #unknownWhere(isConcerned?: NamespaceTest): string | undefined {
    return unknownIn(this.#shares, this.view.definition, isConcerned);
  }

  /** Returns a test for namespaces that may hold objects of a primary. */
  #concernOf(primary: PrimaryOrNamespace): NamespaceTest {
    const covers = (namespace: string) => this.#shares.has(undefined) || this.#shares.has(namespace);
    return this.#running?.mapping?.concernOf(primary, covers) ?? isHomeOf(primary);
  }

  // The wait restarts when the namespaces change: dropped namespaces may never sync.
  async #untilKnown(mode: StartMode, isConcerned?: NamespaceTest): Promise<void> {
    for (let shares: Shares | undefined; shares !== this.#shares;) {
      shares = this.#shares;
      for (const { informer } of shares.values()) void informer.start();
      const concerned = [...shares].filter(
        ([name]) => isConcerned === undefined || name === undefined || isConcerned(name),
      );
      const starts = concerned.map(([, { informer }]) => startInformer(informer, mode));
      try {
        await untilAborted(Promise.all(starts), this.#replaced.signal);
      } catch (error) {
        // Ignore failures of dropped namespaces.
        if (shares === this.#shares) throw error;
      }
    }
  }

  #show(shares: Shares): void {
    this.#shares = shares;
    this.#endListening();
    const onKnown = () => this.#running?.context.onKnown?.();
    const listening = [...shares.values()].map(({ informer }) => informer.onKnown(onKnown));
    this.#endListening = () => listening.forEach((end) => end());
    this.#replaced.abort();
    this.#replaced = new AbortController();
    this.view.show(new Map([...shares].map(([name, { informer }]) => [name, informer.cache])));
    // Other sources may have synced these informers before, and no reconcile waits for dropped namespaces any more.
    if (shares.size > 0) onKnown();
  }

  // Objects of a cluster-scoped kind are in no namespace, so a list of namespaces would exclude all of them.
  #namesOf(namespaces: Namespaces): readonly (string | undefined)[] {
    const isEverywhere = this.view.definition.scope === "Cluster" || namespaces === undefined;
    return isEverywhere ? [undefined] : [...new Set(namespaces)];
  }

  #acquire(informers: SharedInformers, names: readonly (string | undefined)[]): Shares {
    const { request } = this.#options;
    return new Map(names.map((namespace) => [namespace, informers.acquire({ ...request, namespace })]));
  }
}

/** Returns the current name of an object's dependent; the recorded name if the dependent was removed from the workflow. */
function dependentOf({ metadata }: KubernetesObject, dependents: readonly SharingDependent[]): string | undefined {
  const written = metadata.annotations?.[DEPENDENT_NAME];
  return dependents.find(({ movedFrom }) => movedFrom?.some((name) => name === written))?.name ?? written;
}

function healthOf(shares: Shares): SourceHealth {
  const informers = [...shares.values()].map(({ informer }) => informer);
  const all = informers.map(({ health }) => health);
  if (all.length > 0 && all.every(({ status }) => status === "healthy")) return { status: "healthy" };
  const failing = informers.filter(({ health }) => health.status === "unhealthy");
  const reasons = new Set(failing.map(({ health }) => health.reason));
  const namespaces = shares.has(undefined) || all.length === 0 ? {} : { namespaces: namespaceHealthOf(shares) };
  if (failing.length === 0) return { status: "unknown", ...namespaces };
  const isUnserved = failing.every((each) => each.isUnserved) && ({ isUnserved: true } as const);
  return { status: "unhealthy", reason: [...reasons].join("; "), ...isUnserved, ...namespaces };
}

function namespaceHealthOf(shares: Shares): { readonly [namespace: string]: NamespaceHealth } {
  const ofShare = ({ informer: { health } }: InformerHandle): NamespaceHealth =>
    health.status === "unhealthy"
      ? { status: "failing", ...(health.reason !== undefined && { reason: health.reason }) }
      : { status: health.status === "healthy" ? "synced" : "unknown" };
  return Object.fromEntries([...shares].map(([name = "", share]) => [name, ofShare(share)]));
}

/** Describes unknown objects in the relevant namespaces, by default in all; undefined if all are known, or if there are no handles. */
function unknownIn(shares: Shares, definition: ResourceDefinition, isConcerned?: NamespaceTest): string | undefined {
  for (const [namespace, { informer }] of shares) {
    if (informer.isKnown || (namespace !== undefined && isConcerned?.(namespace) === false)) continue;
    const { health } = informer;
    if (health.status === "unhealthy" && health.reason !== undefined) return health.reason;
    const where = namespace === undefined ? "" : ` in namespace "${namespace}"`;
    return `${kindNameOf(definition)}${where} has not been listed yet`;
  }
  return undefined;
}

async function startInformer(informer: InformerHandle["informer"], mode: StartMode): Promise<void> {
  if (mode !== "settle") return informer[mode]();
  await informer.startOrThrow().catch(() => {});
}

async function releaseShares(shares: Iterable<InformerHandle>): Promise<void> {
  await Promise.all([...shares].map((share) => share.release()));
}

/**
 * Atomically changes the namespaces of all sources that follow those of the controller. Throws, and changes nothing, if one of them cannot be
 * watched, unless the mode is `settle`. Resolves when the old informers have been released. `following` returns the sources in order; if they change
 * in the meantime, the new ones are prepared as well. `onSwitch` is called immediately before the change, in the same turn of the event loop.
 */
export async function switchNamespaces(
  namespaces: Namespaces,
  following: () => readonly KindSource[],
  onSwitch: () => void,
  mode?: Exclude<StartMode, "start">,
): Promise<void> {
  let outdated: readonly NamespaceChange[] = [];
  for (;;) {
    const sources = following();
    const settled = await Promise.allSettled(sources.map((source) => source.prepare(namespaces, mode)));
    const changes = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    // Roll back only now, so that this attempt shares the informers of the previous one, and nothing is listed twice.
    for (const change of outdated) await change.rollback();
    outdated = changes;
    const failed = settled.find((each) => each.status === "rejected");
    if (failed !== undefined) {
      for (const change of changes) await change.rollback();
      throw failed.reason;
    }
    const now = following();
    const isSame = now.length === sources.length && now.every((source, index) => source === sources[index]);
    if (!isSame || !changes.every((change) => change.isCurrent())) continue;
    onSwitch();
    await Promise.all(changes.map((change) => change.commit()));
    return;
  }
}

// Enough for the objects of a deleted namespace; limits memory if many objects stay deleted.
const MAX_LAST_SEEN = 1_000;

interface DeletedObject {
  readonly object: KubernetesObject;
  readonly primaries: Set<ObjectKey>;
}

/**
 * Last states of objects that other clients deleted, by primary: the cleanup of a primary may need a deleted object. They are also kept while the
 * primary is not being deleted, because the deletion of the object may be observed before that of the primary.
 */
class LastSeen {
  readonly #deleted = new Map<ObjectKey, DeletedObject>();

  /** Keeps the last state of a deleted object for these primaries. Beyond 1,000 objects, the oldest are dropped. */
  add(key: ObjectKey, object: KubernetesObject, primaries: Iterable<ObjectKey>): void {
    const concerned = new Set(primaries);
    this.#deleted.delete(key);
    if (concerned.size === 0) return;
    this.#deleted.set(key, { object, primaries: concerned });
    if (this.#deleted.size <= MAX_LAST_SEEN) return;
    for (const oldest of this.#deleted.keys()) return void this.#deleted.delete(oldest);
  }

  /** Drops an object for these primaries because it exists again. */
  delete(key: ObjectKey, primaries: Iterable<ObjectKey>): void {
    const known = this.#deleted.get(key);
    if (known === undefined) return;
    for (const primary of primaries) known.primaries.delete(primary);
    if (known.primaries.size === 0) this.#deleted.delete(key);
  }

  /** Drops everything kept for a primary. */
  release(primary: ObjectKey): void {
    for (const key of this.#deleted.keys()) this.delete(key, [primary]);
  }

  clear(): void {
    this.#deleted.clear();
  }

  of(primary: ObjectKey): readonly KubernetesObject[] {
    return [...this.#deleted.values()].flatMap(({ object, primaries }) => (primaries.has(primary) ? object : []));
  }
}
