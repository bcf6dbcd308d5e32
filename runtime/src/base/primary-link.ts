import { createHash } from "node:crypto";
import {
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type ObjectRef,
  type ResourceDefinition,
  groupOf,
  keyOf,
} from "./kubernetes-object.js";
import type { ProofKey } from "./proof-key.js";

// These link a dependent to its primary where an owner reference cannot: across namespaces, and where the runtime deletes in order.

/** Annotation with the name of the primary. */
export const PRIMARY_NAME = "gen-operator.dev/primary-name";
/** Annotation with the namespace of the primary; absent for a cluster-scoped one. */
export const PRIMARY_NAMESPACE = "gen-operator.dev/primary-namespace";
/** Annotation with the kind and group of the primary. */
export const PRIMARY_TYPE = "gen-operator.dev/primary-type";
/** Annotation with the uid of the primary: it tells a primary from a later one of its name, and only clients that may read the primary know it. */
export const PRIMARY_UID = "gen-operator.dev/primary-uid";
/** Annotation with the proof of the link, on objects that are neither beside their primary nor in a namespace that their dependent states. */
export const LINK_PROOF = "gen-operator.dev/link-proof";
/** Annotation with the name of the dependent: it tells those of one kind apart, and what was made as a dependent from anything else. */
export const DEPENDENT_NAME = "gen-operator.dev/dependent";
/** Annotation with the key of the item, for objects of a bulk dependent. */
export const DEPENDENT_ITEM = "gen-operator.dev/item";
/** Annotation with the key of the object itself: a copy by another client has another key, and is no dependent. */
export const OBJECT_KEY = "gen-operator.dev/object";
/** Annotation that a user puts on a primary: while it is `true`, the controller writes nothing for the primary. */
export const PAUSED = "gen-operator.dev/paused";
/** Label with the name of the controller that wrote an object, which watches select. Earlier versions had it as an annotation. */
export const CONTROLLER_LABEL = "gen-operator.dev/controller";

const HELD_PREFIX = "gen-operator.dev/held-";

/** The index under which a cache finds the objects that are held for the cleanup of a primary, by the name of the finalizer. */
export const HELD_INDEX = "held for cleanups";

/**
 * Returns the finalizer that holds an object for the cleanup of a primary. It is the same after a restart, and each primary, of each controller, has
 * its own, so that independent primaries may need one object.
 */
export function holdFinalizerOf(controllerFinalizer: string, { uid = "" }: Pick<ObjectMeta, "uid">): string {
  return `${HELD_PREFIX}${createHash("sha256").update(`${controllerFinalizer} ${uid}`).digest("hex").slice(0, 16)}`;
}

/** Returns the finalizers by which an object is held for cleanups. */
export function holdFinalizersIn({ metadata: { finalizers } }: KubernetesObject): readonly string[] {
  return finalizers?.filter((name) => name.startsWith(HELD_PREFIX)) ?? [];
}

/** Tells whether a primary is paused. */
export function isPaused({ annotations }: Pick<ObjectMeta, "annotations">): boolean {
  return annotations?.[PAUSED] === "true";
}

/** Returns the value of the label for a controller: its name, or a stable hash of a name that is no value of a label. */
export function labelValueOf(controller: string): string {
  // A value of a label has 63 characters at most (1.36, IsValidLabelValue).
  if (/^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/.test(controller)) return controller;
  return createHash("sha256").update(controller).digest("hex").slice(0, 32);
}

/** Returns the label selector for what controllers wrote, limited by a selector of the user. */
export function selectorOf(controllers: readonly string[], limit?: string): string {
  const values = [...new Set(controllers.map(labelValueOf))].sort();
  const own = values.length === 1 ? `${CONTROLLER_LABEL}=${values[0]}` : `${CONTROLLER_LABEL} in (${values.join(",")})`;
  return limit === undefined ? own : `${own},${limit}`;
}

