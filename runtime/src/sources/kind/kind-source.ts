import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import type { Connection } from "../../client/connect/connection.js";
import type { EventSource, EventSourceContext, IndexedPrimaries } from "../event-source.js";
import type { IndexFunction } from "../../cache/object-index.js";
import { OWNER_INDEX } from "../../base/primary-link.js";
import type { ResourceChange, EventFilters } from "../../cache/resource-change.js";
import { ResourceView, type ListOptions } from "../../cache/resource-view.js";
import type { InformerRequest } from "../../watch/shared-informers.js";
import { createEventGate, type EventGate } from "../event-gate.js";
import { HealthRecord } from "../health-record.js";
import { byAnyLink, type PrimaryToSecondaryMapper, type SecondaryToPrimaryMapper } from "../mappers.js";
import { ViewWatch, type Namespaces } from "./view-watch.js";
import type { SourceHealth } from "../../base/health.js";
import { synchronous } from "../../base/promises.js";
import { isEvictedCopy } from "../../cache/bounded-entries.js";

/** Returns the keys of the primaries that a secondary concerns; `primaries` are those that the cache knows. */
export type ContextualMapper<Secondary extends KubernetesObject = KubernetesObject> = (
  secondary: Secondary,
  context: { readonly primaries: IndexedPrimaries },
) => Iterable<ObjectKey>;

/** What a source of one kind does; untyped, for informerSource has the types. */
export interface ViewSourceOptions {
  readonly name: string;
  readonly request: Omit<InformerRequest, "namespace">;
  /** Those of the controller, all, or these. */
  readonly namespaces: "sameAsController" | "all" | readonly string[];
  /**
   * Whom an object concerns: unless given, the primaries that name it in `primaryToSecondary`, or else those that it has as owners or in
   * the annotations of the runtime.
   */
  readonly mapper?: ContextualMapper | undefined;
  readonly primaryToSecondary?: PrimaryToSecondaryMapper | undefined;
  readonly filters?: EventFilters | undefined;
  readonly indexes?: { readonly [name: string]: IndexFunction } | undefined;
  readonly startPriority?: EventSource["startPriority"];
  /** Whether the source is the runtime's own affair, and not found by the type of its objects. */
  readonly isInternal?: boolean;
  /** Names the dependent that an object is of, where several share the source. */
  readonly dependentOf?: (object: KubernetesObject) => string | undefined;
}

const NONE: readonly ObjectKey[] = [];

/** An event source of the objects of one kind, as one controller sees them. */
export class ViewSource implements EventSource<KubernetesObject> {
  readonly name: string;
  readonly type: ResourceDefinition | undefined;
  readonly startPriority;
  readonly view: ResourceView;
  readonly #options: ViewSourceOptions;
  readonly #watch: ViewWatch;
  readonly #gate: EventGate<KubernetesObject>;
  readonly #record: HealthRecord;
  /** What the mapper returned: it is called once for every state, for the index has to remove what it added. */
  readonly #mapped = new WeakMap<KubernetesObject, readonly ObjectKey[]>();
  #context: EventSourceContext | undefined;
  /** Maps if neither the user nor the primaries do. */
  #byLink: SecondaryToPrimaryMapper | undefined;

