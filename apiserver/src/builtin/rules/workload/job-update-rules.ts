// What of a Job may change.
import { type FieldError, invalidError } from "../../../errors/field-error.js";
import { type JsonObject, type JsonValue, clone, deepEqual, memberOf, objectAt } from "../../../json.js";
import { at, objectsAt } from "../../read-path.js";
import { checkImmutable } from "../field-rules.js";
import { goFailurePolicy, goSuccessPolicy } from "./job-policy-rules.js";

const NO_CHANGE = "field is immutable";

/** Demands that an update of a Job leaves what its Pods are made from. */
export function checkJobUpdate(spec: JsonObject, old: JsonObject): FieldError[] {
  const before = objectAt(old, "spec") ?? {};
  const isIndexed = memberOf(spec, "completionMode") === "Indexed";
  const kept = (keys: string[]) => checkImmutable("spec", { spec, old: before, keys });
  return [
    ...(isIndexed ? checkTandem(spec, before) : kept(["completions"])),
    ...kept(["selector"]),
    ...checkTemplateKept(spec, before, old),
    ...kept(["completionMode"]),
    ...checkPolicyKept("podFailurePolicy", { spec, before, shown: goFailurePolicy }),
    ...kept(["backoffLimitPerIndex", "managedBy"]),
    ...checkPolicyKept("successPolicy", { spec, before, shown: goSuccessPolicy }),
  ];
}

interface Kept {
  spec: JsonObject;
  before: JsonObject;
  shown(policy: JsonObject): JsonValue;
}

function checkPolicyKept(key: string, { spec, before, shown }: Kept): FieldError[] {
  const policy = objectAt(spec, key);
  if (deepEqual(policy ?? null, objectAt(before, key) ?? null)) return [];
  return [invalidError(`spec.${key}`, policy === undefined ? null : shown(policy), NO_CHANGE)];
}

function checkTandem(spec: JsonObject, old: JsonObject): FieldError[] {
  const completions = memberOf(spec, "completions");
  if (completions === undefined || completions === memberOf(old, "completions")) return [];
  if (completions === memberOf(spec, "parallelism")) return [];
  return [invalidError("spec.completions", completions, "can only be modified in tandem with spec.parallelism")];
}

/** A suspended Job without Pods may still change where they run and what they ask for. */
function checkTemplateKept(spec: JsonObject, before: JsonObject, old: JsonObject): FieldError[] {
  const [now, was] = [spec, before].map((one) => objectAt(one, "template") ?? {}) as [JsonObject, JsonObject];
  if (!mayChange(old)) return deepEqual(now, was) ? [] : [invalidError("spec.template", now, NO_CHANGE)];
  const [pod, podBefore] = [now, was].map((template) => objectAt(template, "spec") ?? {}) as [JsonObject, JsonObject];
  const isSame = deepEqual(fixedPart(pod, podBefore), fixedPart(podBefore, podBefore));
  return isSame ? [] : [invalidError("spec.template.spec", pod, NO_CHANGE)];
}

function mayChange(old: JsonObject): boolean {
  const isStopped = objectsAt(old, "status.conditions").some(
    ({ type, status }) => type === "Suspended" && status === "True",
  );
  const isIdle = at(old, "status.startTime") === undefined || isStopped;
  return at(old, "spec.suspend") === true && isIdle && (at(old, "status.active") ?? 0) === 0;
}

function fixedPart(pod: JsonObject, before: JsonObject): JsonObject {
  const { nodeSelector: _node, tolerations: _tolerations, schedulingGates: _gates, affinity, ...rest } = clone(pod);
  const { nodeAffinity: _affinity, ...others } = (affinity ?? {}) as JsonObject;
  for (const list of ["containers", "initContainers"]) {
    const [now, was] = [objectsAt(rest, list), objectsAt(before, list)];
    if (now.length !== was.length) continue;
    for (const [index, container] of now.entries()) {
      if (container["name"] === was[index]?.["name"]) delete container["resources"];
    }
  }
  return Object.keys(others).length === 0 ? rest : { ...rest, affinity: others };
}
