// Finds the live objects of a dependent in the cache, by their link to the primary or by the name in the primary (`ref`). If another client removed
// the controller label from an object while no operator was running, only a list without a label selector finds it.
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
/** Maximum age of such a list. While the operator runs, the watch reports the removal of a label, and a reconcile restores it. */
const MAX_LIST_AGE_MS = 600_000;

export interface LiveObjectsOptions {
  readonly definition: KubernetesDependent;
  readonly source: KnownObjects;
  readonly controller: string;
  /** The names of the controller in earlier versions. */
  readonly formerNames?: readonly string[] | undefined;
}

/** Finds the live objects of one dependent, for any primary. */
export class LiveObjects {
  readonly place: string;
  readonly #options: LiveObjectsOptions;
  /** UIDs of primaries whose unproven links have been reported. */
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
   * Returns the object with the key of a desired object, if it is linked to the primary. Only in this case, a link needs no proof, because an earlier
   * version of the operator may have written it.
   */
  linked(primary: KubernetesObject, key: ObjectKey): DecodedResource | undefined {
    const { cache } = this.#options.source;
    const hasLink = (link: string) => cache.isIndexed(this.#linkIndex, link, key);
    const entry = hasLink(provenLinkOf(primary)) || hasLink(namedLinkOf(primary)) ? cache.get(key) : undefined;
    return entry && isControlledByOther(entry.object.metadata, primary.metadata) ? undefined : entry;
  }

  /** Returns whether an object has a proven link to a primary. */
  isProven(primary: KubernetesObject, key: ObjectKey): boolean {
    return this.#linkedTo(primary).has(key);
  }

  /** Returns the keys of objects that name a primary without a proof and are not taken. Returns them only once per primary, then an empty list. */
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

  /** Returns the latest state of the discovered object of the dependent or of one of its items. */
  discovered(run: FindRun, item?: string): DecodedResource | undefined {
    const entry = discoveredIn(run)?.of(this.#options.definition.name, item);
    return entry && this.latest(entry);
  }

  /** Returns the newer state from the cache, or the object itself if the watch does not contain it. */
  latest(entry: DecodedResource): DecodedResource {
    const known = this.#options.source.cache.get(keyOf(entry.object.metadata));
    const isSame = known !== undefined && uidOf(known) === uidOf(entry);
    return isSame && isNewerVersion(versionOf(known), versionOf(entry)) ? known : entry;
  }

  /** Returns the last states of this dependent's objects that other clients deleted, newest first, for user functions in a cleanup. */
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

  /** Returns the key of the item that an object represents, or undefined if it is not an item. */
  keyOfItem(primary: KubernetesObject, object: KubernetesObject): string | undefined {
    return itemOf(object) ?? (this.#isReadOnly ? nameIn(primary, object) : undefined);
  }

  /** Returns the keys of linked objects without the name of a dependent, which were created by another client. */
  unnamed(primary: KubernetesObject): ObjectKey[] {
    const own = this.#entries(this.#linkedTo(primary)).map(({ object }) => object.metadata);
    return own
      .filter((each) => each.annotations?.[DEPENDENT_NAME] === undefined && !isOfOther(each, primary.metadata))
      .map(keyOf);
  }

  /** Returns the newest object of the dependent that is not an item. Throws if a read-only dependent has several objects. */
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

  /** Returns the items by key. The items of a read-only dependent are keyed by name. */
  items(run: FindRun): ReadonlyMap<string, DecodedResource> {
    const items = new Map<string, DecodedResource>();
    const claimed = new Map<string, DecodedResource>();
    for (const entry of this.#ownOf(run)) {
      // An object that is claimed under another key in this reconcile now represents that item.
      const claim = run.reconcile?.notes.claimOf(this.place, keyOf(entry.object.metadata));
      if (claim?.item !== undefined) {
        claimed.set(claim.item, entry);
        continue;
      }
      const key = this.keyOfItem(run.primary, entry.object);
      if (key === undefined) continue;
      const other = items.get(key);
      // The newest object is the item. Older ones with other names are pruned.
      if (other === undefined || byAge(entry, other) < 0) items.set(key, entry);
    }
    for (const [key, entry] of claimed) items.set(key, entry);
    for (const [key, entry] of discoveredIn(run)?.itemsOf(this.#options.definition.name) ?? [])
      items.set(key, this.latest(entry));
    return items;
  }

  /** Returns the objects of the controller that are linked to a primary and not taken, with the name of the dependent that each was written for. */
  leftovers(
    primary: KubernetesObject,
    isTaken: (id: ObjectKey) => boolean,
  ): readonly { readonly name: string; readonly live: KubernetesObject }[] {
    const { controller, formerNames = [] } = this.#options;
    const { metadata } = primary;
    // Almost all objects are taken, and reading them would parse them.
    const unwanted = [...this.#linkedTo(primary)].filter((key) => !isTaken(key));
    return this.#entries(unwanted).flatMap((entry) => {
      const { metadata: live } = entry.object;
      const name = live.annotations?.[DEPENDENT_NAME];
      const isOwn = !isOfOther(live, metadata) && isWrittenBy(live, controller, ...formerNames) === true;
      const isLeft = isOwn && this.#isGenuine(entry);
      return isLeft && name !== undefined ? { name, live: entry.object } : [];
    });
  }

  /** Returns the primaries to which objects of this dependent have a proven link, except known ones. */
  linkedPrimaries(isKnown: (key: ObjectKey, uid: string) => boolean): readonly LinkedPrimary[] {
    const { controller, formerNames = [], source, definition } = this.#options;
    const isOwn = ({ object: { metadata } }: DecodedResource) =>
      hasName(definition, metadata.annotations?.[DEPENDENT_NAME]) &&
      isWrittenBy(metadata, controller, ...formerNames) === true &&
      isOriginal(metadata) !== false;
    return [...source.cache.valuesOfIndex(this.#linkIndex)].flatMap((value) => {
      // The mapper of a user returns only keys, which prove nothing.
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
      // An earlier version of the operator may have linked it by annotations, in which case the garbage collector does not delete it with the
      // primary.
      const isCleanup = isTerminating(primary);
      const isLinked = !this.#isGarbageCollected || isCleanup || isOwnedBy(metadata, primary.metadata);
      const isOwn = isNamed && isLinked && !isOfOther(metadata, primary.metadata);
      // An event source of the user may contain objects without the label.
      return isOwn && isWrittenBy(metadata, controller, ...formerNames) !== false && this.#isGenuine(entry);
    });
  }

  // A copy of an object has its annotations but a different name. Earlier versions did not write the name; of their objects, only the original has
  // managed fields of the controller.
  #isGenuine({ object, owned }: DecodedResource): boolean {
    const { serverSideApply = true } = this.#options.definition;
    return (
      isOriginal(object.metadata) ??
      (!serverSideApply ||
        owned?.some(({ isFormer, subresource }) => isFormer === undefined && subresource === "") === true)
    );
  }

  // Skips objects of the same kind that were written for another dependent.
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

// Another client created the object, so its name is the only possible key.
function nameIn(primary: KubernetesObject, { metadata }: KubernetesObject): string {
  return metadata.namespace === primary.metadata.namespace ? metadata.name : keyOf(metadata);
}

function byAge({ object: a }: DecodedResource, { object: b }: DecodedResource): number {
  const [first, second] = [a, b].map(({ metadata }) => metadata.creationTimestamp ?? "");
  if (first !== second) return first! < second! ? 1 : -1;
  return keyOf(a.metadata) < keyOf(b.metadata) ? -1 : 1;
}

/** A dependent whose object may be named in the primary (`ref`). */
export interface ReferringDependent {
  readonly name: string;
  readonly ref?: ObjectReference;
  readonly resource: ResourceDefinition;
}

/** Returns the key of the object that a primary names in the `ref` of a dependent, or undefined if it names none. */
export function referencedKeyOf(
  { name: dependent, ref, resource }: ReferringDependent,
  primary: KubernetesObject,
): ObjectKey | undefined {
  const read = (part: "name" | "namespace"): string | undefined => {
    const stated: unknown = ref?.[part];
    const value: unknown = typeof stated === "function" ? stated({ primary }) : stated;
    // An empty string in a spec counts as no reference.
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
  /** The objects that the watch does not contain, by link to their primary. */
  readonly byLink: ReadonlyMap<string, readonly ObjectMeta[]>;
}

/** Returns whether a request failed because the API server does not serve the kind in any version, so that no objects of it exist. */
export async function isUnserved(
  resource: ResourceDefinition,
  { error, client }: { readonly error: unknown; readonly client: ApiClient },
): Promise<boolean> {
  if (!isApiError(error, 404) || isAbsent(error)) return false;
  return !isReachable(resource, await client.servedVersions(resource));
}

/** Finds objects of one dependent that have a proven link to a primary but lack the label, for cleanups. */
export class UnlabelledObjects {
  readonly #options: UnlabelledObjectsOptions;
  /** When the cleanup of a primary requested a fresh list, by UID of the primary. */
  readonly #asked = new Map<string, number>();
  #last: Listed | undefined;
  #listing: Promise<unknown> | undefined;

  constructor(options: UnlabelledObjectsOptions) {
    this.#options = options;
  }

  /**
   * Returns the metadata of the objects. Cleanups of many primaries share a list. `isFresh` requests, once per primary, a list that starts after this
   * call, because labels are not restored while `desired` fails.
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
      // Another cleanup is already listing. If its list fails, this one lists itself.
      else await this.#listing;
    }
    return this.#last.byLink.get(provenLinkOf(primary)) ?? [];
  }

  /** Returns whether an object has a proven link to a primary. */
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
    // Another controller may have adopted the object, or another client may have copied it.
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
      // Ignores owner references: the garbage collector deletes objects that have them.
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
