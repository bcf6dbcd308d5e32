import type { ObjectRef } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";

/** Returns the path of a collection: all namespaces unless one is given. */
export function collectionPath({ group, version, plural, scope }: ResourceDefinition, namespace?: string): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scoped = scope === "Namespaced" && namespace !== undefined;
  return scoped ? `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}` : `${root}/${plural}`;
}

/** Returns the path of one object, or of a subresource of it. */
export function objectPath(
  definition: ResourceDefinition,
  { name, namespace }: ObjectRef,
  subresource?: string,
): string {
  const path = `${collectionPath(definition, namespace)}/${encodeURIComponent(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Returns `?a=b&c=d` of the parameters that are defined, or the empty string. */
export function queryOf(parameters: { readonly [name: string]: string | number | boolean | undefined }): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
