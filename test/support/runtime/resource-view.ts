import { type IndexFunction, ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import type { DecodedResource, ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { builtinDefinition } from "../kinds/kind-definitions.js";

/** A view of one cache for all namespaces, which the test fills as a watch would. */
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

/** Has a cache take a whole list of its kind, as of `version`. */
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
