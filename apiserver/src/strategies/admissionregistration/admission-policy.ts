// Validation of admission policies, with the order and messages of kube-apiserver (pkg/apis/admissionregistration/validation).
import { objectsAt, textAt } from "../../builtin/read-path.js";
import type { Variables } from "../../errors/expression-problem.js";
import { type FieldError, duplicateError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, objectAt, stringAt } from "../../json.js";
import { checkConditions } from "../../validation/conditions.js";
import { checkOneOf, checkQualifiedName, checkRequiredOneOf } from "../../validation/fields.js";
import { dns1035Problems, subdomainProblems } from "../../validation/names.js";
import type { Strategy } from "../strategy.js";
import { ANYTHING, AUTHORIZER, REQUEST } from "./expression-types.js";
import { checkExpressionAt, checkMatchConditions, checkVariables } from "./expressions.js";
import {
  checkMatchResources,
  checkMutatedOperations,
  defaultMatchResources,
  staticNameWarnings,
} from "./match-resources.js";

export const validatingAdmissionPolicyStrategy: Strategy = {
  checksMetadata: ["object"],
  generation: "spec",
  allowsUnconditionalUpdate: false,
  checksFinalizers: false,
  resetOnStatus: [".metadata", ".spec"],
  structDefaults: {
    "admissionregistration.v1.MatchResources": defaultMatchResources,
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": defaultAdmissionPolicy,
  },
  validate: checkValidatingPolicy,
  validateStatus: checkPolicyStatus,
  warnings: staticNameWarnings,
  statusWarnings: staticNameWarnings,
};

export const mutatingAdmissionPolicyStrategy: Strategy = {
  checksMetadata: ["object"],
  generation: "spec",
  allowsUnconditionalUpdate: false,
  checksFinalizers: false,
  structDefaults: {
    "admissionregistration.v1.MatchResources": defaultMatchResources,
    "admissionregistration.v1.MutatingAdmissionPolicySpec": defaultAdmissionPolicy,
  },
  validate: checkMutatingPolicy,
  warnings: staticNameWarnings,
};

const POLICY_REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MOST_ANNOTATIONS = 20;
const LONGEST_ANNOTATION = 5 * 1024;

function checkValidatingPolicy(policy: JsonObject): FieldError[] {
  const spec = objectAt(policy, "spec") ?? {};
  const [validations, annotations] = [objectsAt(spec, "validations"), objectsAt(spec, "auditAnnotations")];
  const seen = { ...REQUEST, ...paramsOf(spec) };
  const ofVariables = checkVariables(spec, { ...seen, ...AUTHORIZER });
  const hasVariables = objectsAt(spec, "variables").length > 0;
  const variables = hasVariables ? { ...seen, variables: ofVariables.type } : seen;
  const nothing = "validations or auditAnnotations must contain at least one item";
  return [
    ...checkSpec(spec, { isMutating: false }),
    ...ofVariables.errors,
    ...(validations.length === 0 && annotations.length === 0
      ? ["validations", "auditAnnotations"].map((name) => requiredError(`spec.${name}`, nothing))
      : []),
    ...validations.flatMap((validation, index) => checkValidation(`spec.validations[${index}]`, validation, variables)),
    ...checkAnnotations(annotations, stringAt(objectAt(policy, "metadata"), "name") ?? "", {
      ...variables,
      ...AUTHORIZER,
    }),
  ];
}

function checkMutatingPolicy(policy: JsonObject): FieldError[] {
  const spec = objectAt(policy, "spec") ?? {};
  const mutations = objectsAt(spec, "mutations");
  const seen = { ...REQUEST, ...paramsOf(spec), ...AUTHORIZER };
  const ofVariables = checkVariables(spec, seen);
  const variables = { ...seen, variables: ofVariables.type };
  return [
    ...checkSpec(spec, { isMutating: true }),
    ...ofVariables.errors,
    ...(mutations.length === 0 ? [requiredError("spec.mutations", "mutations must contain at least one item")] : []),
    ...mutations.flatMap((mutation, index) => checkMutation(`spec.mutations[${index}]`, mutation, variables)),
    ...checkRequiredOneOf("spec.reinvocationPolicy", spec["reinvocationPolicy"], ["IfNeeded", "Never"]),
  ];
}

