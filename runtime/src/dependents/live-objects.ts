// Finds the objects of a dependent: in the cache, by their link to the primary or by the name in the primary (`ref`). If another client removed
// the label of the controller from an object while no operator ran, only a list without the label selector finds it.
import { isAbsent, isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type ResourceDefinition,
  isNewerVersion,
  isReachable,
  isTerminating,
  keyOf,
  uidOf,
  versionOf,
} from "../base/kubernetes-object.js";
import {
  DEPENDENT_ITEM,
  DEPENDENT_NAME,
  LINK_PROOF,
  PRIMARY_INDEX,
  isControlledByOther,
  isOfOther,
  isOriginal,
  isOwnedBy,
  isWrittenBy,
  linksOf,
  namedLinkOf,
  provenLinkOf,
  readLink,
} from "../base/primary-link.js";
import type { ProofKeys } from "../base/proof-key.js";
import type { ApiClient } from "../client/api-client.js";
import type { KnownObjects } from "../sources/dependent-sources.js";
import {
  type DependentRun,
  type FindRun,
  type LinkedPrimary,
  discoveredIn,
  placeOf,
} from "../workflow/dependent-reconciler.js";
import {
  type KubernetesDependent,
  type ObjectReference,
  deletionOf,
  hasName,
} from "../workflow/workflow-definition.js";

const MOST_REPORTED = 1_000;
const MOST_ASKED = 1_000;
/** How old such a list may be. While the operator runs, the watch shows the removal of a label, and a reconcile restores it. */
const MAX_LIST_AGE_MS = 600_000;

export interface LiveObjectsOptions {
  readonly definition: KubernetesDependent;
  readonly source: KnownObjects;
  readonly controller: string;
  /** The names that the controller had in earlier versions. */
  readonly formerNames?: readonly string[] | undefined;
}

