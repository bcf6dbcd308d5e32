// Rules of roles as kube-apiserver reads them (pkg/apis/rbac/v1/evaluation_helpers.go, component-helpers/auth/rbac/validation).
import { arrayAt, isObject, type JsonObject } from "../../json.js";

/** One rule of a role. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
  readonly nonResourceURLs: readonly string[];
}

/** What a request does: to a resource, or to a path that is none. */
export type AccessAttributes =
  | {
      readonly verb: string;
      readonly group: string;
      readonly resource: string;
      readonly subresource: string;
      /** "" at the cluster scope. */
      readonly namespace: string;
      /** "" on a collection. */
      readonly name: string;
    }
  | { readonly verb: string; readonly path: string };

/** Reads the rules of a role. */
export function rulesOf(role: JsonObject): PolicyRule[] {
  return (arrayAt(role, "rules") ?? []).filter(isObject).map((rule) => {
    const listOf = (member: string): string[] => (arrayAt(rule, member) ?? []).map(String);
    return {
      verbs: listOf("verbs"),
      apiGroups: listOf("apiGroups"),
      resources: listOf("resources"),
      resourceNames: listOf("resourceNames"),
      nonResourceURLs: listOf("nonResourceURLs"),
    };
  });
}

/** Says whether a rule allows what a request does. */
export function allows(rule: PolicyRule, attributes: AccessAttributes): boolean {
  if (!has(rule.verbs, attributes.verb)) return false;
  if ("path" in attributes) return rule.nonResourceURLs.some((pattern) => matchesUrl(pattern, attributes.path));
  const { group, resource, subresource, name } = attributes;
  const full = subresource === "" ? resource : `${resource}/${subresource}`;
  return (
    has(rule.apiGroups, group) &&
    (has(rule.resources, full) || (subresource !== "" && rule.resources.includes(`*/${subresource}`))) &&
    (rule.resourceNames.length === 0 || (name !== "" && rule.resourceNames.includes(name)))
  );
}

/** Returns the parts of `wanted` that no rule of `held` covers, each with one group and resource. */
export function uncovered(wanted: readonly PolicyRule[], held: readonly PolicyRule[]): PolicyRule[] {
  return compacted(wanted.flatMap(partsOf).filter((part) => !held.some((rule) => covers(rule, part))));
}

// Parts that differ in their verbs alone are one.
function compacted(parts: readonly PolicyRule[]): PolicyRule[] {
  const merged = new Map<string, PolicyRule>();
  for (const part of parts) {
    const { verbs, ...rest } = part;
    const key = JSON.stringify(rest);
    merged.set(key, { ...part, verbs: [...new Set([...(merged.get(key)?.verbs ?? []), ...verbs])] });
  }
  return [...merged.values()];
}

// A rule with several verbs, groups and resources means each of them with each.
function partsOf(rule: PolicyRule): PolicyRule[] {
  const none = { apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [] };
  const ofResources = rule.apiGroups.flatMap((group) =>
    rule.resources.flatMap((resource) =>
      rule.verbs.flatMap((verb) => {
        const part = { ...none, verbs: [verb], apiGroups: [group], resources: [resource] };
        return rule.resourceNames.length === 0
          ? [part]
          : rule.resourceNames.map((name) => ({ ...part, resourceNames: [name] }));
      }),
    ),
  );
  const ofUrls = rule.nonResourceURLs.flatMap((url) =>
    rule.verbs.map((verb) => ({ ...none, verbs: [verb], nonResourceURLs: [url] })),
  );
  return [...ofResources, ...ofUrls];
}

function covers(rule: PolicyRule, part: PolicyRule): boolean {
  const all = (held: readonly string[], wanted: readonly string[]): boolean => wanted.every((one) => has(held, one));
  if (!all(rule.verbs, part.verbs)) return false;
  if (part.nonResourceURLs.length > 0)
    return part.nonResourceURLs.every((url) => rule.nonResourceURLs.some((pattern) => matchesUrl(pattern, url)));
  const isNamed =
    rule.resourceNames.length === 0 ||
    (part.resourceNames.length > 0 && part.resourceNames.every((name) => rule.resourceNames.includes(name)));
  const coversResource = (resource: string): boolean =>
    has(rule.resources, resource) || (resource.includes("/") && rule.resources.includes(`*/${resource.split("/")[1]}`));
  return isNamed && all(rule.apiGroups, part.apiGroups) && part.resources.every(coversResource);
}

function has(values: readonly string[], value: string): boolean {
  return values.includes("*") || values.includes(value);
}

function matchesUrl(pattern: string, path: string): boolean {
  return pattern === "*" || pattern === path || (pattern.endsWith("*") && path.startsWith(pattern.slice(0, -1)));
}
