// Maps objects of a kind to primaries and back (JOSDK's SecondaryToPrimaryMapper and PrimaryToSecondaryIndex). A source has one of four mappings: by
// links of dependents, by names that primaries provide, by a custom mapper, or by a custom mapper combined with names.
import {
  type KubernetesObject,
  type ObjectKey,
  keyFrom,
  keyOf,
  refOfKey,
  sortedByKey,
  uidOf,
} from "../base/kubernetes-object.js";
import { type LinkReading, PRIMARY_INDEX, linksOf, provenLinkOf, readLink } from "../base/primary-link.js";
import { synchronous } from "../base/user-calls.js";
import { ObjectIndex, type ResourceChange } from "../cache/resource-cache.js";
import type { ResourceView } from "../cache/resource-view.js";
import {
  type EventSourceContext,
  type HealthRecord,
  type IndexedPrimaries,
  checkedKeys,
  typeNameOf,
} from "./event-source.js";
import {
  type ContextualMapper,
  type MapperContext,
  type PrimaryToSecondaryMapper,
  type SecondaryToPrimaryMapper,
  isLocalMapper,
} from "./mappers.js";

/** Reports whether objects in a namespace are relevant. */
export type NamespaceTest = (namespace: string) => boolean;

/** A primary, or any primary of a namespace. */
export type PrimaryOrNamespace = KubernetesObject | { readonly namespace: string | undefined };

/** The mapping of an event source, from its start until its stop. */
export interface Mapping {
  /** Returns the values of `PRIMARY_INDEX` for an object; absent if the view does not have the index. */
  indexedOf?(object: KubernetesObject): readonly string[];
  /** Returns the values of `READ_INDEX` for an object; absent if the view does not have the index. */
  readsOf?(object: KubernetesObject): readonly string[];
  primariesOf(key: ObjectKey, object: KubernetesObject): Iterable<ObjectKey>;
  secondariesOf(primary: KubernetesObject): Iterable<ObjectKey>;
  /** Returns a test for namespaces that may hold secondaries. `covers` reports whether the source watches a namespace. */
  concernOf(primary: PrimaryOrNamespace, covers: NamespaceTest): NamespaceTest;
  /** Determines the names of a primary's secondaries before its reconcile: they may depend on other objects as well. */
  nameSecondaries?(primary: KubernetesObject): void;
  /**
   * Determines the names again for those of these primaries whose names depend on other secondaries. Returns the primaries whose names have changed.
   */
  nameAgain?(primaries: Iterable<ObjectKey>): readonly ObjectKey[];
  onPrimaryChange?(change: ResourceChange): void;
  end?(): void;
}

/** How a source maps its objects: without any function, by links of dependents. */
export interface MappingOptions {
  readonly name: string;
  readonly mapper?: ContextualMapper | undefined;
  readonly primaryToSecondary?: PrimaryToSecondaryMapper<KubernetesObject, never> | undefined;
  /** The `namespace` of a dependent results in a list of namespaces. In listed namespaces, links need no proof. */
  readonly namespaces?: "sameAsController" | "all" | "current" | readonly string[] | undefined;
  /** Whether an object with another controller owner reference is ignored, because no dependent manages it. */
  readonly isExclusive?: boolean;
}

interface MappingParts {
  readonly view: ResourceView;
  readonly context: EventSourceContext;
  readonly record: HealthRecord;
  /** Whether the source watches another cluster, where owner references do not work. */
  readonly isElsewhere: boolean;
}

/** An index of objects by what their mapper has read of the primaries. */
export const READ_INDEX = "reads of primaries";

const NONE: readonly ObjectKey[] = [];

export function createMapping(options: MappingOptions, parts: MappingParts): Mapping {
  const { mapper, primaryToSecondary } = options;
  const names = primaryToSecondary && new SecondaryNames(primaryToSecondary, parts);
  if (mapper === undefined)
    return names === undefined ? new LinkMapping(options, parts) : new NamedMapping(options, parts, names);
  return names === undefined ? new MapperMapping(mapper, parts) : new MapperWithNames(mapper, parts, names);
}

