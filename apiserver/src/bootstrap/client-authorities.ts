import { clone, deepEqual, type JsonObject } from "../json.js";
import { keyOf } from "../object/object-key.js";
import type { Registry } from "../registry/registry.js";
import type { ServedResource } from "../registry/served-resource.js";
import { createObject } from "../write/create.js";
import { updateObject } from "../write/update.js";
import { ownContext } from "../write/write-context.js";

const NAMESPACE = "kube-system";
const NAME = "extension-apiserver-authentication";

/**
 * Writes down for API servers of others whose certificates prove who a client is: in PEM, in a ConfigMap that a Role lets them read.
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