/** Tells whether a controller wrote an object, under its name or a former one, by its label, or by the annotation of earlier versions; undefined if it has neither. */
export function isWrittenBy(
  { labels, annotations }: Partial<ObjectMeta>,
  ...names: readonly string[]
): boolean | undefined {
  const label = labels?.[CONTROLLER_LABEL];
  if (label !== undefined) return names.some((name) => label === labelValueOf(name));
  const annotation = annotations?.[CONTROLLER_LABEL];
  return annotation === undefined ? undefined : names.includes(annotation);
}

/** Tells whether an object lacks the label that a desired one has, so that no watch shows it. */
export function lacksLabel(live: Partial<ObjectMeta>, desired: Partial<ObjectMeta>): boolean {
  const label = desired.labels?.[CONTROLLER_LABEL];
  return label !== undefined && live.labels?.[CONTROLLER_LABEL] !== label;
}

/** Tells whether the annotations of an object are its own or copied from another; undefined if an earlier version wrote them. */
export function isOriginal(metadata: ObjectMeta): boolean | undefined {
  const key = metadata.annotations?.[OBJECT_KEY];
  return key === undefined ? undefined : key === keyOf(metadata);
}

/** Tells whether an object has this very primary as an owner, and not an earlier one of the same name. */
export function isOwnedBy(live: Partial<ObjectMeta>, { uid }: Pick<ObjectMeta, "uid">): boolean {
  return live.ownerReferences?.some((owner) => owner.uid === uid) === true;
}

/** Tells whether an object is another primary's, which controls it or is in its annotations: a further owner has no say in it. */
export function isOfOther(live: Partial<ObjectMeta>, primary: Pick<ObjectMeta, "name" | "uid">): boolean {
  const annotated = live.annotations?.[PRIMARY_NAME];
  if (annotated !== undefined && annotated !== primary.name) return true;
  return isControlledByOther(live, primary);
}

/** Tells whether an object has a controlling owner other than this very primary. */
export function isControlledByOther(live: Partial<ObjectMeta>, { uid }: Pick<ObjectMeta, "uid">): boolean {
  return live.ownerReferences?.some((owner) => owner.controller === true && owner.uid !== uid) === true;
}

/** Returns what stands in the annotation of the primary's type. */
export function typeOfPrimary({ kind, group }: Pick<ResourceDefinition, "kind" | "group">): string {
  return group === "" ? kind : `${kind}.${group}`;
}

/**
 * The index under which a cache finds the objects that belong to a primary: by `provenLinkOf` or `namedLinkOf` where links say so, by the key
 * of the primary where a mapper does. Users have indexes of other names.
 */
export const PRIMARY_INDEX = "links to primaries";

/** Returns the value of the index for the objects whose link to a primary is proven. */
export function provenLinkOf({ metadata }: { readonly metadata: ObjectMeta }): string {
  return linkValue(keyOf(metadata), metadata.uid);
}

/**
 * Returns the value of the index for the objects that name a primary without a proof: another client may have written that. It counts only for the
 * very object that a dependent desires, which an earlier version of the operator may have written.
 */
export function namedLinkOf({ metadata }: { readonly metadata: ObjectMeta }): string {
  return linkValue(keyOf(metadata), "");
}

/** Returns the key and the uid of the primary in a value of the index; the uid is empty if nothing proves the link. */
export function readLink(value: string): { readonly key: ObjectKey; readonly uid: string } {
  const end = value.lastIndexOf(" ");
  return { key: value.slice(0, end) as ObjectKey, uid: value.slice(end + 1) };
}

function linkValue(key: ObjectKey, uid = ""): string {
  return `${key} ${uid}`;
}

/** How the links of objects are read. */
export interface LinkReading {
  readonly primary: ResourceDefinition;
  /** Whether owner references mean nothing, as in another cluster. */
  readonly isElsewhere: boolean;
  /** The namespaces that the dependent names; undefined if it names none. */
  readonly namespaces?: readonly string[] | undefined;
  /** Whether an object that another owner controls is linked to that owner alone, as the objects are that a dependent writes. */
  readonly isExclusive?: boolean;
  /** Returns the key of the proofs, once it is loaded; called only for an object that has a proof. */
  key?(): ProofKey | undefined;
}

