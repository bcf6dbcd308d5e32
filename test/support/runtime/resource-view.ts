import { type IndexFunction, ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import type { DecodedResource, ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { builtinDefinition } from "../kinds/kind-definitions.js";

/** Creates a view of a cache for all namespaces. The test fills the cache as a watch would. */
export function createView({
  definition = builtinDefinition("v1", "ConfigMap"),
  indexes = {},
}: { definition?: ResourceDefinition; indexes?: { readonly [name: string]: IndexFunction } } = {}): {
  view: ResourceView;
  cache: ResourceCache;
} {
  const cache = new ResourceCache();
  const view = new ResourceView(definition, indexes);
  view.attach(cache);
  return { view, cache };
}

/** Replaces the content of a cache by a list at resourceVersion `version`. */
export function listInto(
  cache: ResourceCache,
  entries: readonly DecodedResource[],
  version: string,
  options: Parameters<ResourceCache["beginReplace"]>[0] = {},
): void {
  cache.beginReplace(options);
  for (const entry of entries) cache.observe(entry);
  cache.endReplace(version);
}
