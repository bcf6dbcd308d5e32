import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { KubernetesDependent } from "../definition/workflow-definition.js";

/** A dependent that names its object. */
export type ReferringDependent = Pick<KubernetesDependent, "name" | "ref" | "resource">;

/** Returns the key of the object that a primary names for a dependent; undefined if it names none. */
export function referencedKeyOf(
  { name: dependent, ref, resource }: ReferringDependent,
  primary: KubernetesObject,
): ObjectKey | undefined {
  const read = (part: "name" | "namespace"): string | undefined => {
    const stated: unknown = ref?.[part];
    const value: unknown = typeof stated === "function" ? stated({ primary }) : stated;
    // An empty text in a spec is how people write that they name nothing.
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
