// Addresses of services, and what runs containers.
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, arrayAt, objectAt } from "../../json.js";
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { exactCidrProblems } from "../../validation/addresses.js";
import { checkGivenDomain, checkLabelName, checkLabels, checkRequiredSegment } from "../../validation/fields.js";
import { type GoStruct, checkKept, checkTextKept, goForm } from "../../validation/immutable-fields.js";
import { checkOverhead } from "../pod-template/resources.js";
import { checkTolerations, checkTolerationsOnce } from "../pod-template/tolerations.js";

const ONE_A_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";

/** Checks a ServiceCIDR. An update may add a range of the other family, and nothing else is looked at then. */
export function checkServiceRange(range: JsonObject, old: JsonObject | undefined): FieldError[] {
  const [ranges, before] = [rangesOf(range), old === undefined ? undefined : rangesOf(old)];
  if (before === undefined) return checkRanges(ranges);
  const others = before.flatMap((one, index) =>
    one === ranges[index] ? [] : [invalidError(`spec.cidrs[${index}]`, ranges[index] ?? "", "field is immutable")],
  );
  if (ranges.length === before.length) return others;
  if (before.length === 1 && ranges.length === 2) return [...others, ...checkRanges(ranges)];
  const isNone = ranges.length === 0 && !wasGivenEmpty(objectAt(range, "spec"), "cidrs");
  return [invalidError("spec.cidrs", isNone ? null : ranges, "field is immutable")];
}

function rangesOf(range: JsonObject): string[] {
  return (arrayAt(objectAt(range, "spec"), "cidrs") ?? []).map(String);
}

function checkRanges(ranges: string[]): FieldError[] {
  const field = "spec.cidrs";
  if (ranges.length === 0) return [requiredError(field, "at least one CIDR required")];
  if (ranges.length > 2) return [invalidError(field, { CIDRs: ranges }, "may only hold up to 2 values")];
  const problems = ranges.map(exactCidrProblems);
  const isSix = ranges.map((one) => one.includes(":"));
  const isTwice = ranges.length === 2 && isSix[0] === isSix[1] && problems.every((list) => list.length === 0);
  return [
    ...problems.flatMap((list, index) =>
      list.map((problem) => invalidError(`${field}[${index}]`, ranges[index] as string, problem)),
    ),
    ...(isTwice ? [invalidError(field, ranges, ONE_A_FAMILY)] : []),
  ];
}

const SPEC: GoStruct = {
  ParentRef: { kind: "pointer", struct: { Group: "", Resource: "", Namespace: "", Name: "" } },
};

/** Checks an IPAddress, whose parent stays. */
export function checkAddress(address: JsonObject, old: JsonObject | undefined): FieldError[] {
  const path = "spec.parentRef";
  const shown = (one: JsonObject) => goForm(SPEC, objectAt(one, "spec"))["ParentRef"] ?? null;
  return [
    ...checkParent(path, objectAt(objectAt(address, "spec"), "parentRef")),
    ...(old === undefined ? [] : checkKept(path, shown(address), shown(old))),
  ];
}

function checkParent(path: string, reference: JsonObject | undefined): FieldError[] {
  if (reference === undefined) return [requiredError(path)];
  return [
    ...checkGivenDomain(`${path}.group`, textAt(reference, "group")),
    ...["resource", "name", "namespace"].flatMap((key) => {
      const [value, field] = [textAt(reference, key), `${path}.${key}`];
      return value === "" && key === "namespace" ? [] : checkRequiredSegment(field, value);
    }),
  ];
}

/** Checks a RuntimeClass, whose handler stays. */
export function checkRuntimeClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const [handler, scheduling] = [textAt(object, "handler"), objectAt(object, "scheduling") ?? {}];
  const tolerations = objectsAt(scheduling, "tolerations");
  return [
    ...checkLabelName("handler", handler),
    ...checkLabels(objectAt(scheduling, "nodeSelector") ?? {}, "scheduling.nodeSelector"),
    ...(tolerations.length > 0 ? checkTolerations("scheduling", scheduling) : []),
    ...checkTolerationsOnce("scheduling.tolerations", tolerations),
    ...checkOverhead("overhead", objectAt(objectAt(object, "overhead"), "podFixed")),
    ...(old === undefined ? [] : checkTextKept("handler", object, old)),
  ];
}
