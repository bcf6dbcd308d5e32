import { isDeepStrictEqual } from "node:util";
import { selectorMatches } from "../validation/fields.js";
import { StatusError, forbidden, notFound, statusError } from "../errors/status-error.js";
import { type JsonObject, arrayAt, deepEqual, isObject, objectAt, stringAt } from "../json.js";
import { keyOf } from "../object/object-meta.js";
import type { Registry } from "../registry/registry.js";
import type { ResourceStore } from "../storage/store.js";
import { MASTERS, type UserInfo, serviceAccountOf } from "./user.js";

/** Whether a request is allowed, and the reason. */
export interface Decision {
  readonly allowed: boolean;
  readonly reason?: string;
}

/** A rule that applies to a user, with a description of the binding that grants it. */
interface GrantedRule {
  readonly rule: PolicyRule;
  readonly grant: string;
}

const PLURALS = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];
// Maximum number of cached combinations of user and namespace.
const MAX_GRANTS = 1000;

/** RBAC authorizer. https://kubernetes.io/docs/reference/access-authn-authz/rbac/ */
export class Authorizer {
  readonly #stores: ReadonlyMap<string, ResourceStore>;
  readonly #grants = new Map<string, readonly GrantedRule[]>();
  #version = -1;

  constructor(registry: Registry) {
    this.#stores = new Map(PLURALS.map((plural) => [plural, storeOf(registry, plural)]));
  }

  /** Decides whether a user may perform an action. */
  decide(user: UserInfo, attributes: AccessAttributes): Decision {
    if (user.groups.includes(MASTERS)) return { allowed: true };
    const namespace = "path" in attributes ? "" : attributes.namespace;
    for (const { rule, grant } of this.#granted(user, namespace)) {
      if (allows(rule, attributes)) return { allowed: true, reason: `RBAC: allowed by ${grant}` };
    }
    return { allowed: false };
  }

  /** Returns the rules of a user in a namespace; with "", only those of ClusterRoleBindings. */
  rulesFor(user: UserInfo, namespace: string): PolicyRule[] {
    return this.#granted(user, namespace).map(({ rule }) => rule);
  }

  /** Returns the rules of a roleRef; undefined if the role does not exist. */
  rulesOfRole(reference: JsonObject | undefined, namespace: string): PolicyRule[] | undefined {
    const name = stringAt(reference, "name") ?? "";
    if (stringAt(reference, "kind") === "Role") {
      const role = this.#store("roles").get(keyOf({ namespace, name }))?.object;
      return role === undefined ? undefined : rulesOf(role);
    }
    const role = this.#store("clusterroles").get(name)?.object;
    return role === undefined ? undefined : this.#rulesOfClusterRole(role, new Set());
  }

  // Cached until a role or binding changes.
  #granted(user: UserInfo, namespace: string): readonly GrantedRule[] {
    let version = 0;
    for (const store of this.#stores.values()) version += store.version;
    if (version !== this.#version || this.#grants.size >= MAX_GRANTS) this.#grants.clear();
    this.#version = version;
    const key = JSON.stringify([namespace, user.username, user.groups]);
    let granted = this.#grants.get(key);
    if (granted === undefined) this.#grants.set(key, (granted = [...this.#findGrants(user, namespace)]));
    return granted;
  }

  *#findGrants(user: UserInfo, namespace: string): Generator<GrantedRule> {
    for (const { key, object } of this.#store("clusterrolebindings").list("")) {
      const subject = subjectFor(user, object, "");
      if (subject === undefined) continue;
      const reference = objectAt(object, "roleRef");
      const grant = `ClusterRoleBinding "${key}" of ClusterRole "${stringAt(reference, "name") ?? ""}" to ${subject}`;
      for (const rule of this.rulesOfRole(reference, "") ?? []) yield { rule, grant };
    }
    if (namespace === "") return;
    for (const { object } of this.#store("rolebindings").list(`${namespace}/`)) {
      const subject = subjectFor(user, object, namespace);
      if (subject === undefined) continue;
      const reference = objectAt(object, "roleRef");
      const binding = `${stringAt(objectAt(object, "metadata"), "name") ?? ""}/${namespace}`;
      const role = `${stringAt(reference, "kind") ?? ""} "${stringAt(reference, "name") ?? ""}"`;
      for (const rule of this.rulesOfRole(reference, namespace) ?? [])
        yield { rule, grant: `RoleBinding "${binding}" of ${role} to ${subject}` };
    }
  }