// Validation that both kinds of policies share.
function checkSpec(spec: JsonObject, { isMutating }: { isMutating: boolean }): FieldError[] {
  const [kind, match] = [objectAt(spec, "paramKind"), objectAt(spec, "matchConstraints")];
  const field = "spec.matchConstraints";
  return [
    ...checkOneOf("spec.failurePolicy", spec["failurePolicy"], ["Fail", "Ignore"]),
    ...(kind === undefined ? [] : checkParamKind("spec.paramKind", kind)),
    ...(match === undefined
      ? [requiredError(field)]
      : [
          ...checkMatchResources(field, match),
          ...(objectsAt(match, "resourceRules").length === 0 ? [requiredError(`${field}.resourceRules`)] : []),
          ...(isMutating ? checkMutatedOperations(field, match) : []),
        ]),
    ...checkMatchConditions("spec.matchConditions", objectsAt(spec, "matchConditions"), paramsOf(spec)),
  ];
}

function paramsOf(spec: JsonObject): Variables {
  return spec["paramKind"] === undefined ? {} : { params: ANYTHING };
}

function checkParamKind(field: string, kind: JsonObject): FieldError[] {
  const [apiVersion, name] = [stringAt(kind, "apiVersion") ?? "", stringAt(kind, "kind") ?? ""];
  const words = "may have mixed case, but should otherwise match";
  const problems = name === "" ? [] : dns1035Problems(name.toLowerCase());
  return [
    ...checkApiVersion(`${field}.apiVersion`, apiVersion),
    ...(name === "" ? [requiredError(`${field}.kind`)] : []),
    ...(problems.length === 0 ? [] : [invalidError(`${field}.kind`, name, `${words}: ${problems.join(",")}`)]),
  ];
}

function checkApiVersion(field: string, apiVersion: string): FieldError[] {
  if (apiVersion === "") return [requiredError(field)];
  const parts = apiVersion.split("/");
  if (parts.length > 2) return [invalidError(field, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)];
  const [version = "", group = ""] = parts.reverse();
  const ofGroup = group === "" ? [] : subdomainProblems(group);
  const ofVersion = version === "" ? [] : dns1035Problems(version);
  return [
    ...(ofGroup.length === 0 ? [] : [invalidError(field, group, ofGroup.join(","))]),
    ...(version === "" ? [invalidError(field, apiVersion, "version must be specified")] : []),
    ...(ofVersion.length === 0 ? [] : [invalidError(field, version, ofVersion.join(","))]),
  ];
}

// messageExpression has no access to the authorizer.
function checkValidation(field: string, validation: JsonObject, variables: Variables): FieldError[] {
  const message = stringAt(validation, "message") ?? "";
  const messageExpression = stringAt(validation, "messageExpression") ?? "";
  const isBlank = (stringAt(validation, "expression") ?? "").trim() === "";
  return [
    ...(isBlank
      ? [requiredError(`${field}.expression`, "expression is not specified")]
      : checkExpressionAt(`${field}.expression`, validation, { variables: { ...variables, ...AUTHORIZER } })),
    ...(messageExpression !== "" && messageExpression.trim() === ""
      ? [invalidError(`${field}.messageExpression`, messageExpression, "must be non-empty if specified")]
      : checkExpressionAt(`${field}.messageExpression`, validation, { variables, wanted: "string" })),
    ...(message !== "" && message.trim() === ""
      ? [invalidError(`${field}.message`, message, "must be non-empty if specified")]
      : []),
    ...(/[\n\r]/.test(message.trim())
      ? [invalidError(`${field}.message`, message, "must not contain line breaks")]
      : []),
    ...checkOneOf(`${field}.reason`, validation["reason"], POLICY_REASONS),
  ];
}

