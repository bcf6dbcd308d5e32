import { keyFrom, keyOf, type KubernetesObject, type ObjectKey, type ObjectRef } from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import type { Connection } from "../../client/connect/connection.js";
import type { EventSource, EventSourceContext } from "../event-source.js";
import type { IndexFunction } from "../../cache/object-index.js";
import type { ResourceChange, EventFilters } from "../../cache/resource-change.js";
import { ResourceView, type ListOptions } from "../../cache/resource-view.js";
import type { InformerRequest } from "../../watch/shared-informers.js";
import { createEventGate, type EventGate } from "../event-gate.js";
import { HealthRecord } from "../health-record.js";
import { SecondaryMapping, type MappingOptions } from "./secondary-mapping.js";
import { ViewWatch, type Namespaces } from "./view-watch.js";
import type { SourceHealth } from "../../base/health.js";
import { isEvicted } from "../../cache/bounded-objects.js";

/** What a source of one kind does; untyped, for informerSource has the types. */
export interface KindSourceOptions extends MappingOptions {
  readonly name: string;
  readonly request: Omit<InformerRequest, "namespace">;
  /** Those of the controller, all, or these. */
  readonly namespaces: "sameAsController" | "all" | readonly string[];
  readonly filters?: EventFilters | undefined;
  readonly indexes?: { readonly [name: string]: IndexFunction } | undefined;
  readonly startPriority?: EventSource["startPriority"];
  /** Whether the source is the runtime's own: nobody finds it by the type of its objects, or reads them. */
  readonly isInternal?: boolean;
  /** Names the dependent that an object is of, where several share the source. */
  readonly dependentOf?: (object: KubernetesObject) => string | undefined;
  /** Whether the objects are the primaries themselves, whose changes are no matter of a mapping. */
  readonly isOfPrimaries?: boolean;
}

/** An event source of the objects of one kind, as one controller sees them. */
export class KindSource implements EventSource<KubernetesObject> {
  readonly name: string;
  readonly type: ResourceDefinition | undefined;
  readonly startPriority;
  readonly view: ResourceView;
  readonly #options: KindSourceOptions;
  readonly #watch: ViewWatch;
  readonly #gate: EventGate<KubernetesObject>;
  readonly #record: HealthRecord;
  readonly #mapping: SecondaryMapping | undefined;
  readonly #listeners = new Set<(change: ResourceChange) => void>();
  #context: EventSourceContext | undefined;

