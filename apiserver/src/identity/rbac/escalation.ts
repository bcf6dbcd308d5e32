import { forbidden, notFound } from "../../errors/status-error.js";
import { deepEqual, objectAt, stringAt, type JsonObject } from "../../json.js";
import type { UserInfo } from "../user.js";
import type { Authorizer } from "./authorizer.js";
import { rulesOf, uncovered, type PolicyRule } from "./policy-rule.js";

const GROUP = "rbac.authorization.k8s.io";

/** A write of a role or a binding. */
export interface RoleWrite {
  readonly user: UserInfo;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
  readonly object: JsonObject;
  readonly oldObject?: JsonObject;
}

/**
 * Fails when a user would give rights that they do not hold: who writes a role needs its rules or the verb `escalate`, who binds one
 * needs them or the verb `bind`. https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping
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
  // Whoever makes it later decides what the binding gives.
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