  constructor(options: ViewSourceOptions) {
    const { name, request, filters, indexes = {}, mapper, primaryToSecondary } = options;
    this.name = name;
    this.type = options.isInternal === true ? undefined : request.definition;
    this.startPriority = options.startPriority ?? "default";
    this.#options = options;
    this.#record = new HealthRecord(name);
    this.#gate = createEventGate(filters, this.#record);
    // What a primary has is told by the secondaries, unless the primary itself tells it. What is left of an object in a bounded cache
    // cannot be mapped any more: the index remembers whom it concerned.
    const isIndexed = primaryToSecondary === undefined || (mapper !== undefined && this.#isBounded);
    const owners = isIndexed ? { [OWNER_INDEX]: (object: KubernetesObject) => this.#mapOnce(object) } : {};
    const isPartial = request.isMetadataOnly === true || request.projection !== undefined;
    this.view = new ResourceView(
      request.definition,
      { ...owners, ...indexes },
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
  get namespaces(): ViewSourceOptions["namespaces"] {
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
    this.#context?.primaries.removeIndex(this.#primaryIndex);
    this.#context = undefined;
    this.#record.stop();
    await this.#watch.stop();
  }

  /** What watches the namespaces of the controller; undefined if this source does not. */
  get following(): ViewWatch | undefined {
    return this.#options.namespaces === "sameAsController" ? this.#watch : undefined;
  }

  secondariesOf(primary: KubernetesObject): readonly KubernetesObject[] {
    return [...this.#keysOf(primary)].flatMap((key) => this.get(key) ?? []);
  }

  get(key: ObjectKey): KubernetesObject | undefined {
    return this.view.get(key)?.object;
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
    if (!this.#isBounded) return;
    await this.view.load(this.#keysOf(primary), { holder: keyOf(primary.metadata), signal });
  }

  release(primary: ObjectKey): void {
    if (this.#isBounded) this.view.release(primary);
  }

  get #isBounded(): boolean {
    return this.#options.request.maxCachedObjects !== undefined;
  }

  #begin(context: EventSourceContext): void {
    if (this.#context !== undefined) return;
    this.#context = context;
    this.#record.start(context.logger);
    const { primaryToSecondary, mapper } = this.#options;
    if (mapper !== undefined) return;
    if (primaryToSecondary === undefined) this.#byLink = byAnyLink({ definition: context.primary });
    else context.primaries.addIndex(this.#primaryIndex, (primary) => this.#secondaryKeysOf(primary));
  }

  get #primaryIndex(): string {
    return `event source ${this.name}`;
  }

  #onChange(change: ResourceChange): void {
    const { key, object, old, isInitial } = change;
    // Whoever the object pointed to before is concerned, too.
    const before = old === undefined ? NONE : this.#primariesOf(key, old);
    const primaries = new Set([...this.#primariesOf(key, object), ...before]);
    if (primaries.size === 0 || !this.#passes(change)) return;
    const { request, dependentOf } = this.#options;
    const dependent = dependentOf?.(object);
    const cause = { type: request.definition.kind, object: key, isInitial };
    this.#context?.notify(primaries, dependent === undefined ? cause : { source: dependent, ...cause });
  }

  #keysOf(primary: KubernetesObject): Iterable<ObjectKey> {
    if (this.#options.primaryToSecondary !== undefined) return this.#secondaryKeysOf(primary);
    return this.view.keysByIndex(OWNER_INDEX, keyOf(primary.metadata));
  }

  #secondaryKeysOf(primary: KubernetesObject): readonly ObjectKey[] {
    const { primaryToSecondary } = this.#options;
    return this.#record.guard("primaryToSecondary", () => keysFrom(primaryToSecondary?.(primary)), NONE);
  }

  #primariesOf(key: ObjectKey, object: KubernetesObject): Iterable<ObjectKey> {
    if (this.#options.mapper !== undefined || this.#byLink !== undefined) {
      const remembered = isEvictedCopy(object) ? this.view.indexValuesOf(OWNER_INDEX, key, object) : undefined;
      return remembered ?? this.#mapOnce(object);
    }
    // The primaries of a secondary are those that name it.
    return this.#context?.primaries.keysByIndex(this.#primaryIndex, key) ?? NONE;
  }

  #passes({ kind, object, old, isFinalStateUnknown = false }: ResourceChange): boolean {
    if (kind === "deleted") return this.#gate.passesDelete(object, isFinalStateUnknown);
    if (old === undefined) return this.#gate.passesAdd(object);
    // What had to make room cannot be compared any more, and an event must not be lost.
    return isEvictedCopy(old) ? this.#gate.passesGeneric(object) : this.#gate.passesUpdate(object, old);
  }

  #mapOnce(object: KubernetesObject): readonly ObjectKey[] {
    const context = this.#context;
    if (context === undefined) return NONE;
    const { mapper } = this.#options;
    // Our own mapper is pure, and cheaper than to remember what it returned for every object.
    if (mapper === undefined) return this.#byLink?.(object) ?? NONE;
    let primaries = this.#mapped.get(object);
    if (primaries === undefined) {
      primaries = this.#record.guard("the mapper", () => keysFrom(mapper(object, context)), NONE);
      this.#mapped.set(object, primaries);
    }
    return primaries;
  }

  #namespacesIn(controller: Namespaces): Namespaces {
    const { namespaces } = this.#options;
    return namespaces === "sameAsController" ? controller : namespaces === "all" ? undefined : namespaces;
  }
}

// The function may have been written without types, and its keys go where nobody expects anything else.
function keysFrom(returned: Iterable<ObjectKey> | undefined): readonly ObjectKey[] {
  const value: unknown = synchronous(returned);
  const isList = typeof value === "object" && value !== null && Symbol.iterator in value;
  if (!isList) throw new TypeError(`it returned ${value === null ? "null" : typeof value}, and not a list of keys`);
  const keys: unknown[] = [...(value as Iterable<unknown>)];
  const other = keys.find((key) => typeof key !== "string");
  if (other === undefined && !keys.includes(undefined)) return keys as ObjectKey[];
  const what = other === null ? "null" : typeof other;
  throw new TypeError(`it returned ${what} among its keys; a key is a string, "namespace/name" or "name"`);
}
