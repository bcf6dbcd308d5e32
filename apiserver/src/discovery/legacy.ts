import { createHash } from "node:crypto";
import type { ServedType } from "../builtin/served-type.js";
import type { JsonObject } from "../json.js";
import type { Group, GroupVersion } from "./groups.js";

/** Describes `/api`: the versions of the core group. */
export function coreVersions(): JsonObject {
  const serverAddressByClientCIDRs = [{ clientCIDR: "0.0.0.0/0", serverAddress: "" }];
  return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs };
}

/** Describes `/apis`: all named groups. */
export function groupList(groups: Group[]): JsonObject {
  const named = groups.filter(({ name }) => name !== "").map(groupMembers);
  return { kind: "APIGroupList", apiVersion: "v1", groups: named };
}

/** Describes `/apis/{group}`. */
export function groupDescription(group: Group): JsonObject {
  return { kind: "APIGroup", apiVersion: "v1", ...groupMembers(group) };
}

function groupMembers({ name, versions }: Group): JsonObject {
  const all = versions.map(({ name: groupVersion, version }) => ({ groupVersion, version }));
  return { name, versions: all, preferredVersion: all[0] ?? null };
}

/** Describes `/api/v1` and `/apis/{group}/{version}`: the resources and their subresources. */
export function resourceList({ group, name, types }: GroupVersion): JsonObject {
  return {
    kind: "APIResourceList",
    ...(group === "" ? {} : { apiVersion: "v1" }),
    groupVersion: name,
    resources: types.flatMap((type) => [resourceOf(type), ...subresourcesOf(type)]),
  };
}

function resourceOf(type: ServedType): JsonObject {
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
