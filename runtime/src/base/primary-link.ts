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

// Labels and annotations that link a dependent to its primary where an owner reference cannot: across namespaces, and if the operator deletes the
// dependent itself (ordered deletion).

/** Annotation with the name of the primary. */
export const PRIMARY_NAME = "gen-operator.dev/primary-name";
/** Annotation with the namespace of the primary. Absent if the primary is cluster-scoped. */
export const PRIMARY_NAMESPACE = "gen-operator.dev/primary-namespace";
/** Annotation with the kind and group of the primary. */
export const PRIMARY_TYPE = "gen-operator.dev/primary-type";
/**
 * Annotation with the UID of the primary. It distinguishes the primary from a later one with the same name, and is known only to clients that may
 * read the primary.
 */
export const PRIMARY_UID = "gen-operator.dev/primary-uid";
/** Annotation with the proof of the link, on objects that are neither in the namespace of their primary nor in a namespace set in the dependent. */
export const LINK_PROOF = "gen-operator.dev/link-proof";
/** Annotation with the name of the dependent. It distinguishes dependents of the same kind, and objects of dependents from other objects. */
export const DEPENDENT_NAME = "gen-operator.dev/dependent";
/** Annotation with the key of the item, on objects of a bulk dependent. */
export const DEPENDENT_ITEM = "gen-operator.dev/item";
/** Annotation with the key of the object itself. If another client copies the object, the keys differ, and the copy is not a dependent. */
export const OBJECT_KEY = "gen-operator.dev/object";
/** Annotation that users set on a primary. While it is `true`, the controller writes nothing for the primary. */
export const PAUSED = "gen-operator.dev/paused";
/** Label with the name of the controller that wrote the object. Watches select it. Earlier versions used an annotation of the same name. */
export const CONTROLLER_LABEL = "gen-operator.dev/controller";

const HELD_PREFIX = "gen-operator.dev/held-";

/** Name of the index of objects that are held for the cleanup of primaries, by the name of the hold finalizer. */
export const HELD_INDEX = "held for cleanups";

/**
 * Returns the finalizer that holds an object until the cleanup of a primary. It is stable across restarts and distinct for each primary and
 * controller, so that several primaries can hold the same object.
 */
export function holdFinalizerOf(controllerFinalizer: string, { uid = "" }: Pick<ObjectMeta, "uid">): string {
  return `${HELD_PREFIX}${createHash("sha256").update(`${controllerFinalizer} ${uid}`).digest("hex").slice(0, 16)}`;
}

/** Returns the finalizers that hold an object for cleanups. */
export function holdFinalizersIn({ metadata: { finalizers } }: KubernetesObject): readonly string[] {
  return finalizers?.filter((name) => name.startsWith(HELD_PREFIX)) ?? [];
}

/** Returns whether a primary is paused. */
export function isPaused({ annotations }: Pick<ObjectMeta, "annotations">): boolean {
  return annotations?.[PAUSED] === "true";
}

/** Returns the label value for a controller: its name, or a hash of the name if it is not a valid label value. */
export function labelValueOf(controller: string): string {
  // A label value has at most 63 characters (Kubernetes 1.36, IsValidLabelValue).
  if (/^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/.test(controller)) return controller;
  return createHash("sha256").update(controller).digest("hex").slice(0, 32);
}

/** Returns the label selector of the objects that controllers wrote, combined with a selector of the user. */
export function selectorOf(controllers: readonly string[], limit?: string): string {
  const values = [...new Set(controllers.map(labelValueOf))].sort();
  const own = values.length === 1 ? `${CONTROLLER_LABEL}=${values[0]}` : `${CONTROLLER_LABEL} in (${values.join(",")})`;
  return limit === undefined ? own : `${own},${limit}`;
}

/**
 * Returns whether one of these controllers wrote an object, according to its label or the annotation of earlier versions. Undefined if it has
 * neither.
 */
export function isWrittenBy(
  { labels, annotations }: Partial<ObjectMeta>,
  ...names: readonly string[]
): boolean | undefined {
  const label = labels?.[CONTROLLER_LABEL];
  if (label !== undefined) return names.some((name) => label === labelValueOf(name));
  const annotation = annotations?.[CONTROLLER_LABEL];
  return annotation === undefined ? undefined : names.includes(annotation);
}

/** Returns whether a live object lacks the controller label of the desired object, so that watches do not select it. */
export function lacksLabel(live: Partial<ObjectMeta>, desired: Partial<ObjectMeta>): boolean {
  const label = desired.labels?.[CONTROLLER_LABEL];
  return label !== undefined && live.labels?.[CONTROLLER_LABEL] !== label;
}

