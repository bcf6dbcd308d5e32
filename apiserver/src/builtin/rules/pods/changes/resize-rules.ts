// What a resize of a Pod may change: the processor and the memory of its containers and of the whole, as long as the Pod stays in its class.
import { forbiddenError, invalidError, type FieldError } from "../../../../errors/field-error.js";
import { clone, deepEqual, isObject, objectAt, type JsonObject } from "../../../../json.js";
import { qosClassOf } from "../../../defaults/pod-defaults.js";
import { objectsAt, textAt } from "../../../read-path.js";

const LISTS = ["containers", "initContainers"] as const;
const RESIZED = ["cpu", "memory"];
const ONLY_THESE = "only cpu and memory resources are mutable";

/** Checks a resize. */
export function checkResize(pod: JsonObject, live: JsonObject): FieldError[] {
  const [spec, old] = [pod, live].map((one) => objectAt(one, "spec") ?? {}) as [JsonObject, JsonObject];
  if (textAt(old, "os.name") === "windows") return [forbiddenError("", "windows pods cannot be resized")];
  const shownClass = textAt(pod, "status.qosClass");
  const errors = [
    ...(qosClassOf(spec) === (textAt(live, "status.qosClass") || qosClassOf(old))
      ? []
      : [invalidError("spec", shownClass, "Pod QOS Class may not change as a result of resizing")]),
    ...checkOfPod(spec, old),
  ];
  const order = LISTS.flatMap((list) => checkOrder(list, spec, old));
  if (order.length > 0) return [...errors, ...order];
  const changed = [...errors, ...LISTS.flatMap((list) => checkContainers(list, spec, old))];
  if (changed.length > 0 || deepEqual(fixedPart(spec), fixedPart(old))) return changed;
  return [forbiddenError("spec", ONLY_THESE)];
}

function checkOfPod(spec: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [spec, old].map((one) => objectAt(one, "resources"));
  const amounts = [now, before].flatMap((one) => ["requests", "limits"].map((list) => objectAt(one, list) ?? {}));
  if (amounts.every((list) => Object.keys(list).length === 0)) return [];
  if (before !== undefined && now === undefined)
    return [forbiddenError("spec.resources", "pod-level resources cannot be removed")];
  return [
    ...checkNoneRemoved("spec.resources", { now, before, what: "pod-level resource" }),
    ...(deepEqual(withoutResized(now), withoutResized(before))
      ? []
      : [forbiddenError("spec", `${ONLY_THESE} at pod-level`)]),
  ];
}

interface Requirements {
  readonly now: JsonObject | undefined;
  readonly before: JsonObject | undefined;
  /** What is asked for, as messages call it. */
  readonly what: string;
}

function checkNoneRemoved(path: string, { now, before, what }: Requirements): FieldError[] {
  return ["requests", "limits"].flatMap((list) => {
    const given = objectAt(now, list) ?? {};
    const isKept = Object.keys(objectAt(before, list) ?? {}).every((name) => Object.hasOwn(given, name));
    return isKept ? [] : [forbiddenError(`${path}.${list}`, `${what} ${list} cannot be removed`)];
  });
}

function checkOrder(list: string, spec: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [objectsAt(spec, list), objectsAt(old, list)];
  if (now.length !== before.length)
    return [forbiddenError(`spec.${list}`, `${list} may not be added or removed on resize`)];
  return before.flatMap(({ name }, index) =>
    now[index]?.["name"] === name
      ? []
      : [forbiddenError(`spec.${list}[${index}].name`, `${list} may not be renamed or reordered on resize`)],
  );
}

function checkContainers(list: (typeof LISTS)[number], spec: JsonObject, old: JsonObject): FieldError[] {
  return objectsAt(old, list).flatMap((before, index) => {
    const now = objectsAt(spec, list)[index] ?? {};
    const path = `spec.${list}[${index}]`;
    const [given, was] = [now, before].map((one) => objectAt(one, "resources"));
    const [field, detail] =
      list === "containers"
        ? ["spec", ONLY_THESE]
        : [path, "only cpu and memory resources for init or sidecar containers are mutable"];
    return [
      ...checkNoneRemoved(`${path}.resources`, { now: given, before: was, what: "resource" }),
      ...(deepEqual(withoutResized(given), withoutResized(was)) ? [] : [forbiddenError(field, detail)]),
    ];
  });
}

function withoutResized(resources: JsonObject | undefined): JsonObject {
  const rest = clone(resources ?? {});
  for (const list of Object.values(rest).filter(isObject)) for (const name of RESIZED) delete list[name];
  return Object.fromEntries(Object.entries(rest).filter(([, list]) => !isObject(list) || Object.keys(list).length > 0));
}

function fixedPart(spec: JsonObject): JsonObject {
  const { resources: _resources, ...rest } = clone(spec);
  for (const list of LISTS) for (const container of objectsAt(rest, list)) delete container["resources"];
  return rest;
}
