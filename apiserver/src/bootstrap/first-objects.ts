import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { objectsAt } from "../builtin/read-path.js";
import { type JsonObject, clone, deepEqual } from "../json.js";
import { keyOf, metadataOf, now } from "../object/object-meta.js";
import { packageFile } from "../package-file.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import { ownContext } from "../write/write-context.js";
import { createObject, updateObject } from "../write/write-object.js";

const NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"];

/**
 * Creates the objects that every cluster has unless they exist: the system namespaces, RBAC roles and bindings, system PriorityClasses, and the
 * Service default/kubernetes.
 */
export async function createFirstObjects(registry: Registry): Promise<void> {
  const namespaces = registry.find({ group: "", version: "v1", plural: "namespaces" }) as ServedResource;
  for (const name of NAMESPACES.filter((known) => namespaces.store.get(known) === undefined)) {
    await createObject(ownContext(registry, namespaces), { kind: "Namespace", apiVersion: "v1", metadata: { name } });
  }
  createFirstRoles(registry);
  await createPriorityClasses(registry);
  const services = registry.find({ group: "", version: "v1", plural: "services" }) as ServedResource;
  if (services.store.get("default/kubernetes") === undefined)
    await createObject(ownContext(registry, services, "default"), kubernetesService());
}

const SYSTEM_CLASSES = [
  {
    name: "system-node-critical",
    value: 2_000_001_000,
    description: "Used for system critical pods that must not be moved from their current node.",
  },
  {
    name: "system-cluster-critical",
    value: 2_000_000_000,
    description:
      "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
  },
];

async function createPriorityClasses(registry: Registry): Promise<void> {
  const path = { group: "scheduling.k8s.io", version: "v1", plural: "priorityclasses" };
  const classes = registry.find(path) as ServedResource;
  for (const { name, ...rest } of SYSTEM_CLASSES.filter((known) => classes.store.get(known.name) === undefined)) {
    const head = { kind: "PriorityClass", apiVersion: "scheduling.k8s.io/v1", metadata: { name } };
    await createObject(ownContext(registry, classes), { ...head, ...rest });
  }
}

function kubernetesService(): JsonObject {
  return {
    kind: "Service",
    apiVersion: "v1",
    metadata: { name: "kubernetes", labels: { component: "apiserver", provider: "kubernetes" } },
    spec: { clusterIP: "10.0.0.1", ports: [{ name: "https", port: 443, protocol: "TCP", targetPort: 6443 }] },
  };
}

// Recorded from a kube-apiserver: its default roles and bindings.
const ROLES_FILE = packageFile("data/kubernetes-1.36-roles.json");
const GROUP = "rbac.authorization.k8s.io";
const KINDS = {
  clusterroles: "ClusterRole",
  clusterrolebindings: "ClusterRoleBinding",
  roles: "Role",
  rolebindings: "RoleBinding",
} as const;
type Plural = keyof typeof KINDS;

/** Stores the default roles and bindings that do not exist, as recorded, without admission or validation. */
function createFirstRoles(registry: Registry): void {
  const recorded = JSON.parse(readFileSync(ROLES_FILE, "utf8")) as Record<Plural, JsonObject[]>;
  const time = now();
  for (const plural of Object.keys(KINDS) as Plural[]) {
    const resource = registry.find({ group: GROUP, version: "v1", plural });
    for (const object of recorded[plural]) {
      const { name, namespace, ...rest } = metadataOf(object) as { name: string; namespace?: string };
      const key = keyOf({ namespace, name });
      if (resource?.store.get(key) !== undefined) continue;
      const place = namespace === undefined ? { name } : { name, namespace };
      const managedFields = objectsAt(rest, "managedFields").map((entry) => ({ ...entry, time }));
      const metadata = { ...place, uid: randomUUID(), creationTimestamp: time, ...rest, managedFields };
      resource?.store.put(key, { kind: KINDS[plural], apiVersion: `${GROUP}/v1`, ...object, metadata });
    }
  }
}

const NAMESPACE = "kube-system";
const NAME = "extension-apiserver-authentication";

/**
 * Publishes the client CA certificates (PEM) for aggregated API servers, in the ConfigMap kube-system/extension-apiserver-authentication.
 *
 * https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
 */
export async function publishClientAuthorities(registry: Registry, authorities: readonly string[]): Promise<void> {
  const data = { "client-ca-file": authorities.map((pem) => `${pem.trim()}\n`).join("") };
  const maps = registry.find({ group: "", version: "v1", plural: "configmaps" }) as ServedResource;
  const context = ownContext(registry, maps, NAMESPACE);
  const present = maps.store.get(keyOf({ namespace: NAMESPACE, name: NAME }))?.object;
  if (present === undefined) {
    await createObject(context, { kind: "ConfigMap", apiVersion: "v1", metadata: { name: NAME }, data });
  } else if (!deepEqual(present["data"], data)) {
    const change = (live: JsonObject) => ({ object: { ...clone(live), data }, isTracked: false });
    await updateObject(context, { name: NAME, subresource: "", isPut: false, change });
  }
}
