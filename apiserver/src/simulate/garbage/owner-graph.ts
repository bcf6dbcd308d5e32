// Who owns whom, as far as the watches have told. Pure bookkeeping and decisions; garbage-collection.ts acts on them.
import type { KubernetesObject, OwnerReference, ResourceKind } from "../feed/kubernetes-object.js";

/** An object with the kind under which it can be reached. */
export interface OwnedObject {
  kind: ResourceKind;
  object: KubernetesObject;
}

/** What an owner reference means for the object that holds it. */
export type ReferenceState =
  /** The owner exists. */
  | "solid"
  /** The owner exists no longer, or never did under that name. */
  | "dangling"
  /** The owner waits for its dependents to go first. */
  | "waiting";

/** What is to be done with an object, given the states of its owner references. */
export type Verdict =
  | { kind: "keep"; withoutOwners: string[] }
  | { kind: "delete"; propagationPolicy: "Background" | "Foreground" | "Orphan" };

/** The finalizer with which an owner waits until its dependents have been released. */
export const ORPHAN = "orphan";
/** The finalizer with which an owner waits until its dependents are gone. */
export const FOREGROUND = "foregroundDeletion";

/** Is this object being deleted, and waiting for its dependents to go first? */
export function isForeground({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined && hasFinalizer(metadata, FOREGROUND);
}

/** Is this object being deleted, and waiting for its dependents to be released? */
export function isOrphaning({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined && hasFinalizer(metadata, ORPHAN);
}

/** The reference of `dependent` to the owner of that uid. */
export function referenceTo(ownerUid: string, { object }: OwnedObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find(({ uid }) => uid === ownerUid);
}

/** Does `reference`, which `dependent` holds, really name `owner`? A namespaced owner counts in its own namespace only. */
export function names(reference: OwnerReference, owner: OwnedObject, dependent: OwnedObject): boolean {
  const { metadata } = owner.object;
  return (
    metadata.uid === reference.uid &&
    metadata.name === reference.name &&
    owner.kind.kind === reference.kind &&
    owner.kind.group === groupOf(reference.apiVersion) &&
    (!owner.kind.namespaced || metadata.namespace === dependent.object.metadata.namespace)
  );
}

/** Decides what becomes of an object that is not being deleted yet. */
export function judge(
  { object }: OwnedObject,
  states: { uid: string; state: ReferenceState }[],
  { hasDependents }: { hasDependents: boolean },
): Verdict {
  const uidsOf = (...wanted: ReferenceState[]) =>
    states.filter(({ state }) => wanted.includes(state)).map(({ uid }) => uid);
  if (uidsOf("solid").length > 0) return { kind: "keep", withoutOwners: uidsOf("dangling", "waiting") };
  // Chains are undone from their ends.
  if (uidsOf("waiting").length > 0 && hasDependents) return { kind: "delete", propagationPolicy: "Foreground" };
  return { kind: "delete", propagationPolicy: policyOf(object) };
}

function policyOf({ metadata }: KubernetesObject): "Background" | "Foreground" | "Orphan" {
  if (hasFinalizer(metadata, ORPHAN)) return "Orphan";
  return hasFinalizer(metadata, FOREGROUND) ? "Foreground" : "Background";
}

function hasFinalizer({ finalizers }: KubernetesObject["metadata"], name: string): boolean {
  return finalizers?.includes(name) === true;
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
}

/** An index of objects by uid and by the uids of their owners. */
export class OwnerGraph {
  readonly #objects = new Map<string, OwnedObject>();
  readonly #dependents = new Map<string, Set<string>>();

  get(uid: string): OwnedObject | undefined {
    return this.#objects.get(uid);
  }

  uids(): IterableIterator<string> {
    return this.#objects.keys();
  }

  /** Adds or replaces an object; what was known of it before. */
  set(owned: OwnedObject): OwnedObject | undefined {
    const before = this.delete(owned.object.metadata.uid);
    this.#objects.set(owned.object.metadata.uid, owned);
    for (const { uid } of owned.object.metadata.ownerReferences ?? []) {
      let dependents = this.#dependents.get(uid);
      if (dependents === undefined) this.#dependents.set(uid, (dependents = new Set()));
      dependents.add(owned.object.metadata.uid);
    }
    return before;
  }

  /** Forgets an object; what was known of it. Its dependents still name it. */
  delete(uid: string): OwnedObject | undefined {
    const before = this.#objects.get(uid);
    if (before === undefined) return undefined;
    this.#objects.delete(uid);
    for (const owner of before.object.metadata.ownerReferences ?? []) {
      const dependents = this.#dependents.get(owner.uid);
      dependents?.delete(uid);
      if (dependents?.size === 0) this.#dependents.delete(owner.uid);
    }
    return before;
  }

  /** The objects that name an owner, whether or not they may. */
  dependentsOf(ownerUid: string): OwnedObject[] {
    const uids = this.#dependents.get(ownerUid) ?? [];
    return [...uids].flatMap((uid) => this.#objects.get(uid) ?? []);
  }
}
