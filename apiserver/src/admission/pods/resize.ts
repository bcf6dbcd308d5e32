// Admission plugins NodeDeclaredFeatureValidator and PodResizeValidator: the node of a Pod has to support its resize.
import { BILLION, amount, askedByPod, quantitiesAt, sumOf } from "../../strategies/shared/resource-requests.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { quote } from "../../errors/go-format.js";
import { type StatusError, forbidden } from "../../errors/status-error.js";
import { type JsonObject, arrayAt, deepEqual, memberOf, objectAt } from "../../json.js";
import { metadataOf } from "../../object/object-meta.js";
import { type AdmissionPlugin, type AdmittedWrite, refOfWrite } from "../admission.js";

const NODES = { group: "", version: "v1", plural: "nodes" };

export const podResize: AdmissionPlugin = { resources: ["pods"], validate: checkResize };

/** Throws 403 if the node of a Pod lacks a feature or the capacity for the new resources. */
function checkResize(write: AdmittedWrite): void {
  const { object, oldObject, context, subresource } = write;
  if (subresource !== "resize" || object === undefined || oldObject === undefined) return;
  const name = textAt(object, "spec.nodeName");
  const isSame = metadataOf(object)["generation"] === metadataOf(oldObject)["generation"];
  if (name === "" || isSame) return;
  const refuse = (detail: string): StatusError => forbidden(refOfWrite(write), detail);
  const node = context.registry.find(NODES)?.store.get(name)?.object;
  if (node === undefined) throw refuse(`node ${quote(name)} not found`);
  const known = (arrayAt(objectAt(node, "status"), "declaredFeatures") ?? []).map(String);
  const missing = featuresNeeded(object, oldObject).filter((feature) => !known.includes(feature));
  if (missing.length > 0)
    throw refuse(`pod update requires features ${missing.join(", ")} which are not available on node ${quote(name)}`);
  const system = memberOf(objectAt(metadataOf(node), "labels"), "kubernetes.io/os") ?? "linux";
  if (system !== "linux") {
    const detail = `pod resize is only supported on linux nodes, node ${quote(name)} is ${quote(String(system))}`;
    throw withCause(refuse(detail), "UnsupportedPlatform");
  }
  const excess = excessOf(object, node);
  if (excess.length > 0)
    throw withCause(refuse(`node didn't have enough allocatable resources: ${excess.join("; ")}`), "NodeCapacity");
}

function featuresNeeded(pod: JsonObject, old: JsonObject): string[] {
  const firstOf = (one: JsonObject) =>
    objectsAt(one, "spec.initContainers").filter((container) => textAt(container, "restartPolicy") !== "Always");
  const [now, before] = [firstOf(pod), firstOf(old)];
  const changesPod = !deepEqual(resourcesOf(objectAt(pod, "spec")), resourcesOf(objectAt(old, "spec")));
  const changesFirst = before.some((container, index) => !deepEqual(resourcesOf(container), resourcesOf(now[index])));
  return [
    ...(changesPod ? ["InPlacePodLevelResourcesVerticalScaling"] : []),
    ...(changesFirst ? ["InPlacePodVerticalScalingInitContainers"] : []),
  ];
}

function resourcesOf(holder: JsonObject | undefined): JsonObject {
  return objectAt(holder, "resources") ?? {};
}

function excessOf(pod: JsonObject, node: JsonObject): string[] {
  const allocatable = quantitiesAt(objectAt(node, "status") ?? {}, "allocatable");
  const overhead = quantitiesAt(objectAt(pod, "spec") ?? {}, "overhead");
  const asked = sumOf([askedByPod(pod).requests, overhead]);
  const units = { cpu: BILLION / 1000n, memory: BILLION };
  return Object.entries(units).flatMap(([resource, unit]) => {
    const [wanted, most] = [asked, allocatable].map((all) => amount(all[resource] ?? "0")) as [bigint, bigint];
    const [shown, limit] = [wanted, most].map((one) => (one + unit - 1n) / unit);
    return wanted <= most ? [] : [`${resource}, requested: ${shown}, allocatable: ${limit}`];
  });
}

function withCause(error: StatusError, reason: string): StatusError {
  const details = error.status.details ?? {};
  details.causes = [...(details.causes ?? []), { reason }];
  return error;
}