/**
 * Returns the primaries that an object is linked to, as values of the index. Any client that may write an object may write its link, so a link
 * needs evidence: the uid of the primary, and the namespace of the object. An object in the namespace of its primary, or in one that its dependent
 * names, needs no more; in any other place its link needs a proof that only the operator can make.
 */
export function linksOf({ metadata }: KubernetesObject, reading: LinkReading): readonly string[] {
  const { primary, isElsewhere, isExclusive = false, namespaces } = reading;
  const { namespace, annotations, ownerReferences = [] } = metadata;
  const isStated = namespace !== undefined && namespaces?.includes(namespace) === true;
  const links: string[] = [];
  const isTaken = (uid: string | undefined) => isExclusive && isControlledByOther(metadata, { uid });
  for (const owner of isElsewhere ? [] : ownerReferences) {
    if (owner.kind !== primary.kind || groupOf(owner.apiVersion) !== primary.group || isTaken(owner.uid)) continue;
    // The garbage collector looks for a namespaced owner in the namespace of the object, and a cluster-scoped object is no tenant's.
    if (primary.scope === "Namespaced") {
      if (namespace !== undefined) links.push(linkValue(keyOf({ name: owner.name, namespace }), owner.uid));
    } else {
      const isKnown = namespace === undefined || isStated || isProven(metadata, owner.uid, reading);
      links.push(linkValue(owner.name, isKnown ? owner.uid : ""));
    }
  }
  const name = annotations?.[PRIMARY_NAME];
  if (name === undefined || (annotations?.[PRIMARY_TYPE] ?? typeOfPrimary(primary)) !== typeOfPrimary(primary))
    return links;
  const home = primary.scope === "Cluster" ? undefined : (annotations?.[PRIMARY_NAMESPACE] ?? namespace);
  const key = keyOf({ name, namespace: home });
  const uid = annotations?.[PRIMARY_UID];
  if (isTaken(uid)) return links;
  const isBeside = namespace !== undefined && namespace === home;
  if (links.includes(linkValue(key, uid))) return links;
  links.push(linkValue(key, isBeside || isStated || isProven(metadata, uid, reading) ? uid : ""));
  return links;
}

function isProven(live: ObjectMeta, uid: string | undefined, reading: LinkReading): boolean {
  const proof = live.annotations?.[LINK_PROOF];
  return uid !== undefined && proof !== undefined && reading.key?.()?.proves(proof, factsOf(live, uid)) === true;
}

/** Tells whether the link of an object needs a proof to count: it is neither beside its primary nor in the namespace that its dependent states. */
export function needsProof(
  { namespace, ownerReferences = [] }: ObjectRef & Partial<ObjectMeta>,
  { primary, stated }: { readonly primary: KubernetesObject; readonly stated: string | undefined },
): boolean {
  const { namespace: home, uid } = primary.metadata;
  if (ownerReferences.some((owner) => owner.uid === uid) && namespace === undefined) return false;
  return namespace === undefined || (namespace !== home && namespace !== stated);
}

/** Returns what the proof of a link is about: the primary, the very object, and as what it was written. */
export function factsOf(object: ObjectRef & Partial<ObjectMeta>, uid: string): readonly (string | undefined)[] {
  const { annotations } = object;
  return ["link", uid, keyOf(object), annotations?.[DEPENDENT_NAME], annotations?.[DEPENDENT_ITEM]];
}

const PRIMARY = [PRIMARY_NAME, PRIMARY_NAMESPACE, PRIMARY_TYPE] as const;
const DEPENDENT = [DEPENDENT_NAME, DEPENDENT_ITEM] as const;

/** The annotations that make an object a dependent of a primary, in this version and earlier ones. */
export const LINK_ANNOTATIONS: readonly string[] = [
  ...PRIMARY,
  PRIMARY_UID,
  LINK_PROOF,
  ...DEPENDENT,
  OBJECT_KEY,
  CONTROLLER_LABEL,
];

