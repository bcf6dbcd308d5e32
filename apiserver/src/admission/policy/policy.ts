import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../../json.js";
import type { WriteSelector } from "../match-write.js";
import { type MatchCondition, matchConditionsOf } from "./match-conditions.js";

/** What a policy adds to the entry of a write in the audit log. */
export interface PolicyAnnotation {
  readonly key: string;
  readonly expression: string;
}

/** One expression that has to hold. */
export interface PolicyValidation {
  readonly expression: string;
  readonly message: string;
  readonly messageExpression: string;
  readonly reason: string;
}

/** What both kinds of policies have. */
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
  /** Whether it is asked again when something has changed the object after it. */
  readonly isReinvoked: boolean;
}

/** One change of an object, in CEL. */
export interface PolicyMutation {
  readonly patchType: "ApplyConfiguration" | "JSONPatch";
  readonly expression: string;
}

/** A ValidatingAdmissionPolicyBinding. */
export interface PolicyBinding {
  readonly name: string;
  readonly policyName: string;
  /** Whose rules may be absent: then every write that the policy selects counts. */
  readonly selector: WriteSelector;
  readonly paramRef: JsonObject | undefined;
  readonly actions: readonly string[];
}

/** Reads a ValidatingAdmissionPolicy that the server has stored, and so completed and checked. */
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

/** Reads a MutatingAdmissionPolicy that the server has stored. */
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

/** Reads a binding that the server has stored. */
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

// What states no rules selects by labels alone.
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
