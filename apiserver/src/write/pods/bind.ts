import { fieldErrorText, notSupportedError, requiredError, type FieldError } from "../../errors/field-error.js";
import { quote } from "../../errors/quote.js";
import { badRequest, conflict, notFound, plainError } from "../../errors/status-error.js";
import { arrayAt, clone, isObject, objectAt, stringAt, type JsonObject } from "../../json.js";
import { keyOf, resourceRefOf } from "../../object/object-key.js";
import { isTerminating, metadataOf, now } from "../../object/object-meta.js";
import type { WriteContext } from "../write-context.js";

const SCHEDULED = "PodScheduled";

/** Assigns a Pod to the Node that a Binding names. Fields keep their managers, and the generation stays. */
export function bindPod(context: WriteContext, name: string, binding: JsonObject): void {
  const { resource, namespace, isDryRun } = context;
  const given = stringAt(objectAt(binding, "metadata"), "name") ?? "";
  if (given !== "" && given !== name) throw badRequest("name in URL does not match name in Binding object");
  const errors = checkTarget(objectAt(binding, "target"));
  if (errors.length > 0) throw plainError(errors.map(fieldErrorText).join(", "));
  const key = keyOf({ namespace, name });
  const stored = resource.store.get(key);
  if (stored === undefined) throw notFound(resourceRefOf(resource.type, name));
  const problem = problemOf(name, stored.object);
  if (problem !== undefined) throw conflict({ resource: "pods/binding", group: "", name }, problem);
  if (!isDryRun) resource.store.put(key, boundPod(stored.object, binding));
}

function checkTarget(target: JsonObject | undefined): FieldError[] {
  const kind = stringAt(target, "kind") ?? "";
  const isKnown = kind === "" || kind === "Node";
  return [
    ...(isKnown ? [] : [notSupportedError("target.kind", kind, ["Node", "<empty>"])]),
    ...((stringAt(target, "name") ?? "") === "" ? [requiredError("target.name")] : []),
  ];
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
  const annotations = objectAt(objectAt(binding, "metadata"), "annotations");
  if (annotations !== undefined) metadata["annotations"] = { ...objectAt(metadata, "annotations"), ...annotations };
  pod["spec"] = { ...objectAt(pod, "spec"), nodeName: stringAt(objectAt(binding, "target"), "name") ?? "" };
  const status = objectAt(pod, "status") ?? {};
  const conditions = (arrayAt(status, "conditions") ?? []).filter(isObject);
  const scheduled = { lastProbeTime: null, lastTransitionTime: now(), status: "True", type: SCHEDULED };
  pod["status"] = { ...status, conditions: [...conditions.filter(({ type }) => type !== SCHEDULED), scheduled] };
  return pod;
}