/** Finds the live objects of one dependent, for every primary. */
export class LiveObjects {
  readonly place: string;
  readonly #options: LiveObjectsOptions;
  /** The UIDs of primaries whose unproven links were reported. */
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
   * Returns the object with the key of a desired object, if it is linked to the primary. Only here does a link need no proof, as an earlier
   * version of the operator may have written it.
   */
  linked(primary: KubernetesObject, key: ObjectKey): DecodedResource | undefined {
    const { cache } = this.#options.source;
    const hasLink = (link: string) => cache.isIndexed(this.#linkIndex, link, key);
    const entry = hasLink(provenLinkOf(primary)) || hasLink(namedLinkOf(primary)) ? cache.get(key) : undefined;
    return entry && isControlledByOther(entry.object.metadata, primary.metadata) ? undefined : entry;
  }

  /** Tells whether an object has a proven link to a primary. */
  isProven(primary: KubernetesObject, key: ObjectKey): boolean {
    return this.#linkedTo(primary).has(key);
  }

  /** Returns the keys of objects that name a primary without a proof and are not taken; once for each primary. */
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

  /** Returns the latest state of the discovered object of the dependent or of an item. */
  discovered(run: FindRun, item?: string): DecodedResource | undefined {
    const entry = discoveredIn(run)?.of(this.#options.definition.name, item);
    return entry && this.latest(entry);
  }

  /** Returns the newer state of the cache, or the object as it was read if the watch does not show it. */
  latest(entry: DecodedResource): DecodedResource {
    const known = this.#options.source.cache.get(keyOf(entry.object.metadata));
    const isSame = known !== undefined && uidOf(known) === uidOf(entry);
    return isSame && isNewerVersion(versionOf(known), versionOf(entry)) ? known : entry;
  }

  /**
   * Returns the last states of the objects of this dependent that other clients deleted, the youngest first. Functions that run in a cleanup read
   * them.
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

  /** Returns the key of the item that an object is; undefined if it is none. */
  keyOfItem(primary: KubernetesObject, object: KubernetesObject): string | undefined {
    return itemOf(object) ?? (this.#isReadOnly ? nameIn(primary, object) : undefined);
  }

  /** Returns the keys of linked objects without the name of a dependent, as another client created them. */
  unnamed(primary: KubernetesObject): ObjectKey[] {
    const own = this.#entries(this.#linkedTo(primary)).map(({ object }) => object.metadata);
    return own
      .filter((each) => each.annotations?.[DEPENDENT_NAME] === undefined && !isOfOther(each, primary.metadata))
      .map(keyOf);
  }

  /** Returns the youngest object of the dependent that is no item. Throws if there are several objects of a read-only dependent. */
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
      `dependent "${name}" must have one ${resource.kind}, but its primary has ${all.length} (${names}); add a labelSelector or ` +
        "fieldSelector, or make it a bulk dependent",
    );
  }

  /** Returns the items by their keys; those of a read-only dependent by their names. */
  items(run: FindRun): ReadonlyMap<string, DecodedResource> {
    const items = new Map<string, DecodedResource>();
    const claimed = new Map<string, DecodedResource>();
    for (const entry of this.#ownOf(run)) {
      // An object that is claimed under another key in this reconcile is that item now.
      const claim = run.reconcile?.notes.claimOf(this.place, keyOf(entry.object.metadata));
      if (claim?.item !== undefined) {
        claimed.set(claim.item, entry);
        continue;
      }
      const key = this.keyOfItem(run.primary, entry.object);
      if (key === undefined) continue;
      const other = items.get(key);
      // The youngest is the item; older ones with other names are pruned.
      if (other === undefined || byAge(entry, other) < 0) items.set(key, entry);
    }
    for (const [key, entry] of claimed) items.set(key, entry);
    for (const [key, entry] of discoveredIn(run)?.itemsOf(this.#options.definition.name) ?? [])
      items.set(key, this.latest(entry));
    return items;
  }

  /** Returns the objects of the controller that are linked to a primary and not taken, with the names of the dependents that they were written as. */
  leftovers(
    primary: KubernetesObject,
    isTaken: (id: ObjectKey) => boolean,
  ): readonly { readonly name: string; readonly live: KubernetesObject }[] {
    const { controller, formerNames = [] } = this.#options;
    const { metadata } = primary;
    // Nearly all are taken; reading these would parse them.
    const unwanted = [...this.#linkedTo(primary)].filter((key) => !isTaken(key));
    return this.#entries(unwanted).flatMap((entry) => {
      const { metadata: live } = entry.object;
      const name = live.annotations?.[DEPENDENT_NAME];
      const isOwn = !isOfOther(live, metadata) && isWrittenBy(live, controller, ...formerNames) === true;
      const isLeft = isOwn && this.#isGenuine(entry);
      return isLeft && name !== undefined ? { name, live: entry.object } : [];
    });
  }

  /** Returns the primaries that objects of this dependent have a proven link to, without the known ones. */
  linkedPrimaries(isKnown: (key: ObjectKey, uid: string) => boolean): readonly LinkedPrimary[] {
    const { controller, formerNames = [], source, definition } = this.#options;
    const isOwn = ({ object: { metadata } }: DecodedResource) =>
      hasName(definition, metadata.annotations?.[DEPENDENT_NAME]) &&
      isWrittenBy(metadata, controller, ...formerNames) === true &&
      isOriginal(metadata) !== false;
    return [...source.cache.valuesOfIndex(this.#linkIndex)].flatMap((value) => {
      // A mapper of the user returns keys only, which prove nothing.
      const link = value.includes(" ") ? readLink(value) : { key: value as ObjectKey, uid: "" };
      if (link.uid === "" || isKnown(link.key, link.uid)) return [];
      return source.cache.byIndex(this.#linkIndex, value).some(isOwn) ? link : [];
    });
  }

  #ownOf({ primary, reconcile }: FindRun): readonly DecodedResource[] {
    if (this.#isReadOnly) return this.#secondariesOf(primary);
    const { controller, formerNames = [], definition } = this.#options;
    const { name } = definition;
    return this.#entries(this.#linkedTo(primary)).filter((entry) => {
      const { metadata } = entry.object;
      // An object that another dependent claims in this reconcile no longer belongs to this one.
      const claimant = reconcile?.notes.claimOf(this.place, keyOf(metadata))?.dependent ?? name;
      const isNamed = claimant === name && hasName(definition, metadata.annotations?.[DEPENDENT_NAME]);
      // An earlier version of the operator may have linked it by annotations, so that the garbage collector does not delete it with the primary.
      const isCleanup = isTerminating(primary);
      const isLinked = !this.#isGarbageCollected || isCleanup || isOwnedBy(metadata, primary.metadata);
      const isOwn = isNamed && isLinked && !isOfOther(metadata, primary.metadata);
      // An event source of the user may show objects without the label.
      return isOwn && isWrittenBy(metadata, controller, ...formerNames) !== false && this.#isGenuine(entry);
    });
  }

  // A copy of an object has its annotations and another name. Earlier versions did not write the name; of their objects, only the original has
  // managed fields of the controller.
  #isGenuine({ object, owned }: DecodedResource): boolean {
    const { serverSideApply = true } = this.#options.definition;
    return (
      isOriginal(object.metadata) ??
      (!serverSideApply ||
        owned?.some(({ isFormer, subresource }) => isFormer === undefined && subresource === "") === true)
    );
  }

