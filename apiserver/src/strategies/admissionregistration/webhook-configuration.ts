// Validation of webhook configurations, with the order and messages of kube-apiserver (pkg/apis/admissionregistration/validation).
import { REVIEW_VERSIONS, checkClientConfig, checkReviewVersions } from "@gen-operator/schema/definitions";
import { objectsAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, objectAt, stringAt } from "../../json.js";
import { checkLabelSelector, checkOneOf } from "../../validation/fields.js";
import { subdomainProblems } from "../../validation/names.js";
import type { Strategy } from "../strategy.js";
import { checkMatchConditions } from "./expressions.js";
import { checkRule, defaultRuleScopes, staticNameWarnings } from "./match-resources.js";

export const validatingWebhookConfigurationStrategy: Strategy = {
  checksMetadata: ["object"],
  generation: "outside-metadata-as-given",
  allowsUnconditionalUpdate: false,
  checksFinalizers: false,
  validate: checkWebhooks,
  warnings: staticNameWarnings,
  structDefaults: { "admissionregistration.v1.ValidatingWebhook": (webhook) => defaultWebhook(webhook, false) },
};

export const mutatingWebhookConfigurationStrategy: Strategy = {
  ...validatingWebhookConfigurationStrategy,
  structDefaults: { "admissionregistration.v1.MutatingWebhook": (webhook) => defaultWebhook(webhook, true) },
};

const SIDE_EFFECTS = ["None", "NoneOnDryRun"];

/** Validates a ValidatingWebhookConfiguration or MutatingWebhookConfiguration. */
function checkWebhooks(configuration: JsonObject): FieldError[] {
  const names = new Set<string>();
  return objectsAt(configuration, "webhooks").flatMap((webhook, index) => {
    const field = `webhooks[${index}]`;
    const name = stringAt(webhook, "name") ?? "";
    const isRepeated = name !== "" && names.has(name);
    names.add(name);
    return [...checkWebhook(field, webhook), ...(isRepeated ? [duplicateError(`${field}.name`, name)] : [])];
  });
}

function checkWebhook(field: string, webhook: JsonObject): FieldError[] {
  return [
    ...checkName(`${field}.name`, stringAt(webhook, "name") ?? ""),
    ...checkReviewVersions(
      `${field}.admissionReviewVersions`,
      webhook["admissionReviewVersions"],
      `must specify one of ${REVIEW_VERSIONS.join(", ")}`,
    ),
    ...objectsAt(webhook, "rules").flatMap((rule, index) => checkRule(`${field}.rules[${index}]`, rule)),
    ...checkOneOf(`${field}.failurePolicy`, webhook["failurePolicy"], ["Fail", "Ignore"]),
    ...checkOneOf(`${field}.matchPolicy`, webhook["matchPolicy"], ["Equivalent", "Exact"]),
    ...checkSideEffects(`${field}.sideEffects`, webhook["sideEffects"]),
    ...checkTimeout(`${field}.timeoutSeconds`, webhook["timeoutSeconds"]),
    ...checkLabelSelector(`${field}.namespaceSelector`, objectAt(webhook, "namespaceSelector")),
    ...checkLabelSelector(`${field}.objectSelector`, objectAt(webhook, "objectSelector")),
    ...checkClientConfig(`${field}.clientConfig`, objectAt(webhook, "clientConfig") ?? {}),
    ...checkOneOf(`${field}.reinvocationPolicy`, webhook["reinvocationPolicy"], ["IfNeeded", "Never"]),
    ...checkMatchConditions(`${field}.matchConditions`, objectsAt(webhook, "matchConditions")),
  ];
}

function checkName(field: string, name: string): FieldError[] {
  if (name === "") return [requiredError(field)];
  const problems = subdomainProblems(name);
  if (problems.length > 0) return problems.map((detail) => invalidError(field, name, detail));
  const detail = "should be a domain with at least three segments separated by dots";
  return name.split(".").length < 3 ? [invalidError(field, name, detail)] : [];
}

function checkSideEffects(field: string, value: JsonValue | undefined): FieldError[] {
  if (value === undefined) return [requiredError(field, `must specify one of ${SIDE_EFFECTS.join(", ")}`)];
  return SIDE_EFFECTS.includes(String(value)) ? [] : [notSupportedError(field, value, SIDE_EFFECTS)];
}

function checkTimeout(field: string, value: JsonValue | undefined): FieldError[] {
  if (typeof value !== "number" || (value >= 1 && value <= 30)) return [];
  return [invalidError(field, value, "the timeout value must be between 1 and 30 seconds")];
}

/** Sets the defaults of a webhook. */
function defaultWebhook(webhook: JsonObject, isMutating: boolean): void {
  webhook["failurePolicy"] ??= "Fail";
  webhook["matchPolicy"] ??= "Equivalent";
  webhook["namespaceSelector"] ??= {};
  webhook["objectSelector"] ??= {};
  webhook["timeoutSeconds"] ??= 10;
  if (isMutating) webhook["reinvocationPolicy"] ??= "Never";
  defaultRuleScopes(webhook, "rules");
  const service = objectAt(objectAt(webhook, "clientConfig"), "service");
  if (service !== undefined) service["port"] ??= 443;
}
