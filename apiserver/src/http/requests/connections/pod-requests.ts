// What is asked of a Pod besides its object: where it goes, whether it may go, and what runs in it.
import { checkLogOptions } from "../../../decode/options/log-options.js";
import { parseWriteOptions } from "../../../decode/options/write-options.js";
import { badRequest, internalError, notFound, plainError } from "../../../errors/status-error.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject, type JsonValue } from "../../../json.js";
import { keyOf, resourceRefOf } from "../../../object/object-key.js";
import { bindPod, BINDINGS } from "../../../write/parts/bind.js";
import { admitConnection, isConnection } from "../../../write/parts/connect.js";
import { evictPod, EVICTION } from "../../../write/parts/evict.js";
import { partResource } from "../../../write/parts/part-resource.js";
import type { ServedResource } from "../../../registry/served-resource.js";
import { renderValue } from "../../answer/render.js";
import type { Answer } from "../../message.js";
import { renderContextOf, writeContextOf, type ResourceRequest } from "../resource-request.js";
import { decodeBody } from "../write-requests.js";

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
