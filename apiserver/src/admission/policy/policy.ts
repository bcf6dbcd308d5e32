import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../../json.js";
import type { WriteSelector } from "../match-write.js";
import { type MatchCondition, matchConditionsOf } from "./match-conditions.js";

/** An audit annotation of a policy. */
export interface PolicyAnnotation {
  readonly key: string;
  readonly expression: string;
}

/** A validation of a policy: a CEL expression that must be true. */
export interface PolicyValidation {
  readonly expression: string;
  readonly message: string;
  readonly messageExpression: string;
  readonly reason: string;
}

/** The fields that validating and mutating policies share. */
export interface Policy {
  readonly name: string;
  readonly failurePolicy: "Fail" | "Ignore";
  readonly paramKind: { readonly apiVersion: string; readonly kind: string } | undefined;
  readonly selector: WriteSelector;
  readonly conditions: readonly MatchCondition[];
  readonly variables: readonly MatchCondition[];
}

/** A ValidatingAdmissionPolicy; https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/ */
export interface ValidatingPolicy extends Policy {
  readonly annotations: readonly PolicyAnnotation[];
  readonly validations: readonly PolicyValidation[];
}

/** A MutatingAdmissionPolicy; https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/ */
export interface MutatingPolicy extends Policy {
  readonly mutations: readonly PolicyMutation[];
  /** Whether reinvocationPolicy is IfNeeded: the policy runs again if the object changed after it. */
  readonly isReinvoked: boolean;
}

/** A mutation of a policy, as a CEL expression. */
export interface PolicyMutation {
  readonly patchType: "ApplyConfiguration" | "JSONPatch";
  readonly expression: string;
}

/** A ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding. */
export interface PolicyBinding {
  readonly name: string;
  readonly policyName: string;
  /** Without resource rules, it matches every write that the policy matches. */
  readonly selector: WriteSelector;
  readonly paramRef: JsonObject | undefined;
  readonly actions: readonly string[];
}

/** Parses a stored ValidatingAdmissionPolicy, which is already defaulted and validated. */
export function validatingPolicyOf(object: JsonObject): ValidatingPolicy {
  return {
    ...policyOf(object),
    annotations: listOf(objectAt(object, "spec") ?? {}, "auditAnnotations").map((one) => ({
      key: stringAt(one, "key") ?? "",
      expression: stringAt(one, "valueExpression") ?? "",
    })),
    validations: listOf(objectAt(object, "spec") ?? {}, "validations").map((one) => ({
      expression: stringAt(one, "expression") ?? "",
      message: stringAt(one, "message") ?? "",
      messageExpression: stringAt(one, "messageExpression") ?? "",
      reason: stringAt(one, "reason") ?? "Invalid",
    })),
  };
}

/** Parses a stored MutatingAdmissionPolicy, which is already defaulted and validated. */
export function mutatingPolicyOf(object: JsonObject): MutatingPolicy {
  const spec = objectAt(object, "spec") ?? {};
  return {
    ...policyOf(object),
    isReinvoked: stringAt(spec, "reinvocationPolicy") === "IfNeeded",
    mutations: listOf(spec, "mutations").map((one) => {
      const patchType = stringAt(one, "patchType") === "JSONPatch" ? "JSONPatch" : "ApplyConfiguration";
      const patch = objectAt(one, patchType === "JSONPatch" ? "jsonPatch" : "applyConfiguration");
      return { patchType, expression: stringAt(patch, "expression") ?? "" };
    }),
  };
}

function policyOf(object: JsonObject): Policy {
  const spec = objectAt(object, "spec") ?? {};
  const paramKind = objectAt(spec, "paramKind");
  return {
    name: nameOf(object),
    failurePolicy: stringAt(spec, "failurePolicy") === "Ignore" ? "Ignore" : "Fail",
    paramKind:
      paramKind === undefined
        ? undefined
        : { apiVersion: stringAt(paramKind, "apiVersion") ?? "", kind: stringAt(paramKind, "kind") ?? "" },
    selector: selectorOf(objectAt(spec, "matchConstraints") ?? {}),
    conditions: matchConditionsOf(spec),
    variables: listOf(spec, "variables").map((one) => ({
      name: stringAt(one, "name") ?? "",
      expression: stringAt(one, "expression") ?? "",
    })),
  };
}

/** Parses a stored policy binding. */
export function bindingOf(object: JsonObject): PolicyBinding {
  const spec = objectAt(object, "spec") ?? {};
  return {
    name: nameOf(object),
    policyName: stringAt(spec, "policyName") ?? "",
    selector: selectorOf(objectAt(spec, "matchResources") ?? {}),
    paramRef: objectAt(spec, "paramRef"),
    actions: (arrayAt(spec, "validationActions") ?? []).map(String),
  };
}

// Without resource rules, only the selectors apply.
function selectorOf(match: JsonObject): WriteSelector {
  const rules = listOf(match, "resourceRules");
  return {
    rules: rules.length === 0 ? [ANY] : rules,
    excludeRules: listOf(match, "excludeResourceRules"),
    matchPolicy: stringAt(match, "matchPolicy") === "Exact" ? "Exact" : "Equivalent",
    namespaceSelector: objectAt(match, "namespaceSelector") ?? {},
    objectSelector: objectAt(match, "objectSelector") ?? {},
  };
}

const ANY: JsonObject = { operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"] };

function listOf(object: JsonObject, member: string): JsonObject[] {
  return (arrayAt(object, member) ?? []).filter(isObject);
}

function nameOf(object: JsonObject): string {
  return stringAt(objectAt(object, "metadata"), "name") ?? "";
}
