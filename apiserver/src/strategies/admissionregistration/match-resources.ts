import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, duplicateError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, arrayAt, isObject, objectAt } from "../../json.js";
import { checkLabelSelector, checkOneOf, checkPathSegment, checkRequired } from "../../validation/fields.js";

const OPERATIONS = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/** Operations that a mutating policy can match. */
const MUTATING_OPERATIONS = ["*", "CONNECT", "CREATE", "UPDATE"];

/** Validates matchResources of a policy or its binding. */
export function checkMatchResources(field: string, match: JsonObject): FieldError[] {
  const rulesAt = (member: string): FieldError[] =>
    objectsAt(match, member).flatMap((rule, index) => checkNamedRule(`${field}.${member}[${index}]`, rule));
  return [
    ...checkOneOf(`${field}.matchPolicy`, match["matchPolicy"], ["Equivalent", "Exact"]),
    ...checkLabelSelector(`${field}.namespaceSelector`, objectAt(match, "namespaceSelector")),
    ...checkLabelSelector(`${field}.objectSelector`, objectAt(match, "objectSelector")),
    ...rulesAt("resourceRules"),
    ...rulesAt("excludeResourceRules"),
  ];
}

/** Validates that a mutating policy does not match DELETE. */
export function checkMutatedOperations(field: string, match: JsonObject): FieldError[] {
  return objectsAt(match, "resourceRules").flatMap((rule) =>
    textsAt(rule, "operations").flatMap((operation) =>
      checkOneOf(`${field}.resourceRules.operations`, operation, MUTATING_OPERATIONS),
    ),
  );
}

function checkNamedRule(field: string, rule: JsonObject): FieldError[] {
  const names = textsAt(rule, "resourceNames");
  const ofNames = names.flatMap((name, index) => [
    ...checkPathSegment(`${field}.resourceNames[${index}]`, name),
    ...(names.indexOf(name) < index ? [duplicateError(`${field}.resourceNames[${index}]`, name)] : []),
  ]);
  return [...ofNames, ...checkRule(field, rule)];
}

function textsAt(object: JsonObject, member: string): string[] {
  const value = object[member];
  return Array.isArray(value) ? value.map(String) : [];
}

/** Validates a rule of a webhook or policy. */
export function checkRule(field: string, rule: JsonObject): FieldError[] {
  const [operations, groups, versions] = ["operations", "apiGroups", "apiVersions"].map((member) =>
    textsAt(rule, member),
  ) as [string[], string[], string[]];
  return [
    ...checkList(`${field}.operations`, operations, "operations"),
    ...operations.flatMap((operation, index) => checkOneOf(`${field}.operations[${index}]`, operation, OPERATIONS)),
    ...checkList(`${field}.apiGroups`, groups, "API groups"),
    ...checkList(`${field}.apiVersions`, versions, "API versions"),
    ...versions.flatMap((version, index) => checkRequired(`${field}.apiVersions[${index}]`, version)),
    ...checkResources(`${field}.resources`, textsAt(rule, "resources")),
    ...checkOneOf(`${field}.scope`, rule["scope"], ["*", "Cluster", "Namespaced"]),
  ];
}

function checkList(field: string, values: string[], what: string): FieldError[] {
  if (values.length === 0) return [requiredError(field)];
  if (values.length === 1 || !values.includes("*")) return [];
  return [invalidError(field, values, `if '*' is present, must not specify other ${what}`)];
}

// As in kube-apiserver, each resource is compared only with the preceding ones, and the last one without a subresource determines whether "*" is
// combined with others.
function checkResources(field: string, resources: string[]): FieldError[] {
  if (resources.length === 0) return [requiredError(field)];
  const wider = new Set<string>();
  let isLastPlain = false;
  const each = resources.flatMap((resource, index) => {
    const at = `${field}[${index}]`;
    if (resource === "") return [requiredError(at)];
    const slash = resource.indexOf("/");
    if (slash < 0) {
      isLastPlain = resource !== "*";
      return [];
    }
    const patterns = [`${resource.slice(0, slash)}/*`, `*${resource.slice(slash)}`];
    const present = patterns.filter((pattern, kind) => wider.has(`${kind}${pattern}`));
    patterns.forEach((pattern, kind) => resource === pattern && wider.add(`${kind}${pattern}`));
    return present.map((pattern) =>
      invalidError(at, resource, `if '${pattern}' is present, must not specify ${resource}`),
    );
  });
  const detail = "must not specify other resources";
  return [
    ...each,
    ...(resources.length > 1 && resources.includes("*/*")
      ? [invalidError(field, resources, `if '*/*' is present, ${detail}`)]
      : []),
    ...(isLastPlain && resources.includes("*")
      ? [invalidError(field, resources, `if '*' is present, ${detail} without subresources`)]
      : []),
  ];
}

/** Sets the defaults of matchResources: all objects in all namespaces. */
export function defaultMatchResources(resources: JsonObject): void {
  resources["matchPolicy"] ??= "Equivalent";
  resources["namespaceSelector"] ??= {};
  resources["objectSelector"] ??= {};
  defaultRuleScopes(resources, "resourceRules");
  defaultRuleScopes(resources, "excludeResourceRules");
}

export function defaultRuleScopes(holder: JsonObject, list: string): void {
  for (const rule of (arrayAt(holder, list) ?? []).filter(isObject)) rule["scope"] ??= "*";
}

const STATIC_SUFFIX = ".static.k8s.io";

/** Warns about names that are reserved for configurations in static manifests. */
export function staticNameWarnings(object: JsonObject): string[] {
  if (!textAt(object, "metadata.name").endsWith(STATIC_SUFFIX)) return [];
  return [
    `metadata.name: names ending with "${STATIC_SUFFIX}" are reserved for static manifest-based configurations and cannot be managed via the API`,
  ];
}
