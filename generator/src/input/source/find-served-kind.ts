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
export async function findServedKinds(client: ApiClient, wanted: string): Promise<ServedKind[]> {
  const lower = wanted.toLowerCase();
  const versions = await listVersions(client);
  const lists = await Promise.all(versions.map((each) => listKinds(client, each)));
  return lists.flat().filter(({ group, version, kind, plural }) => {
    const names = [kind, plural, `${plural}.${group}`, `${group}/${kind}`, `${group}/${version}/${kind}`];
    return [...names, ...(group === "" ? [`${version}/${kind}`] : [])].some((name) => name.toLowerCase() === lower);
  });
}

interface GroupVersion {
  readonly group: string;
  readonly version: string;
  readonly isPreferred: boolean;
}

async function listVersions(client: ApiClient): Promise<GroupVersion[]> {
  const { versions = [] } = await readJson<{ versions?: readonly string[] }>(client, "/api");
  const { groups = [] } = await readJson<{
    groups?: readonly {
      readonly name: string;
      readonly versions: readonly { readonly version: string }[];
      readonly preferredVersion?: { readonly version: string };
    }[];
  }>(client, "/apis");
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

async function listKinds(client: ApiClient, { group, version, isPreferred }: GroupVersion): Promise<ServedKind[]> {
  const path = pathOf({ group, version });
  // The server of an aggregated API may be down, which says nothing about the others.
  const { resources = [] } = await readJson<{ resources?: readonly ApiResource[] }>(client, path).catch(() => ({
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

async function readJson<Answer extends object>(client: ApiClient, path: string): Promise<Partial<Answer>> {
  const answer: unknown = JSON.parse((await client.readPath(path)) ?? "{}");
  return isRecord(answer) ? (answer as Partial<Answer>) : {};
}
