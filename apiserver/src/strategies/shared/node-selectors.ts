import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, forbiddenError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, arrayAt, memberOf, objectAt, stringAt } from "../../json.js";
import { checkDomain, checkLabelValue, checkQualifiedName } from "../../validation/fields.js";
import { labelValueProblems } from "../../validation/names.js";

/** Validates a node selector at `path`. */
export function checkNodeSelector(path: string, selector: JsonObject): FieldError[] {
  const field = `${path}.nodeSelectorTerms`;
  const terms = objectsAt(selector, "nodeSelectorTerms");
  if (terms.length === 0) return [requiredError(field, "must have at least one node selector term")];
  return terms.flatMap((term, index) => checkNodeSelectorTerm(`${field}[${index}]`, term));
}

/** Validates a node selector term at `path`. `anyValue` skips the validation of label values, as for preferred terms. */
export function checkNodeSelectorTerm(path: string, term: JsonObject, { anyValue = false } = {}): FieldError[] {
  return [
    ...objectsAt(term, "matchExpressions").flatMap((one, index) =>
      checkRequirement(`${path}.matchExpressions[${index}]`, one, anyValue),
    ),
    ...objectsAt(term, "matchFields").flatMap((one, index) => checkField(`${path}.matchFields[${index}]`, one)),
  ];
}

function checkField(path: string, requirement: JsonObject): FieldError[] {
  const [key, operator] = [textAt(requirement, "key"), textAt(requirement, "operator")];
  const values = (arrayAt(requirement, "values") ?? []).map(String);
  const isKnown = operator === "In" || operator === "NotIn";
  const one = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
  return [
    ...(isKnown && values.length !== 1 ? [requiredError(`${path}.values`, one)] : []),
    ...(isKnown ? [] : [invalidError(`${path}.operator`, operator, "not a valid selector operator")]),
    ...(key === "metadata.name"
      ? values.flatMap((value, index) => checkDomain(`${path}.values[${index}]`, value))
      : [invalidError(`${path}.key`, key, "not a valid field selector key")]),
  ];
}

function checkRequirement(path: string, requirement: JsonObject, anyValue: boolean): FieldError[] {
  const [key, operator] = [textAt(requirement, "key"), textAt(requirement, "operator")];
  const values = (arrayAt(requirement, "values") ?? []).map(String);
  const field = `${path}.values`;
  return [
    ...checkOperator(path, operator, values.length),
    ...checkQualifiedName(`${path}.key`, key),
    ...(anyValue ? [] : values).flatMap((value, index) => checkLabelValue(`${field}[${index}]`, value)),
  ];
}

function checkOperator(path: string, operator: string, count: number): FieldError[] {
  const field = `${path}.values`;
  switch (operator) {
    case "In":
    case "NotIn":
      return count > 0 ? [] : [requiredError(field, "must be specified when `operator` is 'In' or 'NotIn'")];
    case "Exists":
    case "DoesNotExist":
      return count === 0
        ? []
        : [forbiddenError(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")];
    case "Gt":
    case "Lt":
      return count === 1
        ? []
        : [requiredError(field, "must be specified single value when `operator` is 'Lt' or 'Gt'")];
    default:
      return [invalidError(`${path}.operator`, operator, "not a valid selector operator")];
  }
}

const renamed = (since: string, to: string): string => `deprecated since ${since}; use "${to}" instead`;

// In the order in which kube-apiserver reports them.
const NODE_LABELS: Readonly<Record<string, string>> = {
  "failure-domain.beta.kubernetes.io/zone": renamed("v1.17", "topology.kubernetes.io/zone"),
  "failure-domain.beta.kubernetes.io/region": renamed("v1.17", "topology.kubernetes.io/region"),
  "beta.kubernetes.io/instance-type": renamed("v1.17", "node.kubernetes.io/instance-type"),
  "beta.kubernetes.io/os": renamed("v1.14", "kubernetes.io/os"),
  "beta.kubernetes.io/arch": renamed("v1.14", "kubernetes.io/arch"),
  "app.kubernetes.io/created-by": "deprecated since v1.9",
  "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
  "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
};

/** Warns about deprecated node labels in a map; `place` returns the path of a label. */
export function labelMapWarnings(map: JsonObject | undefined, place: (label: string) => string): string[] {
  return Object.entries(NODE_LABELS)
    .filter(([label]) => memberOf(map, label) !== undefined)
    .map(([label, advice]) => `${place(label)}: ${advice}`);
}

/** Warns about a deprecated node label at `path`. */
export function labelWarnings(path: string, label: string): string[] {
  const advice = NODE_LABELS[label];
  return advice === undefined ? [] : [`${path}: ${label} is ${advice}`];
}

/** Warns about deprecated node labels in the matchExpressions of a selector at `path`; `checksValues` also warns about invalid values. */
export function expressionWarnings(path: string, selector: JsonObject, { checksValues = false } = {}): string[] {
  return objectsAt(selector, "matchExpressions").flatMap((expression, index) => {
    const at = `${path}.matchExpressions[${index}]`;
    const values = checksValues ? (arrayAt(expression, "values") ?? []).map(String) : [];
    return [
      ...labelWarnings(`${at}.key`, stringAt(expression, "key") ?? ""),
      ...values.flatMap((value, place) =>
        labelValueProblems(value).map((problem) => `${at}.values[${place}]: ${value} is invalid, ${problem}`),
      ),
    ];
  });
}

/** Warns about deprecated node labels in nodeSelector, nodeAffinity, and topologySpreadConstraints of a Pod spec at `path`. */
export function placementWarnings(path: string, spec: JsonObject): string[] {
  const affinity = objectAt(objectAt(spec, "affinity"), "nodeAffinity");
  const [required, preferred] = ["required", "preferred"].map(
    (how) => `${how}DuringSchedulingIgnoredDuringExecution`,
  ) as [string, string];
  const at = `${path}.affinity.nodeAffinity`;
  return [
    ...labelMapWarnings(objectAt(spec, "nodeSelector"), (label) => `${path}.nodeSelector[${label}]`),
    ...termWarnings(`${at}.${required}`, objectAt(affinity, required)),
    ...objectsAt(affinity ?? {}, preferred).flatMap((term, index) =>
      expressionWarnings(`${at}.${preferred}[${index}].preference`, objectAt(term, "preference") ?? {}, {
        checksValues: true,
      }),
    ),
    ...objectsAt(spec, "topologySpreadConstraints").flatMap((constraint, index) => {
      const place = `${path}.topologySpreadConstraints[${index}]`;
      return [
        ...labelWarnings(`${place}.topologyKey`, stringAt(constraint, "topologyKey") ?? ""),
        ...(objectAt(constraint, "labelSelector") === undefined
          ? [`${place}.labelSelector: a null labelSelector results in matching no pod`]
          : []),
      ];
    }),
  ];
}

/** Warns about deprecated node labels in a node selector at `path`. */
export function termWarnings(path: string, selector: JsonObject | undefined): string[] {
  return objectsAt(selector ?? {}, "nodeSelectorTerms").flatMap((term, index) =>
    expressionWarnings(`${path}.nodeSelectorTerms[${index}]`, term),
  );
}
