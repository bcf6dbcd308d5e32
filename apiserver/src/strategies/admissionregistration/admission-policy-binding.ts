// Validation of policy bindings, with the order and messages of kube-apiserver (pkg/apis/admissionregistration/validation).
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, objectAt, stringAt } from "../../json.js";
import { checkLabelSelector, checkPathSegment, checkRequiredDomain } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";
import {
  checkMatchResources,
  checkMutatedOperations,
  defaultMatchResources,
  staticNameWarnings,
} from "./match-resources.js";

export const validatingAdmissionPolicyBindingStrategy: Strategy = {
  checksMetadata: ["object"],
  generation: "spec",
  allowsUnconditionalUpdate: false,
  checksFinalizers: false,
  structDefaults: { "admissionregistration.v1.MatchResources": defaultMatchResources },
  validate: checkValidatingBinding,
  warnings: staticNameWarnings,
};

export const mutatingAdmissionPolicyBindingStrategy: Strategy = {
  ...validatingAdmissionPolicyBindingStrategy,
  validate: checkMutatingBinding,
};

const ACTIONS = ["Audit", "Deny", "Warn"];
const NOT_FOUND_ACTIONS = ["Deny", "Allow"];

function checkValidatingBinding(binding: JsonObject): FieldError[] {
  const spec = objectAt(binding, "spec") ?? {};
  return [...checkBinding(spec), ...checkActions("spec.validationActions", arrayAt(spec, "validationActions") ?? [])];
}

function checkMutatingBinding(binding: JsonObject): FieldError[] {
  const spec = objectAt(binding, "spec") ?? {};
  return [
    ...checkBinding(spec),
    ...checkMutatedOperations("spec.matchResources", objectAt(spec, "matchResources") ?? {}),
  ];
}

function checkBinding(spec: JsonObject): FieldError[] {
  const [params, match] = [objectAt(spec, "paramRef"), objectAt(spec, "matchResources")];
  return [
    ...checkRequiredDomain("spec.policyName", stringAt(spec, "policyName") ?? ""),
    ...(params === undefined ? [] : checkParams("spec.paramRef", params)),
    ...(match === undefined ? [] : checkMatchResources("spec.matchResources", match)),
  ];
}

function checkParams(field: string, params: JsonObject): FieldError[] {
  const [name, action] = [stringAt(params, "name") ?? "", stringAt(params, "parameterNotFoundAction") ?? ""];
  const selector = objectAt(params, "selector");
  const both = (member: string) =>
    name !== "" && selector !== undefined
      ? [forbiddenError(`${field}.${member}`, "name and selector are mutually exclusive")]
      : [];
  return [
    ...checkPathSegment(`${field}.name`, name),
    ...both("name"),
    ...checkLabelSelector(`${field}.selector`, selector),
    ...both("selector"),
    ...(name === "" && selector === undefined
      ? [requiredError(field, "one of name or selector must be specified")]
      : []),
    ...(action === "" ? [requiredError(`${field}.parameterNotFoundAction`)] : []),
    ...(action === "" || NOT_FOUND_ACTIONS.includes(action)
      ? []
      : [notSupportedError(`${field}.parameterNotFoundAction`, action, NOT_FOUND_ACTIONS)]),
  ];
}

function checkActions(field: string, given: readonly unknown[]): FieldError[] {
  const actions = given.map(String);
  if (actions.length === 0) return [requiredError(field, "at least one validation action is required")];
  const each = actions.flatMap((action, index) => [
    ...(ACTIONS.includes(action) ? [] : [notSupportedError(`${field}[${index}]`, action, ACTIONS)]),
    ...(actions.indexOf(action) < index ? [duplicateError(`${field}[${index}]`, action)] : []),
  ]);
  const words =
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
  const isTwice = actions.includes("Deny") && actions.includes("Warn");
  return [...each, ...(isTwice ? [invalidError(field, actions, words)] : [])];
}
