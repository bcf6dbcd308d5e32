import { keyFrom, keyOf, refOfKey, sortedByKey } from "../../base/kubernetes-object.js";
import type { KubernetesObject, ObjectKey, ObjectRef } from "../../base/kubernetes-object.js";
import { PRIMARY_INDEX } from "../../base/primary-link.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import { namespaceOf, type Connection } from "../../client/connect/connection.js";
import type { EventSource, EventSourceContext } from "../event-source.js";
import type { ResourceChange } from "../../cache/resource-change.js";
import { ResourceView, type ListOptions } from "../../cache/resource-view.js";
import type { InformerRequest } from "../../watch/informer-pool.js";
import { createEventGate, type EventGate } from "../filters.js";
import { HealthRecord } from "../health-record.js";
import type { InformerSourceOptions } from "./informer-source.js";
import { LastSeen } from "./last-seen.js";
import { READ_INDEX, SecondaryMapping } from "./secondary-mapping.js";
import { isLocalMapper, type SecondaryToPrimaryMapper } from "../mappers.js";
import { ViewWatch, type NamespaceTest, type StartMode } from "./view-watch.js";
import type { SourceHealth } from "../../base/activity.js";
import { unmeasured } from "../../cache/object-index.js";
import { isEvicted } from "../../cache/bounded-objects.js";

type Shared =
  | ("activationCondition" | "filters" | "indexes" | "mapper" | "name" | "namespaces")
  | ("primaryToSecondary" | "startPriority");

/** The options of a source of one kind. They are untyped: `informerSource` has the types. */
export interface KindSourceOptions extends Pick<InformerSourceOptions<KubernetesObject>, Shared> {
  readonly request: Omit<InformerRequest, "namespace">;
  /** Whether the source is the runtime's own: nobody finds it by the type of its objects, or reads them. */
  readonly isInternal?: boolean;
  /** Names the dependent that an object is of, where several share the source. */
  readonly dependentOf?: (object: KubernetesObject) => string | undefined;
  /** Called before each reconcile of a primary, which fails if it throws. */
  readonly onLoad?: (primary: KubernetesObject, signal: AbortSignal) => Promise<void>;
  /** Whether only objects of dependents are meant, which have no other controlling owner. */
  readonly isExclusive?: boolean;
  /** Whether the objects are the primaries themselves, whose changes are no matter of a mapping. */
  readonly isOfPrimaries?: boolean;
}

type PrimarySourceOptions = KindSourceOptions["request"] & Pick<KindSourceOptions, "indexes">;

/** Creates the event source of the primaries of a controller; no other one of the controller may have its name, "primary". */
export function createPrimarySource({ indexes, ...request }: PrimarySourceOptions): KindSource {
  return new KindSource({ name: "primary", request, indexes, isOfPrimaries: true });
}

/** An event source of the objects of one kind, as one controller sees them. */
export class KindSource implements EventSource<KubernetesObject> {
  readonly name: string;
  readonly type: ResourceDefinition | undefined;
  readonly startPriority;
  readonly activationCondition;
  readonly view: ResourceView;
  readonly connection: Connection | undefined;
  /** The namespaces that it watches, where these are not those of the controller; "all" for all of them. */
  ownNamespaces: readonly string[] | "all" | undefined;
  readonly #options: KindSourceOptions;
  readonly #watch: ViewWatch;
  readonly #gate: EventGate<KubernetesObject>;
  readonly #record: HealthRecord;
  readonly #lastSeen = new LastSeen();
  /** Absent while the source is stopped, and for primaries. */
  #mapping: SecondaryMapping | undefined;
  #context: EventSourceContext | undefined;
  /** Called each time what is watched in a namespace becomes known. */
  onKnown: (() => void) | undefined;
  /** Called with each change that has a write of the field managers, and the primaries that its object belongs to. */
  onWritten: ((change: ResourceChange, primaries: Iterable<ObjectKey>) => void) | undefined;

