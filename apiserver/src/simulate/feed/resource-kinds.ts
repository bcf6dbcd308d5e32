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

// Aggregated discovery: beta in Kubernetes 1.27, stable in 1.30.
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** A kind in one of the versions that the server offers. */
export interface ServedKind extends ResourceKind {
  singular: string;
}

/** Reads which kinds the server offers, each once, in the version that it prefers. */
export async function readKinds(client: Requests): Promise<ResourceKind[]> {
  const kinds = new Map<string, ResourceKind>();
  // Versions come in the order of preference.
  for (const kind of await readServedKinds(client)) if (!kinds.has(keyOf(kind))) kinds.set(keyOf(kind), kind);
  return [...kinds.values()];
}

/** Reads which kinds the server offers, in every version. */
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

/** Identifies a kind whatever its version. */
export function keyOf({ group, plural }: Pick<ResourceKind, "group" | "plural">): string {
  return `${plural}.${group}`;
}

/** Has this kind objects that can be listed and deleted? */
export function isDeletable({ verbs }: ResourceKind): boolean {
  return ["delete", "list"].every((verb) => verbs.includes(verb));
}

/** Is this a kind that the garbage collector looks at? As the real one, it takes no notice of events. */
export function isCollectable(kind: ResourceKind): boolean {
  return isDeletable(kind) && kind.verbs.includes("watch") && kind.plural !== "events";
}

function kindOf(group: string, version: string, resource: DiscoveredResource): ServedKind | undefined {
  if (resource.responseKind === undefined) return undefined;
  const { resource: plural, singularResource: singular = "", responseKind, scope, verbs } = resource;
  return { group, version, kind: responseKind.kind, plural, singular, namespaced: scope === "Namespaced", verbs };
}

/** A custom resource definition, as far as it says how its objects are reached. */
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

/** The kind that a custom resource definition adds; undefined while the server does not offer it. */
export function kindOfCrd({ metadata, spec, status }: CustomResourceDefinition): ResourceKind | undefined {
  const isEstablished = status?.conditions?.some(({ type, status }) => type === "Established" && status === "True");
  const version = spec.versions.find(({ served }) => served)?.name;
  if (isEstablished !== true || version === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  const { kind, plural } = spec.names;
  const namespaced = spec.scope === "Namespaced";
  return { group: spec.group, version, kind, plural, namespaced, verbs: CUSTOM_RESOURCE_VERBS };
}
