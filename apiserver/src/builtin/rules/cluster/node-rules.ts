// What a Node may say of itself.
import { duplicateError, internalError, invalidError, type FieldError } from "../../../errors/field-error.js";
import { arrayAt, memberOf, objectAt, type JsonObject } from "../../../json.js";
import { objectsAt, textAt } from "../../read-path.js";
import { checkQualifiedName, checkRequiredOneOf } from "../field-rules.js";
import { labelValueProblems } from "../name-syntax.js";
import { isCidr } from "../address-syntax.js";
import { checkCidr } from "../network-rules.js";

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** Checks a Node. */
export function checkNode(node: JsonObject): FieldError[] {
  const first = textAt(node, "spec.podCIDR");
  const ranges = (arrayAt(objectAt(node, "spec"), "podCIDRs") ?? []).map(String);
  const all = first !== "" && first !== ranges[0] ? [first] : ranges;
  const seen = new Set<string>();
  return [
    ...objectsAt(node, "spec.taints").flatMap((taint, index) => {
      const path = `metadata.taints[${index}]`;
      const [key, value, effect] = ["key", "value", "effect"].map((name) => textAt(taint, name)) as [
        string,
        string,
        string,
      ];
      const pair = `${effect}/${key}`;
      const isTaken = seen.has(pair);
      seen.add(pair);
      const problems = labelValueProblems(value);
      const shown = { Key: key, Value: value, Effect: effect, TimeAdded: memberOf(taint, "timeAdded") ?? null };
      return [
        ...checkQualifiedName(`${path}.key`, key),
        ...(problems.length === 0 ? [] : [invalidError(`${path}.value`, value, problems.join(";"))]),
        ...checkRequiredOneOf(`${path}.effect`, effect, EFFECTS),
        ...(isTaken ? [twice(path, shown)] : []),
      ];
    }),
    ...all.flatMap((range, index) => checkCidr(`spec.podCIDRs[${index}]`, range)),
    ...checkFamilies("spec.podCIDRs", all),
  ];
}

// Two ranges are one of each family.
function checkFamilies(field: string, ranges: string[]): FieldError[] {
  if (ranges.length < 2) return [];
  const broken = ranges.findIndex((range) => !isCidr(range));
  const families = new Set(ranges.map((range) => range.includes(":")));
  const cause = `invalid CIDR[${broken}]: <nil> (invalid CIDR address: ${ranges[broken]})`;
  const detail = "may specify no more than one CIDR for each IP family";
  return [
    ...(broken < 0
      ? []
      : [internalError(field, `invalid PodCIDRs. failed to check with dual stack with error:${cause}`)]),
    ...(broken >= 0 || families.size < 2 || ranges.length > 2 ? [invalidError(field, ranges, detail)] : []),
  ];
}

function twice(path: string, taint: JsonObject): FieldError {
  const error = duplicateError(path, taint);
  return { ...error, message: `${error.message}: taints must be unique by key and effect pair` };
}
