import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, arrayAt, objectAt } from "../../json.js";
import { exactCidrProblems } from "../../validation/addresses.js";
import type { Strategy } from "../strategy.js";

export const serviceCidrStrategy: Strategy = {
  resetOnStatus: [".metadata", ".spec"],
  validate: checkServiceRange,
};

const ONE_A_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";

/** Validates a ServiceCIDR. An update may only add a CIDR of the other IP family; nothing else is validated again. */
function checkServiceRange(range: JsonObject, old: JsonObject | undefined): FieldError[] {
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
