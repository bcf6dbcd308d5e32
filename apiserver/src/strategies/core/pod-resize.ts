// Validation of the resize subresource, which can change cpu and memory of containers or of the whole Pod.
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, WHOLE, forbiddenError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, clone, deepEqual, objectAt } from "../../json.js";
import { isMirror } from "../pod-template/profile-annotations.js";
import { qosClassOf } from "../shared/resource-requests.js";
import { checkPod } from "./pod-validation.js";

const LISTS = ["containers", "initContainers"] as const;
const SIZES = ["cpu", "memory"];
const ONLY_SIZES = "only cpu and memory resources are mutable";

/** Validates a resize of a Pod. */
export function checkResize(pod: JsonObject, live: JsonObject): FieldError[] {
  if (isMirror(live)) return [forbiddenError(WHOLE, "static pods cannot be resized")];
  if (textAt(live, "spec.os.name") === "windows") return [forbiddenError(WHOLE, "windows pods cannot be resized")];
  const [spec, before] = [pod, live].map((one) => clone(objectAt(one, "spec") ?? {})) as [JsonObject, JsonObject];
  const errors = [
    ...checkPod(pod, undefined),
    ...(qosClassOf(spec) === textAt(live, "status.qosClass")
      ? []
      : [invalidError("spec", textAt(pod, "status.qosClass"), "Pod QOS Class may not change as a result of resizing")]),
    ...(isSupported(live) ? [] : [forbiddenError("spec", "Pod running on node without support for resize")]),
    ...checkShared(spec, before),
  ];
  const ofOrder = LISTS.flatMap((list) => checkOrder(list, objectsAt(spec, list), objectsAt(before, list)));
  if (ofOrder.length > 0) return [...errors, ...ofOrder];
  const all = [
    ...errors,
    ...[...LISTS].reverse().flatMap((list) => checkKeptResources(list, spec, before)),
    ...checkOthers(spec, before),
  ];
  return all.length > 0 || deepEqual(spec, before) ? all : [forbiddenError("spec", ONLY_SIZES)];
}

// The kubelet reports the resources of running containers if it supports resizing.
function isSupported(pod: JsonObject): boolean {
  const running = objectsAt(pod, "status.containerStatuses").find((status) =>
    objectAt(objectAt(status, "state"), "running"),
  );
  return running === undefined || objectAt(running, "resources") !== undefined;
}

function checkShared(spec: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [objectAt(spec, "resources"), objectAt(old, "resources")];
  const isSet = [now, before].some((one) =>
    ["requests", "limits"].some((list) => Object.keys(objectAt(one, list) ?? {}).length > 0),
  );
  if (!isSet) return [];
  const path = "spec.resources";
  if (before !== undefined && now === undefined) return [forbiddenError(path, "pod-level resources cannot be removed")];
  const errors =
    before === undefined
      ? []
      : ["requests", "limits"]
          .filter((list) => isRemoved(objectAt(now, list), objectAt(before, list)))
          .map((list) => forbiddenError(`${path}.${list}`, `pod-level resource ${list} cannot be removed`));
  const kept = withSizesOf(now ?? {}, before);
  const isEmpty = before === undefined && Object.keys(kept).length === 0;
  if (isEmpty) delete spec["resources"];
  else spec["resources"] = kept;
  return deepEqual(spec["resources"], before)
    ? errors
    : [...errors, forbiddenError("spec", `${ONLY_SIZES} at pod-level`)];
}

function isRemoved(now: JsonObject = {}, before: JsonObject = {}): boolean {
  const names = Object.keys(before);
  return names.length > Object.keys(now).length || names.some((name) => !Object.hasOwn(now, name));
}

// Replaces cpu and memory in `resources` by those of `others`. Without `claims`, resource claims are ignored.
function withSizesOf(resources: JsonObject, others: JsonObject | undefined, { claims = true } = {}): JsonObject {
  const amounts = Object.fromEntries(
    ["limits", "requests"].flatMap((list) => {
      const [own, other] = [objectAt(resources, list) ?? {}, objectAt(others, list) ?? {}];
      const rest = Object.entries(own).filter(([name]) => !SIZES.includes(name));
      const sizes = Object.entries(other).filter(([name]) => SIZES.includes(name));
      const all = Object.fromEntries([...rest, ...sizes]);
      return Object.keys(all).length === 0 ? [] : [[list, all] as const];
    }),
  );
  return { ...(claims && resources["claims"] !== undefined ? { claims: resources["claims"] } : {}), ...amounts };
}

function checkOrder(list: (typeof LISTS)[number], now: JsonObject[], before: JsonObject[]): FieldError[] {
  if (now.length !== before.length)
    return [forbiddenError(`spec.${list}`, `${list} may not be added or removed on resize`)];
  return before.flatMap((container, index) =>
    textAt(container, "name") === textAt(now[index] ?? {}, "name")
      ? []
      : [forbiddenError(`spec.${list}[${index}].name`, `${list} may not be renamed or reordered on resize`)],
  );
}

function checkKeptResources(list: string, spec: JsonObject, old: JsonObject): FieldError[] {
  const now = objectsAt(spec, list);
  return objectsAt(old, list).flatMap((container, index) => {
    const [own, before] = [now[index], container].map((one) => objectAt(one, "resources"));
    return ["requests", "limits"]
      .filter((kind) => isRemoved(objectAt(own, kind), objectAt(before, kind)))
      .map((kind) => forbiddenError(`spec.${list}[${index}].resources.${kind}`, `resource ${kind} cannot be removed`));
  });
}

// Restores the old sizes, in place, and reports all other changes.
function checkOthers(spec: JsonObject, old: JsonObject): FieldError[] {
  return LISTS.flatMap((list) =>
    objectsAt(spec, list).flatMap((container, index) => {
      const before = objectsAt(old, list)[index] ?? {};
      const isChanged = !deepEqual(container, before);
      setResources(container, before);
      const isOther = !deepEqual(container, before);
      if (list === "containers") return isOther ? [forbiddenError("spec", ONLY_SIZES)] : [];
      const detail = "only cpu and memory resources for init or sidecar containers are mutable";
      return [
        ...(isOther ? [forbiddenError(`spec.${list}[${index}]`, detail)] : []),
        ...(isChanged && textAt(container, "restartPolicy") !== "Always"
          ? checkRestart(`spec.${list}[${index}]`, container)
          : []),
      ];
    }),
  );
}

function checkRestart(field: string, container: JsonObject): FieldError[] {
  const detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
  return objectsAt(container, "resizePolicy")
    .filter((policy) => textAt(policy, "restartPolicy") === "RestartContainer")
    .map(() => forbiddenError(field, detail));
}

function setResources(container: JsonObject, before: JsonObject): void {
  const kept = withSizesOf(objectAt(container, "resources") ?? {}, objectAt(before, "resources"), { claims: false });
  const isEmpty = Object.keys(kept).length === 0 && objectAt(before, "resources") === undefined;
  if (isEmpty) delete container["resources"];
  else container["resources"] = kept;
}
