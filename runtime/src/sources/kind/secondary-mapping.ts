// Which primaries an object concerns, and the reverse: by a mapper of the user, by what the primaries name, or by the links of dependents.
import { keyOf, refOfKey, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import { linksOf, PRIMARY_INDEX, provenLinkOf, readLink } from "../../base/primary-link.js";
import { synchronous } from "../../base/promises.js";
import { uidOf } from "../../base/decoded-resource.js";
import { isEvicted } from "../../cache/bounded-objects.js";
import { ObjectIndex } from "../../cache/object-index.js";
import type { ResourceChange } from "../../cache/resource-change.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { EventSourceContext } from "../event-source.js";
import type { HealthRecord } from "../health-record.js";
import { checkedKeys, typeNameOf, type MapperContext } from "../mappers.js";
import type { KindSourceOptions } from "./kind-source.js";
import { ALL_READ, createPrimaryReads, isReconciledFor } from "./primary-reads.js";

/** Returns the keys of the primaries that a secondary concerns; `primaries` are those that the cache knows. */
export type ContextualMapper<Secondary extends KubernetesObject = KubernetesObject, Primary = KubernetesObject> = (
  secondary: Secondary,
  context: MapperContext<string, Primary>,
) => Iterable<ObjectKey> & object;

/** What a mapper returned for a state of an object, and what it read of the primaries for that. */
interface Mapped {
  readonly primaries: readonly ObjectKey[];
  readonly reads: readonly string[];
}

interface MappingParts {
  readonly view: ResourceView;
  readonly context: EventSourceContext;
  readonly record: HealthRecord;
}

/** The index of the view by what the mapper of an object read of the primaries. */
export const READ_INDEX = "reads of primaries";

const NONE: readonly ObjectKey[] = [];
// So many known objects say enough of what a mapper does.
const MOST_PROBES = 20;
const MOST_PROBED = 1_000;
// So that objects times primaries are no load while every primary gets a status.
const OWN_WRITES_MS = 5_000;

/** The mapping of one event source, from its start to its stop. */
export class SecondaryMapping {
  readonly #options: KindSourceOptions;
  readonly #parts: MappingParts;
  readonly #reader: ReturnType<typeof createPrimaryReads>;
  /** A mapper is asked once for each state of an object, for an index has to remove what it added. */
  readonly #mapped = new WeakMap<KubernetesObject, Mapped>();
  /** Whether the mapper has looked at primaries for any object. */
  #isContextual = false;
  /** The reads whose result may have changed since. */
  readonly #stale = new Set<string>();
  /** The primaries that made them stale, and whether each is reconciled for that anyway. */
  readonly #changed = new Map<ObjectKey, boolean>();
  /** Cancels what makes the reads of all primaries stale for own writes. */
  #cancelSoon: (() => void) | undefined;
  /** The states of primaries for which that was done. */
  readonly #seen = new WeakSet<KubernetesObject>();
  /** What primaries named in their last reconcile, where the index of the primaries does not know it. */
  readonly #named = new Map<ObjectKey, readonly ObjectKey[]>();
  /** The primaries by what they named. */
  readonly #namedBy = new ObjectIndex(() => NONE);
  /** The primaries whose names follow from other secondaries. */
  readonly #followers = new Set<ObjectKey>();
  /** The primary whose objects are being named: what it named before is what its function may read of this source. */
  #naming: ObjectKey | undefined;

  constructor(options: KindSourceOptions, parts: MappingParts) {
    const { primaries } = parts.context;
    this.#options = options;
    this.#reader = createPrimaryReads(primaries);
    this.#parts = parts;
    if (options.primaryToSecondary !== undefined && options.mapper === undefined)
      // An index has to find under the same keys what it added, so that it has only what follows from the primary alone.
      primaries.addIndex(this.#primaryIndex, (object) => {
        const { keys, isFollowing } = this.#name(object);
        return isFollowing ? NONE : keys;
      });
  }

  end(): void {
    this.#cancelSoon?.();
    this.#parts.context.primaries.removeIndex(this.#primaryIndex);
  }

  /** Returns the values under which the view indexes an object: its links, or the keys of the primaries that the mapper returns. */
  indexedOf(object: KubernetesObject): readonly string[] {
    // Our own mapper is pure, and cheaper than to remember what it returned for every object.
    return this.#options.mapper === undefined ? this.#linksOf(object) : this.#mapOnce(object).primaries;
  }

  // If neither a mapper nor the primaries say whom an object concerns, its links do.
  #linksOf(object: KubernetesObject): readonly string[] {
    const { primary, proofKey } = this.#parts.context;
    const { namespaces, request, isExclusive = false } = this.#options;
    const isElsewhere = request.connection !== undefined;
    const stated = typeof namespaces === "object" ? namespaces : undefined;
    return linksOf(object, {
      primary,
      isElsewhere,
      isExclusive,
      namespaces: stated,
      ...(proofKey && { key: proofKey }),
    });
  }

  /** Returns the primaries that links prove. */
  #linkedTo(links: readonly string[]): readonly ObjectKey[] {
    const { primaries } = this.#parts.context;
    return links.flatMap((link) => {
      const { key, uid } = readLink(link);
      const known = uidOf(primaries.get(key));
      return uid !== "" && (known === undefined || known === uid) ? key : [];
    });
  }

  /** Returns what the mapper of an object read of the primaries, under which the view indexes it, too. */
  readsOf(object: KubernetesObject): readonly string[] {
    return this.#mapOnce(object).reads;
  }

  secondariesOf(primary: KubernetesObject): Iterable<ObjectKey> {
    if (this.#naming === keyOf(primary.metadata)) return this.#named.get(this.#naming) ?? NONE;
    if (this.#options.primaryToSecondary !== undefined) return this.nameSecondaries(primary);
    const key = keyOf(primary.metadata);
    if (this.#isContextual) {
      this.#noteOwnWrite(key);
      this.#mapStale();
    }
    return this.#parts.view.keysByIndex(
      PRIMARY_INDEX,
      this.#options.mapper === undefined ? provenLinkOf(primary) : key,
    );
  }

  /** Returns the keys of the objects that a primary names now, and remembers them: what it names may depend on more than its own state. */
  nameSecondaries(primary: KubernetesObject): readonly ObjectKey[] {
    const { keys: named, isFollowing } = this.#name(primary);
    if (this.#options.mapper !== undefined) return named;
    const { primaries } = this.#parts.context;
    const key = keyOf(primary.metadata);
    if (isFollowing && primaries.has(key)) this.#followers.add(key);
    else this.#followers.delete(key);
    const isUnknown = (each: ObjectKey) => !primaries.keysByIndex(this.#primaryIndex, each).has(key);
    this.#setNamed(key, primaries.has(key) ? named.filter(isUnknown) : NONE);
    return named;
  }

  /** Names the objects of these primaries again whose names follow from other secondaries; returns those of which the names changed. */
  nameAgain(keys: Iterable<ObjectKey>): readonly ObjectKey[] {
    if (this.#followers.size === 0) return NONE;
    return [...keys].filter((key) => {
      const primary = this.#followers.has(key) ? this.#parts.context.primaries.get(key)?.object : undefined;
      if (primary === undefined || this.#naming === key) return false;
      const before = this.#named.get(key) ?? NONE;
      this.nameSecondaries(primary);
      const after = this.#named.get(key) ?? NONE;
      return before.length !== after.length || before.some((each, index) => each !== after[index]);
    });
  }

  /**
   * Tells whether the mapper maps the objects of a namespace to primaries of that namespace alone, which only the mapper knows: it is called
   * with copies of known objects, as if these were there. False if that shows nothing.
   */
  staysWithin(namespace: string): boolean {
    const { view } = this.#parts;
    const { apiVersion, kind } = view.definition;
    const probes: KubernetesObject[] = [{ apiVersion, kind, metadata: { name: "any", namespace } }];
    let looks = 0;
    for (const key of view.keys()) {
      if (++looks > MOST_PROBED || probes.length > MOST_PROBES) break;
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
      return keysFrom(this.#options.mapper?.(object, this.#reader.context));
    } catch {
      return NONE;
    }
  }

  primariesOf(key: ObjectKey, object: KubernetesObject): Iterable<ObjectKey> {
    const { context, view } = this.#parts;
    const { mapper, primaryToSecondary } = this.#options;
    if (mapper === undefined && primaryToSecondary !== undefined)
      return [...context.primaries.keysByIndex(this.#primaryIndex, key), ...(this.#namedBy.keysOf(key) ?? NONE)];
    const remembered = isEvicted(object) ? view.indexFor(PRIMARY_INDEX, key)?.valuesOf(object) : undefined;
    if (mapper === undefined) return this.#linkedTo(remembered ?? this.#linksOf(object));
    if (remembered !== undefined) return remembered as readonly ObjectKey[];
    this.#mapStale();
    const { primaries, reads } = this.#mapOnce(object);
    // A state that is gone was not mapped again when the primaries changed.
    const isGone = reads.length > 0 && view.get(key)?.object !== object;
    return isGone ? [...primaries, ...this.#map(object).primaries] : primaries;
  }

  /** Takes a change of a primary: the objects whose mapper looked at it are mapped again. */
  notePrimary(change: ResourceChange): void {
    const { key, kind, object, old } = change;
    if (kind === "deleted") {
      this.#setNamed(key, NONE);
      this.#followers.delete(key);
    } else if (this.#followers.has(key)) this.nameSecondaries(object);
    if (!this.#isContextual) return;
    if (this.#stale.size === 0) queueMicrotask(() => this.#mapStale());
    const isOwn = change.madeFor === key;
    this.#makeStale(key, [object, old], !isOwn && isReconciledFor(change));
    if (isOwn && kind === "updated") return this.#makeAllStaleSoon();
    this.#stale.add(ALL_READ);
  }

  // A mapper that reads all primaries is not called again for each status that is written.
  #makeAllStaleSoon(): void {
    this.#cancelSoon ??= this.#parts.context.clock.schedule(OWN_WRITES_MS, () => {
      this.#cancelSoon = undefined;
      this.#stale.add(ALL_READ);
      this.#mapStale();
    });
  }

  #setNamed(primary: ObjectKey, named: readonly ObjectKey[]): void {
    this.#namedBy.move(primary, this.#named.get(primary) ?? NONE, named);
    if (named.length === 0) this.#named.delete(primary);
    else this.#named.set(primary, named);
  }

  get #primaryIndex(): string {
    return `event source ${this.#options.name}`;
  }

  /** Returns the keys of the objects that a primary names now. */
  namedBy(primary: KubernetesObject): readonly ObjectKey[] {
    return this.#name(primary).keys;
  }

  /** Calls the function of the user; `isFollowing` tells whether it read other secondaries. */
  #name(primary: KubernetesObject): { readonly keys: readonly ObjectKey[]; readonly isFollowing: boolean } {
    const { primaryToSecondary } = this.#options;
    const { context, record } = this.#parts;
    const before = this.#naming;
    this.#naming = keyOf(primary.metadata);
    let secondary: object | undefined;
    const args = {
      get secondary() {
        return (secondary ??= context.knownSecondaryOf?.(primary) ?? {});
      },
    };
    try {
      const call = () => keysFrom(primaryToSecondary?.(primary, args as never));
      const keys = record.guard("primaryToSecondary", call, NONE, primary);
      return { keys, isFollowing: secondary !== undefined };
    } finally {
      this.#naming = before;
    }
  }

  #mapOnce(object: KubernetesObject): Mapped {
    return this.#mapped.get(object) ?? this.#map(object);
  }

  #map(object: KubernetesObject): Mapped {
    const { mapper } = this.#options;
    const { context } = this.#reader;
    const map = () => keysFrom(mapper?.(object, context));
    const call = () => this.#parts.record.guard("the mapper", map, NONE, object);
    const { result: primaries, reads } = this.#reader.record(call);
    const mapped = { primaries, reads };
    this.#isContextual ||= reads.length > 0;
    this.#mapped.set(object, mapped);
    return mapped;
  }

  #makeStale(key: ObjectKey, states: readonly (KubernetesObject | undefined)[], isReconciled: boolean): void {
    for (const state of states) if (state !== undefined) this.#seen.add(state);
    for (const read of this.#reader.readsOf(key, states)) this.#stale.add(read);
    this.#changed.set(key, isReconciled || this.#changed.get(key) === true);
  }

  // Its event may be still to come.
  #noteOwnWrite(key: ObjectKey): void {
    const current = this.#parts.context.primaries.get(key)?.object;
    if (current !== undefined && !this.#seen.has(current)) this.#makeStale(key, [current], true);
  }

  // Many primaries that come in one turn make an object stale once.
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

  /** Maps an object again, unless it had to make room; returns the primaries that it no longer concerns, or did not before. */
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

// The function may have been written without types, and its keys go where nobody expects anything else.
function keysFrom(returned: Iterable<ObjectKey> | undefined): readonly ObjectKey[] {
  const value: unknown = synchronous(returned);
  const isList = typeof value === "object" && value !== null && Symbol.iterator in value;
  if (!isList) throw new TypeError(`it returned ${typeNameOf(value)}, and not a list of keys`);
  return checkedKeys(value as Iterable<unknown>, (type) => {
    return `it returned ${type} among its keys; a key is a string, "namespace/name" or "name"`;
  });
}
