import type { JsonObject } from "../json.js";
import type { Registry } from "../registry/registry.js";
import type { ServedResource } from "../registry/served-resource.js";
import { createFirstRoles } from "./first-roles.js";
import { createObject } from "../write/create.js";
import { ownContext } from "../write/write-context.js";

const NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"];

/** Creates what every cluster has, unless it is there: its namespaces, the priority classes of the system, and the Service through which it is reached from inside. */
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
