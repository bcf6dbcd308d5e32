import {
  type FieldError,
  forbiddenError,
  invalidError,
  requiredError,
  textNotSupportedError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, deepEqual, memberOf, objectAt } from "../../json.js";
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  checkConfigKeys,
  checkGivenDomain,
  checkLabelSelector,
  checkNotNegative,
  checkPathSegment,
  checkRequired,
} from "../../validation/fields.js";

/** Of the values of a ConfigMap or Secret together (MaxSecretSize). */
const MAX_DATA_BYTES = 1024 * 1024;

/** Checks a ConfigMap. */
export function checkConfigMap(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const keys = [...checkConfigKeys(object, "data"), ...checkConfigKeys(object, "binaryData"), ...checkKeysOnce(object)];
  const bytes = bytesOf(object, "data", Buffer.byteLength) + bytesOf(object, "binaryData", decodedLength);
  return [...keys, ...checkDataSize("[]", bytes), ...checkSealed(object, old, ["data", "binaryData"])];
}

function checkKeysOnce(object: JsonObject): FieldError[] {
  const binary = objectAt(object, "binaryData") ?? {};
  return Object.keys(objectAt(object, "data") ?? {})
    .filter((key) => Object.hasOwn(binary, key))
    .map((key) => invalidError(`data[${key}]`, key, "duplicate of key present in binaryData"));
}

/** Demands values that fit into an object together. */
export function checkDataSize(field: string, bytes: number): FieldError[] {
  return bytes > MAX_DATA_BYTES ? [tooLongError(field, MAX_DATA_BYTES)] : [];
}

/** Counts the bytes of the values of a map. */
export function bytesOf(object: JsonObject, member: string, lengthOf: (text: string) => number): number {
  const texts = Object.values(objectAt(object, member) ?? {}).filter((text) => typeof text === "string");
  return texts.reduce((total, text) => total + lengthOf(text), 0);
}

/** Counts the bytes that a text in base64 stands for. */
export function decodedLength(base64: string): number {
  return Buffer.byteLength(base64, "base64");
}

/** Demands that what was set to stay does. */
export function checkSealed(object: JsonObject, old: JsonObject | undefined, members: string[]): FieldError[] {
  if (old?.["immutable"] !== true) return [];
  const detail = "field is immutable when `immutable` is set";
  return [
    ...(object["immutable"] === true ? [] : [forbiddenError("immutable", detail)]),
    ...members
      // A ConfigMap without data gets an empty map.
      .filter((member) => {
        const isGivenEmpty = wasGivenEmpty(object, member) && !(object["kind"] === "ConfigMap" && member === "data");
        return isGivenEmpty || !deepEqual(memberOf(object, member), memberOf(old, member));
      })
      .map((member) => forbiddenError(member, detail)),
  ];
}

/** Checks a Lease. */
export function checkLease(lease: JsonObject): FieldError[] {
  const spec = objectAt(lease, "spec") ?? {};
  const seconds = memberOf(spec, "leaseDurationSeconds");
  const isTooShort = typeof seconds === "number" && seconds <= 0;
  return [
    ...(isTooShort ? [invalidError("spec.leaseDurationSeconds", seconds, "must be greater than 0")] : []),
    ...checkNotNegative("spec.leaseTransitions", memberOf(spec, "leaseTransitions")),
  ];
}

/** Checks a Role or ClusterRole. */
export function checkRole(kind: string, role: JsonObject): FieldError[] {
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

/** Checks a RoleBinding or ClusterRoleBinding, and on update that it binds the same role. */
export function checkRoleBinding(kind: string, binding: JsonObject, old: JsonObject | undefined): FieldError[] {
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