/**
 * Returns whether the link annotations were written for this object, and not copied from another one. Undefined if an earlier version wrote them.
 */
export function isOriginal(metadata: ObjectMeta): boolean | undefined {
  const key = metadata.annotations?.[OBJECT_KEY];
  return key === undefined ? undefined : key === keyOf(metadata);
}

/** Returns whether an object is owned by this primary, not by an earlier one with the same name. */
export function isOwnedBy(live: Partial<ObjectMeta>, { uid }: Pick<ObjectMeta, "uid">): boolean {
  return live.ownerReferences?.some((owner) => owner.uid === uid) === true;
}

/**
 * Returns whether an object belongs to another primary, according to its controller reference or annotations. Other owner references do not count.
 */
export function isOfOther(live: Partial<ObjectMeta>, primary: Pick<ObjectMeta, "name" | "uid">): boolean {
  const annotated = live.annotations?.[PRIMARY_NAME];
  if (annotated !== undefined && annotated !== primary.name) return true;
  return isControlledByOther(live, primary);
}

/** Returns whether an object has a controller reference to an owner other than this primary. */
export function isControlledByOther(live: Partial<ObjectMeta>, { uid }: Pick<ObjectMeta, "uid">): boolean {
  return live.ownerReferences?.some((owner) => owner.controller === true && owner.uid !== uid) === true;
}

/** Returns the value of the PRIMARY_TYPE annotation. */
export function typeOfPrimary({ kind, group }: Pick<ResourceDefinition, "kind" | "group">): string {
  return group === "" ? kind : `${kind}.${group}`;
}

/**
 * Name of the index of objects by primary: by provenLinkOf() and namedLinkOf() if links determine the primary, by the key of the primary if a mapper
 * does. Not available to users, whose indexes have other names.
 */
export const PRIMARY_INDEX = "links to primaries";

/** Returns the index value of objects with a proven link to a primary. */
export function provenLinkOf({ metadata }: { readonly metadata: ObjectMeta }): string {
  return linkValue(keyOf(metadata), metadata.uid);
}

/**
 * Returns the index value of objects that name a primary without a proof. Another client may have written these annotations, so they count only for
 * the very object that a dependent desires, which an earlier version of the operator may have written.
 */
export function namedLinkOf({ metadata }: { readonly metadata: ObjectMeta }): string {
  return linkValue(keyOf(metadata), "");
}

/** Parses an index value into the key and the UID of the primary. The UID is empty if the link is not proven. */
export function readLink(value: string): { readonly key: ObjectKey; readonly uid: string } {
  const end = value.lastIndexOf(" ");
  return { key: value.slice(0, end) as ObjectKey, uid: value.slice(end + 1) };
}

function linkValue(key: ObjectKey, uid = ""): string {
  return `${key} ${uid}`;
}

/** How to interpret the links of objects. */
export interface LinkReading {
  readonly primary: ResourceDefinition;
  /** Whether to ignore owner references, because the objects are in another cluster. */
  readonly isElsewhere: boolean;
  /** The namespaces set in the dependent; undefined if it sets none. */
  readonly namespaces?: readonly string[] | undefined;
  /** Whether an object that another owner controls is linked only to that owner. True for objects that dependents write. */
  readonly isExclusive?: boolean;
  /** Returns the proof key once it is loaded. Called only for objects that have a proof. */
  key?(): ProofKey | undefined;
}

/**
 * Returns the primaries that an object is linked to, as index values. Any client that may write an object can write its link, so a link needs
 * evidence: the UID of the primary, and the namespace of the object. In the namespace of the primary, or in one that is set in the dependent, this is
 * sufficient. In any other namespace, the link needs a proof that only the operator can create.
 */
