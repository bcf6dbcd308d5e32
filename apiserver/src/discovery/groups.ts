import { createHash } from "node:crypto";
import type { ServedType } from "../builtin/served-type.js";
import { compareVersions } from "../builtin/versions.js";
import type { JsonObject } from "../json.js";

/** An API group in one version, with its types. */
export interface GroupVersion {
  group: string;
  version: string;
  /** As in apiVersion: `v1` or `apps/v1`. */
  name: string;
  types: ServedType[];
}

/** An API group with its versions, the preferred version first. */
export interface Group {
  name: string;
  versions: GroupVersion[];
}

/** Groups types by API group and version. Groups are in the order of their first type, versions in order of priority. */
export function groupsOf(types: ServedType[]): Group[] {
  const groups = new Map<string, Map<string, GroupVersion>>();
  for (const type of types) {
    const { group, version } = type;
    const versions = groups.get(group) ?? new Map<string, GroupVersion>();
    groups.set(group, versions);
    const name = group === "" ? version : `${group}/${version}`;
    const entry = versions.get(version) ?? { group, version, name, types: [] };
    versions.set(version, entry);
    entry.types.push(type);
  }
  return [...groups].map(([name, versions]) => ({
    name,
    versions: [...versions.values()].sort((a, b) => compareVersions(a.version, b.version)),
  }));
}

/** The media type of aggregated discovery. */
export const AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Builds the aggregated discovery document: all given groups with their resources. */
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
  return { version, resources: types.map(aggregatedResourceOf), freshness: "Current" };
}

function aggregatedResourceOf(type: ServedType): JsonObject {
  // Built-in types leave the group and version of their kind empty.
  const { group, version } = type.custom === undefined ? { group: "", version: "" } : type;
  return {
    resource: type.plural,
    responseKind: { group, version, kind: type.kind },
    scope: type.namespaced ? "Namespaced" : "Cluster",
    singularResource: type.singular,
    verbs: type.verbs,
    ...(type.shortNames.length === 0 ? {} : { shortNames: type.shortNames }),
    ...(type.categories.length === 0 ? {} : { categories: type.categories }),
    ...(type.subresources.length === 0 ? {} : { subresources: type.subresources.map(aggregatedSubresourceOf) }),
  };
}

function aggregatedSubresourceOf(subresource: ServedType["subresources"][number]): JsonObject {
  const { name, kind, group, version, verbs } = subresource;
  return { subresource: name, responseKind: { group, version, kind }, verbs };
}

/** Builds the response of `/api`: the versions of the core group. */
export function coreVersions(): JsonObject {
  const serverAddressByClientCIDRs = [{ clientCIDR: "0.0.0.0/0", serverAddress: "" }];
  return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs };
}

/** Builds the response of `/apis`: all named groups. */
export function groupList(groups: Group[]): JsonObject {
  const named = groups.filter(({ name }) => name !== "").map(groupMembers);
  return { kind: "APIGroupList", apiVersion: "v1", groups: named };
}

/** Builds the response of `/apis/{group}`. */
export function groupDescription(group: Group): JsonObject {
  return { kind: "APIGroup", apiVersion: "v1", ...groupMembers(group) };
}

function groupMembers({ name, versions }: Group): JsonObject {
  const all = versions.map(({ name: groupVersion, version }) => ({ groupVersion, version }));
  return { name, versions: all, preferredVersion: all[0] ?? null };
}

/** Builds the response of `/api/v1` and `/apis/{group}/{version}`: the resources and their subresources. */
export function resourceList({ group, name, types }: GroupVersion): JsonObject {
  return {
    kind: "APIResourceList",
    ...(group === "" ? {} : { apiVersion: "v1" }),
    groupVersion: name,
    resources: types.flatMap((type) => [apiResourceOf(type), ...subresourcesOf(type)]),
  };
}

function apiResourceOf(type: ServedType): JsonObject {
  return {
    name: type.plural,
    singularName: type.singular,
    namespaced: type.namespaced,
    kind: type.kind,
    verbs: type.verbs,
    ...(type.shortNames.length === 0 ? {} : { shortNames: type.shortNames }),
    ...(type.categories.length === 0 ? {} : { categories: type.categories }),
    ...(type.verbs.includes("watch") ? { storageVersionHash: storageVersionHash(type) } : {}),
  };
}

function subresourcesOf(type: ServedType): JsonObject[] {
  return type.subresources.map(({ name, kind, group, version, verbs }) => {
    const isForeign = version !== "" && (group !== type.group || version !== type.version);
    return {
      name: `${type.plural}/${name}`,
      singularName: "",
      namespaced: type.namespaced,
      ...(isForeign ? { group, version } : {}),
      kind,
      verbs,
    };
  });
}

function storageVersionHash({ group, version, kind }: ServedType): string {
  return createHash("sha256").update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString("base64");
}

/** The Kubernetes release whose behavior the server reproduces. */
export const GIT_VERSION = "v1.36.3";

/** Builds the response of `/version`. */
export function versionInfo(): JsonObject {
  return {
    major: "1",
    minor: "36",
    emulationMajor: "1",
    emulationMinor: "36",
    minCompatibilityMajor: "1",
    minCompatibilityMinor: "35",
    gitVersion: GIT_VERSION,
    gitCommit: "",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: "",
    compiler: "",
    platform: "linux/amd64",
  };
}
