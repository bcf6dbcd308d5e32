// Addresses of services, and what runs containers.
import { invalidError, requiredError, type FieldError } from "../../../errors/field-error.js";
import { arrayAt, deepEqual, objectAt, type JsonObject } from "../../../json.js";
import { objectsAt, textAt } from "../../read-path.js";
import { checkGivenDomain, checkImmutable, checkLabelName, checkLabels, checkRequiredSegment } from "../field-rules.js";
import { cidrProblems } from "../network-rules.js";
import { checkOverhead } from "../pods/resource-rules.js";
import { checkTolerations, checkTolerationsOnce } from "../pods/toleration-rules.js";

const ONE_A_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";

/** Checks a ServiceCIDR. */
export function checkServiceRange(range: JsonObject): FieldError[] {
  const field = "spec.cidrs";
  const ranges = (arrayAt(objectAt(range, "spec"), "cidrs") ?? []).map(String);
  if (ranges.length === 0) return [requiredError(field, "at least one CIDR required")];
  if (ranges.length > 2) return [invalidError(field, { CIDRs: ranges }, "may only hold up to 2 values")];
  const problems = ranges.map(cidrProblems);
  const isSix = ranges.map((one) => one.includes(":"));
  const isTwice = ranges.length === 2 && isSix[0] === isSix[1] && problems.every((list) => list.length === 0);
  return [
    ...problems.flatMap((list, index) =>
      list.map((problem) => invalidError(`${field}[${index}]`, ranges[index] as string, problem)),
    ),
    ...(isTwice ? [invalidError(field, ranges, ONE_A_FAMILY)] : []),
  ];
}

/** Checks an IPAddress. */
export function checkAddress(address: JsonObject): FieldError[] {
  const [reference, path] = [objectAt(objectAt(address, "spec"), "parentRef"), "spec.parentRef"];
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
  if (old !== undefined && !deepEqual(object["handler"], old["handler"]))
    return checkImmutable("", { spec: object, old, keys: ["handler"] });
  const [handler, scheduling] = [textAt(object, "handler"), objectAt(object, "scheduling") ?? {}];
  const tolerations = objectsAt(scheduling, "tolerations");
  return [
    ...checkLabelName("handler", handler),
    ...checkLabels(objectAt(scheduling, "nodeSelector") ?? {}, "scheduling.nodeSelector"),
    ...(tolerations.length > 0 ? checkTolerations("scheduling", scheduling) : []),
    ...checkTolerationsOnce("scheduling.tolerations", tolerations),
    ...checkOverhead("overhead", objectAt(objectAt(object, "overhead"), "podFixed")),
  ];
}
