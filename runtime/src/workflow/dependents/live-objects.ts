// Which of the objects that a source knows are those of a dependent.
import { isNewerVersion, keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import {
  DEPENDENT_ITEM,
  DEPENDENT_NAME,
  isControlledByOther,
  isOfOther,
  isOriginal,
  isOwnedBy,
  isWrittenBy,
  namedLinkOf,
  PRIMARY_INDEX,
  provenLinkOf,
  readLink,
} from "../../base/primary-link.js";
import { uidOf, versionOf, type DecodedResource } from "../../base/decoded-resource.js";
import type { DependentSource } from "../../sources/kind/dependent-source.js";
import { deletionOf, hasName, type KubernetesDependent } from "../definition/workflow-definition.js";
import { placeOf } from "../reconcile-notes.js";
import type { FindRun } from "./dependent-reconciler.js";
import { referencedKeyOf } from "./referenced-object.js";

const MOST_REPORTED = 1_000;

/** Where the objects of a dependent are known. */
export type KnownObjects = Omit<DependentSource, "source">;

/** What tells the objects of a dependent from others. */
export interface LiveObjectsOptions {
  readonly definition: KubernetesDependent;
  readonly source: KnownObjects;
  readonly controller: string;
  /** The names that the controller had in earlier versions. */
  readonly formerNames?: readonly string[] | undefined;
}

/** A primary as links name it. */
export interface LinkedPrimary {
  readonly key: ObjectKey;
  readonly uid: string;
}

/** The objects of one dependent, for every primary. */
export class LiveObjects {
  readonly place: string;
  readonly #options: LiveObjectsOptions;
  /** The primaries, by uid, of which unproven links were reported. */
  readonly #reported = new Set<string>();
  readonly #isReadOnly: boolean;
  readonly #isGarbageCollected: boolean;

  constructor(options: LiveObjectsOptions) {
    this.place = placeOf(options.definition);
    this.#options = options;
    this.#isReadOnly = options.definition.mode === "readOnly";
    this.#isGarbageCollected = deletionOf(options.definition) === "garbageCollected";
  }

  /**
   * Returns the object with the key that the dependent states, if it is linked to a primary. There, and only there, a link needs no proof: an
   * earlier version of the operator may have written it.
   */
  tied(primary: KubernetesObject, key: ObjectKey): DecodedResource | undefined {
    const { cache } = this.#options.source;
    const hasLink = (link: string) => cache.isIndexed(this.#linkIndex, link, key);
    const entry = hasLink(provenLinkOf(primary)) || hasLink(namedLinkOf(primary)) ? cache.get(key) : undefined;
    return entry && isControlledByOther(entry.object.metadata, primary.metadata) ? undefined : entry;
  }

  /** Tells whether the link of an object proves that it belongs to a primary. */
  isProven(primary: KubernetesObject, key: ObjectKey): boolean {
    return this.#tiedTo(primary).has(key);
  }

  /** Returns the keys of the objects that name a primary without a proof, and that no dependent states; once for each primary. */
  takeUnproven(primary: KubernetesObject, isTaken: (id: ObjectKey) => boolean): readonly ObjectKey[] {
    const { cache } = this.#options.source;
    const { uid = "" } = primary.metadata;
    const named = cache.keysByIndex(this.#linkIndex, namedLinkOf(primary));
    if (named.size === 0 || this.#reported.has(uid)) return [];
    const unproven = [...named].filter((key) => !isTaken(key));
    if (unproven.length === 0) return [];
    if (this.#reported.size >= MOST_REPORTED) this.#reported.clear();
    this.#reported.add(uid);
    return unproven;
  }

  /** Returns a discovered object in its latest state, by the dependent, or by the item of a bulk dependent. */
  discovered(run: FindRun, item?: string): DecodedResource | undefined {
    const entry = (run.discovered ?? run.notes?.discovered)?.of(this.#options.definition.name, item);
    return entry && this.latest(entry);
  }

  /** Returns what the cache has of an object that was read, or the object as it was read if the watch does not show it. */
  latest(entry: DecodedResource): DecodedResource {
    const known = this.#options.source.cache.get(keyOf(entry.object.metadata));
    const isSame = known !== undefined && uidOf(known) === uidOf(entry);
    return isSame && isNewerVersion(versionOf(known), versionOf(entry)) ? known : entry;
  }

  /**
   * Returns the last states of the objects of this dependent that other clients deleted, the latest first: what a cleanup reads when the objects
   * are gone.
   */
  lastSeen(run: FindRun): readonly KubernetesObject[] {
    const { definition, source, controller, formerNames = [] } = this.#options;
    const all = source.lastSeenOf?.(run.primary) ?? [];
    const byKey = definition.ref && referencedKeyOf(definition, run.primary);
    const isOf = ({ metadata }: KubernetesObject): boolean => {
      if (definition.ref !== undefined) return keyOf(metadata) === byKey;
      const name = metadata.annotations?.[DEPENDENT_NAME];
      if (this.#isReadOnly) return name === undefined || hasName(definition, name);
      const isOwn = hasName(definition, name) && !isOfOther(metadata, run.primary.metadata);
      return isOwn && isOriginal(metadata) !== false && isWrittenBy(metadata, controller, ...formerNames) !== false;
    };
    return all.filter(isOf).sort((a, b) => byAge({ object: a }, { object: b }));
  }

  /** Returns under which key an object is an item of this bulk dependent; undefined if it is none. */
  keyOfItem(primary: KubernetesObject, object: KubernetesObject): string | undefined {
    return itemOf(object) ?? (this.#isReadOnly ? nameIn(primary, object) : undefined);
  }

  /** Returns the keys of what is tied to a primary and does not say as which dependent, since somebody else made it. */
  nameless(primary: KubernetesObject): ObjectKey[] {
    const own = this.#entries(this.#tiedTo(primary)).map(({ object }) => object.metadata);
    return own
      .filter((each) => each.annotations?.[DEPENDENT_NAME] === undefined && !isOfOther(each, primary.metadata))
      .map(keyOf);
  }

  /** Returns the latest object that was written as this dependent and is no item. Throws if there are several that others wrote. */
  single(run: FindRun): DecodedResource | undefined {
    if (this.#options.definition.ref !== undefined) {
      const key = referencedKeyOf(this.#options.definition, run.primary);
      return key === undefined ? undefined : this.#options.source.cache.get(key);
    }
    const discovered = this.discovered(run);
    if (discovered !== undefined) return discovered;
    const all = this.#ownOf(run);
    if (!this.#isReadOnly) return all.filter(({ object }) => itemOf(object) === undefined).sort(byAge)[0];
    if (all.length <= 1) return all[0];
    const { resource, name } = this.#options.definition;
    const names = all.map(({ object }) => keyOf(object.metadata)).join(", ");
    throw new Error(
      `${all.length} ${resource.plural} belong to its primary (${names}), and dependent "${name}" is one; limit it by a labelSelector or ` +
        "a fieldSelector, or make it a bulk dependent",
    );
  }

  /** Returns the items by their keys; those that somebody else wrote by their names. */
  items(run: FindRun): ReadonlyMap<string, DecodedResource> {
    const items = new Map<string, DecodedResource>();
    const wanted = new Map<string, DecodedResource>();
    for (const entry of this.#ownOf(run)) {
      // An object that is wanted under another key in this reconcile is that item now.
      const wish = run.notes?.wishFor(this.place, keyOf(entry.object.metadata));
      if (wish?.item !== undefined) {
        wanted.set(wish.item, entry);
        continue;
      }
      const key = this.keyOfItem(run.primary, entry.object);
      if (key === undefined) continue;
      const other = items.get(key);
      // The latest stands for its item; an older one with another name is a leftover.
      if (other === undefined || byAge(entry, other) < 0) items.set(key, entry);
    }
    for (const [key, entry] of wanted) items.set(key, entry);
    for (const [key, entry] of (run.discovered ?? run.notes?.discovered)?.itemsOf(this.#options.definition.name) ?? [])
      items.set(key, this.latest(entry));
    return items;
  }

  /** Returns the objects of the controller that are tied to a primary and not taken, with the names of the dependents that they were written as. */
  leftovers(
    primary: KubernetesObject,
    isTaken: (id: ObjectKey) => boolean,
  ): readonly { readonly name: string; readonly live: KubernetesObject }[] {
    const { controller, formerNames = [] } = this.#options;
    const { metadata } = primary;
    // Nearly all: they are not read, which would parse them.
    const unwanted = [...this.#tiedTo(primary)].filter((key) => !isTaken(key));
    return this.#entries(unwanted).flatMap((entry) => {
      const { metadata: live } = entry.object;
      const name = live.annotations?.[DEPENDENT_NAME];
      const isOwn = !isOfOther(live, metadata) && isWrittenBy(live, controller, ...formerNames) === true;
      const isLeft = isOwn && this.#isGenuine(entry);
      return isLeft && name !== undefined ? { name, live: entry.object } : [];
    });
  }

  /** Returns the primaries that objects of this dependent are linked to with proof, but for those that are known. */
  linkedPrimaries(isKnown: (key: ObjectKey, uid: string) => boolean): readonly LinkedPrimary[] {
    const { controller, formerNames = [], source, definition } = this.#options;
    const isOwn = ({ object: { metadata } }: DecodedResource) =>
      hasName(definition, metadata.annotations?.[DEPENDENT_NAME]) &&
      isWrittenBy(metadata, controller, ...formerNames) === true &&
      isOriginal(metadata) !== false;
    return [...source.cache.valuesOfIndex(this.#linkIndex)].flatMap((value) => {
      // A mapper of the user gives keys alone, which prove nothing.
      const link = value.includes(" ") ? readLink(value) : { key: value as ObjectKey, uid: "" };
      if (link.uid === "" || isKnown(link.key, link.uid)) return [];
      return source.cache.byIndex(this.#linkIndex, value).some(isOwn) ? link : [];
    });
  }

  #ownOf({ primary, notes }: FindRun): readonly DecodedResource[] {
    if (this.#isReadOnly) return this.#secondariesOf(primary);
    const { controller, formerNames = [], definition } = this.#options;
    const { name } = definition;
    return this.#entries(this.#tiedTo(primary)).filter((entry) => {
      const { metadata } = entry.object;
      // An object that another dependent wants in this reconcile is no longer one of this dependent.
      const wanting = notes?.wishFor(this.place, keyOf(metadata))?.dependent ?? name;
      const isNamed = wanting === name && hasName(definition, metadata.annotations?.[DEPENDENT_NAME]);
      // An earlier version of the operator may have linked it by annotations: then nobody else deletes it with the primary.
      const isCleanup = primary.metadata.deletionTimestamp !== undefined;
      const isLinked = !this.#isGarbageCollected || isCleanup || isOwnedBy(metadata, primary.metadata);
      const isOwn = isNamed && isLinked && !isOfOther(metadata, primary.metadata);
      // A watch of the user may show objects of which somebody took the label off.
      return isOwn && isWrittenBy(metadata, controller, ...formerNames) !== false && this.#isGenuine(entry);
    });
  }

  // A copy that somebody made of an object has its annotations, and another name. Earlier versions did not write the name: only the objects
  // that they applied have managed fields, as long as nobody strips these.
  #isGenuine({ object, owned }: DecodedResource): boolean {
    const { serverSideApply = true } = this.#options.definition;
    return (
      isOriginal(object.metadata) ??
      (!serverSideApply || owned?.some(({ isFormer }) => isFormer === undefined) === true)
    );
  }

  // Objects that other dependents made of the same kind are theirs.
  #secondariesOf(primary: KubernetesObject): DecodedResource[] {
    const { definition, source } = this.#options;
    const all: readonly DecodedResource[] =
      source.secondariesOf?.(primary).map((object) => ({ object })) ?? this.#entries([...this.#tiedTo(primary)].sort());
    const nameOf = ({ metadata }: KubernetesObject) => metadata.annotations?.[DEPENDENT_NAME] ?? definition.name;
    return all.filter(({ object }) => hasName(definition, nameOf(object)));
  }

  #entries(keys: Iterable<ObjectKey>): DecodedResource[] {
    return [...keys].flatMap((key) => this.#options.source.cache.get(key) ?? []);
  }

  #tiedTo(primary: KubernetesObject): ReadonlySet<ObjectKey> {
    return this.#options.source.cache.keysByIndex(this.#linkIndex, provenLinkOf(primary));
  }

  get #linkIndex(): string {
    return this.#options.source.linkIndex ?? PRIMARY_INDEX;
  }
}

function itemOf({ metadata }: KubernetesObject): string | undefined {
  return metadata.annotations?.[DEPENDENT_ITEM];
}

// Somebody else made it: its name is all that tells it from the others.
function nameIn(primary: KubernetesObject, { metadata }: KubernetesObject): string {
  return metadata.namespace === primary.metadata.namespace ? metadata.name : keyOf(metadata);
}

function byAge({ object: a }: DecodedResource, { object: b }: DecodedResource): number {
  const [first, second] = [a, b].map(({ metadata }) => metadata.creationTimestamp ?? "");
  if (first !== second) return first! < second! ? 1 : -1;
  return keyOf(a.metadata) < keyOf(b.metadata) ? -1 : 1;
}