/** Returns the part of the metadata that names an object and links it to its primary. */
export function linkOf(desired: ObjectRef & Partial<ObjectMeta>): ObjectRef & Partial<ObjectMeta> {
  const { name, namespace, labels, annotations = {}, ownerReferences } = desired;
  const label = labels?.[CONTROLLER_LABEL];
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(label === undefined ? {} : { labels: { [CONTROLLER_LABEL]: label } }),
    annotations: Object.fromEntries(Object.entries(annotations).filter(([key]) => LINK_ANNOTATIONS.includes(key))),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
  };
}

/** Tells whether a live object has the link of the desired object. */
export function hasLink(live: Partial<ObjectMeta>, desired: ObjectRef & Partial<ObjectMeta>): boolean {
  return missingLink(live, desired).length === 0;
}

/** Names the parts of the link of a desired object that a live object lacks. */
export function missingLink(live: Partial<ObjectMeta>, desired: ObjectRef & Partial<ObjectMeta>): readonly string[] {
  const { annotations = {}, ownerReferences = [] } = linkOf(desired);
  return [
    ...(lacksLabel(live, desired) ? [`label ${CONTROLLER_LABEL}`] : []),
    ...Object.entries(annotations).flatMap(([name, value]) =>
      live.annotations?.[name] === value ? [] : `annotation ${name}`,
    ),
    ...ownerReferences.flatMap((owner) =>
      isOwnedBy(live, owner) ? [] : `owner reference ${owner.kind} "${owner.name}"`,
    ),
  ];
}

/** Returns the owner and the annotations that may link an object to a primary: `deletion` decides which of them it has. */
export function linksTo({ apiVersion, kind, metadata: { uid, name, namespace } }: KubernetesObject) {
  const type = typeOfPrimary({ kind, group: groupOf(apiVersion) });
  const home = namespace !== undefined && { [PRIMARY_NAMESPACE]: namespace };
  const annotations = { [PRIMARY_NAME]: name, [PRIMARY_TYPE]: type, ...home, [PRIMARY_UID]: uid ?? "" };
  return { ownerReferences: [{ uid }], annotations };
}

type Links = Pick<ObjectMeta, "annotations"> & {
  readonly ownerReferences?: readonly Pick<ObjectMeta, "uid">[] | undefined;
};

/** Tells whether two objects are linked to the same primary, by an owner reference or by annotations. */
export function sharesPrimary(desired: Links, live: Partial<ObjectMeta>): boolean {
  if (desired.ownerReferences?.some((owner) => isOwnedBy(live, owner)) === true) return true;
  const { annotations: wanted = {} } = desired;
  // Without the annotation of the namespace, the object belongs to a primary in its own namespace.
  const home = wanted[PRIMARY_NAMESPACE] === undefined ? undefined : live.namespace;
  const found: { [name: string]: string | undefined } = { [PRIMARY_NAMESPACE]: home, ...live.annotations };
  return wanted[PRIMARY_NAME] !== undefined && PRIMARY.every((name) => wanted[name] === found[name]);
}

/** Tells whether the annotations of a live object name the same item of the same dependent, and no other controller. */
export function sharesDependent(desired: Partial<ObjectMeta>, live: Partial<ObjectMeta>): boolean {
  const isStated = desired.annotations?.[DEPENDENT_NAME] !== undefined;
  const isOthers = live.labels?.[CONTROLLER_LABEL] !== undefined && lacksLabel(live, desired);
  return isStated && !isOthers && DEPENDENT.every((name) => desired.annotations?.[name] === live.annotations?.[name]);
}

/** Names the other owner or primary of an object that therefore cannot be linked; undefined if there is none. */
export function otherOwnerOf(live: Partial<ObjectMeta>, desired: Partial<ObjectMeta>): string | undefined {
  const own = new Set(desired.ownerReferences?.map(({ uid }) => uid));
  const controller = live.ownerReferences?.find((owner) => owner.controller === true && !own.has(owner.uid));
  if (controller !== undefined) return `${controller.kind} "${controller.name}"`;
  const { annotations } = live;
  const name = annotations?.[PRIMARY_NAME];
  if (name === undefined || sharesPrimary(desired, live)) return undefined;
  return `${annotations?.[PRIMARY_TYPE] ?? "the primary"} "${keyOf({ namespace: annotations?.[PRIMARY_NAMESPACE], name })}"`;
}
