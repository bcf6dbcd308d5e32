import type { ServedType } from "../builtin/served-type.js";
import { compareVersions } from "../builtin/versions.js";

/** One version of an API group with its types. */
export interface GroupVersion {
  group: string;
  version: string;
  /** As it stands in apiVersion: `v1` or `apps/v1`. */
  name: string;
  types: ServedType[];
}

/** An API group with its versions, the preferred one first. */
export interface Group {
  name: string;
  versions: GroupVersion[];
}

/** Sorts types into groups; groups stand in the order of their first type, versions in order of preference. */
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
