// Binds a Pod to a Node: the `binding` subresource of Pods, and a POST to `bindings`. Bindings are not stored.
import { parseWriteOptions } from "../../decode/options.js";
import { type FieldError, fieldErrorText, requiredError, textNotSupportedError } from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import { badRequest, conflict, notFound, plainError, storagePreconditionFailed } from "../../errors/status-error.js";
import { type JsonObject, arrayAt, clone, isObject, objectAt, stringAt } from "../../json.js";
import { setCondition } from "../../object/conditions.js";
import { isTerminating, keyOf, metadataOf, resourceRefOf, storageKeyOf } from "../../object/object-meta.js";
import type { ServedResource } from "../../registry/registry.js";
import type { StoredObject } from "../../storage/store.js";
import { SUCCESS, admitPart, checkPartName } from "../../write/created-part.js";
import type { WriteContext } from "../../write/write-context.js";
import { type ResourceRequest, decodeBody, renderContextOf, writeContextOf } from "../handlers.js";
import { renderValue } from "../representation.js";
import type { Answer } from "../request-info.js";

/** Handles a Binding, as a subresource of the Pod or in the collection of Bindings. */
export async function bind(on: ResourceRequest): Promise<Answer> {
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(on.request.query, "CreateOptions"));
  const binding = decodeBody(on, { ...context, resource: on.registry.find(BINDINGS) as ServedResource });
  const isOfCollection = on.subresource === "";
  const name = isOfCollection ? (stringAt(objectAt(binding, "metadata"), "name") ?? "") : on.name;
  await bindPod(context, name, binding);
  return renderValue(render, 201, SUCCESS);
}

const BINDINGS = { group: "", version: "v1", plural: "bindings" };
const PODS = { group: "", version: "v1", plural: "pods" };

/** Sets the node of a Pod. The managedFields and the generation of the Pod do not change. `context.resource` is that of Pods or of Bindings. */
async function bindPod(context: WriteContext, name: string, given: JsonObject): Promise<void> {
  const { registry, namespace, isDryRun } = context;
  const subresource = context.resource.type.plural === "pods" ? "binding" : "";
  const created = { name, subresource, part: registry.find(BINDINGS) as ServedResource, object: given };
  const binding = await admitPart(context, created, {
    isTracked: true,
    check(object) {
      checkPartName(object, { kind: "Binding", name });
      const errors = checkTarget(objectAt(object, "target"));
      const texts = errors.map(fieldErrorText);
      if (texts.length > 0) throw plainError(texts.length === 1 ? String(texts[0]) : `[${texts.join(", ")}]`);
      return object;
    },
  });
  if (name === "") throw badRequest("Name parameter required.");
  const resource = registry.find(PODS) as ServedResource;
  const key = keyOf({ namespace, name });
  const stored = resource.store.get(key);
  if (stored === undefined) throw notFound(resourceRefOf(resource.type, name));
  checkMeant({ ...context, resource }, stored, metadataOf(binding));
  const problem = problemOf(name, stored.object);
  if (problem !== undefined) throw conflict({ resource: "pods/binding", group: "", name }, problem);
  if (!isDryRun) resource.store.put(key, boundPod(stored.object, binding));
}

function checkTarget(target: JsonObject | undefined): FieldError[] {
  const kind = stringAt(target, "kind") ?? "";
  const isKnown = kind === "" || kind === "Node";
  return [
    ...(isKnown ? [] : [textNotSupportedError("target.kind", kind, ["Node", "<empty>"])]),
    ...((stringAt(target, "name") ?? "") === "" ? [requiredError("target.name")] : []),
  ];
}

// A Binding may have preconditions: the uid and resourceVersion of the Pod.
function checkMeant(context: WriteContext, { key, object }: StoredObject, meant: JsonObject): void {
  const { type } = context.resource;
  const live = metadataOf(object);
  const fields = { UID: "uid", ResourceVersion: "resourceVersion" } as const;
  for (const [field, member] of Object.entries(fields) as [keyof typeof fields, string][]) {
    const given = stringAt(meant, member) ?? "";
    if (given === "" || given === live[member]) continue;
    const mismatch = { key: storageKeyOf(type, key, context), field, given, live: String(live[member]) };
    throw storagePreconditionFailed(resourceRefOf(type, stringAt(live, "name") ?? ""), mismatch);
  }
}

function problemOf(name: string, pod: JsonObject): string | undefined {
  const spec = objectAt(pod, "spec");
  const nodeName = stringAt(spec, "nodeName") ?? "";
  if (isTerminating(pod)) return `pod ${name} is being deleted, cannot be assigned to a host`;
  if (nodeName !== "") return `pod ${name} is already assigned to node ${quote(nodeName)}`;
  const isGated = (arrayAt(spec, "schedulingGates") ?? []).length > 0;
  return isGated ? `pod ${name} has non-empty .spec.schedulingGates` : undefined;
}

function boundPod(live: JsonObject, binding: JsonObject): JsonObject {
  const pod = clone(live);
  const metadata = metadataOf(pod);
  const { annotations, labels } = objectAt(binding, "metadata") ?? {};
  if (isObject(annotations)) metadata["annotations"] = { ...objectAt(metadata, "annotations"), ...annotations };
  if (isObject(labels)) metadata["labels"] = { ...objectAt(metadata, "labels"), ...labels };
  pod["spec"] = { ...objectAt(pod, "spec"), nodeName: stringAt(objectAt(binding, "target"), "name") ?? "" };
  // A bound Pod has no nominated node.
  const { nominatedNodeName: _nominated, ...status } = objectAt(pod, "status") ?? {};
  pod["status"] = status;
  setCondition(pod, { type: "PodScheduled", status: "True", lastProbeTime: null });
  return pod;
}