  // In a cluster, a controller copies the rules of the selected roles into an aggregated ClusterRole. Here they are also read from the selected
  // roles, so that aggregation works without the simulated controller; duplicates are dropped.
  #rulesOfClusterRole(role: JsonObject, seen: Set<string>): PolicyRule[] {
    const name = stringAt(objectAt(role, "metadata"), "name") ?? "";
    if (seen.has(name)) return [];
    seen.add(name);
    const selectors = arrayAt(objectAt(role, "aggregationRule"), "clusterRoleSelectors")?.filter(isObject);
    if (selectors === undefined) return rulesOf(role);
    const roles = this.#store("clusterroles").list("");
    const selected = roles.filter(({ object }) => {
      const labels = objectAt(objectAt(object, "metadata"), "labels") ?? {};
      return selectors.some((selector) => selectorMatches(selector, labels));
    });
    const own = rulesOf(role);
    const others = selected.flatMap(({ object }) => this.#rulesOfClusterRole(object, seen));
    return [...own, ...others.filter((rule) => !own.some((known) => isDeepStrictEqual(known, rule)))];
  }

  #store(plural: string): ResourceStore {
    return this.#stores.get(plural) as ResourceStore;
  }
}

function storeOf(registry: Registry, plural: string): ResourceStore {
  const resource = registry.find({ group: "rbac.authorization.k8s.io", version: "v1", plural });
  if (resource === undefined) throw new Error(`${plural} are not served`);
  return resource.store;
}

// Describes the subject of a binding that matches a user; undefined if none does.
function subjectFor(user: UserInfo, binding: JsonObject, namespace: string): string | undefined {
  for (const subject of (arrayAt(binding, "subjects") ?? []).filter(isObject)) {
    const name = stringAt(subject, "name") ?? "";
    const kind = stringAt(subject, "kind");
    if (kind === "User" && name === user.username) return `User "${name}"`;
    if (kind === "Group" && user.groups.includes(name)) return `Group "${name}"`;
    if (kind !== "ServiceAccount") continue;
    const account = serviceAccountOf(user.username);
    const inNamespace = stringAt(subject, "namespace") ?? namespace;
    if (account?.name === name && account.namespace === inNamespace) return `ServiceAccount "${name}/${inNamespace}"`;
  }
  return undefined;
}

// RBAC rules, evaluated as in kube-apiserver (pkg/apis/rbac/v1/evaluation_helpers.go, component-helpers/auth/rbac/validation).

/** A rule of a Role or ClusterRole. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
  readonly nonResourceURLs: readonly string[];
}

/** The action of a request: on a resource, or on a non-resource URL. */
export type AccessAttributes =
  | {
      readonly verb: string;
      readonly group: string;
      readonly resource: string;
      readonly subresource: string;
      /** "" at the cluster scope. */
      readonly namespace: string;
      /** "" for a collection. */
      readonly name: string;
    }
  | { readonly verb: string; readonly path: string };

