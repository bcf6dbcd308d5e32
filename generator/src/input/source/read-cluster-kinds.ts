import type { ApiClient } from "@gen-operator/runtime";
import { didYouMean, quote, type Diagnostic } from "../../diagnostic.js";
import { readBuiltinKinds } from "../crd/builtin-kinds.js";
import { extractKind } from "../crd/open-api-kinds.js";
import type { ProjectFile } from "../project-files.js";
import { isRecord } from "../yaml/json.js";
import { CUSTOM_RESOURCE_DEFINITION, describeClusterProblem, openCluster, type ClusterOptions } from "./cluster.js";
import { findServedKinds, pathOf, type ServedKind } from "./find-served-kind.js";
import type { Inputs } from "./read-inputs.js";

interface ClusterCrd {
  readonly name: string;
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  readonly object: { readonly [field: string]: unknown };
}

/**
 * Reads kinds from a cluster, by the name of the definition (`webpages.example.com`), the kind (`WebPage`), its plural, or `group/Kind`; a CRD
 * as a file that could be applied elsewhere, and a kind without one, as those of aggregated APIs are, as an OpenAPI document.
 */
export async function readClusterKinds(
  wanted: readonly string[],
  { timeoutMs = TIMEOUT_MS, ...options }: ClusterOptions & { readonly timeoutMs?: number },
): Promise<Inputs> {
  const unreadable = (message: string, hint?: string): Inputs => ({
    files: [],
    diagnostics: [{ severity: "error", rule: "unreadable-cluster", message, ...(hint === undefined ? {} : { hint }) }],
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

/** How long a cluster may take for all that it is asked. */
const TIMEOUT_MS = 30_000;

const FORBIDDEN =
  "ask for the right to read CustomResourceDefinitions, or let somebody who has it save the CRD, and name the file: kubectl get crd NAME -o yaml";

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
    const { stringify } = await import("yaml");
    return { file: `<cluster>/${crd.name}.yaml`, text: stringify(withoutState(crd), { lineWidth: 0 }) };
  }
  const served = await findServedKinds(client, wanted, signal);
  const names = [...new Set(served.map(({ plural, group }) => (group === "" ? plural : `${plural}.${group}`)))];
  if (names.length > 1) return several(wanted, "kinds", names);
  const kind = served.find(({ isPreferred }) => isPreferred) ?? served[0];
  const [name] = names;
  if (kind === undefined || name === undefined) {
    const candidates = crds.flatMap((each) => [each.name, each.kind]);
    const hint = didYouMean(wanted, candidates) ?? { hint: "kubectl api-resources lists what it serves" };
    return fail("unknown-kind", `the cluster serves no kind ${quote(wanted)}`, hint);
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
    return fail("known-kind", `${quote(fullName)} is a kind of Kubernetes, and @gen-operator/kinds has its class`, {
      hint: `name it in workflow.yaml, or import it from "@gen-operator/kinds/${group || "core"}/${version}"`,
    });
  const text = await client.readPath(`/openapi/v3${pathOf(kind)}`, { signal });
  const document = text === undefined ? undefined : extractKind(text, kind);
  if (document === undefined)
    return fail("unknown-kind", `the API server publishes no schema of ${quote(fullName)}`, {
      hint: `describe it in workflow.yaml without types: resource: { apiVersion: ${fullName.slice(0, -kind.kind.length - 1)}, kind: ${kind.kind}, plural: ${kind.plural}, scope: ${kind.isNamespaced ? "Namespaced" : "Cluster"} }`,
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
  const hint = `name one: ${[...names].sort().join(", ")}`;
  return fail("unknown-kind", `the cluster has several ${what} for ${quote(wanted)}`, { hint });
}

function fail(rule: string, message: string, hint: { readonly hint: string } | undefined): Diagnostic {
  return { severity: "error", rule, message, ...hint };
}

/** What the server has added says nothing about the kind, and cannot be applied. */
function withoutState({ name, object }: ClusterCrd): object {
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
  // The server writes the default down.
  const kept = conversion?.strategy === undefined || conversion.strategy === "None" ? spec : { ...spec, conversion };
  return { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata, spec: kept };
}
