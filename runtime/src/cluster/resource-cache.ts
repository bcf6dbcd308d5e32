// What is known of the objects of one kind: the watch as it arrives, overlaid with the answers to our own writes.
//
// Promises: a write is visible to the next read; an older state never replaces a newer one; an object that is gone does not come
// back; a change by somebody else is always reported, our own never (JOSDK's temporary cache and event filter, §2(c), told apart by
// what a write found instead of by windows of versions).
import { keyOf, refOfKey, type KubernetesObject, type ObjectKey, type ObjectRef } from "../base/kubernetes-object.js";
import { compareResourceVersions } from "../base/resource-version.js";
import type { DecodedResource } from "./decode-resource.js";
import { ObjectIndex, type IndexFunction } from "./object-index.js";

/** A change that somebody else made to an object. */
export interface ResourceChange {
  readonly kind: "added" | "updated" | "deleted";
  readonly key: ObjectKey;
  readonly object: KubernetesObject;
  /** The state before; absent for an addition. */
  readonly old?: KubernetesObject;
}

/** The write of one object that is under way. */
interface WriteWindow {
  active: number;
  /** Changes that came while a write was under way; whether they are its own is known when it ends. */
  held: { readonly change: ResourceChange; readonly version: string }[];
  /** Versions that our own writes made and the watch has not brought yet. */
  ownVersions: Set<string>;
}

const NONE: ReadonlySet<ObjectKey> = new Set();

/** The objects of one kind, by key and by index; what it returns is frozen and shared by all readers. */
export class ResourceCache {
  readonly #entries = new Map<ObjectKey, DecodedResource>();
  readonly #indexes = new Map<string, ObjectIndex>();
  readonly #windows = new Map<ObjectKey, WriteWindow>();
  /** The objects that own versions belong to. */
  readonly #ownVersionKeys = new Map<string, ObjectKey>();
  /** Objects that we deleted and whose deletion the watch has not brought yet, by uid, with the version that we knew. */
  readonly #ownDeletions = new Map<string, { readonly scope: string; readonly version: string }>();
  readonly #listeners: ((change: ResourceChange) => void)[] = [];
  /** How far the watch has come; with one watch for each namespace, by namespace. */
  readonly #observedVersions = new Map<string, string>();
  readonly #isPerNamespace: boolean;

  constructor(
    indexes: { readonly [name: string]: IndexFunction } = {},
    { isPerNamespace = false }: { isPerNamespace?: boolean } = {},
  ) {
    this.#isPerNamespace = isPerNamespace;
    for (const [name, valuesOf] of Object.entries(indexes)) this.#indexes.set(name, new ObjectIndex(valuesOf));
  }

