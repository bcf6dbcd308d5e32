import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt, stringAt } from "../../json.js";
import { now } from "../../object/object-meta.js";
import { addressWarnings } from "../../validation/addresses.js";
import { dropOldAnnotations, dropPodFields, podDefaults } from "../pod-template/defaults.js";
import { copyArmor } from "../pod-template/profile-annotations.js";
import { nameWarnings, podWarnings } from "../pod-template/warnings.js";
import { askedByContainers, containersOf, qosClassOf } from "../shared/resource-requests.js";
import type { Strategy } from "../strategy.js";
import { checkResize } from "./pod-resize.js";
import { checkPodStatus } from "./pod-status.js";
import { checkEphemeralContainers, checkNewPod } from "./pod-validation.js";

export const podStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  generation: "spec",
  returnsDeletedObject: true,
  graceful: true,
  resetOnStatus: [".spec", ".metadata.deletionTimestamp", ".metadata.ownerReferences"],
  // Fields set by admission are present before an update, and set together with the UID on create, so that they have no owner.
  defaults(pod, { uid, old }) {
    dropOldAnnotations(pod);
    defaultPod(pod, { isAdmitted: uid !== undefined || old !== undefined, isNew: old === undefined });
  },
  structDefaults: podDefaults,
  dropFields(pod, old) {
    dropPodFields(objectAt(pod, "spec"));
    dropStatusFields(pod, old);
  },
  prepareForCreate(pod) {
    holdGated(pod, now());
    selectOwnLabels(pod);
    return copyArmor(pod);
  },
  prepareForUpdate(pod, old, subresource) {
    if (subresource === "status") keepObservedGenerations(pod, old);
  },
  validate: checkNewPod,
  validateStatus: checkPodStatus,
  validateSubresource(pod, old, subresource) {
    if (subresource === "ephemeralcontainers") return checkEphemeralContainers(pod, old);
    return subresource === "resize" ? checkResize(pod, old) : undefined;
  },
  warnings: (pod, old) => [...nameWarnings("the Pod's hostname", pod, old), ...podWarnings(pod, old)],
  statusWarnings: (pod) =>
    ["podIPs", "hostIPs"].flatMap((list) =>
      objectsAt(pod, `status.${list}`).flatMap(({ ip }, index) =>
        addressWarnings(`status.${list}[${index}].ip`, String(ip)),
      ),
    ),
};

// Drops status fields of disabled features, unless they are already stored.
function dropStatusFields(pod: JsonObject, old: JsonObject | undefined): void {
  const key = "nodeAllocatableResourceClaimStatuses";
  if (objectAt(old, "status")?.[key] === undefined) delete objectAt(pod, "status")?.[key];
  for (const mount of mountStatusesOf(pod)) delete mount["volumeStatus"];
}

// If podIP differs from the first of podIPs, it replaces them, as older kubelets set only podIP; an absent podIP is set to the first of podIPs.
function agreeOnAddresses(status: JsonObject): void {
  const ip = stringAt(status, "podIP") ?? "";
  const [first] = (arrayAt(status, "podIPs") ?? []).filter(isObject);
  const firstIp = first === undefined ? undefined : (stringAt(first, "ip") ?? "");
  if (ip !== "" && ip !== firstIp) status["podIPs"] = [{ ip }];
  else if (ip === "" && firstIp !== undefined && firstIp !== "") status["podIP"] = firstIp;
}

/** Sets the defaults of Pods that do not apply to Pod templates. */
function defaultPod(pod: JsonObject, { isAdmitted, isNew }: { isAdmitted: boolean; isNew: boolean }): void {
  const spec = objectAt(pod, "spec");
  if (spec === undefined) return;
  spec["enableServiceLinks"] ??= true;
  // As in Kubernetes, a negative grace period becomes 1 second.
  if (isAdmitted && Number(spec["terminationGracePeriodSeconds"]) < 0) spec["terminationGracePeriodSeconds"] = 1;
  for (const container of containersOf(spec)) {
    requestLimits(container);
    if (spec["hostNetwork"] === true) defaultHostPorts(container);
  }
  defaultPodResources(spec);
  const status = objectAt(pod, "status") ?? {};
  agreeOnAddresses(status);
  if (isNew) status["phase"] ??= "Pending";
  status["qosClass"] ??= qosClassOf(spec);
  pod["status"] = status;
}

function requestLimits(container: JsonObject): void {
  const resources = objectAt(container, "resources");
  const limits = objectAt(resources, "limits");
  if (resources === undefined || limits === undefined) return;
  resources["requests"] = { ...limits, ...objectAt(resources, "requests") };
}

const SHARED = /^(cpu|memory|hugepages-.+)$/;