  // Objects of the same kind that were written as another dependent are not read.
  #secondariesOf(primary: KubernetesObject): DecodedResource[] {
    const { definition, source } = this.#options;
    const all: readonly DecodedResource[] =
      source.secondariesOf?.(primary).map((object) => ({ object })) ??
      this.#entries([...this.#linkedTo(primary)].sort());
    const nameOf = ({ metadata }: KubernetesObject) => metadata.annotations?.[DEPENDENT_NAME] ?? definition.name;
    return all.filter(({ object }) => hasName(definition, nameOf(object)));
  }

  #entries(keys: Iterable<ObjectKey>): DecodedResource[] {
    return [...keys].flatMap((key) => this.#options.source.cache.get(key) ?? []);
  }

  #linkedTo(primary: KubernetesObject): ReadonlySet<ObjectKey> {
    return this.#options.source.cache.keysByIndex(this.#linkIndex, provenLinkOf(primary));
  }

  get #linkIndex(): string {
    return this.#options.source.linkIndex ?? PRIMARY_INDEX;
  }
}

function itemOf({ metadata }: KubernetesObject): string | undefined {
  return metadata.annotations?.[DEPENDENT_ITEM];
}

// Another client created it, so its name is its only key.
function nameIn(primary: KubernetesObject, { metadata }: KubernetesObject): string {
  return metadata.namespace === primary.metadata.namespace ? metadata.name : keyOf(metadata);
}

function byAge({ object: a }: DecodedResource, { object: b }: DecodedResource): number {
  const [first, second] = [a, b].map(({ metadata }) => metadata.creationTimestamp ?? "");
  if (first !== second) return first! < second! ? 1 : -1;
  return keyOf(a.metadata) < keyOf(b.metadata) ? -1 : 1;
}

/** A dependent whose object may be named in the primary. */
export interface ReferringDependent {
  readonly name: string;
  readonly ref?: ObjectReference;
  readonly resource: ResourceDefinition;
}

/** Returns the key of the object that a primary names in the `ref` of a dependent; undefined if it names none. */
export function referencedKeyOf(
  { name: dependent, ref, resource }: ReferringDependent,
  primary: KubernetesObject,
): ObjectKey | undefined {
  const read = (part: "name" | "namespace"): string | undefined => {
    const stated: unknown = ref?.[part];
    const value: unknown = typeof stated === "function" ? stated({ primary }) : stated;
    // An empty string in a spec means that there is no object.
    if (value === undefined || value === null || value === "") return undefined;
    if (typeof value === "string") return value;
    throw new TypeError(`ref.${part} of dependent "${dependent}" returned ${typeof value}, and not a text`);
  };
  const name = read("name");
  if (name === undefined) return undefined;
  if (resource.scope === "Cluster") return keyOf({ name });
  const namespace = read("namespace") ?? primary.metadata.namespace;
  return namespace === undefined ? undefined : keyOf({ name, namespace });
}

interface UnlabelledObjectsOptions extends LiveObjectsOptions {
  readonly proofKeys?: ProofKeys | undefined;
  client(): ApiClient;
}

interface Listed {
  readonly begunAt: number;
  /** The objects that the watch does not show, by the links to their primaries. */
  readonly byLink: ReadonlyMap<string, readonly ObjectMeta[]>;
}

/** Tells whether a request failed because the API server does not serve the kind in any version, so that there are no objects of it. */
export async function isUnserved(
  resource: ResourceDefinition,
  { error, client }: { readonly error: unknown; readonly client: ApiClient },
): Promise<boolean> {
  if (!isApiError(error, 404) || isAbsent(error)) return false;
  return !isReachable(resource, await client.servedVersions(resource));
}

/** Finds the objects of one dependent that have a proven link to a primary and no label, for cleanups. */
export class UnlabelledObjects {
  readonly #options: UnlabelledObjectsOptions;
  /** By UID of the primary: when its cleanup requested a fresh list. */
  readonly #asked = new Map<string, number>();
  #last: Listed | undefined;
  #listing: Promise<unknown> | undefined;

