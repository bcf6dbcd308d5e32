import { isDeepStrictEqual } from "node:util";
import { selectorMatches } from "../../builtin/rules/field-rules.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject } from "../../json.js";
import { keyOf } from "../../object/object-key.js";
import type { Registry } from "../../registry/registry.js";
import type { ResourceStore } from "../../storage/resource-store.js";
import { MASTERS, serviceAccountOf, type UserInfo } from "../user.js";
import { allows, rulesOf, type AccessAttributes, type PolicyRule } from "./policy-rule.js";

/** Whether a request is allowed, and by what. */
export interface Decision {
  readonly allowed: boolean;
  readonly reason?: string;
}

/** A rule that holds for a user, and the words for why. */
interface GrantedRule {
  readonly rule: PolicyRule;
  readonly grant: string;
}

const PLURALS = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];
// So many users and namespaces are remembered.
const MAX_GRANTS = 1000;

/** Decides by the roles and bindings in the store. https://kubernetes.io/docs/reference/access-authn-authz/rbac/ */
export class Authorizer {
  readonly #stores: ReadonlyMap<string, ResourceStore>;
  readonly #grants = new Map<string, readonly GrantedRule[]>();
  #version = -1;

  constructor(registry: Registry) {
    this.#stores = new Map(PLURALS.map((plural) => [plural, storeOf(registry, plural)]));
  }

  /** Says whether a user may do something. */
  decide(user: UserInfo, attributes: AccessAttributes): Decision {
    if (user.groups.includes(MASTERS)) return { allowed: true };
    const namespace = "path" in attributes ? "" : attributes.namespace;
    for (const { rule, grant } of this.#granted(user, namespace)) {
      if (allows(rule, attributes)) return { allowed: true, reason: `RBAC: allowed by ${grant}` };
    }
    return { allowed: false };
  }

  /** Returns the rules that hold for a user in a namespace, or with "" those that hold everywhere. */
  rulesFor(user: UserInfo, namespace: string): PolicyRule[] {
    return this.#granted(user, namespace).map(({ rule }) => rule);
  }

  /** Returns the rules of a role that a binding names; undefined if it does not exist. */
  rulesOfRole(reference: JsonObject | undefined, namespace: string): PolicyRule[] | undefined {
    const name = stringAt(reference, "name") ?? "";
    if (stringAt(reference, "kind") === "Role") {
      const role = this.#store("roles").get(keyOf({ namespace, name }))?.object;
      return role === undefined ? undefined : rulesOf(role);
    }
    const role = this.#store("clusterroles").get(name)?.object;
    return role === undefined ? undefined : this.#rulesOfClusterRole(role, new Set());
  }

  // What a user is granted is remembered until a role or a binding changes.
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

  // On a real server a controller copies the rules of the roles that an aggregated one selects; here they are read where they are, and the simulated
  // controller may have copied them, too.
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

// The words for the subject of a binding that a user is; undefined for a binding of others.
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
