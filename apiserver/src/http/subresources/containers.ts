// Subresources of Pods that access containers: logs and connections.
import type { AdmittedWrite } from "../../admission/admission.js";
import { checkLogOptions, parseConnectOptions, parseWriteOptions } from "../../decode/options.js";
import { badRequest, internalError, notFound, plainError } from "../../errors/status-error.js";
import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../../json.js";
import { keyOf, resourceRefOf } from "../../object/object-meta.js";
import { partResource } from "../../write/created-part.js";
import type { WriteContext } from "../../write/write-context.js";
import { type ResourceRequest, writeContextOf } from "../handlers.js";
import type { Answer } from "../request-info.js";

const NODES = { group: "", version: "v1", plural: "nodes" };

/** Handles a GET of a container log. Simulated containers have empty logs. */
export function readLog(on: ResourceRequest): Answer {
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

/**
 * Handles `exec`, `attach`, and `portforward`: validates the request as kube-apiserver does, then fails, because there is no kubelet to connect to.
 */
export async function refuseStream(on: ResourceRequest): Promise<never> {
  const { request, name, subresource } = on;
  const context = writeContextOf(on, parseWriteOptions(new URLSearchParams(), "CreateOptions"));
  const options = await admitConnection(context, { name, subresource, query: request.query });
  const pod = podOf(on);
  if (subresource !== "portforward") checkContainer(pod, { name, container: stringAt(options, "container") ?? "" });
  const nodeName = nodeNameOf(pod);
  if (nodeName === "") throw badRequest(`pod ${name} does not have a host assigned`);
  checkNode(on, nodeName);
  throw internalError(
    `error dialing backend: ${subresource} is not supported: the embedded API server runs no containers`,
  );
}

// As in kube-apiserver, the error for a missing node has the resource pods, and a node without addresses is an error.
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

/** The kinds of connection options, by subresource. */
const KINDS: Record<string, string> = {
  exec: "PodExecOptions",
  attach: "PodAttachOptions",
  portforward: "PodPortForwardOptions",
};

/** Runs admission for a CONNECT and returns its mutated options. */
async function admitConnection(
  context: WriteContext,
  { name, subresource, query }: { name: string; subresource: string; query: URLSearchParams },
): Promise<JsonObject> {
  const kind = KINDS[subresource] as string;
  const of = { group: "", version: "v1", kind, schemaName: `io.k8s.api.core.v1.${kind}` };
  const part = partResource(of, context.resource);
  const object = parseConnectOptions(of, query);
  part.rules.fillDefaults(object);
  const write: AdmittedWrite = { context, operation: "CONNECT", name, subresource, part, object };
  const mutated = (await context.admission?.mutate(write)) ?? object;
  await context.admission?.validate({ ...write, object: mutated });
  return mutated;
}