  constructor(options: UnlabelledObjectsOptions) {
    this.#options = options;
  }

  /**
   * Returns the metadata of the objects. The cleanups of many primaries share a list; `isFresh` requests, once for each primary, a list that
   * begins after this call, because labels are not restored while `desired` fails.
   */
  async find(run: DependentRun, { isFresh }: { readonly isFresh: boolean }): Promise<readonly ObjectMeta[]> {
    const { primary, context } = run;
    const { uid = "" } = primary.metadata;
    const now = performance.now();
    if (isFresh && !this.#asked.has(uid)) {
      if (this.#asked.size >= MOST_ASKED) this.#asked.clear();
      this.#asked.set(uid, now);
    }
    const after = Math.max(now - MAX_LIST_AGE_MS, this.#asked.get(uid) ?? -Infinity);
    while (this.#last === undefined || this.#last.begunAt < after) {
      context.signal.throwIfAborted();
      if (this.#listing === undefined) await this.#list(run);
      // Another cleanup is listing. If its list fails, this one lists itself.
      else await this.#listing;
    }
    return this.#last.byLink.get(provenLinkOf(primary)) ?? [];
  }

  /** Tells whether an object has a proven link to a primary. */
  async isLinked(run: DependentRun, object: KubernetesObject): Promise<boolean> {
    return (await this.#index(run, [object.metadata])).has(provenLinkOf(run.primary));
  }

  async #list(run: DependentRun): Promise<void> {
    const begunAt = performance.now();
    const listing = this.#listUnseen(run).then((found) => this.#index(run, found));
    this.#listing = listing.then(
      () => {},
      () => {},
    );
    try {
      this.#last = { begunAt, byLink: await listing };
    } finally {
      this.#listing = undefined;
    }
  }

  async #listUnseen(run: DependentRun): Promise<readonly ObjectMeta[]> {
    const { definition, source, client } = this.#options;
    const { resource } = definition;
    const unseen = new Map<string, ObjectMeta>();
    try {
      for (const namespace of this.#namespacesOf(run))
        for await (const page of client().listMetadata(
          { definition: resource },
          { namespace, signal: run.context.signal },
        ))
          for (const { metadata } of page)
            if (this.#isOwn(metadata) && !source.cache.has(keyOf(metadata))) unseen.set(keyOf(metadata), metadata);
    } catch (error) {
      if (!(await isUnserved(resource, { error, client: client() }))) throw error;
    }
    return [...unseen.values()];
  }

  #namespacesOf({ reconcile }: DependentRun): readonly (string | undefined)[] {
    const { definition, source } = this.#options;
    if (definition.resource.scope === "Cluster") return [undefined];
    if (definition.namespace !== undefined) return [definition.namespace];
    const { namespaces = reconcile.namespaces } = source;
    return namespaces === undefined || namespaces === "all" ? [undefined] : namespaces;
  }

  #isOwn(metadata: ObjectMeta): boolean {
    const { definition, controller, formerNames = [] } = this.#options;
    const isNamed = hasName(definition, metadata.annotations?.[DEPENDENT_NAME]);
    // Another controller may have adopted the object, or another client copied it.
    return isNamed && isWrittenBy(metadata, controller, ...formerNames) !== false && isOriginal(metadata) === true;
  }

  async #index(run: DependentRun, found: readonly ObjectMeta[]): Promise<ReadonlyMap<string, readonly ObjectMeta[]>> {
    const { definition, proofKeys } = this.#options;
    const { namespace, resource } = definition;
    const hasProof = found.some(({ annotations }) => annotations?.[LINK_PROOF] !== undefined);
    const key = hasProof ? await proofKeys?.find() : undefined;
    const byLink = new Map<string, ObjectMeta[]>();
    for (const metadata of found) {
      const { apiVersion, kind } = resource;
      // Without owner references: the garbage collector deletes objects that have them.
      const links = linksOf(
        { apiVersion, kind, metadata },
        {
          ...{ primary: run.reconcile.definition, isElsewhere: true, isExclusive: true, key: () => key },
          namespaces: namespace === undefined ? undefined : [namespace],
        },
      );
      for (const link of links) byLink.set(link, [...(byLink.get(link) ?? []), metadata]);
    }
    return byLink;
  }
}