  /** Calls `listener` for every change that is not our own. */
  onChange(listener: (change: ResourceChange) => void): void {
    this.#listeners.push(listener);
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: ObjectKey): DecodedResource | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined) freeze(entry.object);
    return entry;
  }

  /** Tells whether an object is known. */
  has(key: ObjectKey): boolean {
    return this.#entries.has(key);
  }

  /** Forgets everything, without telling anybody. */
  clear(): void {
    for (const key of [...this.#entries.keys()]) this.#remove(key);
    this.#observedVersions.clear();
    this.#ownDeletions.clear();
  }

  keys(): IterableIterator<ObjectKey> {
    return this.#entries.keys();
  }

  /** Returns the keys of the objects for which the index function gave `value`. */
  keysByIndex(index: string, value: string): ReadonlySet<ObjectKey> {
    return this.#indexes.get(index)?.keysOf(value) ?? NONE;
  }

  /** Whether own writes were made that the watch has not brought yet. */
  get expectsOwn(): boolean {
    return this.#ownVersionKeys.size > 0;
  }

  /**
   * Takes the version of a state that the watch is about to bring, before it is decoded; true if it is the answer to an own write that
   * is known already, so that `observe` need not be called.
   */
  observeOwn(version: string): boolean {
    const key = this.#ownVersionKeys.get(version);
    const known = key === undefined ? undefined : this.#entries.get(key);
    if (key === undefined || known === undefined || versionOf(known) !== version) return false;
    this.observe(known);
    return true;
  }

  /** Returns the entry of an object if it has this version. */
  getVersion(key: ObjectKey, version: string): DecodedResource | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && versionOf(entry) === version ? entry : undefined;
  }

  /** Takes a state that the watch brought. */
  observe(entry: DecodedResource): void {
    const version = versionOf(entry);
    this.#advance(version, entry.object.metadata.namespace);
    const key = keyOf(entry.object.metadata);
    // The watch is behind our own deletion: whoever read this state would take the object for being there.
    if (this.#ownDeletions.has(entry.object.metadata.uid ?? "")) return;
    const known = this.#entries.get(key);
    const isNews = known === undefined || compareResourceVersions(versionOf(known), version) < 0;
    if (isNews) this.#store(key, entry);
    const { object } = entry;
    const change = known === undefined ? { kind: "added" as const } : { kind: "updated" as const, old: known.object };
    this.#report({ ...change, key, object }, version);
  }

  /** Takes a deletion that the watch brought; `object` is the last state with the version of the deletion. */
  observeDeletion(object: KubernetesObject): void {
    const version = object.metadata.resourceVersion ?? "0";
    this.#advance(version, object.metadata.namespace);
    const key = keyOf(object.metadata);
    const known = this.#entries.get(key);
    // An own write may have made the object anew before this arrived.
    if (known !== undefined && compareResourceVersions(versionOf(known), version) <= 0) this.#remove(key);
    if (this.#ownDeletions.delete(object.metadata.uid ?? "")) return this.#forgetOwnUpTo(key, version);
    this.#report({ kind: "deleted", key, object: known?.object ?? object, old: known?.object ?? object }, version);
  }

  /** Takes how far the watch has come, as bookmarks tell. */
  observeVersion(version: string, namespace?: string): void {
    this.#advance(version, namespace);
  }

  /**
   * Takes the complete state of the kind, or of one namespace of it, as of `version`; what is missing in it was deleted while nobody
   * watched.
   */
  replace(entries: readonly DecodedResource[], version: string, namespace?: string): void {
    const listed = new Set<ObjectKey>();
    const uids = new Set<string | undefined>();
    const observed = this.#observedVersionOf({ namespace });
    for (const entry of entries) {
      const key = keyOf(entry.object.metadata);
      listed.add(key);
      uids.add(entry.object.metadata.uid);
      // What is not newer was seen before, whatever became of it since; what an answer of ours brought first was not.
      if (compareResourceVersions(versionOf(entry), observed) > 0) this.observe(entry);
    }
    for (const [key, known] of [...this.#entries]) {
      // What is newer than the list was written by us since.
      if (listed.has(key) || compareResourceVersions(versionOf(known), version) > 0) continue;
      if (namespace !== undefined && known.object.metadata.namespace !== namespace) continue;
      this.#remove(key);
      this.#report({ kind: "deleted", key, object: known.object, old: known.object }, version);
    }
    this.#advance(version, namespace);
    // The deletion of what was known before the list and is not in it will not come any more.
    const scope = this.#scopeOf(namespace);
    for (const [uid, deleted] of this.#ownDeletions)
      if (deleted.scope === scope && !uids.has(uid) && compareResourceVersions(deleted.version, version) <= 0)
        this.#ownDeletions.delete(uid);
    for (const key of [...this.#windows.keys()])
      if (namespace === undefined || refOfKey(key).namespace === namespace) this.#forgetOwnUpTo(key, version);
  }

  /** Announces a write; until `endWrite`, changes of this object are held back. */
  beginWrite(key: ObjectKey): void {
    let window = this.#windows.get(key);
    if (window === undefined) this.#windows.set(key, (window = { active: 0, held: [], ownVersions: new Set() }));
    window.active++;
  }

  /**
   * Ends a write. `entry` is the answer, which the next read sees; `isOwn` tells whether its version is the one that the write made, and
   * nothing that somebody else changed unseen is in it.
   */
  endWrite(key: ObjectKey, written?: { readonly entry: DecodedResource; readonly isOwn: boolean }): void {
    const window = this.#windows.get(key);
    if (written !== undefined) {
      const { entry, isOwn } = written;
      const version = versionOf(entry);
      const observed = this.#observedVersionOf(entry.object.metadata);
      if (isOwn && window !== undefined) {
        window.ownVersions.add(version);
        this.#ownVersionKeys.set(version, key);
      }
      const known = this.#entries.get(key);
      // If the watch is past this version without the object, the object has been deleted since.
      const isNews =
        known === undefined
          ? compareResourceVersions(version, observed) > 0
          : compareResourceVersions(version, versionOf(known)) > 0;
      if (isNews && !this.#ownDeletions.has(entry.object.metadata.uid ?? "")) this.#store(key, entry);
    }
    if (window === undefined || --window.active > 0) return;
    const held = window.held;
    window.held = [];
    for (const { change, version } of held) this.#notifyUnlessOwn(window, change, version);
    // A watch that is past an own version has brought its event, or never will.
    this.#forgetOwnUpTo(key, this.#observedVersionOf(refOfKey(key)));
  }

  /** Takes our own deletion of an object that is gone at once; the watch will bring it, and nobody is told again. */
  removeOwn(key: ObjectKey, uid: string): void {
    const known = this.#entries.get(key);
    if (known === undefined || known.object.metadata.uid !== uid) return;
    this.#ownDeletions.set(uid, { scope: this.#scopeOf(known.object.metadata.namespace), version: versionOf(known) });
    this.#remove(key);
  }

  #report(change: ResourceChange, version: string): void {
    const window = this.#windows.get(change.key);
    if (window === undefined) return this.#notify(change);
    if (window.active > 0) {
      window.held.push({ change, version });
      return;
    }
    this.#notifyUnlessOwn(window, change, version);
  }

  #notifyUnlessOwn(window: WriteWindow, change: ResourceChange, version: string): void {
    const isOwn = change.kind !== "deleted" && this.#forgetOwn(window, version);
    // The watch brings versions in order: what is older will not come any more.
    this.#forgetOwnUpTo(change.key, version);
    if (!isOwn) this.#notify(change);
  }

  #forgetOwn(window: WriteWindow, version: string): boolean {
    this.#ownVersionKeys.delete(version);
    return window.ownVersions.delete(version);
  }

  #forgetOwnUpTo(key: ObjectKey, version: string): void {
    const window = this.#windows.get(key);
    // What is held back is told from our own versions later.
    if (window === undefined || window.held.length > 0) return;
    for (const own of window.ownVersions) if (compareResourceVersions(own, version) <= 0) this.#forgetOwn(window, own);
    if (window.active === 0 && window.ownVersions.size === 0) this.#windows.delete(key);
  }

  #notify(change: ResourceChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  #advance(version: string, namespace: string | undefined): void {
    if (compareResourceVersions(version, this.#observedVersionOf({ namespace })) > 0)
      this.#observedVersions.set(this.#scopeOf(namespace), version);
  }

  #observedVersionOf({ namespace }: Pick<ObjectRef, "namespace">): string {
    return this.#observedVersions.get(this.#scopeOf(namespace)) ?? "0";
  }

  #scopeOf(namespace: string | undefined): string {
    return this.#isPerNamespace ? (namespace ?? "") : "";
  }

  #store(key: ObjectKey, entry: DecodedResource): void {
    const known = this.#entries.get(key);
    this.#entries.set(key, entry);
    for (const index of this.#indexes.values()) {
      if (known !== undefined) index.remove(key, known.object);
      index.add(key, entry.object);
    }
  }

  #remove(key: ObjectKey): void {
    const known = this.#entries.get(key);
    if (known === undefined) return;
    this.#entries.delete(key);
    for (const index of this.#indexes.values()) index.remove(key, known.object);
  }
}

function versionOf({ object }: DecodedResource): string {
  return object.metadata.resourceVersion ?? "0";
}

// Objects are frozen when they are first read: most of what a watch brings is never looked at.
function freeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const part of Object.values(value)) freeze(part);
}
