import { didYouMean, quote, type Diagnostic } from "../../diagnostic.js";
import type { ProjectFile } from "../project-files.js";
import { isRecord } from "../yaml/json.js";
import { CUSTOM_RESOURCE_DEFINITION, openCluster, type ClusterOptions } from "./cluster.js";
import type { Inputs } from "./read-inputs.js";

interface ClusterCrd {
  readonly name: string;
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  readonly object: { readonly [field: string]: unknown };
}

/**
 * Reads CRDs from a cluster, by the name of the definition (`webpages.example.com`), the kind (`WebPage`), its plural, or `group/Kind`; each as
 * a file that could be applied elsewhere.
 */
export async function readClusterCrds(wanted: readonly string[], options: ClusterOptions): Promise<Inputs> {
  const crds = await listCrds(options);
  if (!Array.isArray(crds)) return { files: [], diagnostics: [crds] };
  const found = [...new Set(wanted)].map((name) => findCrd(name, crds));
  const { stringify } = await import("yaml");
  const files = new Map<string, ProjectFile>();
  for (const each of found)
    if (!("rule" in each)) {
      const file = `cluster/${each.name}.yaml`;
      files.set(file, { file, text: stringify(withoutState(each), { lineWidth: 0 }) });
    }
  return { files: [...files.values()], diagnostics: found.flatMap((each) => ("rule" in each ? [each] : [])) };
}

async function listCrds(options: ClusterOptions): Promise<ClusterCrd[] | Diagnostic> {
  try {
    const client = await openCluster(options);
    try {
      const objects = await client.list({ definition: CUSTOM_RESOURCE_DEFINITION });
      return objects.flatMap((object) => describe(object as unknown as ClusterCrd["object"]) ?? []);
    } finally {
      await client.close();
    }
  } catch (error) {
    const { messageOf } = await import("@gen-operator/runtime");
    return { severity: "error", rule: "unreadable-cluster", message: messageOf(error) };
  }
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

function findCrd(wanted: string, crds: readonly ClusterCrd[]): ClusterCrd | Diagnostic {
  const lower = wanted.toLowerCase();
  const [group, kind] = wanted.includes("/") ? [wanted.split("/")[0], wanted.split("/").at(-1)?.toLowerCase()] : [];
  const found = crds.filter((crd) =>
    kind === undefined
      ? [crd.name, crd.kind, crd.plural].some((name) => name.toLowerCase() === lower)
      : crd.group === group && crd.kind.toLowerCase() === kind,
  );
  const [first, second] = found;
  if (first !== undefined && second === undefined) return first;
  const fail = (message: string, hint: { hint: string } | undefined): Diagnostic => ({
    severity: "error",
    rule: "unknown-kind",
    message,
    ...hint,
  });
  if (first === undefined)
    return fail(
      `the cluster has no CustomResourceDefinition ${quote(wanted)}`,
      didYouMean(
        wanted,
        crds.flatMap(({ name, kind }) => [name, kind]),
      ),
    );
  const names = found.map(({ name }) => name).sort();
  return fail(`the cluster has several CustomResourceDefinitions for ${quote(wanted)}`, {
    hint: `name one: ${names.join(", ")}`,
  });
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