export function linksOf({ metadata }: KubernetesObject, reading: LinkReading): readonly string[] {
  const { primary, isElsewhere, isExclusive = false, namespaces } = reading;
  const { namespace, annotations, ownerReferences = [] } = metadata;
  const isStated = namespace !== undefined && namespaces?.includes(namespace) === true;
  const links: string[] = [];
  const isTaken = (uid: string | undefined) => isExclusive && isControlledByOther(metadata, { uid });
  for (const owner of isElsewhere ? [] : ownerReferences) {
    if (owner.kind !== primary.kind || groupOf(owner.apiVersion) !== primary.group || isTaken(owner.uid)) continue;
    // The garbage collector looks up a namespaced owner in the namespace of the dependent, and tenants cannot write cluster-scoped objects.
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

/**
 * Returns whether the link of an object needs a proof, because it is neither in the namespace of its primary nor in the one set in the dependent.
 */
export function needsProof(
  { namespace, ownerReferences = [] }: ObjectRef & Partial<ObjectMeta>,
  { primary, stated }: { readonly primary: KubernetesObject; readonly stated: string | undefined },
): boolean {
  const { namespace: home, uid } = primary.metadata;
  if (ownerReferences.some((owner) => owner.uid === uid) && namespace === undefined) return false;
  return namespace === undefined || (namespace !== home && namespace !== stated);
}

/** Returns the facts that the proof of a link covers: the primary, the object, and its dependent and item. */
export function factsOf(object: ObjectRef & Partial<ObjectMeta>, uid: string): readonly (string | undefined)[] {
  const { annotations } = object;
  return ["link", uid, keyOf(object), annotations?.[DEPENDENT_NAME], annotations?.[DEPENDENT_ITEM]];
}

const PRIMARY = [PRIMARY_NAME, PRIMARY_NAMESPACE, PRIMARY_TYPE] as const;
const DEPENDENT = [DEPENDENT_NAME, DEPENDENT_ITEM] as const;

/** The annotations that link an object to a primary. Includes those that only earlier versions wrote. */
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

/** Returns whether a live object has the complete link of the desired object. */
export function hasLink(live: Partial<ObjectMeta>, desired: ObjectRef & Partial<ObjectMeta>): boolean {
  return missingLink(live, desired).length === 0;
}

/** Returns descriptions of the parts of the link that a live object lacks. */
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

/**
 * Returns the owner reference and the annotations that can link an object to a primary. The `deletion` of its dependent determines which of them it
 * has.
 */
export function linksTo({ apiVersion, kind, metadata: { uid, name, namespace } }: KubernetesObject) {
  const type = typeOfPrimary({ kind, group: groupOf(apiVersion) });
  const home = namespace !== undefined && { [PRIMARY_NAMESPACE]: namespace };
  const annotations = { [PRIMARY_NAME]: name, [PRIMARY_TYPE]: type, ...home, [PRIMARY_UID]: uid ?? "" };
  return { ownerReferences: [{ uid }], annotations };
}

type Links = Pick<ObjectMeta, "annotations"> & {
  readonly ownerReferences?: readonly Pick<ObjectMeta, "uid">[] | undefined;
};

/** Returns whether two objects are linked to the same primary, by owner reference or annotations. */
export function sharesPrimary(desired: Links, live: Partial<ObjectMeta>): boolean {
  if (desired.ownerReferences?.some((owner) => isOwnedBy(live, owner)) === true) return true;
  const { annotations: wanted = {} } = desired;
  // Without the namespace annotation, the primary is in the namespace of the object.
  const home = wanted[PRIMARY_NAMESPACE] === undefined ? undefined : live.namespace;
  const found: { [name: string]: string | undefined } = { [PRIMARY_NAMESPACE]: home, ...live.annotations };
  return wanted[PRIMARY_NAME] !== undefined && PRIMARY.every((name) => wanted[name] === found[name]);
}

/** Returns whether a live object belongs to the same item of the same dependent, and not to another controller. */
export function sharesDependent(desired: Partial<ObjectMeta>, live: Partial<ObjectMeta>): boolean {
  const isStated = desired.annotations?.[DEPENDENT_NAME] !== undefined;
  const isOthers = live.labels?.[CONTROLLER_LABEL] !== undefined && lacksLabel(live, desired);
  return isStated && !isOthers && DEPENDENT.every((name) => desired.annotations?.[name] === live.annotations?.[name]);
}

/** Describes another owner or primary of an object, because of which it cannot be linked. Undefined if there is none. */
export function otherOwnerOf(live: Partial<ObjectMeta>, desired: Partial<ObjectMeta>): string | undefined {
  const own = new Set(desired.ownerReferences?.map(({ uid }) => uid));
  const controller = live.ownerReferences?.find((owner) => owner.controller === true && !own.has(owner.uid));
  if (controller !== undefined) return `${controller.kind} "${controller.name}"`;
  const { annotations } = live;
  const name = annotations?.[PRIMARY_NAME];
  if (name === undefined || sharesPrimary(desired, live)) return undefined;
  return `${annotations?.[PRIMARY_TYPE] ?? "the primary"} "${keyOf({ namespace: annotations?.[PRIMARY_NAMESPACE], name })}"`;
}
