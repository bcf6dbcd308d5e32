// What a Node may say of itself.
import { duplicateError, invalidError, type FieldError } from "../../../errors/field-error.js";
import { arrayAt, memberOf, objectAt, type JsonObject } from "../../../json.js";
import { objectsAt, textAt } from "../../read-path.js";
import { checkQualifiedName, checkRequiredOneOf } from "../field-rules.js";
import { labelValueProblems } from "../name-syntax.js";
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
  ];
}

function twice(path: string, taint: JsonObject): FieldError {
  const error = duplicateError(path, taint);
  return { ...error, message: `${error.message}: taints must be unique by key and effect pair` };
}
