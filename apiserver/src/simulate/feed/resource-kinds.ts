import type { Requests } from "./api-client.js";
import type { KubernetesObject, ResourceKind } from "./kubernetes-object.js";

interface DiscoveryList {
  items: { metadata?: { name?: string }; versions: { version: string; resources?: DiscoveredResource[] }[] }[];
}

interface DiscoveredResource {
  resource: string;
  singularResource?: string;
  responseKind?: { kind: string };
  scope: "Namespaced" | "Cluster";
  verbs: string[];
}

// Aggregated discovery: beta in Kubernetes 1.27, GA in 1.30.
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** A resource in one of its served versions. */
export interface ServedKind extends ResourceKind {
  singular: string;
}

/** Discovers all resources, each in its preferred version. */
export async function readKinds(client: Requests): Promise<ResourceKind[]> {
  const kinds = new Map<string, ResourceKind>();
  // Discovery lists versions in order of preference.
  for (const kind of await readServedKinds(client)) if (!kinds.has(keyOf(kind))) kinds.set(keyOf(kind), kind);
  return [...kinds.values()];
}

/** Discovers all resources in all versions. */
export async function readServedKinds(client: Requests): Promise<ServedKind[]> {
  const lists = await Promise.all(
    ["/api", "/apis"].map((path) => client.request<DiscoveryList>({ method: "GET", path, accept: AGGREGATED })),
  );
  return lists
    .flatMap((list) => list.items)
    .flatMap(({ metadata, versions }) =>
      versions.flatMap(({ version, resources = [] }) =>
        resources.flatMap((resource) => kindOf(metadata?.name ?? "", version, resource) ?? []),
      ),
    );
}

/** The key of a resource, independent of its version: `deployments.apps`, or `pods.` in the core group. Not resourceNameOf, which omits the period. */
export function keyOf({ group, plural }: Pick<ResourceKind, "group" | "plural">): string {
  return `${plural}.${group}`;
}

/** Reports whether objects of a kind can be listed and deleted. */
export function isDeletable({ verbs }: ResourceKind): boolean {
  return ["delete", "list"].every((verb) => verbs.includes(verb));
}

/** Reports whether the garbage collector handles a kind. Like kube-controller-manager, it ignores Events. */
export function isCollectable(kind: ResourceKind): boolean {
  return isDeletable(kind) && kind.verbs.includes("watch") && kind.plural !== "events";
}

function kindOf(group: string, version: string, resource: DiscoveredResource): ServedKind | undefined {
  if (resource.responseKind === undefined) return undefined;
  const { resource: plural, singularResource: singular = "", responseKind, scope, verbs } = resource;
  return { group, version, kind: responseKind.kind, plural, singular, namespaced: scope === "Namespaced", verbs };
}

/** The fields of a CRD that are needed to reach its custom resources. */
export interface CustomResourceDefinition extends KubernetesObject {
  spec: {
    group: string;
    scope: "Namespaced" | "Cluster";
    names: { kind: string; plural: string };
    versions: { name: string; served: boolean; storage: boolean }[];
  };
  status?: { conditions?: { type: string; status: string }[] };
}

const CUSTOM_RESOURCE_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** Returns the resource that a CRD defines; undefined while it is not served. */
export function kindOfCrd({ metadata, spec, status }: CustomResourceDefinition): ResourceKind | undefined {
  const isEstablished = status?.conditions?.some(({ type, status }) => type === "Established" && status === "True");
  const version = spec.versions.find(({ served }) => served)?.name;
  if (isEstablished !== true || version === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  const { kind, plural } = spec.names;
  const namespaced = spec.scope === "Namespaced";
  return { group: spec.group, version, kind, plural, namespaced, verbs: CUSTOM_RESOURCE_VERBS };
}
