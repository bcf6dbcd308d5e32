// The proxy of Pods, Services, and Nodes. Nothing runs behind the embedded server, so a request fails even if its destination exists.
import { isIP } from "node:net";
import { objectsAt } from "../../builtin/read-path.js";
import { quote } from "../../errors/go-format.js";
import { type StatusError, badRequest, notFound, plainError, statusError } from "../../errors/status-error.js";
import { type JsonObject, isObject, stringAt } from "../../json.js";
import { keyOf, resourceRefOf } from "../../object/object-meta.js";
import type { ResourceRequest } from "../handlers.js";

const SCHEMES = ["", "http", "https"];
const ENDPOINTS = { group: "", version: "v1", plural: "endpoints" };
const ADDRESS_TYPES = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
// Loopback, link-local, unspecified, multicast, and broadcast addresses.
const NO_UNICAST = /^(127\.|169\.254\.|0\.0\.0\.0$|22[4-9]\.|23\d\.|255\.255\.255\.255$|::1?$|fe[89ab]|ff)/i;

function serviceUnavailable(message: string): StatusError {
  return statusError({ code: 503, reason: "ServiceUnavailable", message });
}

/** The destination of a proxy request: `[scheme:]name[:port]`. */
interface Destination {
  readonly name: string;
  readonly port: string;
}

/** Validates the destination of a proxy request as kube-apiserver does, then fails with 503, because nothing can be reached. */
export function refuseProxy(on: ResourceRequest): never {
  const { plural } = on.resource.type;
  const destination = destinationOf(on);
  if (plural === "services") findEndpoint(on, destination);
  else if (plural === "nodes") findKubelet(on, destination);
  else findPod(on, destination);
  throw serviceUnavailable("error trying to reach service: the embedded API server runs no workloads");
}

function destinationOf({ name: asked, resource }: ResourceRequest): Destination {
  const parts = asked.split(":");
  const [scheme = "", name = "", port = ""] = parts.length === 3 ? parts : ["", ...parts];
  if (parts.length <= 3 && name !== "" && SCHEMES.includes(scheme)) return { name, port };
  throw badRequest(`invalid ${resource.type.kind.toLowerCase()} request ${quote(asked)}`);
}

function objectOf({ resource, namespace }: ResourceRequest, name: string): JsonObject {
  const stored = resource.store.get(keyOf({ namespace, name }));
  if (stored === undefined) throw notFound(resourceRefOf(resource.type, name));
  return stored.object;
}

function findPod(on: ResourceRequest, { name }: Destination): void {
  const [first] = objectsAt(objectOf(on, name), "status.podIPs");
  const ip = stringAt(first, "ip") ?? "";
  if (isIP(ip) === 0 || NO_UNICAST.test(ip)) throw badRequest("address not allowed");
}

function findEndpoint(on: ResourceRequest, { name, port }: Destination): void {
  const portName = /^\d+$/.test(port) ? portNameOf(objectOf(on, name), { name, port: Number(port) }) : port;
  const stored = on.registry.find(ENDPOINTS)?.store.get(keyOf({ namespace: on.namespace, name }));
  // As in Kubernetes, the error names the requested resource, not the missing Endpoints.
  if (stored === undefined) throw notFound(resourceRefOf(on.resource.type, name));
  const subsets = objectsAt(stored.object, "subsets");
  if (subsets.length === 0) throw serviceUnavailable(`no endpoints available for service ${quote(name)}`);
  const isReached = subsets.some(
    (subset) =>
      objectsAt(subset, "addresses").some(({ targetRef }) => isObject(targetRef)) &&
      objectsAt(subset, "ports").some((one) => (stringAt(one, "name") ?? "") === portName),
  );
  if (!isReached) throw serviceUnavailable(`no endpoints available for service ${quote(on.name)}`);
}

function portNameOf(service: JsonObject, { name, port }: { name: string; port: number }): string {
  const found = objectsAt(service, "spec.ports").find((one) => one["port"] === port);
  if (found === undefined) throw serviceUnavailable(`no service port ${port} found for service ${quote(name)}`);
  return stringAt(found, "name") ?? "";
}

function findKubelet(on: ResourceRequest, { name }: Destination): void {
  const addresses = objectsAt(objectOf(on, name), "status.addresses");
  if (addresses.some(({ type }) => ADDRESS_TYPES.includes(String(type)))) return;
  const known = addresses.map(({ type, address }) => `{${String(type)} ${String(address)}}`);
  throw plainError(`no preferred addresses found; known addresses: [${known.join(" ")}]`);
}