/**
 * Completes the resources of a Pod with Pod-level resources: requests from those of its containers and from its limits, limits of huge pages from
 * those of its containers.
 */
function defaultPodResources(spec: JsonObject): void {
  const resources = objectAt(spec, "resources");
  if (resources === undefined) return;
  const [limits, requests] = [objectAt(resources, "limits") ?? {}, objectAt(resources, "requests") ?? {}];
  if (Object.keys(limits).length + Object.keys(requests).length === 0) return;
  for (const [name, quantity] of Object.entries(askedByContainers(spec, "limits"))) {
    if (name.startsWith("hugepages-") && memberOf(requests, name) === undefined) limits[name] ??= quantity;
  }
  if (Object.keys(limits).length === 0) return;
  const asked = Object.entries(askedByContainers(spec, "requests"));
  const shared = asked.filter(([name]) => SHARED.test(name) && !name.startsWith("hugepages-"));
  const ofLimits = Object.entries(limits).filter(([name]) => SHARED.test(name));
  resources["limits"] = limits;
  resources["requests"] = { ...Object.fromEntries([...ofLimits, ...shared]), ...requests };
}

function defaultHostPorts(container: JsonObject): void {
  for (const port of (arrayAt(container, "ports") ?? []).filter(isObject)) {
    const containerPort = memberOf(port, "containerPort");
    if (containerPort !== undefined) port["hostPort"] ??= containerPort;
  }
}

/** Sets the PodScheduled condition of a new Pod with scheduling gates. */
export function holdGated(pod: JsonObject, now: string): void {
  const status = objectAt(pod, "status");
  if (status === undefined || (arrayAt(objectAt(pod, "spec"), "schedulingGates") ?? []).length === 0) return;
  const message = "Scheduling is blocked due to non-empty scheduling gates";
  const blocked = { type: "PodScheduled", status: "False", reason: "SchedulingGated", message };
  status["conditions"] = [{ ...blocked, lastProbeTime: null, lastTransitionTime: now }];
}

const OPERATORS = { matchLabelKeys: "In", mismatchLabelKeys: "NotIn" };

/** Resolves matchLabelKeys and mismatchLabelKeys of a new Pod into its label selectors, in place. */
export function selectOwnLabels(pod: JsonObject): void {
  const labels = objectAt(objectAt(pod, "metadata"), "labels") ?? {};
  for (const kind of ["podAffinity", "podAntiAffinity"]) {
    const path = `spec.affinity.${kind}`;
    for (const weighted of objectsAt(pod, `${path}.preferredDuringSchedulingIgnoredDuringExecution`))
      selectLabels(objectAt(weighted, "podAffinityTerm") ?? {}, labels);
    for (const term of objectsAt(pod, `${path}.requiredDuringSchedulingIgnoredDuringExecution`))
      selectLabels(term, labels);
  }
  for (const constraint of objectsAt(pod, "spec.topologySpreadConstraints")) selectLabels(constraint, labels);
}

function selectLabels(holder: JsonObject, labels: JsonObject): void {
  const selector = objectAt(holder, "labelSelector");
  if (selector === undefined) return;
  const added = Object.entries(OPERATORS).flatMap(([list, operator]) =>
    (arrayAt(holder, list) ?? []).flatMap((key): JsonValue[] => {
      const value = memberOf(labels, String(key));
      return value === undefined ? [] : [{ key, operator, values: [value] }];
    }),
  );
  if (added.length > 0) selector["matchExpressions"] = [...(arrayAt(selector, "matchExpressions") ?? []), ...added];
}

const GENERATION = "observedGeneration";

/**
 * Keeps the observedGeneration of the status and its conditions, in place, if a write omits it. Conditions with the same type are matched in order.
 */
export function keepObservedGenerations(pod: JsonObject, live: JsonObject): void {
  const [status, before] = [pod, live].map((one) => objectAt(one, "status") ?? {}) as [JsonObject, JsonObject];
  keepGeneration(status, before);
  const known = objectsAt(before, "conditions");
  for (const condition of objectsAt(status, "conditions")) {
    const place = known.findIndex((one) => textAt(one, "type") === textAt(condition, "type"));
    if (place >= 0) keepGeneration(condition, known.splice(place, 1)[0] ?? {});
  }
}

function keepGeneration(holder: JsonObject, before: JsonObject): void {
  const generation = memberOf(before, GENERATION);
  if ((memberOf(holder, GENERATION) ?? 0) === 0 && generation !== undefined) holder[GENERATION] = generation;
}

function mountStatusesOf(pod: JsonObject): JsonObject[] {
  const lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
  return lists.flatMap((list) => objectsAt(pod, `status.${list}`).flatMap((one) => objectsAt(one, "volumeMounts")));
}
