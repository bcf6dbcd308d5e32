import type { ApiClient } from "@gen-operator/runtime";
import { parseExactJson } from "@gen-operator/schema";
import { type Diagnostic, type Rule, didYouMean, quote } from "../diagnostic.js";
import {
  CUSTOM_RESOURCE_DEFINITION,
  type ClusterOptions,
  describeClusterProblem,
  openCluster,
  pathOfCrd,
} from "./cluster.js";
import { hasRounded } from "./crd/crd-schema.js";
import { type OpenApiKind, extractKind, readBuiltinKinds } from "./kinds.js";
import type { ProjectFile } from "./project-files.js";
import type { Inputs } from "./read-inputs.js";
import { KNOWN_KIND, UNKNOWN_KIND, UNREADABLE_CLUSTER } from "./rules.js";
import { isRecord } from "./yaml/values.js";

interface ClusterCrd {
  readonly name: string;
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  readonly object: { readonly [field: string]: unknown };
}

/**
 * Reads kinds from a cluster, by the name of the CRD (`webpages.example.com`), the kind (`WebPage`), its plural, or `group/Kind`.
 *
 * A CRD is returned as a manifest that can be applied elsewhere; a kind without a CRD, such as one of an aggregated API, as an OpenAPI document.
 */
export async function readClusterKinds(
  wanted: readonly string[],
  { timeoutMs = TIMEOUT_MS, ...options }: ClusterOptions & { readonly timeoutMs?: number },
): Promise<Inputs> {
  const unreadable = (message: string, hint?: string): Inputs => ({
    files: [],
    diagnostics: [{ ...UNREADABLE_CLUSTER.violation, message, ...(hint === undefined ? {} : { hint }) }],
  });
  let client: ApiClient;
  try {
    client = await openCluster(options);
  } catch (error) {
    const { messageOf } = await import("@gen-operator/runtime");
    return unreadable(messageOf(error));
  }
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const crds = (await client.list({ definition: CUSTOM_RESOURCE_DEFINITION }, { signal })).flatMap(
      (object) => describe(object as unknown as ClusterCrd["object"]) ?? [],
    );
    const cluster = { client, crds, signal };
    const found = await Promise.all([...new Set(wanted)].map((name) => readKind(cluster, name)));
    const files = new Map(found.flatMap((each) => ("rule" in each ? [] : [[each.file, each] as const])));
    return { files: [...files.values()], diagnostics: found.flatMap((each) => ("rule" in each ? [each] : [])) };
  } catch (error) {
    const { message, advice } = await describeClusterProblem(error, { client, forbidden: FORBIDDEN });
    return unreadable(message, advice);
  } finally {
    await client.close();
  }
}

/** Timeout of all requests together. */
const TIMEOUT_MS = 30_000;

const FORBIDDEN =
  "ask for permission to get and list customresourcedefinitions, or for a file with the CRD: kubectl get crd NAME -o yaml";

interface ReadCluster {
  readonly client: ApiClient;
  readonly crds: readonly ClusterCrd[];
  readonly signal: AbortSignal;
}

function describe(object: ClusterCrd["object"]): ClusterCrd | undefined {
  const { metadata, spec } = object;
  if (!isRecord(metadata) || !isRecord(spec) || !isRecord(spec["names"])) return undefined;
  const { kind, plural } = spec["names"];
  return {
    name: String(metadata["name"]),
    group: String(spec["group"]),
    kind: String(kind),
    plural: String(plural),
    object,
  };
}

async function readKind(cluster: ReadCluster, wanted: string): Promise<ProjectFile | Diagnostic> {
  const { client, crds, signal } = cluster;
  const found = findCrds(wanted, crds);
  const [crd] = found;
  if (crd !== undefined) {
    if (found.length > 1)
      return several(
        wanted,
        "CustomResourceDefinitions",
        found.map(({ name }) => name),
      );
    // The parsed object has rounded integers beyond 2^53, so read the text of the response.
    const text = hasRounded(crd.object) ? await client.readPath(pathOfCrd(crd.name), { signal }) : undefined;
    const { stringify } = await import("yaml");
    const object = text === undefined ? crd.object : (parseExactJson(text) as ClusterCrd["object"]);
    return { file: `<cluster>/${crd.name}.yaml`, text: stringify(withoutState(crd.name, object), { lineWidth: 0 }) };
  }
  const served = await findServedKinds(client, wanted, signal);
  const names = [...new Set(served.map(({ plural, group }) => (group === "" ? plural : `${plural}.${group}`)))];
  if (names.length > 1) return several(wanted, "kinds", names);
  const kind = served.find(({ isPreferred }) => isPreferred) ?? served[0];
  const [name] = names;
  if (kind === undefined || name === undefined) {
    const candidates = crds.flatMap((each) => [each.name, each.kind]);
    const hint = didYouMean(wanted, candidates) ?? { hint: "run kubectl api-resources to list its kinds" };
    return fail(UNKNOWN_KIND, `kind ${quote(wanted)} not found in the cluster`, hint);
  }
  return readServedKind(cluster, kind, name);
}

