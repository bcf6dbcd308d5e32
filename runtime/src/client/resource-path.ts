import { describeObject, type ObjectRef } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";

/** Returns the path of a collection. Default: all namespaces */
export function collectionPath({ group, version, plural, scope }: ResourceDefinition, namespace?: string): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scoped = scope === "Namespaced" && namespace !== undefined;
  return scoped ? `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}` : `${root}/${plural}`;
}

/** Returns what messages call a collection. */
export function describeCollection({ plural }: ResourceDefinition, namespace: string | undefined): string {
  return namespace === undefined ? plural : `${plural} in "${namespace}"`;
}

/** Returns the path of one object, or of a subresource of it; throws if the reference names none. */
export function objectPath(definition: ResourceDefinition, ref: ObjectRef, subresource?: string): string {
  checkSegment(definition, ref, "name");
  const path = `${parentPath(definition, ref)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Returns the path of the collection that has an object; throws if the reference lacks the namespace that its kind needs. */
export function parentPath(definition: ResourceDefinition, ref: ObjectRef): string {
  if (definition.scope === "Namespaced") checkSegment(definition, ref, "namespace");
  return collectionPath(definition, ref.namespace);
}

// As client-go has it (IsValidPathSegmentName). An empty name, and "/", would make the path that of all objects of the kind.
const NO_SEGMENT = /^\.\.?$|[/%]/;

function checkSegment(definition: ResourceDefinition, ref: ObjectRef, member: "name" | "namespace"): void {
  const value = ref[member];
  if (value && !NO_SEGMENT.test(value)) return;
  const problem = value
    ? `has "${value}" for its ${member}, which no object can have`
    : `states no ${member}, which its kind needs`;
  throw new Error(`${describeObject(definition, ref)} ${problem}`);
}

/** Returns `?a=b&c=d` of the parameters that are defined, or the empty string. */
export function queryOf(parameters: { readonly [name: string]: string | number | boolean | undefined }): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