function checkAnnotations(annotations: JsonObject[], policy: string, variables: Variables): FieldError[] {
  const keys = annotations.map((annotation) => stringAt(annotation, "key") ?? "");
  const all = "spec.auditAnnotations";
  const tooMany = `must not have more than ${MOST_ANNOTATIONS} auditAnnotations`;
  return [
    ...(annotations.length > MOST_ANNOTATIONS ? [invalidError(all, annotations.map(goAnnotationOf), tooMany)] : []),
    ...annotations.flatMap((annotation, index) => {
      const [field, key] = [`${all}[${index}]`, keys[index] ?? ""];
      const name = `${policy}/${key}`;
      return [
        ...checkQualifiedName(`${field}.key`, name),
        ...checkAnnotationValue(field, annotation, variables),
        ...(keys.indexOf(key) < index ? [duplicateError(`${field}.key`, key)] : []),
      ];
    }),
  ];
}

// kube-apiserver prints its internal struct, which has no JSON tags.
function goAnnotationOf(annotation: JsonObject): JsonObject {
  return { Key: annotation["key"] ?? "", ValueExpression: annotation["valueExpression"] ?? "" };
}

function checkAnnotationValue(field: string, annotation: JsonObject, variables: Variables): FieldError[] {
  const text = (stringAt(annotation, "valueExpression") ?? "").trim();
  const at = `${field}.valueExpression`;
  if (text === "") return [requiredError(at, "valueExpression is not specified")];
  if (Buffer.byteLength(text) > LONGEST_ANNOTATION)
    return [requiredError(at, `must not exceed ${LONGEST_ANNOTATION} bytes in length`)];
  return checkExpressionAt(at, annotation, { variables, wanted: ["string", "null_type"], trims: "unseen" });
}

function checkMutation(field: string, mutation: JsonObject, variables: Variables): FieldError[] {
  const type = stringAt(mutation, "patchType") ?? "";
  if (type === "") return [requiredError(`${field}.patchType`)];
  const [member, other] =
    type === "JSONPatch" ? ["jsonPatch", "applyConfiguration"] : ["applyConfiguration", "jsonPatch"];
  if (type !== "JSONPatch" && type !== "ApplyConfiguration")
    return checkOneOf(`${field}.patchType`, type, ["ApplyConfiguration", "JSONPatch"]);
  const patch = objectAt(mutation, member);
  const wanted = type === "JSONPatch" ? "list(JSONPatch)" : "Object";
  const at = `${field}.${member}`;
  return [
    ...(patch === undefined
      ? [requiredError(at, `must be specified when patchType is ${type}`)]
      : (stringAt(patch, "expression") ?? "").trim() === ""
        ? [requiredError(`${at}.expression`)]
        : checkExpressionAt(`${at}.expression`, patch, { variables, wanted, hasPatchTypes: true, trims: "seen" })),
    ...(mutation[other] === undefined
      ? []
      : [invalidError(`${field}.${other}`, `{${other}}`, `must not be specified when patchType is ${type}`)]),
  ];
}

/** Validates the status of a ValidatingAdmissionPolicy. */
function checkPolicyStatus(policy: JsonObject): FieldError[] {
  return [
    ...objectsAt(policy, "status.typeChecking.expressionWarnings").flatMap((warning, index) =>
      ["warning", "fieldRef"]
        .filter((key) => (key === "fieldRef" ? textAt(warning, key).trim() : textAt(warning, key)) === "")
        .map((key) => requiredError(`status.typeChecking.expressionWarnings[${index}].${key}`)),
    ),
    ...checkConditions("status.conditions", objectsAt(policy, "status.conditions")),
  ];
}

/** Sets the defaults of an admission policy. */
function defaultAdmissionPolicy(spec: JsonObject): void {
  spec["failurePolicy"] ??= "Fail";
}
