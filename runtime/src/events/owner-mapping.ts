import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { PRIMARY_NAME, PRIMARY_NAMESPACE, PRIMARY_TYPE, typeOfPrimary } from "../cluster/primary-link.js";

/**
 * Returns the keys of the primaries that an object belongs to: those in its owner references, whatever the version, and the one in its
 * annotations (JOSDK Mappers.fromOwnerReferences, fromDefaultAnnotations).
 */
export function createOwnerMapping(primary: ResourceDefinition): (object: KubernetesObject) => readonly ObjectKey[] {
  const type = typeOfPrimary(primary);
  return ({ metadata }) => {
    const keys: ObjectKey[] = [];
    for (const { apiVersion, kind, name } of metadata.ownerReferences ?? []) {
      if (kind !== primary.kind || groupOf(apiVersion) !== primary.group) continue;
      keys.push(keyOf({ name, namespace: primary.scope === "Namespaced" ? metadata.namespace : undefined }));
    }
    const annotations = metadata.annotations;
    const name = annotations?.[PRIMARY_NAME];
    if (annotations !== undefined && name !== undefined && annotations[PRIMARY_TYPE] === type) {
      const key = keyOf({ name, namespace: annotations[PRIMARY_NAMESPACE] });
      if (!keys.includes(key)) keys.push(key);
    }
    return keys;
  };
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash === -1 ? "" : apiVersion.slice(0, slash);
}
