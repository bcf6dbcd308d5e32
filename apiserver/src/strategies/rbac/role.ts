import { objectsAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, objectAt } from "../../json.js";
import { checkLabelSelector } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const roleStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  createsOnUpdate: true,
  nameRule: "path-segment",
  validate: (role) => checkRole("Role", role),
};

export const clusterRoleStrategy: Strategy = { ...roleStrategy, validate: (role) => checkRole("ClusterRole", role) };

/** Validates a Role or ClusterRole. */
function checkRole(kind: string, role: JsonObject): FieldError[] {
  const aggregation = objectAt(role, "aggregationRule");
  const hasSelectors = aggregation === undefined || objectsAt(aggregation, "clusterRoleSelectors").length > 0;
  const detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
  return [
    ...checkRules(kind, role),
    ...(hasSelectors ? [] : [requiredError("aggregationRule.clusterRoleSelectors", detail)]),
    ...objectsAt(aggregation ?? {}, "clusterRoleSelectors").flatMap((selector, index) => {
      const path = `aggregationRule.clusterRoleSelectors[${index}]`;
      const errors = checkLabelSelector(path, selector);
      return errors.length === 0 ? [] : [...errors, invalidError(path, null, "invalid label selector.")];
    }),
  ];
}

function checkRules(kind: string, role: JsonObject): FieldError[] {
  return objectsAt(role, "rules").flatMap((rule, index) => {
    const isMissing = (key: string) => !Array.isArray(rule[key]) || rule[key].length === 0;
    const path = `rules[${index}]`;
    const isNonResource = !isMissing("nonResourceURLs");
    const isMisplaced = isNonResource && kind === "Role";
    const notHere = "namespaced rules cannot apply to non-resource URLs";
    const misplaced = isMisplaced
      ? [invalidError(`${path}.nonResourceURLs`, rule["nonResourceURLs"] ?? null, notHere)]
      : [];
    const isBoth = isNonResource && ["apiGroups", "resources", "resourceNames"].some((key) => !isMissing(key));
    if (isBoth) {
      const detail = "rules cannot apply to both regular resources and non-resource URLs";
      return [
        ...(isMissing("verbs") ? [requiredError(`${path}.verbs`, "verbs must contain at least one value")] : []),
        ...misplaced,
        invalidError(`${path}.nonResourceURLs`, rule["nonResourceURLs"] ?? null, detail),
      ];
    }
    return [
      ...(isMissing("verbs") ? [requiredError(`${path}.verbs`, "verbs must contain at least one value")] : []),
      ...(!isNonResource && isMissing("apiGroups")
        ? [requiredError(`${path}.apiGroups`, "resource rules must supply at least one api group")]
        : []),
      ...(!isNonResource && isMissing("resources")
        ? [requiredError(`${path}.resources`, "resource rules must supply at least one resource")]
        : []),
      ...misplaced,
    ];
  });
}