  constructor(options: KindSourceOptions) {
    const { name, request, namespaces, isInternal = false, isOfPrimaries = false } = options;
    this.name = name;
    this.type = isInternal || isOfPrimaries ? undefined : request.definition;
    this.startPriority = options.startPriority ?? "default";
    this.activationCondition = options.activationCondition;
    this.connection = request.connection;
    // What "current" stands for is known at the start.
    this.ownNamespaces = namespaces === "sameAsController" || namespaces === "current" ? undefined : namespaces;
    this.#options = options;
    const record = (this.#record = new HealthRecord(name));
    this.#gate = createEventGate(options.filters, record);
    const { mapper, primaryToSecondary } = options;
    const byPrimary = { [PRIMARY_INDEX]: unmeasured((object) => this.#mapping?.indexedOf(object) ?? []) };
    const byRead = { [READ_INDEX]: unmeasured((object) => this.#mapping?.readsOf(object) ?? []) };
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
    this.#watch = new ViewWatch(this.view, request, () => this.onKnown?.());
    if (!isOfPrimaries) this.view.onChange((change) => this.#onChange(change));
  }

  get client(): ApiClient | undefined {
    return this.#watch.client;
  }

  get health(): SourceHealth {
    const { health } = this.#watch;
    return health.status === "healthy" ? this.#record.health : health;
  }

  /** Whether the objects of some namespace were listed. */
  get isPartlySynced(): boolean {
    return this.#watch.isPartlySynced;
  }

  /** Whether it can be watched in no namespace, or is stopped. */
  get isFailing(): boolean {
    return this.#watch.isFailing;
  }

  /**
   * Says what is not known of the objects that may belong to a primary, or to primaries of a namespace in general; undefined if all is, or the
   * source does not run.
   */
  unknownFor(primary: KubernetesObject | { readonly namespace: string | undefined }): string | undefined {
    // Mostly everything is known.
    if (this.#watch.unknownIn() === undefined) return undefined;
    return this.#watch.unknownIn(this.#concernOf(primary));
  }

  /** Says what is not known of the objects of a namespace, or of any without one. */
  unknownIn(namespace?: string): string | undefined {
    return this.#watch.unknownIn((each) => namespace === undefined || each === namespace);
  }

  /** Returns what tells the namespaces that may hold objects of a primary. */
  #concernOf(primary: KubernetesObject | { readonly namespace: string | undefined }): NamespaceTest {
    const { isOfPrimaries = false, mapper, primaryToSecondary } = this.#options;
    const { namespace: home } = "metadata" in primary ? primary.metadata : primary;
    const isHome = (namespace: string) => namespace === home;
    const mapping = this.#mapping;
    if (isOfPrimaries || mapping === undefined) return isHome;
    if (primaryToSecondary !== undefined) {
      if (!("metadata" in primary)) return isHome;
      const named = new Set(mapping.namedBy(primary).map((key) => refOfKey(key).namespace));
      return (namespace) => named.has(namespace);
    }
    if (home === undefined || !this.#watch.covers(home)) return () => true;
    // Where a dependent lives elsewhere, its own step looks whether that is known.
    if (mapper === undefined) return isHome;
    if (isLocalMapper(mapper as SecondaryToPrimaryMapper)) return isHome;
    return (namespace) => isHome(namespace) || !mapping.staysWithin(namespace);
  }

  async start(context: EventSourceContext, mode: StartMode = "start", primary?: KubernetesObject): Promise<void> {
    if (this.#context === undefined) {
      this.#context = context;
      this.#record.start(context);
      const parts = { view: this.view, context, record: this.#record };
      if (this.#options.isOfPrimaries !== true) this.#mapping = new SecondaryMapping(this.#options, parts);
    }
    if (this.#options.namespaces === "current")
      this.ownNamespaces = [namespaceOf(this.connection ?? context.client.connection, "it")];
    const { ownNamespaces = context.namespaces } = this;
    const watched = ownNamespaces === "all" ? undefined : ownNamespaces;
    const isConcerned = primary === undefined ? undefined : this.#concernOf(primary);
    await this.#watch.start(context.informers, watched, mode, isConcerned);
  }

  async stop(): Promise<void> {
    this.#mapping?.end();
    this.#lastSeen.clear();
    this.#mapping = this.#context = undefined;
    this.#record.stop();
    await this.#watch.stop();
  }

  /** What watches the namespaces of the controller; undefined if this source does not. */
  get following(): ViewWatch | undefined {
    const { namespaces = "sameAsController" } = this.#options;
    return namespaces === "sameAsController" ? this.#watch : undefined;
  }

  secondariesOf(primary: KubernetesObject): readonly KubernetesObject[] {
    if (this.#mapping === undefined || this.#options.isInternal === true) return [];
    return [...this.#mapping.secondariesOf(primary)].sort().flatMap((key) => this.get(key) ?? []);
  }

  /** Returns the last states of the objects of a primary that other clients deleted since the source started. */
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

  async load(primary: KubernetesObject, signal: AbortSignal): Promise<void> {
    await this.#options.onLoad?.(primary, signal);
    if (this.#options.primaryToSecondary !== undefined) this.#mapping?.nameSecondaries(primary);
    if (!this.#isBounded || this.#mapping === undefined) return;
    await this.view.load(this.#mapping.secondariesOf(primary), { holder: keyOf(primary.metadata), signal });
  }

  /** Whether the primaries name its objects. */
  get isNamed(): boolean {
    return this.#options.primaryToSecondary !== undefined;
  }

  /** Names the objects of these primaries again whose names follow from other secondaries; returns those of which the names changed. */
  nameAgain(primaries: Iterable<ObjectKey>): readonly ObjectKey[] {
    return this.#mapping?.nameAgain(primaries) ?? [];
  }

  release(primary: ObjectKey): void {
    if (this.#isBounded) this.view.release(primary);
  }

  onPrimaryChange(change: ResourceChange): void {
    if (change.kind === "deleted") this.#lastSeen.release(change.key);
    this.#mapping?.notePrimary(change);
  }

  get #isBounded(): boolean {
    return this.#options.request.maxCachedObjects !== undefined;
  }

  #onChange(change: ResourceChange): void {
    const mapping = this.#mapping;
    if (mapping === undefined) return;
    const { key, object, old, isInitial, madeFor = "" } = change;
    // Whoever the object pointed to before is concerned, too.
    const before = old === undefined ? [] : mapping.primariesOf(key, old);
    const primaries = new Set([...mapping.primariesOf(key, object), ...before]);
    this.#context?.noteSecondaries?.(primaries);
    primaries.delete(madeFor as ObjectKey);
    if (change.written !== undefined) this.onWritten?.(change, primaries);
    this.#noteLastSeen(change, primaries);
    if (primaries.size === 0 || !this.#passes(change)) return;
    const { request, dependentOf } = this.#options;
    const dependent = dependentOf?.(object);
    const cause = { type: request.definition.kind, object: key, isInitial };
    this.#context?.notify(primaries, dependent === undefined ? cause : { source: dependent, ...cause });
  }

  #noteLastSeen({ kind, key, object }: ResourceChange, primaries: ReadonlySet<ObjectKey>): void {
    if (kind !== "deleted") return this.#lastSeen.delete(key, primaries);
    const known = [...primaries].filter((primary) => this.#context?.primaries.has(primary));
    if (!isEvicted(object)) this.#lastSeen.add(key, object, known);
  }

  #passes({ kind, object, old, isFinalStateUnknown = false }: ResourceChange): boolean {
    if (kind === "deleted") return this.#gate.passesDelete(object, isFinalStateUnknown);
    if (old === undefined) return this.#gate.passesAdd(object);
    // What had to make room cannot be compared any more, and an event must not be lost.
    return isEvicted(old) ? this.#gate.passesGeneric(object) : this.#gate.passesUpdate(object, old);
  }
}
