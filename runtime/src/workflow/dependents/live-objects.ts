// Which of the objects that a source knows are those of a dependent.
import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import {
  DEPENDENT_ITEM,
  DEPENDENT_NAME,
  isOriginal,
  isOwnedBy,
  isWrittenBy,
  OWNER_INDEX,
  PRIMARY_NAME,
} from "../../base/primary-link.js";
import type { ResourceView } from "../../cache/resource-view.js";
import type { DecodedResource } from "../../decode/decode-resource.js";
import type { KubernetesDependent } from "../definition/workflow-definition.js";
import type { DependentDriver } from "./driver.js";

/** Where the objects of a dependent are known. */
export interface DependentSource extends Pick<DependentDriver, "activate" | "deactivate"> {
  readonly cache: ResourceView;
  /** The namespaces that it knows, where these are not those of the controller; "all" for all of them. */
  readonly namespaces?: readonly string[] | "all" | undefined;
  /** Returns the keys of the objects that are tied to a primary as dependents are; by the index of owners unless given. */
  tiedTo?(primary: ObjectKey): ReadonlySet<ObjectKey>;
  /** Returns the objects that belong to a primary, whatever tells that; those that are tied to it unless given. */
  secondariesOf?(primary: KubernetesObject): readonly KubernetesObject[];
}

/** What tells the objects of a dependent from others. */
export interface LiveObjectsOptions {
  readonly definition: KubernetesDependent;
  readonly source: DependentSource;
  /** The name of the controller that writes them; any unless given. */
  readonly controller: string | undefined;
}

type IsTaken = (key: ObjectKey) => boolean;

/** The objects of one dependent, for every primary. */
export class LiveObjects {
  readonly #definition: KubernetesDependent;
  readonly #source: DependentSource;
  readonly #controller: string | undefined;

  constructor({ definition, source, controller }: LiveObjectsOptions) {
    this.#definition = definition;
    this.#source = source;
    this.#controller = controller;
  }

  /** Returns the object with a key, if it is tied to a primary. */
  tied({ metadata }: KubernetesObject, key: ObjectKey): DecodedResource | undefined {
    return this.#tiedTo(keyOf(metadata)).has(key) ? this.#source.cache.get(key) : undefined;
  }

  /** Returns what was written as this dependent and is no item; the latest of several. */
  single(primary: KubernetesObject, isTaken: IsTaken): DecodedResource | undefined {
    const own = this.#ownOf(primary, isTaken).filter(({ object }) => itemOf(object) === undefined);
    return own.length > 1 ? own.sort(byAge)[0] : own[0];
  }

  /** Returns the items that were written as this dependent, by their keys. */
  items(primary: KubernetesObject, isTaken: IsTaken): ReadonlyMap<string, DecodedResource> {
    const items = new Map<string, DecodedResource>();
    for (const entry of this.#ownOf(primary, isTaken)) {
      const key = itemOf(entry.object);
      if (key === undefined) continue;
      const other = items.get(key);
      // The latest stands for its item; an older one with another name is a leftover.
      if (other === undefined || byAge(entry, other) < 0) items.set(key, entry);
    }
    return items;
  }

  /** Returns the object that somebody else made for a primary; throws if there are several. */
  readOnly(primary: KubernetesObject): DecodedResource | undefined {
    const all = this.#secondariesOf(primary);
    if (all.length <= 1) return all[0];
    const { resource, name } = this.#definition;
    const names = all.map(({ object }) => keyOf(object.metadata)).join(", ");
    throw new Error(
      `${all.length} ${resource.plural} belong to its primary (${names}), and dependent "${name}" is one; limit it by a labelSelector or ` +
        "a fieldSelector, or make it a bulk dependent",
    );
  }

  /** Returns the objects that somebody else made for a primary, by their names. */
  readOnlyItems(primary: KubernetesObject): ReadonlyMap<string, DecodedResource> {
    const items = new Map<string, DecodedResource>();
    for (const entry of this.#secondariesOf(primary)) {
      const key = itemOf(entry.object) ?? nameIn(primary, entry.object);
      if (!items.has(key)) items.set(key, entry);
    }
    return items;
  }

  /** Returns the objects of the controller that are tied to a primary and meant, whichever dependent they were written as. */
  leftovers(
    { metadata }: KubernetesObject,
    isMeant: (dependent: string, id: ObjectKey) => boolean,
  ): readonly DecodedResource[] {
    const controller = this.#controller;
    if (controller === undefined) return [];
    return [...this.#tiedTo(keyOf(metadata))].flatMap((key) => {
      const entry = this.#source.cache.get(key);
      const live = entry?.object.metadata;
      const name = live?.annotations?.[DEPENDENT_NAME];
      if (live === undefined || name === undefined || !isMeant(name, key)) return [];
      // An owner of the name of the primary may be an earlier one.
      const isTied = isOwnedBy(live, metadata) || live.annotations?.[PRIMARY_NAME] === metadata.name;
      return isTied && isWrittenBy(live, controller) === true && this.#isGenuine(entry!) ? entry! : [];
    });
  }

  #ownOf({ metadata }: KubernetesObject, isTaken: IsTaken): DecodedResource[] {
    const own: DecodedResource[] = [];
    for (const key of this.#tiedTo(keyOf(metadata))) {
      const entry = this.#source.cache.get(key);
      if (entry !== undefined && this.#isOwn(entry) && !isTaken(key)) own.push(entry);
    }
    return own;
  }

  #isOwn(entry: DecodedResource): boolean {
    const { metadata } = entry.object;
    // A watch of the user may show objects of which somebody took the label off.
    const isOurs = this.#controller === undefined || isWrittenBy(metadata, this.#controller) !== false;
    return isOurs && metadata.annotations?.[DEPENDENT_NAME] === this.#definition.name && this.#isGenuine(entry);
  }

  // A copy that somebody made of an object has its annotations, and another name. Earlier versions did not write the name: what they
  // applied is told from its copies by its managed fields, as long as nobody strips these.
  #isGenuine({ object, owned }: DecodedResource): boolean {
    const { serverSideApply = true } = this.#definition;
    return isOriginal(object.metadata) ?? (!serverSideApply || owned !== undefined);
  }

  // What other dependents made of the same kind is theirs.
  #secondariesOf(primary: KubernetesObject): DecodedResource[] {
    const { name } = this.#definition;
    const tied = () => [...this.#tiedTo(keyOf(primary.metadata))].sort();
    const all: readonly DecodedResource[] =
      this.#source.secondariesOf?.(primary).map((object) => ({ object })) ??
      tied().flatMap((key) => this.#source.cache.get(key) ?? []);
    return all.filter(({ object }) => (object.metadata.annotations?.[DEPENDENT_NAME] ?? name) === name);
  }

  #tiedTo(primary: ObjectKey): ReadonlySet<ObjectKey> {
    return this.#source.tiedTo?.(primary) ?? this.#source.cache.keysByIndex(OWNER_INDEX, primary);
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
