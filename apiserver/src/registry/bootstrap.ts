import type { JsonObject } from "../json.js";
import { createObject } from "./create.js";
import type { Registry } from "./registry.js";
import type { ServedResource } from "./served-resource.js";
import type { WriteContext } from "./write-context.js";

const NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"];
const MANAGER = "kube-apiserver";

/** Creates what every cluster has: its namespaces and the Service through which it is reached from inside. */
export async function createFirstObjects(registry: Registry): Promise<void> {
  const namespaces = registry.find({ group: "", version: "v1", plural: "namespaces" }) as ServedResource;
  for (const name of NAMESPACES) {
    await createObject(ownContext(registry, namespaces), { kind: "Namespace", apiVersion: "v1", metadata: { name } });
  }
  const services = registry.find({ group: "", version: "v1", plural: "services" }) as ServedResource;
  await createObject(ownContext(registry, services, "default"), kubernetesService());
}

/** Returns the context of a write that the server itself makes. */
export function ownContext(registry: Registry, resource: ServedResource, namespace?: string): WriteContext {
  return {
    registry,
    resource,
    namespace,
    manager: MANAGER,
    options: {},
    isDryRun: false,
    fieldValidation: "Ignore",
    warnings: [],
  };
}

function kubernetesService(): JsonObject {
  return {
    kind: "Service",
    apiVersion: "v1",
    metadata: { name: "kubernetes", labels: { component: "apiserver", provider: "kubernetes" } },
    spec: { clusterIP: "10.96.0.1", ports: [{ name: "https", port: 443, protocol: "TCP", targetPort: 6443 }] },
  };
}
