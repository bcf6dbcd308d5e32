// What is asked of a Pod besides its object: where it goes, whether it may go, and what runs in it.
import { isIP } from "node:net";
import { objectsAt } from "../builtin/read-path.js";
import { parseObjectBody } from "../decode/body.js";
import { checkLogOptions, parseWriteOptions } from "../decode/options.js";
import { quote } from "../errors/go-format.js";
import {
  type StatusError,
  badRequest,
  internalError,
  notFound,
  plainError,
  statusError,
} from "../errors/status-error.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, objectAt, stringAt } from "../json.js";
import { keyOf, resourceRefOf } from "../object/names.js";
import { scaleOf } from "../object/scale.js";
import type { ServedResource } from "../registry/served-resource.js";
import { checkPlace } from "../write/decode-object.js";
import { applyPatch, parseConfig, parsePatch, patchTypeOf } from "../write/patch.js";
import { SCALE_SCHEMA, applyScale, checkScaleType, decodePatchedScale, writeScale } from "../write/scale.js";
import {
  BINDINGS,
  EVICTION,
  admitConnection,
  bindPod,
  evictPod,
  isConnection,
  partResource,
} from "../write/subresources.js";
import { type WriteContext, type WriteResult, renewable } from "../write/write-context.js";
import { type ResourceRequest, decodeBody, renderContextOf, writeContextOf } from "./handlers.js";
import { renderScale, renderValue } from "./representation.js";
import type { Answer } from "./request-info.js";

const NODES = { group: "", version: "v1", plural: "nodes" };
const SUCCESS: JsonObject = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };

/** Answers what only Pods have; undefined for a subresource that other kinds have, too. */
export function answerPodRequest(on: ResourceRequest): Promise<Answer> | Answer | undefined {
  const { resource, subresource, request } = on;
  if (isBindings(on) && request.method === "POST") return bind(on);
  if (resource.type.plural !== "pods" || resource.type.group !== "") return undefined;
  if (subresource === "binding") return bind(on);
  if (subresource === "eviction") return evict(on);
  if (subresource === "log") return readLog(on);
  return isConnection(subresource) ? refuseStream(on) : undefined;
}

function isBindings({ resource: { type } }: ResourceRequest): boolean {
  return type.plural === "bindings" && type.group === "";
}

async function bind(on: ResourceRequest): Promise<Answer> {
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(on.request.query, "CreateOptions"));
  const binding = decodeBody(on, { ...context, resource: on.registry.find(BINDINGS) as ServedResource });
  const name = isBindings(on) ? (stringAt(objectAt(binding, "metadata"), "name") ?? "") : on.name;
  await bindPod(context, name, binding);
  return renderValue(render, 201, SUCCESS);
}

async function evict(on: ResourceRequest): Promise<Answer> {
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(on.request.query, "CreateOptions"));
  const part = partResource(EVICTION, on.resource);
  const object = decodeBody(on, { ...context, resource: part }, asPresentEviction);
  await evictPod(context, on.name, { part, object });
  return renderValue(render, 201, SUCCESS);
}

// Kubernetes still takes an Eviction in the version that it serves no more.
function asPresentEviction(body: JsonValue): void {
  if (isObject(body) && body["apiVersion"] === "policy/v1beta1") body["apiVersion"] = "policy/v1";
}

/** Simulated containers say nothing. */
function readLog(on: ResourceRequest): Answer {
  const { request, name, warnings } = on;
  const { query } = request;
  checkLogOptions(name, query);
  const pod = podOf(on);
  checkContainer(pod, { name, container: query.get("container") ?? "" });
  const nodeName = nodeNameOf(pod);
  if (nodeName === "") return { kind: "answer", status: 204, contentType: "", body: "", warnings };
  checkNode(on, nodeName);
  return { kind: "answer", status: 200, contentType: "text/plain", body: "", warnings };
}

// Kubelets answer these; there are none.
async function refuseStream(on: ResourceRequest): Promise<never> {
  const { request, name, subresource } = on;
  const context = writeContextOf(on, parseWriteOptions(new URLSearchParams(), "CreateOptions"));
  const options = await admitConnection(context, { name, subresource, query: request.query });
  const pod = podOf(on);
  if (subresource !== "portforward") checkContainer(pod, { name, container: stringAt(options, "container") ?? "" });
  const nodeName = nodeNameOf(pod);
  if (nodeName === "") throw badRequest(`pod ${name} does not have a host assigned`);
  checkNode(on, nodeName);
  throw internalError(
    `error dialing backend: no container runs on the embedded API server, so ${subresource} has no end`,
  );
}