/** Parses the rules of a role. */
function rulesOf(role: JsonObject): PolicyRule[] {
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

/** Reports whether a rule allows an action. */
function allows(rule: PolicyRule, attributes: AccessAttributes): boolean {
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

/** Returns the permissions in `wanted` that no rule of `held` covers, each with one group and one resource. */
function uncovered(wanted: readonly PolicyRule[], held: readonly PolicyRule[]): PolicyRule[] {
  return compacted(wanted.flatMap(partsOf).filter((part) => !held.some((rule) => covers(rule, part))));
}

// Merges permissions that differ only in their verbs.
function compacted(parts: readonly PolicyRule[]): PolicyRule[] {
  const merged = new Map<string, PolicyRule>();
  for (const part of parts) {
    const { verbs, ...rest } = part;
    const key = JSON.stringify(rest);
    merged.set(key, { ...part, verbs: [...new Set([...(merged.get(key)?.verbs ?? []), ...verbs])] });
  }
  return [...merged.values()];
}

// A rule grants every combination of its verbs, groups, and resources.
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

/** Builds the 403 error for a request that RBAC does not allow. */
export function accessDenied(user: UserInfo, attributes: AccessAttributes): StatusError {
  const who = `User ${JSON.stringify(user.username)} cannot ${attributes.verb}`;
  if ("path" in attributes) {
    const message = `forbidden: ${who} path ${JSON.stringify(attributes.path)}`;
    return statusError({ code: 403, reason: "Forbidden", message, details: {} });
  }
  const { group, resource, subresource, namespace, name } = attributes;
  const full = subresource === "" ? resource : `${resource}/${subresource}`;
  const scope = namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  return forbidden({ resource, group, name }, `${who} resource "${full}" in API group "${group}" ${scope}`);
}

const GROUP = "rbac.authorization.k8s.io";

/** A write of a role or binding. */
interface RoleWrite {
  readonly user: UserInfo;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
  readonly object: JsonObject;
  readonly oldObject?: JsonObject;
}

/**
 * Throws 403 if a user would grant permissions that they do not have. Writing a role requires its permissions or the verb `escalate`; binding a role
 * requires its permissions or the verb `bind`.
 * https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping
 */
export function checkEscalation(authorizer: Authorizer, write: RoleWrite): void {
  const { plural, object, oldObject } = write;
  if (plural === "roles" || plural === "clusterroles") {
    const isSame = oldObject !== undefined && deepEqual(object["rules"], oldObject["rules"]);
    if (!isSame && !isGranted(authorizer, write, { verb: "escalate", resource: plural, name: write.name })) {
      checkHeld(authorizer, write, rulesOf(object));
    }
    return;
  }
  if (plural !== "rolebindings" && plural !== "clusterrolebindings") return;
  const reference = objectAt(object, "roleRef");
  const isSame = oldObject !== undefined && deepEqual(object["subjects"], oldObject["subjects"]);
  const resource = stringAt(reference, "kind") === "Role" ? "roles" : "clusterroles";
  const name = stringAt(reference, "name") ?? "";
  if (isSame || isGranted(authorizer, write, { verb: "bind", resource, name })) return;
  const rules = authorizer.rulesOfRole(reference, write.namespace);
  // A binding to a missing role would grant whatever rules the role gets when it is created.
  if (rules === undefined) throw notFound({ resource: plural, group: GROUP, name });
  checkHeld(authorizer, write, rules);
}

function isGranted(
  authorizer: Authorizer,
  { user, namespace }: RoleWrite,
  asked: { verb: string; resource: string; name: string },
): boolean {
  return authorizer.decide(user, { ...asked, group: GROUP, subresource: "", namespace }).allowed;
}

function checkHeld(authorizer: Authorizer, { user, plural, namespace, name }: RoleWrite, wanted: PolicyRule[]): void {
  const missing = uncovered(wanted, authorizer.rulesFor(user, namespace));
  if (missing.length === 0) return;
  const groups = user.groups.map((group) => JSON.stringify(group)).join(" ");
  const lines = missing.map(textOf).sort();
  throw forbidden(
    { resource: plural, group: GROUP, name },
    `user ${JSON.stringify(user.username)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n${lines.join("\n")}`,
  );
}

function textOf(rule: PolicyRule): string {
  const listOf = (name: string, values: readonly string[]): string[] =>
    values.length === 0 ? [] : [`${name}:[${values.map((value) => JSON.stringify(value)).join(" ")}]`];
  const members = [
    ...listOf("APIGroups", rule.apiGroups),
    ...listOf("Resources", rule.resources),
    ...listOf("ResourceNames", rule.resourceNames),
    ...listOf("NonResourceURLs", rule.nonResourceURLs),
    ...listOf("Verbs", rule.verbs),
  ];
  return `{${members.join(", ")}}`;
}
