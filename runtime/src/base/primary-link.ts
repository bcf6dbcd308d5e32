import type { ObjectMeta } from "./kubernetes-object.js";
import type { ResourceDefinition } from "./resource-definition.js";

// These tie a dependent to its primary where an owner reference cannot: across namespaces, and where the runtime deletes in order.

/** Annotation with the name of the primary. */
export const PRIMARY_NAME = "gen-operator.dev/primary-name";

/** Annotation with the namespace of the primary; absent for a cluster-scoped one. */
export const PRIMARY_NAMESPACE = "gen-operator.dev/primary-namespace";

/** Annotation with the kind and group of the primary. */
export const PRIMARY_TYPE = "gen-operator.dev/primary-type";

/** Annotation with the name of the dependent: it tells those of one kind apart, and what was made as a dependent from anything else. */
export const DEPENDENT_NAME = "gen-operator.dev/dependent";

/** Annotation with the name of the controller whose dependent it is: two controllers may have dependents of one name for one primary. */
export const CONTROLLER_NAME = "gen-operator.dev/controller";

/** Annotation with the key of the item, for objects of a bulk dependent. */
export const DEPENDENT_ITEM = "gen-operator.dev/item";

/** Returns the annotation in which a controller notes at a primary which kinds of dependents that has. */
export function inventoryAnnotationOf(controller: string): string {
  // What stands behind the slash is a label name of at most 63 characters (1.36, IsQualifiedName).
  const name = controller.replace(/[^A-Za-z0-9_.-]/g, "-").slice(0, 61);
  return `inventory.gen-operator.dev/${/^[A-Za-z0-9].*[A-Za-z0-9]$|^[A-Za-z0-9]$/.test(name) ? name : `x${name}x`}`;
}

/** Returns what stands in the annotation of the primary's type. */
export function typeOfPrimary({ kind, group }: ResourceDefinition): string {
  return group === "" ? kind : `${kind}.${group}`;
}

/** The index under which a cache finds the objects that belong to a primary, by the key of the primary. */
export const OWNER_INDEX = "owner";

const PRIMARY = [PRIMARY_NAME, PRIMARY_NAMESPACE, PRIMARY_TYPE] as const;

const DEPENDENT = [CONTROLLER_NAME, DEPENDENT_NAME, DEPENDENT_ITEM] as const;

/** The annotations by which an object is a dependent of a primary. */
export const LINK_ANNOTATIONS: readonly string[] = [...PRIMARY, ...DEPENDENT];

/** Tells whether two objects are tied to the same primary, by an owner reference or by annotations. */
export function sharesPrimary(desired: Partial<ObjectMeta>, live: Partial<ObjectMeta>): boolean {
  const owners = new Set(live.ownerReferences?.map(({ uid }) => uid));
  if (desired.ownerReferences?.some(({ uid }) => owners.has(uid)) === true) return true;
  const isAnnotated = desired.annotations?.[PRIMARY_NAME] !== undefined;
  return isAnnotated && PRIMARY.every((name) => desired.annotations?.[name] === live.annotations?.[name]);
}

/** Tells whether a live object says that it was made as the same item of the same dependent of the same controller. */
export function sharesDependent(desired: Partial<ObjectMeta>, live: Partial<ObjectMeta>): boolean {
  const isStated = desired.annotations?.[CONTROLLER_NAME] !== undefined;
  return isStated && DEPENDENT.every((name) => desired.annotations?.[name] === live.annotations?.[name]);
}

/** Says who else an object belongs to, so that it cannot be tied to a primary; undefined if it is free. */
export function otherOwnerOf(live: Partial<ObjectMeta>, desired: Partial<ObjectMeta>): string | undefined {
  const own = new Set(desired.ownerReferences?.map(({ uid }) => uid));
  const controller = live.ownerReferences?.find((owner) => owner.controller === true && !own.has(owner.uid));
  if (controller !== undefined) return `${controller.kind} "${controller.name}"`;
  const { annotations } = live;
  const name = annotations?.[PRIMARY_NAME];
  if (name === undefined || sharesPrimary(desired, live)) return undefined;
  const namespace = annotations?.[PRIMARY_NAMESPACE];
  return `${annotations?.[PRIMARY_TYPE] ?? "the primary"} "${namespace === undefined ? "" : `${namespace}/`}${name}"`;
}
