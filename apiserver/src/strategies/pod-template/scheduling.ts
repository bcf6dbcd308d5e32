import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt, stringAt } from "../../json.js";
import { checkLabel, checkLabelSelector, checkOneOf, checkQualifiedName } from "../../validation/fields.js";
import { labelValueProblems } from "../../validation/names.js";
import { checkNodeSelector, checkNodeSelectorTerm } from "../shared/node-selectors.js";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";
const TOO_SMALL = "must be greater than zero";
const MAX_WEIGHT = 100;

/** Validates topologySpreadConstraints of a Pod spec at `path`. */
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

// Returns the keys that occur in a requirement and also in matchLabels or an earlier requirement.
function twiceSelected(selector: JsonObject, keys: string[]): string[] {
  const seen = new Set(Object.keys(objectAt(selector, "matchLabels") ?? {}));
  return objectsAt(selector, "matchExpressions").flatMap((expression) => {
    const key = textAt(expression, "key");
    const isTwice = keys.includes(key) && seen.has(key);
    seen.add(key);
    return isTwice ? [key] : [];
  });
}

/** Validates the affinity of a Pod spec at `path`. */
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

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** Validates the tolerations of a Pod spec at `path`. */
export function checkTolerations(path: string, spec: JsonObject): FieldError[] {
  return objectsAt(spec, "tolerations").flatMap((toleration, index) =>
    checkToleration(`${path}.tolerations[${index}]`, toleration),
  );
}

function checkToleration(path: string, toleration: JsonObject): FieldError[] {
  const [key, operator, value, effect] = ["key", "operator", "value", "effect"].map((name) =>
    textAt(toleration, name),
  ) as [string, string, string, string];
  const keyless = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
  const hasSeconds = memberOf(toleration, "tolerationSeconds") !== undefined;
  return [
    ...(key === "" ? [] : checkQualifiedName(`${path}.key`, key)),
    ...(key === "" && operator !== "Exists" ? [invalidError(`${path}.operator`, operator, keyless)] : []),
    ...(hasSeconds && effect !== "NoExecute"
      ? [invalidError(`${path}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")]
      : []),
    ...checkOperator(`${path}.operator`, operator, value),
    ...(effect === "" || EFFECTS.includes(effect) ? [] : [notSupportedError(`${path}.effect`, effect, EFFECTS)]),
  ];
}

function checkOperator(path: string, operator: string, value: string): FieldError[] {
  const problems = labelValueProblems(value);
  if (operator === "" || operator === "Equal")
    return problems.length === 0 ? [] : [invalidError(path, value, problems.join(";"))];
  if (operator === "Lt" || operator === "Gt")
    return [notSupportedError(path, operator, ["Equal", "Exists", "Lt", "Gt"])];
  if (operator !== "Exists") return [notSupportedError(path, operator, ["Equal", "Exists"])];
  return value === "" ? [] : [invalidError(path, value, "value must be empty when `operator` is 'Exists'")];
}

/** Validates that tolerations are unique, ignoring tolerationSeconds. */
export function checkTolerationsOnce(path: string, tolerations: JsonObject[]): FieldError[] {
  const keys = tolerations.map((one) =>
    ["key", "operator", "value", "effect"].map((name) => textAt(one, name)).join("\n"),
  );
  return tolerations.flatMap((toleration, index) => {
    if (keys.indexOf(keys[index] ?? "") === index) return [];
    // kube-apiserver prints Go structs, with their fields in order.
    const shown = {
      Key: textAt(toleration, "key"),
      Operator: textAt(toleration, "operator"),
      Value: textAt(toleration, "value"),
      Effect: textAt(toleration, "effect"),
      TolerationSeconds: memberOf(toleration, "tolerationSeconds") ?? null,
    };
    return [duplicateError(`${path}[${index}]`, shown)];
  });
}

const EVICTION_TAINTS = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/** Adds the default tolerations (admission plugin DefaultTolerationSeconds). */
export function defaultTolerations(spec: JsonObject): void {
  const tolerations = arrayAt(spec, "tolerations") ?? [];
  for (const key of EVICTION_TAINTS) {
    if (tolerations.some((toleration) => toleratesEviction(toleration, key))) continue;
    tolerations.push({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 });
  }
  spec["tolerations"] = tolerations;
}

function toleratesEviction(toleration: JsonValue, taint: string): boolean {
  if (!isObject(toleration)) return false;
  const effect = stringAt(toleration, "effect") ?? "";
  const key = stringAt(toleration, "key") ?? "";
  return (effect === "NoExecute" || effect === "") && (key === taint || key === "");
}