  constructor(options: KindSourceOptions) {
    const { name, request, filters, indexes = {}, mapper, primaryToSecondary } = options;
    this.name = name;
    this.type = options.isInternal === true || options.isOfPrimaries === true ? undefined : request.definition;
    this.startPriority = options.startPriority ?? "default";
    this.#options = options;
    this.#record = new HealthRecord(name);
    this.#gate = createEventGate(filters, this.#record);
    const mapped = { name, mapper, primaryToSecondary, record: this.#record, isBounded: this.#isBounded };
    this.#mapping = options.isOfPrimaries === true ? undefined : new SecondaryMapping(mapped);
    const isPartial = request.isMetadataOnly === true || request.projection !== undefined;
    this.view = new ResourceView(
      request.definition,
      { ...this.#mapping?.indexes, ...indexes },
      {
        isPartial,
        onIndexFailure: (...failure) => this.#record.noteIndex(...failure),
      },
    );
    this.#watch = new ViewWatch({ view: this.view, request, onChange: (change) => this.#onChange(change) });
  }

  get client(): ApiClient | undefined {
    return this.#watch.client;
  }

  /** The cluster that is watched, if it is another one than the operator's. */
  get connection(): Connection | undefined {
    return this.#options.request.connection;
  }

  /** The namespaces that are watched. */
  get namespaces(): KindSourceOptions["namespaces"] {
    return this.#options.namespaces;
  }

  /** Unhealthy if the watch or a function of the user fails. */
  get health(): SourceHealth {
    const { health } = this.#watch;
    return health.status === "healthy" ? this.#record.health : health;
  }

  async start(context: EventSourceContext): Promise<void> {
    this.#begin(context);
    await this.#watch.start(context.informers, this.#namespacesIn(context.namespaces));
  }

  /** Starts as `start` does, but throws as soon as an attempt fails; further attempts are made all the same. */
  async startOrThrow(context: EventSourceContext): Promise<void> {
    this.#begin(context);
    await this.#watch.startOrThrow(context.informers, this.#namespacesIn(context.namespaces));
  }

  async stop(): Promise<void> {
    this.#mapping?.end();
    this.#context = undefined;
    this.#record.stop();
    await this.#watch.stop();
  }

  /** What watches the namespaces of the controller; undefined if this source does not. */
  get following(): ViewWatch | undefined {
    return this.#options.namespaces === "sameAsController" ? this.#watch : undefined;
  }

  secondariesOf(primary: KubernetesObject): readonly KubernetesObject[] {
    if (this.#mapping === undefined || this.#options.isInternal === true) return [];
    return [...this.#mapping.secondariesOf(primary)].flatMap((key) => this.get(key) ?? []);
  }

  get(ref: ObjectRef | ObjectKey): KubernetesObject | undefined {
    return this.view.get(keyFrom(ref))?.object;
  }

  /** Returns the objects for which an index function of the source gave `value`. */
  byIndex(index: string, value: string): readonly KubernetesObject[] {
    return this.view.byIndex(index, value).map(({ object }) => object);
  }

  /** Returns the objects of a namespace, or of all, that fulfil a condition. */
  list(options?: ListOptions): readonly KubernetesObject[] {
    return this.view.list(options).map(({ object }) => object);
  }

  async load(primary: KubernetesObject, signal: AbortSignal): Promise<void> {
    if (this.#options.primaryToSecondary !== undefined) this.#mapping?.nameSecondaries(primary);
    if (!this.#isBounded || this.#mapping === undefined) return;
    await this.view.load(this.#mapping.secondariesOf(primary), { holder: keyOf(primary.metadata), signal });
  }

  release(primary: ObjectKey): void {
    if (this.#isBounded) this.view.release(primary);
  }

  /** Calls `listener` for every change that is not the controller's own, before any filter. */
  onChange(listener: (change: ResourceChange) => void): void {
    this.#listeners.add(listener);
  }

  onPrimaryChange(change: ResourceChange): void {
    this.#mapping?.notePrimary(change);
  }

  get #isBounded(): boolean {
    return this.#options.request.maxCachedObjects !== undefined;
  }

  #begin(context: EventSourceContext): void {
    if (this.#context !== undefined) return;
    this.#context = context;
    this.#record.start(context.logger);
    this.#mapping?.begin(this.view, context);
  }

  #onChange(change: ResourceChange): void {
    for (const listener of this.#listeners) listener(change);
    if (this.#mapping === undefined) return;
    const { kind, key, object, old, isInitial } = change;
    // Whoever the object pointed to before is concerned, too.
    const before = old === undefined ? [] : this.#mapping.primariesOf(key, old);
    const primaries = new Set([...this.#mapping.primariesOf(key, object), ...before]);
    if (kind === "deleted") this.#mapping.forget(key);
    if (primaries.size === 0 || !this.#passes(change)) return;
    const { request, dependentOf } = this.#options;
    const dependent = dependentOf?.(object);
    const cause = { type: request.definition.kind, object: key, isInitial };
    this.#context?.notify(primaries, dependent === undefined ? cause : { source: dependent, ...cause });
  }

  #passes({ kind, object, old, isFinalStateUnknown = false }: ResourceChange): boolean {
    if (kind === "deleted") return this.#gate.passesDelete(object, isFinalStateUnknown);
    if (old === undefined) return this.#gate.passesAdd(object);
    // What had to make room cannot be compared any more, and an event must not be lost.
    return isEvicted(old) ? this.#gate.passesGeneric(object) : this.#gate.passesUpdate(object, old);
  }

  #namespacesIn(controller: Namespaces): Namespaces {
    const { namespaces } = this.#options;
    return namespaces === "sameAsController" ? controller : namespaces === "all" ? undefined : namespaces;
  }
}
