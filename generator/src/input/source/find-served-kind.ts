import type { ApiClient } from "@gen-operator/runtime";
import { isRecord } from "../yaml/json.js";
import type { OpenApiKind } from "../crd/open-api-kinds.js";

/** A kind that an API server serves, and whether its version is the one that the server prefers. */
export interface ServedKind extends OpenApiKind {
  readonly isPreferred: boolean;
}

/**
 * Lists the kinds of an API server of that name, in all groups and versions: by kind, plural, `plural.group`, `group/Kind` or
 * `group/version/Kind`, in any case of letters.
 */
export async function findServedKinds(client: ApiClient, wanted: string, signal: AbortSignal): Promise<ServedKind[]> {
  const lower = wanted.toLowerCase();
  const read: ReadJson = async <Answer extends object>(path: string) => {
    const answer: unknown = JSON.parse((await client.readPath(path, { signal })) ?? "{}");
    return isRecord(answer) ? (answer as Partial<Answer>) : {};
  };
  const versions = await listVersions(read);
  const lists = await Promise.all(versions.map((each) => listKinds(read, each)));
  // A group that did not answer in time is not known to lack the kind.
  signal.throwIfAborted();
  return lists.flat().filter(({ group, version, kind, plural }) => {
    const names = [kind, plural, `${plural}.${group}`, `${group}/${kind}`, `${group}/${version}/${kind}`];
    return [...names, ...(group === "" ? [`${version}/${kind}`] : [])].some((name) => name.toLowerCase() === lower);
  });
}

/** Reads a document of the server; an empty one if there is none. */
type ReadJson = <Answer extends object>(path: string) => Promise<Partial<Answer>>;

interface GroupVersion {
  readonly group: string;
  readonly version: string;
  readonly isPreferred: boolean;
}

async function listVersions(read: ReadJson): Promise<GroupVersion[]> {
  const { versions = [] } = await read<{ versions?: readonly string[] }>("/api");
  const { groups = [] } = await read<{
    groups?: readonly {
      readonly name: string;
      readonly versions: readonly { readonly version: string }[];
      readonly preferredVersion?: { readonly version: string };
    }[];
  }>("/apis");
  return [
    ...versions.map((version) => ({ group: "", version, isPreferred: true })),
    ...groups.flatMap(({ name, versions: own, preferredVersion }) =>
      own.map(({ version }) => ({ group: name, version, isPreferred: version === preferredVersion?.version })),
    ),
  ];
}

interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

async function listKinds(read: ReadJson, { group, version, isPreferred }: GroupVersion): Promise<ServedKind[]> {
  const path = pathOf({ group, version });
  // The server of an aggregated API may be down, which says nothing about the others.
  const { resources = [] } = await read<{ resources?: readonly ApiResource[] }>(path).catch(() => ({
    resources: [],
  }));
  const names = new Set(resources.map(({ name }) => name));
  return resources
    .filter(({ name }) => !name.includes("/"))
    .map(({ name, kind, namespaced, verbs }) => ({
      ...{ group, version, kind, plural: name, isNamespaced: namespaced, verbs, isPreferred },
      hasStatusSubresource: names.has(`${name}/status`),
    }));
}

/** Returns the path of a group version: `/api/v1`, `/apis/apps/v1`. */
export function pathOf({ group, version }: Pick<GroupVersion, "group" | "version">): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}
