import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, requiredError, textNotSupportedError } from "../../errors/field-error.js";
import { type JsonObject, deepEqual, memberOf, objectAt } from "../../json.js";
import { checkGivenDomain, checkPathSegment, checkRequired } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const roleBindingStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  createsOnUpdate: true,
  nameRule: "path-segment",
  structDefaults: { "rbac.v1.Subject": defaultSubject },
  validate: (binding, old) => checkRoleBinding("RoleBinding", binding, old),
};

export const clusterRoleBindingStrategy: Strategy = {
  ...roleBindingStrategy,
  validate: (binding, old) => checkRoleBinding("ClusterRoleBinding", binding, old),
};

/** Validates a RoleBinding or ClusterRoleBinding; its roleRef is immutable. */
function checkRoleBinding(kind: string, binding: JsonObject, old: JsonObject | undefined): FieldError[] {
  const role = objectAt(binding, "roleRef") ?? {};
  const kinds = kind === "RoleBinding" ? ["Role", "ClusterRole"] : ["ClusterRole"];
  const isOther = old !== undefined && !deepEqual(role, memberOf(old, "roleRef"));
  const shown = { APIGroup: role["apiGroup"] ?? "", Kind: role["kind"] ?? "", Name: role["name"] ?? "" };
  const name = textAt(role, "name");
  return [
    ...checkText("roleRef.apiGroup", textAt(role, "apiGroup"), ["rbac.authorization.k8s.io"]),
    ...checkText("roleRef.kind", textAt(role, "kind"), kinds),
    ...checkRequired("roleRef.name", name),
    ...checkPathSegment("roleRef.name", name),
    ...objectsAt(binding, "subjects").flatMap((subject, index) => checkSubject(`subjects[${index}]`, subject, kind)),
    ...(isOther ? [invalidError("roleRef", shown, "cannot change roleRef")] : []),
  ];
}

function checkText(field: string, text: string, supported: string[]): FieldError[] {
  return supported.includes(text) ? [] : [textNotSupportedError(field, text, supported)];
}

function checkSubject(path: string, subject: JsonObject, ofBinding: string): FieldError[] {
  const [kind, name, group] = [textAt(subject, "kind"), textAt(subject, "name"), textAt(subject, "apiGroup")];
  const supported = ["ServiceAccount", "User", "Group"];
  const isAccount = kind === "ServiceAccount";
  const expected = isAccount ? "" : "rbac.authorization.k8s.io";
  const needsNamespace = isAccount && ofBinding === "ClusterRoleBinding" && textAt(subject, "namespace") === "";
  return [
    ...checkRequired(`${path}.name`, name),
    ...(isAccount ? checkGivenDomain(`${path}.name`, name) : []),
    ...(needsNamespace ? [requiredError(`${path}.namespace`)] : []),
    ...(supported.includes(kind) ? checkText(`${path}.apiGroup`, group, [expected]) : []),
    ...checkText(`${path}.kind`, kind, supported),
  ];
}

/** Sets the default apiGroup of a User or Group. */
function defaultSubject(subject: JsonObject): void {
  if (memberOf(subject, "apiGroup") !== undefined) return;
  if (subject["kind"] === "User" || subject["kind"] === "Group") subject["apiGroup"] = "rbac.authorization.k8s.io";
}
