// Labels of nodes that have another name by now, wherever nodes are selected by them.
import { type JsonObject, arrayAt, memberOf, objectAt, stringAt } from "../../json.js";
import { objectsAt } from "../../builtin/read-path.js";
import { labelValueProblems } from "../../validation/names.js";

const renamed = (since: string, to: string): string => `deprecated since ${since}; use "${to}" instead`;

// In the order in which they are told.
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

/** Warns of the labels in a map; `place` says where one of them stands. */
export function labelMapWarnings(map: JsonObject | undefined, place: (label: string) => string): string[] {
  return Object.entries(NODE_LABELS)
    .filter(([label]) => memberOf(map, label) !== undefined)
    .map(([label, advice]) => `${place(label)}: ${advice}`);
}

/** Warns of a label that something at `path` names. */
export function labelWarnings(path: string, label: string): string[] {
  const advice = NODE_LABELS[label];
  return advice === undefined ? [] : [`${path}: ${label} is ${advice}`];
}

/** Warns of the labels in the expressions of a selector at `path`. */
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

/** Warns of the labels by which a pod spec at `path` selects its nodes. */
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

/** Warns of the labels in the terms of a node selector at `path`. */
export function termWarnings(path: string, selector: JsonObject | undefined): string[] {
  return objectsAt(selector ?? {}, "nodeSelectorTerms").flatMap((term, index) =>
    expressionWarnings(`${path}.nodeSelectorTerms[${index}]`, term),
  );
}