/** Maps by links of dependents; only proven links are used. */
class LinkMapping implements Mapping {
  readonly #parts: MappingParts;
  readonly #reading: LinkReading;

  constructor({ namespaces, isExclusive = false }: MappingOptions, parts: MappingParts) {
    const { primary, proofKey } = parts.context;
    this.#parts = parts;
    this.#reading = {
      primary,
      isElsewhere: parts.isElsewhere,
      isExclusive,
      namespaces: typeof namespaces === "object" ? namespaces : undefined,
      ...(proofKey && { key: proofKey }),
    };
  }

  indexedOf(object: KubernetesObject): readonly string[] {
    return linksOf(object, this.#reading);
  }

  primariesOf(key: ObjectKey, object: KubernetesObject): Iterable<ObjectKey> {
    const { primaries } = this.#parts.context;
    const links = indexedIfEvicted(this.#parts.view, key, object) ?? linksOf(object, this.#reading);
    return links.flatMap((link) => {
      const { key: primary, uid } = readLink(link);
      const known = uidOf(primaries.get(primary));
      return uid !== "" && (known === undefined || known === uid) ? primary : [];
    });
  }

  secondariesOf(primary: KubernetesObject): Iterable<ObjectKey> {
    return this.#parts.view.keysByIndex(PRIMARY_INDEX, provenLinkOf(primary));
  }

  // The step of a dependent in another namespace checks whether that namespace is known.
  concernOf(primary: PrimaryOrNamespace, covers: NamespaceTest): NamespaceTest {
    return isHomeCovered(primary, covers) ? isHomeOf(primary) : () => true;
  }
}

/** Maps by `primaryToSecondary`: primaries provide the names of the objects. */
class NamedMapping implements Mapping {
  readonly #names: SecondaryNames;
  readonly #primaries: IndexedPrimaries;
  readonly #index: string;
  /** Names of the last call per primary, unless the index of primaries has them. */
  readonly #named = new Map<ObjectKey, readonly ObjectKey[]>();
  /** Reverse index of these names. */
  readonly #namedBy = new ObjectIndex(() => NONE);
  /** Primaries whose names depend on other secondaries. */
  readonly #followers = new Set<ObjectKey>();

  constructor({ name }: MappingOptions, { context }: MappingParts, names: SecondaryNames) {
    this.#names = names;
    this.#primaries = context.primaries;
    this.#index = `event source ${name}`;
    // An index has to find an object under the values that it was added with, so it only contains names that depend on nothing but the primary.
    this.#primaries.addIndex(this.#index, (primary) => {
      const { keys, isFollowing } = names.of(primary);
      return isFollowing ? NONE : keys;
    });
  }

  primariesOf(key: ObjectKey): Iterable<ObjectKey> {
    return [...this.#primaries.keysByIndex(this.#index, key), ...(this.#namedBy.keysOf(key) ?? NONE)];
  }

  secondariesOf(primary: KubernetesObject): Iterable<ObjectKey> {
    const key = keyOf(primary.metadata);
    return this.#names.current === key ? (this.#named.get(key) ?? NONE) : this.#name(primary);
  }

  concernOf(primary: PrimaryOrNamespace): NamespaceTest {
    return this.#names.concernOf(primary);
  }

  nameSecondaries(primary: KubernetesObject): void {
    this.#name(primary);
  }

  nameAgain(primaries: Iterable<ObjectKey>): readonly ObjectKey[] {
    if (this.#followers.size === 0) return NONE;
    return [...primaries].filter((key) => {
      const primary = this.#followers.has(key) ? this.#primaries.get(key)?.object : undefined;
      if (primary === undefined || this.#names.current === key) return false;
      const before = this.#named.get(key) ?? NONE;
      this.#name(primary);
      const after = this.#named.get(key) ?? NONE;
      return before.length !== after.length || before.some((each, index) => each !== after[index]);
    });
  }

  onPrimaryChange({ key, kind, object }: ResourceChange): void {
    if (kind === "deleted") {
      this.#remember(key, NONE);
      this.#followers.delete(key);
    } else if (this.#followers.has(key)) this.#name(object);
  }

  end(): void {
    this.#primaries.removeIndex(this.#index);
  }

  /** Determines and stores the keys that a primary currently names. */
  #name(primary: KubernetesObject): readonly ObjectKey[] {
    const { keys: named, isFollowing } = this.#names.of(primary);
    const key = keyOf(primary.metadata);
    const isKnown = this.#primaries.has(key);
    if (isFollowing && isKnown) this.#followers.add(key);
    else this.#followers.delete(key);
    const isIndexed = (each: ObjectKey) => this.#primaries.keysByIndex(this.#index, each).has(key);
    this.#remember(key, isKnown ? named.filter((each) => !isIndexed(each)) : NONE);
    return named;
  }

  #remember(primary: ObjectKey, named: readonly ObjectKey[]): void {
    this.#namedBy.move(primary, this.#named.get(primary) ?? NONE, named);
    if (named.length === 0) this.#named.delete(primary);
    else this.#named.set(primary, named);
  }
}

/** Calls `primaryToSecondary`, which may read secondaries of its primary, including those of this source. */
class SecondaryNames {
  readonly #primaryToSecondary: PrimaryToSecondaryMapper<KubernetesObject, never>;
  readonly #parts: MappingParts;
  /** The primary of the current call. While it runs, this source shows the objects that the primary named before. */
  current: ObjectKey | undefined;

  constructor(primaryToSecondary: PrimaryToSecondaryMapper<KubernetesObject, never>, parts: MappingParts) {
    this.#primaryToSecondary = primaryToSecondary;
    this.#parts = parts;
  }

  /** `isFollowing` reports whether the function has read other secondaries. */
  of(primary: KubernetesObject): { readonly keys: readonly ObjectKey[]; readonly isFollowing: boolean } {
    const { context, record } = this.#parts;
    const before = this.current;
    this.current = keyOf(primary.metadata);
    let secondary: object | undefined;
    const args = {
      get secondary() {
        return (secondary ??= context.knownSecondaryOf?.(primary) ?? {});
      },
    };
    try {
      const call = () => keysFrom(this.#primaryToSecondary(primary, args as never));
      const keys = record.guard("primaryToSecondary", call, NONE, primary);
      return { keys, isFollowing: secondary !== undefined };
    } finally {
      this.current = before;
    }
  }

  concernOf(primary: PrimaryOrNamespace): NamespaceTest {
    if (!("metadata" in primary)) return isHomeOf(primary);
    const named = new Set(this.of(primary).keys.map((key) => refOfKey(key).namespace));
    return (namespace) => named.has(namespace);
  }
}

/** The result of a mapper for a state of an object, and what the mapper has read of the primaries. */
interface Mapped {
  readonly primaries: readonly ObjectKey[];
  readonly reads: readonly string[];
}

// To check whether a mapper stays within a namespace, it is called for copies of at most MAX_PROBES of the first MAX_PROBED objects.
const MAX_PROBES = 20;
const MAX_PROBED = 1_000;
// A mapper that reads all primaries is called again for every object, which is too expensive for each status write.
const OWN_WRITES_MS = 5_000;

/** Maps by a custom mapper, which is called again for an object when primaries that it has read change. */
class MapperMapping implements Mapping {
  readonly #mapper: ContextualMapper;
  readonly #parts: MappingParts;
  readonly #reads: PrimaryReads;
  /** The result per state of an object: an index has to remove exactly what it added. */
  readonly #mapped = new WeakMap<KubernetesObject, Mapped>();
  /** Whether the mapper has read primaries for any object. */
  #isContextual = false;
  /** Reads whose result may have changed. */
  readonly #stale = new Set<string>();
  /** The primaries that made reads stale, and whether each is reconciled for its change anyway. */
  readonly #changed = new Map<ObjectKey, boolean>();
  /** States of primaries that have already made reads stale. */
  readonly #seen = new WeakSet<KubernetesObject>();
  /** Cancels the timer that marks reads of all primaries as stale after own writes. */
  #cancelTimer: (() => void) | undefined;

  constructor(mapper: ContextualMapper, parts: MappingParts) {
    this.#mapper = mapper;
    this.#parts = parts;
    this.#reads = new PrimaryReads(parts.context.primaries);
  }

  indexedOf(object: KubernetesObject): readonly string[] {
    return this.#mapOnce(object).primaries;
  }

  readsOf(object: KubernetesObject): readonly string[] {
    return this.#mapOnce(object).reads;
  }

  primariesOf(key: ObjectKey, object: KubernetesObject): Iterable<ObjectKey> {
    const { view } = this.#parts;
    const indexed = indexedIfEvicted(view, key, object);
    if (indexed !== undefined) return indexed as readonly ObjectKey[];
    this.#mapStale();
    const { primaries, reads } = this.#mapOnce(object);
    // Old states are not mapped again when primaries change.
    const isOld = reads.length > 0 && view.get(key)?.object !== object;
    return isOld ? [...primaries, ...this.#map(object).primaries] : primaries;
  }

  secondariesOf(primary: KubernetesObject): Iterable<ObjectKey> {
    const key = keyOf(primary.metadata);
    if (this.#isContextual) {
      this.#noteOwnWrite(key);
      this.#mapStale();
    }
    return this.#parts.view.keysByIndex(PRIMARY_INDEX, key);
  }

  concernOf(primary: PrimaryOrNamespace, covers: NamespaceTest): NamespaceTest {
    if (!isHomeCovered(primary, covers)) return () => true;
    const isHome = isHomeOf(primary);
    if (isLocalMapper(this.#mapper as SecondaryToPrimaryMapper)) return isHome;
    return (namespace) => isHome(namespace) || !this.#staysWithin(namespace);
  }

  onPrimaryChange(change: ResourceChange): void {
    if (!this.#isContextual) return;
    const { key, kind, object, old } = change;
    if (this.#stale.size === 0) queueMicrotask(() => this.#mapStale());
    const isOwn = change.madeFor === key;
    this.#makeStale(key, [object, old], !isOwn && isReconciledFor(change));
    if (isOwn && kind === "updated") return this.#makeAllStaleLater();
    this.#stale.add(ALL_READ);
  }

  end(): void {
    this.#cancelTimer?.();
  }

  /**
   * Reports whether the mapper maps objects of a namespace only to primaries in the same namespace. It calls the mapper with copies of known objects
   * that are moved to that namespace. False if none of them is mapped to a primary.
   */
  #staysWithin(namespace: string): boolean {
    const { view } = this.#parts;
    const { apiVersion, kind } = view.definition;
    const probes: KubernetesObject[] = [{ apiVersion, kind, metadata: { name: "any", namespace } }];
    let looks = 0;
    for (const key of view.keys()) {
      if (++looks > MAX_PROBED || probes.length > MAX_PROBES) break;
      const object = view.get(key)?.object;
      const primaries = object === undefined ? NONE : this.#mapOnce(object).primaries;
      if (primaries.length === 0) continue;
      if (!primaries.every((each) => refOfKey(each).namespace === object!.metadata.namespace)) return false;
      probes.push({ ...object!, metadata: { ...object!.metadata, namespace } });
    }
    const found = probes.flatMap((probe) => this.#probe(probe));
    return found.length > 0 && found.every((each) => refOfKey(each).namespace === namespace);
  }

  #probe(object: KubernetesObject): readonly ObjectKey[] {
    try {
      return keysFrom(this.#mapper(object, this.#reads.context));
    } catch {
      return NONE;
    }
  }

  #mapOnce(object: KubernetesObject): Mapped {
    return this.#mapped.get(object) ?? this.#map(object);
  }

  #map(object: KubernetesObject): Mapped {
    const map = () => keysFrom(this.#mapper(object, this.#reads.context));
    const call = () => this.#parts.record.guard("the mapper", map, NONE, object);
    const { result: primaries, reads } = this.#reads.record(call);
    const mapped = { primaries, reads };
    this.#isContextual ||= reads.length > 0;
    this.#mapped.set(object, mapped);
    return mapped;
  }

  #makeAllStaleLater(): void {
    this.#cancelTimer ??= this.#parts.context.clock.schedule(OWN_WRITES_MS, () => {
      this.#cancelTimer = undefined;
      this.#stale.add(ALL_READ);
      this.#mapStale();
    });
  }

  #makeStale(key: ObjectKey, states: readonly (KubernetesObject | undefined)[], isReconciled: boolean): void {
    for (const state of states) if (state !== undefined) this.#seen.add(state);
    for (const read of this.#reads.of(key, states)) this.#stale.add(read);
    this.#changed.set(key, isReconciled || this.#changed.get(key) === true);
  }

  // The cache contains an own write before its event arrives.
  #noteOwnWrite(key: ObjectKey): void {
    const current = this.#parts.context.primaries.get(key)?.object;
    if (current !== undefined && !this.#seen.has(current)) this.#makeStale(key, [current], true);
  }

  // Runs once for all primaries that change in one turn of the event loop.
  #mapStale(): void {
    if (this.#stale.size === 0) return;
    const { context, view } = this.#parts;
    const changed = new Map(this.#changed);
    const stale = new Set([...this.#stale].flatMap((read) => [...view.keysByIndex(READ_INDEX, read)]));
    for (const primary of changed.keys()) for (const key of view.keysByIndex(PRIMARY_INDEX, primary)) stale.add(key);
    this.#stale.clear();
    this.#changed.clear();
    for (const [key, primaries] of [...stale].map((key) => [key, this.#mapAgain(key)] as const)) {
      const others = primaries.filter((primary) => changed.get(primary) !== true);
      if (others.length > 0) context.notify(others, { object: key });
    }
  }

  /** Maps an object again, unless it was evicted. Returns the primaries that were added to or removed from its mapping. */
  #mapAgain(key: ObjectKey): readonly ObjectKey[] {
    const { view } = this.#parts;
    const object = view.get(key)?.object;
    const before = object && this.#mapOnce(object);
    if (before === undefined || before.reads.length === 0) return NONE;
    const after = this.#map(object!);
    view.indexFor(PRIMARY_INDEX, key)?.move(key, before.primaries, after.primaries);
    view.indexFor(READ_INDEX, key)?.move(key, before.reads, after.reads);
    const [had, has] = [new Set(before.primaries), new Set(after.primaries)];
    return [...[...had].filter((each) => !has.has(each)), ...[...has].filter((each) => !had.has(each))];
  }
}

/** Maps objects by a custom mapper, and primaries by the names that they provide. */
class MapperWithNames extends MapperMapping {
  readonly #names: SecondaryNames;

  constructor(mapper: ContextualMapper, parts: MappingParts, names: SecondaryNames) {
    super(mapper, parts);
    this.#names = names;
  }

  override secondariesOf(primary: KubernetesObject): Iterable<ObjectKey> {
    return this.#names.current === keyOf(primary.metadata) ? NONE : this.#names.of(primary).keys;
  }

  override concernOf(primary: PrimaryOrNamespace): NamespaceTest {
    return this.#names.concernOf(primary);
  }

  nameSecondaries(primary: KubernetesObject): void {
    this.#names.of(primary);
  }
}

function homeOf(primary: PrimaryOrNamespace): string | undefined {
  return "metadata" in primary ? primary.metadata.namespace : primary.namespace;
}

function isHomeCovered(primary: PrimaryOrNamespace, covers: NamespaceTest): boolean {
  const home = homeOf(primary);
  return home !== undefined && covers(home);
}

/** Returns a test for the primary's own namespace. */
export function isHomeOf(primary: PrimaryOrNamespace): NamespaceTest {
  const home = homeOf(primary);
  return (namespace) => namespace === home;
}

/** Returns the index values of an evicted object. It cannot be mapped again, because most of it is not kept. */
function indexedIfEvicted(view: ResourceView, key: ObjectKey, object: KubernetesObject): readonly string[] | undefined {
  return view.isEvicted(object) ? view.indexFor(PRIMARY_INDEX, key)?.valuesOf(object) : undefined;
}

// The user's function may be untyped. An invalid key would fail later, where its origin is unknown.
function keysFrom(returned: Iterable<ObjectKey> | undefined): readonly ObjectKey[] {
  const value: unknown = synchronous(returned);
  const isList = typeof value === "object" && value !== null && Symbol.iterator in value;
  if (!isList) throw new TypeError(`it returned ${typeNameOf(value)}, and not a list of keys`);
  return checkedKeys(value as Iterable<unknown>, (type) => {
    return `it returned ${type} among its keys; a key is a string, "namespace/name" or "name"`;
  });
}

/** A read of all primaries. */
const ALL_READ = "all";

const NO_READS: readonly string[] = [];
const keyRead = (key: ObjectKey) => `key ${key}`;
const indexRead = (name: string, value: string) => `index ${name} ${value}`;

/** Records what a mapper reads of the primaries, to call it again only if that changes. */
class PrimaryReads {
  /** Provides the primaries. Reads during `record` are recorded. */
  readonly context: MapperContext;
  readonly #known: IndexedPrimaries;
  readonly #indexes = new Set<string>();
  #reads: Set<string> | undefined;

  constructor(known: IndexedPrimaries) {
    this.#known = known;
    const noting = <Result>(read: string, result: Result): Result => {
      this.#reads?.add(read);
      return result;
    };
    const readOfIndex = (name: string, value: string) => {
      this.#indexes.add(name);
      return indexRead(name, value);
    };
    this.context = {
      primaries: {
        get: (ref) => noting(keyRead(keyFrom(ref)), known.get(keyFrom(ref))?.object),
        has: (key) => noting(keyRead(key), known.has(key)),
        keys: () => noting(ALL_READ, known.keys()),
        // Not sorted: a mapper may call it for every object.
        list: (options) => noting(ALL_READ, known.list(options)).map(({ object }) => object),
        keysByIndex: (name, value) => noting(readOfIndex(name, value), known.keysByIndex(name, value)),
        byIndex: (name, value) =>
          sortedByKey(noting(readOfIndex(name, value), known.byIndex(name, value)).map(({ object }) => object)),
      },
    };
  }

  record<Result>(call: () => Result): { readonly result: Result; readonly reads: readonly string[] } {
    const noted = (this.#reads = new Set<string>());
    try {
      const result = call();
      return { result, reads: noted.size === 0 ? NO_READS : [...noted] };
    } finally {
      this.#reads = undefined;
    }
  }

  /** Returns the reads that would find a primary in one of these states, except for reads of all primaries. */
  of(key: ObjectKey, states: readonly (KubernetesObject | undefined)[]): readonly string[] {
    const valuesOf = (name: string) =>
      states.flatMap((state) => (state && this.#known.indexFor(name, key)?.valuesOf(state)) ?? []);
    const byIndex = [...this.#indexes].flatMap((name) => valuesOf(name).map((value) => indexRead(name, value)));
    return [keyRead(key), ...byIndex];
  }
}

// Approximates the filter in the queue, which makes the decision: every change except those of only metadata or status causes a reconcile.
function isReconciledFor({ kind, object, old }: ResourceChange): boolean {
  const generation = old?.metadata.generation;
  return kind !== "updated" || generation === undefined || generation !== object.metadata.generation;
}