async function readServedKind(
  { client, signal }: ReadCluster,
  kind: ServedKind,
  name: string,
): Promise<ProjectFile | Diagnostic> {
  const { group, version } = kind;
  const fullName = [...(group === "" ? [] : [group]), version, kind.kind].join("/");
  const { kinds } = await readBuiltinKinds();
  if (kinds.some((each) => each.group === group && each.version === version && each.kind === kind.kind))
    return fail(KNOWN_KIND, `kind ${quote(fullName)} is built into Kubernetes, and @gen-operator/kinds has its class`, {
      hint: `use it in workflow.yaml, or import it from "@gen-operator/kinds/${group || "core"}/${version}"`,
    });
  const text = await client.readPath(`/openapi/v3${pathOf(kind)}`, { signal });
  const document = text === undefined ? undefined : extractKind(text, kind);
  if (document === undefined)
    return fail(UNKNOWN_KIND, `schema of kind ${quote(fullName)} not found in the OpenAPI document of the API server`, {
      hint: `use it in workflow.yaml without types: resource: { apiVersion: ${fullName.slice(0, -kind.kind.length - 1)}, kind: ${kind.kind}, plural: ${kind.plural}, scope: ${kind.isNamespaced ? "Namespaced" : "Cluster"} }`,
    });
  return { file: `<cluster>/${name}.json`, text: document };
}

function findCrds(wanted: string, crds: readonly ClusterCrd[]): ClusterCrd[] {
  const lower = wanted.toLowerCase();
  const [group, kind] = wanted.includes("/") ? [wanted.split("/")[0], wanted.split("/").at(-1)?.toLowerCase()] : [];
  return crds.filter((crd) =>
    kind === undefined
      ? [crd.name, crd.kind, crd.plural].some((name) => name.toLowerCase() === lower)
      : crd.group === group && crd.kind.toLowerCase() === kind,
  );
}

function several(wanted: string, what: string, names: readonly string[]): Diagnostic {
  const hint = `use one of ${[...names].sort().join(", ")}`;
  return fail(UNKNOWN_KIND, `kind ${quote(wanted)} is ambiguous: the cluster has several ${what}`, { hint });
}

function fail(rule: Rule<"error">, message: string, hint: { readonly hint: string } | undefined): Diagnostic {
  return { ...rule.violation, message, ...hint };
}

/** Removes fields that the API server has set: they do not describe the kind, and cannot be applied. */
function withoutState(name: string, object: ClusterCrd["object"]): object {
  const { labels, annotations } = object["metadata"] as { labels?: object; annotations?: { [name: string]: string } };
  const stated = Object.entries(annotations ?? {}).filter(
    ([key]) => key !== "kubectl.kubernetes.io/last-applied-configuration",
  );
  const metadata = {
    name,
    ...(labels && { labels }),
    ...(stated.length > 0 && { annotations: Object.fromEntries(stated) }),
  };
  const { conversion, ...spec } = object["spec"] as { conversion?: { strategy?: string } };
  // The API server sets the default strategy.
  const kept = conversion?.strategy === undefined || conversion.strategy === "None" ? spec : { ...spec, conversion };
  return { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata, spec: kept };
}

/** A kind that the API server serves, and whether its version is the preferred one. */
interface ServedKind extends OpenApiKind {
  readonly isPreferred: boolean;
}

/**
 * Lists the kinds of an API server with a name, in all groups and versions. The name can be the kind, the plural, `plural.group`, `group/Kind`, or
 * `group/version/Kind`, and is case-insensitive.
 */
async function findServedKinds(client: ApiClient, wanted: string, signal: AbortSignal): Promise<ServedKind[]> {
  const lower = wanted.toLowerCase();
  const read: ReadJson = async <Answer extends object>(path: string) => {
    const answer: unknown = JSON.parse((await client.readPath(path, { signal })) ?? "{}");
    return isRecord(answer) ? (answer as Partial<Answer>) : {};
  };
  const versions = await listVersions(read);
  const lists = await Promise.all(versions.map((each) => listKinds(read, each)));
  // After a timeout, a group that did not respond may still serve the kind.
  signal.throwIfAborted();
  return lists.flat().filter(({ group, version, kind, plural }) => {
    const names = [kind, plural, `${plural}.${group}`, `${group}/${kind}`, `${group}/${version}/${kind}`];
    return [...names, ...(group === "" ? [`${version}/${kind}`] : [])].some((name) => name.toLowerCase() === lower);
  });
}

/** Reads a JSON document from the API server; empty if it is not found. */
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
  // An aggregated API server may be unavailable, which must not hide the other groups.
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

/** Returns the path of a group version, for example `/api/v1` or `/apis/apps/v1`. */
function pathOf({ group, version }: Pick<GroupVersion, "group" | "version">): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}
