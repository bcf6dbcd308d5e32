import { arrayAt, isObject, objectAt, stringAt, type JsonObject } from "../json.js";
import { keyOf } from "../object/object-key.js";
import type { Registry } from "../registry/registry.js";

/** Where a webhook is reached. */
export interface WebhookAddress {
  host: string;
  port: number;
  /** The name that the certificate has to have. */
  serverName: string;
}

const SERVICES = { group: "", version: "v1", plural: "services" };
const SLICES = { group: "discovery.k8s.io", version: "v1", plural: "endpointslices" };

/**
 * Finds an address behind a Service, as kube-apiserver does without kube-proxy: one that is ready in its EndpointSlices.
 *
 * @throws an Error in the words of kube-apiserver when there is none.
 */
export function addressOfService(
  registry: Registry,
  service: { name: string; namespace: string; port: number },
): WebhookAddress {
  const { name, namespace } = service;
  const found = registry.find(SERVICES)?.store.get(keyOf({ namespace, name }))?.object;
  if (found === undefined) throw new Error(`service "${name}" not found`);
  const ports = (arrayAt(objectAt(found, "spec"), "ports") ?? []).filter(isObject);
  const port = ports.find((one) => one["port"] === service.port);
  if (port === undefined) throw new Error(`no service port ${service.port} found for service "${name}"`);
  const serverName = `${name}.${namespace}.svc`;
  const slices = registry.find(SLICES)?.store.list(`${namespace}/`) ?? [];
  for (const { object } of slices) {
    const labels = objectAt(objectAt(object, "metadata"), "labels");
    if (stringAt(labels, "kubernetes.io/service-name") !== name) continue;
    const target = portOf(object, stringAt(port, "name") ?? "");
    const host = readyAddressOf(object);
    if (target !== undefined && host !== undefined) return { host, port: target, serverName };
  }
  throw new Error(`no endpoints available for service "${name}"`);
}

function portOf(slice: JsonObject, name: string): number | undefined {
  const ports = (arrayAt(slice, "ports") ?? []).filter(isObject);
  const port = ports.find((one) => (stringAt(one, "name") ?? "") === name)?.["port"];
  return typeof port === "number" ? port : undefined;
}

// An endpoint that does not say whether it is ready counts as ready.
function readyAddressOf(slice: JsonObject): string | undefined {
  const endpoints = (arrayAt(slice, "endpoints") ?? []).filter(isObject);
  const ready = endpoints.find((endpoint) => objectAt(endpoint, "conditions")?.["ready"] !== false);
  return arrayAt(ready, "addresses")?.map(String)[0];
}