// Kubernetes calls a node that is missing a Pod, and asks one with an address.
function checkNode({ registry }: ResourceRequest, name: string): void {
  const node = registry.find(NODES)?.store.get(name)?.object;
  if (node === undefined) throw notFound({ resource: "pods", group: "", name });
  const addresses = arrayAt(objectAt(node, "status"), "addresses") ?? [];
  if (addresses.length === 0) throw plainError("no preferred addresses found; known addresses: []");
}

function nodeNameOf(pod: JsonObject): string {
  return stringAt(objectAt(pod, "spec"), "nodeName") ?? "";
}

function podOf({ resource, namespace, name }: ResourceRequest): JsonObject {
  const stored = resource.store.get(keyOf({ namespace, name }));
  if (stored === undefined) throw notFound(resourceRefOf(resource.type, name));
  return stored.object;
}

function checkContainer(pod: JsonObject, { name, container }: { name: string; container: string }): void {
  const spec = objectAt(pod, "spec");
  const namesIn = (list: string) =>
    (arrayAt(spec, list) ?? []).filter(isObject).map((one) => stringAt(one, "name") ?? "");
  const containers = namesIn("containers");
  const inits = namesIn("initContainers");
  const ephemeral = namesIn("ephemeralContainers");
  if (container !== "") {
    if ([...containers, ...inits, ...ephemeral].includes(container)) return;
    throw badRequest(`container ${container} is not valid for pod ${name}`);
  }
  if (containers.length === 1) return;
  const names = [...inits, ...containers, ...ephemeral].join(" ");
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${names}]`);
}

/** Answers a PUT or PATCH of a Scale. */
export async function writeScaleRequest(on: ResourceRequest): Promise<Answer> {
  const render = renderContextOf(on);
  const written = await (on.request.method === "PUT" ? putScale(on) : patchScale(on));
  return renderScale(render, 200, scaleOf(on.resource.type, written.object, { needsReplicas: false }));
}

async function putScale(on: ResourceRequest): Promise<WriteResult> {
  const { request, name } = on;
  const context = writeContextOf(on, parseWriteOptions(request.query, "UpdateOptions"));
  const { value, duplicates } = parseObjectBody(request.body, request.headers["content-type"]);
  if (!isObject(value)) throw badRequest("the object provided is unrecognized (must be of type Scale)");
  checkScaleType(context, { value, problems: duplicates() });
  checkPlace(context, name, value);
  return writeScale(context, { name, isPut: true, change: () => value });
}

async function patchScale(on: ResourceRequest): Promise<WriteResult> {
  const { request, resource, name } = on;
  const patchType = patchTypeOf(resource.type, request.headers["content-type"]);
  const options = parseWriteOptions(request.query, "PatchOptions", { isApply: patchType === "apply" });
  const context: WriteContext = writeContextOf(on, options);
  if (patchType === "apply") {
    const { config, checkDuplicates } = parseConfig(request.body);
    checkDuplicates(context);
    return applyScale(context, { name, config, force: options.force });
  }
  const parse = (): ReturnType<typeof parsePatch> => parsePatch({ patchType, body: request.body });
  const patch = renewable(parse(), parse);
  return writeScale(context, {
    name,
    isPut: false,
    change(scale) {
      const { value, problems } = patch();
      const patched = applyPatch(scale, { patchType, value, schemaName: SCALE_SCHEMA });
      return decodePatchedScale(context, { name, patched, problems });
    },
  });
}

// Where the proxy of a Pod, a Service or a Node leads. Nothing runs behind the embedded server, so what is found cannot be reached.

const SCHEMES = ["", "http", "https"];
const ENDPOINTS = { group: "", version: "v1", plural: "endpoints" };
const ADDRESS_TYPES = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
// Loopback, link-local, unspecified, multicast and broadcast addresses.
const NO_UNICAST = /^(127\.|169\.254\.|0\.0\.0\.0$|22[4-9]\.|23\d\.|255\.255\.255\.255$|::1?$|fe[89ab]|ff)/i;

function serviceUnavailable(message: string): StatusError {
  return statusError({ code: 503, reason: "ServiceUnavailable", message });
}

/** What a path asks to reach: `[scheme:]name[:port]`. */
interface Destination {
  readonly name: string;
  readonly port: string;
}

/** Refuses a request to a proxy, which has its reason. */
export function refuseProxy(on: ResourceRequest): never {
  const { plural } = on.resource.type;
  const destination = destinationOf(on);
  if (plural === "services") findEndpoint(on, destination);
  else if (plural === "nodes") findKubelet(on, destination);
  else findPod(on, destination);
  throw serviceUnavailable("error trying to reach service: nothing runs behind the embedded API server");
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
  // Kubernetes names what was asked for, not what is missing.
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
