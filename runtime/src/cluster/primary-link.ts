import type { ResourceDefinition } from "../base/resource-definition.js";

// These tie a dependent to its primary where an owner reference cannot: across namespaces, and where the runtime deletes in order.

/** Annotation with the name of the primary. */
export const PRIMARY_NAME = "gen-operator.dev/primary-name";

/** Annotation with the namespace of the primary; absent for a cluster-scoped one. */
export const PRIMARY_NAMESPACE = "gen-operator.dev/primary-namespace";

/** Annotation with the kind and group of the primary. */
export const PRIMARY_TYPE = "gen-operator.dev/primary-type";

/** Annotation with the name of the dependent, where a workflow has several of one kind. */
export const DEPENDENT_NAME = "gen-operator.dev/dependent";

/** Returns what stands in the annotation of the primary's type. */
export function typeOfPrimary({ kind, group }: ResourceDefinition): string {
  return group === "" ? kind : `${kind}.${group}`;
}

/** The index under which a cache finds the objects that belong to a primary, by the key of the primary. */
export const OWNER_INDEX = "owner";
