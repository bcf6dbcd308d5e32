// Near what a Pod is placed, and far from what.
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { checkLabel, checkLabelSelector, checkOneOf, checkQualifiedName } from "../../validation/fields.js";
import { checkNodeSelector, checkNodeSelectorTerm } from "../shared/node-selectors.js";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";
const TOO_SMALL = "must be greater than zero";
const MAX_WEIGHT = 100;

/** Checks how a pod spec at `path` is spread. */
export function checkSpread(path: string, spec: JsonObject): FieldError[] {
  const constraints = objectsAt(spec, "topologySpreadConstraints");
  const kinds = constraints.map((one) => `{${textAt(one, "topologyKey")}, ${textAt(one, "whenUnsatisfiable")}}`);
  return constraints.flatMap((constraint, index) => {
    const at = `${path}.topologySpreadConstraints[${index}]`;
    const [skew, least] = [Number(memberOf(constraint, "maxSkew") ?? 0), memberOf(constraint, "minDomains")];
    const [action, kind] = [textAt(constraint, "whenUnsatisfiable"), kinds[index] ?? ""];
    const onlyThere = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`;
    return [
      ...(skew > 0 ? [] : [invalidError(`${at}.maxSkew`, skew, TOO_SMALL)]),
      ...(textAt(constraint, "topologyKey") === "" ? [requiredError(`${at}.topologyKey`, "can not be empty")] : []),
      ...checkOneOf(`${at}.whenUnsatisfiable`, action, ["DoNotSchedule", "ScheduleAnyway"]),
      ...(kinds.lastIndexOf(kind) > index ? [duplicateError(`${at}.{topologyKey, whenUnsatisfiable}`, kind)] : []),
      ...(typeof least === "number" && least <= 0 ? [invalidError(`${at}.minDomains`, least, TOO_SMALL)] : []),
      ...(least === undefined || action === "DoNotSchedule"
        ? []
        : [invalidError(`${at}.minDomains`, least, onlyThere)]),
      ...["nodeAffinityPolicy", "nodeTaintsPolicy"].flatMap((key) =>
        checkOneOf(`${at}.${key}`, memberOf(constraint, key), ["Honor", "Ignore"]),
      ),
      ...checkLabelKeys(at, constraint),
      ...checkLabelSelector(`${at}.labelSelector`, objectAt(constraint, "labelSelector")),
    ];
  });
}

function checkLabelKeys(path: string, holder: JsonObject): FieldError[] {
  const [selector, lists] = [objectAt(holder, "labelSelector"), ["matchLabelKeys", "mismatchLabelKeys"]];
  const [matched = [], mismatched = []] = lists.map((list) => (arrayAt(holder, list) ?? []).map(String));
  const lone = "must not be specified when labelSelector is not set";
  return [
    ...lists.flatMap((list) => {
      const keys = (arrayAt(holder, list) ?? []).map(String);
      if (keys.length > 0 && selector === undefined) return [forbiddenError(`${path}.${list}`, lone)];
      return keys.flatMap((key, index) => checkQualifiedName(`${path}.${list}[${index}]`, key));
    }),
    ...twiceSelected(selector ?? {}, matched).map((key) =>
      invalidError(`${path}[${matched.lastIndexOf(key)}]`, key, "exists in both matchLabelKeys and labelSelector"),
    ),
    ...matched.flatMap((key, index) =>
      mismatched.includes(key)
        ? [invalidError(`${path}.matchLabelKeys[${index}]`, key, "exists in both matchLabelKeys and mismatchLabelKeys")]
        : [],
    ),
  ];
}

// Of the keys, those of expressions that a label or an expression before has.
function twiceSelected(selector: JsonObject, keys: string[]): string[] {
  const seen = new Set(Object.keys(objectAt(selector, "matchLabels") ?? {}));
  return objectsAt(selector, "matchExpressions").flatMap((expression) => {
    const key = textAt(expression, "key");
    const isTwice = keys.includes(key) && seen.has(key);
    seen.add(key);
    return isTwice ? [key] : [];
  });
}

/** Checks the affinities of a pod spec at `path`. */
export function checkAffinity(path: string, spec: JsonObject): FieldError[] {
  const affinity = objectAt(spec, "affinity") ?? {};
  const [nodes, at] = [objectAt(affinity, "nodeAffinity") ?? {}, `${path}.affinity`];
  const required = objectAt(nodes, REQUIRED);
  return [
    ...(required === undefined ? [] : checkNodeSelector(`${at}.nodeAffinity.${REQUIRED}`, required)),
    ...objectsAt(nodes, PREFERRED).flatMap((term, index) => {
      const field = `${at}.nodeAffinity.${PREFERRED}[${index}]`;
      return [
        ...checkWeight(field, term),
        ...checkNodeSelectorTerm(`${field}.preference`, objectAt(term, "preference") ?? {}, { anyValue: true }),
      ];
    }),
    ...["podAffinity", "podAntiAffinity"].flatMap((kind) => checkPods(`${at}.${kind}`, objectAt(affinity, kind) ?? {})),
  ];
}

function checkPods(path: string, affinity: JsonObject): FieldError[] {
  return [
    ...objectsAt(affinity, REQUIRED).flatMap((term, index) => checkTerm(`${path}.${REQUIRED}[${index}]`, term)),
    ...objectsAt(affinity, PREFERRED).flatMap((term, index) => {
      const field = `${path}.${PREFERRED}[${index}]`;
      return [
        ...checkWeight(field, term),
        ...checkTerm(`${field}.podAffinityTerm`, objectAt(term, "podAffinityTerm") ?? {}),
      ];
    }),
  ];
}

function checkWeight(path: string, term: JsonObject): FieldError[] {
  const weight = Number(memberOf(term, "weight") ?? 0);
  const isWeight = weight > 0 && weight <= MAX_WEIGHT;
  return isWeight ? [] : [invalidError(`${path}.weight`, weight, `must be in the range 1-${MAX_WEIGHT}`)];
}

function checkTerm(path: string, term: JsonObject): FieldError[] {
  const [field, key] = [`${path}.topologyKey`, textAt(term, "topologyKey")];
  return [
    ...["labelSelector", "namespaceSelector"].flatMap((name) =>
      checkLabelSelector(`${path}.${name}`, objectAt(term, name)),
    ),
    ...(arrayAt(term, "namespaces") ?? []).flatMap((name) => checkLabel(`${path}.namespace`, String(name))),
    ...checkLabelKeys(path, term),
    ...(key === "" ? [requiredError(field, "can not be empty")] : []),
    ...checkQualifiedName(field, key),
  ];
}
