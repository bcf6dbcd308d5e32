import type { ServedType } from "../builtin/served-type.js";
import type { JsonObject } from "../json.js";
import type { Group, GroupVersion } from "./groups.js";

/** The media type of aggregated discovery. */
export const AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Describes all given groups with all their resources in one document. */
export function aggregatedDiscovery(groups: Group[]): JsonObject {
  return {
    kind: "APIGroupDiscoveryList",
    apiVersion: "apidiscovery.k8s.io/v2",
    metadata: {},
    items: groups.map(({ name, versions }) => ({
      metadata: name === "" ? {} : { name },
      versions: versions.map(versionOf),
    })),
  };
}

function versionOf({ version, types }: GroupVersion): JsonObject {
  return { version, resources: types.map(resourceOf), freshness: "Current" };
}

function resourceOf(type: ServedType): JsonObject {
  // Built-in types leave the group and version of their own kind empty.
  const { group, version } = type.custom === undefined ? { group: "", version: "" } : type;
  return {
    resource: type.plural,
    responseKind: { group, version, kind: type.kind },
    scope: type.namespaced ? "Namespaced" : "Cluster",
    singularResource: type.singular,
    verbs: type.verbs,
    ...(type.shortNames.length === 0 ? {} : { shortNames: type.shortNames }),
    ...(type.categories.length === 0 ? {} : { categories: type.categories }),
    ...(type.subresources.length === 0 ? {} : { subresources: type.subresources.map(subresourceOf) }),
  };
}

function subresourceOf(subresource: ServedType["subresources"][number]): JsonObject {
  const { name, kind, group, version, verbs } = subresource;
  return { subresource: name, responseKind: { group, version, kind }, verbs };
}
