import { parseQuantity } from "@gen-operator/schema";
import { objectsAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf, objectAt } from "../../json.js";
import { qualifiedNameProblems } from "../../validation/names.js";
import { BILLION, amount, quantitiesAt } from "../shared/resource-requests.js";
import type { Strategy } from "../strategy.js";

export const resourceQuotaStrategy: Strategy = {
  returnsDeletedObject: true,
  validate: checkQuota,
  validateStatus: checkQuotaStatus,
  warnings: (quota, old) => (old === undefined ? quotaWarnings(quota) : []),
};

const COUNTED = [
  ...["pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"],
  ...["persistentvolumeclaims", "services.nodeports", "services.loadbalancers"],
];

const COMPUTE = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

const STANDARD = new Set([
  ...COUNTED,
  ...COMPUTE,
  ...["ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "requests.storage"],
]);

const OF_PODS = ["pods", ...COMPUTE];

// Standard resources that each scope can limit.
const SCOPES = new Map<string, readonly string[]>([
  ["Terminating", OF_PODS],
  ["NotTerminating", OF_PODS],
  ["NotBestEffort", OF_PODS],
  ["PriorityClass", OF_PODS],
  ["CrossNamespacePodAffinity", OF_PODS],
  ["BestEffort", ["pods"]],
  ["VolumeAttributesClass", ["persistentvolumeclaims", "requests.storage"]],
]);

const WITHOUT_VALUES = ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];

const EXISTS_RULE =
  "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, " +
  "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

/** Validates a ResourceQuota; its scopes are immutable. */
function checkQuota(quota: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(quota, "spec") ?? {};
  const scopes = scopesOf(spec);
  const isOther = old !== undefined && !isSameSet(scopes, scopesOf(objectAt(old, "spec") ?? {}));
  return [
    ...checkAmounts("spec.hard", objectAt(spec, "hard")),
    ...checkScopes(spec, scopes),
    ...checkSelector(spec, scopes),
    ...(isOther ? [invalidError("spec.scopes", memberOf(spec, "scopes") ?? null, "field is immutable")] : []),
  ];
}

function checkQuotaStatus(quota: JsonObject): FieldError[] {
  const status = objectAt(quota, "status");
  return ["hard", "used"].flatMap((key) => checkAmounts(`status.${key}`, objectAt(status, key)));
}

function checkAmounts(path: string, amounts: JsonObject = {}): FieldError[] {
  return Object.entries(amounts).flatMap(([name, amount]) => {
    const at = `${path}[${name}]`;
    return [...checkResource(at, name), ...checkAmount(at, name, amount)];
  });
}

/** Validates an amount of a resource. */
export function checkAmount(field: string, name: string, amount: JsonValue): FieldError[] {
  const value = parseQuantity(String(amount)) ?? 0n;
  return [
    ...(value < 0n ? [invalidError(field, amount, "must be greater than or equal to 0")] : []),
    ...(isCounted(name) && value % BILLION !== 0n ? [invalidError(field, amount, "must be an integer")] : []),
  ];
}

// Extended resources are integers, except under `requests.`.
function isCounted(name: string): boolean {
  return COUNTED.includes(name) || (name.includes("/") && !/kubernetes\.io\/|^requests\./.test(name));
}

function isStandardResource(name: string): boolean {
  return STANDARD.has(name) || /^(requests\.)?hugepages-/.test(name);
}

function checkResource(path: string, name: string): FieldError[] {
  const problems = qualifiedNameProblems(name);
  const isStandard = isStandardResource(name);
  const isPlain = !name.includes("/");
  return [
    ...problems.map((detail) => invalidError(path, name, detail)),
    ...(problems.length === 0 && isPlain && !isStandard && name !== "storage"
      ? [invalidError(path, name, "must be a standard resource type or fully qualified")]
      : []),
    ...(isPlain && !isStandard ? [invalidError(path, name, "must be a standard resource for quota")] : []),
  ];
}

function checkScopes(spec: JsonObject, scopes: string[]): FieldError[] {
  const shown = memberOf(spec, "scopes") ?? null;
  const path = "spec.scopes";
  return [
    ...scopes.flatMap((scope) => [
      ...(SCOPES.has(scope) ? [] : [invalidError(path, shown, "unsupported scope")]),
      ...unlimitedBy(scope, spec).map(() => invalidError(path, shown, "unsupported scope applied to resource")),
    ]),
    ...conflictsOf(scopes).map(() => invalidError(path, shown, "conflicting scopes")),
  ];
}

function checkSelector(spec: JsonObject, scopes: string[]): FieldError[] {
  const requirements = objectsAt(spec, "scopeSelector.matchExpressions");
  const path = "spec.scopeSelector.matchExpressions";
  const names = requirements.map((requirement) => textOf(requirement, "scopeName"));
  const shown = {
    MatchExpressions: requirements.map((requirement) => ({
      ScopeName: textOf(requirement, "scopeName"),
      Operator: textOf(requirement, "operator"),
      Values: memberOf(requirement, "values") ?? null,
    })),
  };
  return [
    ...requirements.flatMap((requirement) => {
      const scope = textOf(requirement, "scopeName");
      const operator = textOf(requirement, "operator");
      return [
        ...(SCOPES.has(scope) ? [] : [invalidError(`${path}.scopeName`, scope, "unsupported scope")]),
        ...unlimitedBy(scope, spec).map(() => invalidError(path, shown, "unsupported scope applied to resource")),
        ...(WITHOUT_VALUES.includes(scope) && operator !== "Exists"
          ? [invalidError(`${path}.operator`, operator, EXISTS_RULE)]
          : []),
        ...checkValues(path, operator, memberOf(requirement, "values")),
      ];
    }),
    ...conflictsOf(names).map(() => invalidError(path, scopes.length === 0 ? null : scopes, "conflicting scopes")),
  ];
}

function checkValues(path: string, operator: string, values: JsonValue | undefined): FieldError[] {
  const hasValues = Array.isArray(values) && values.length > 0;
  if (operator === "In" || operator === "NotIn") {
    const detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
    return hasValues ? [] : [requiredError(`${path}.values`, detail)];
  }
  if (operator === "Exists" || operator === "DoesNotExist") {
    const detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
    return hasValues ? [invalidError(`${path}.values`, values, detail)] : [];
  }
  return [invalidError(`${path}.operator`, operator, "not a valid selector operator")];
}

/** Lists standard resources in `spec.hard` that do not match a scope. */
function unlimitedBy(scope: string, spec: JsonObject): string[] {
  const limited = SCOPES.get(scope);
  if (limited === undefined) return [];
  return Object.keys(objectAt(spec, "hard") ?? {}).filter(
    (name) => isStandardResource(name) && !limited.includes(name),
  );
}

function conflictsOf(scopes: readonly string[]): string[][] {
  const pairs = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
  ];
  return pairs.filter((pair) => pair.every((scope) => scopes.includes(scope)));
}

function scopesOf(spec: JsonObject): string[] {
  const scopes = memberOf(spec, "scopes");
  return Array.isArray(scopes) ? scopes.map(String) : [];
}

function isSameSet(some: string[], others: string[]): boolean {
  return some.every((one) => others.includes(one)) && others.every((one) => some.includes(one));
}

function textOf(object: JsonObject, key: string): string {
  return String(memberOf(object, key) ?? "");
}

// Warns if the quota for requests exceeds the quota for limits.
function quotaWarnings(quota: JsonObject): string[] {
  const hard = quantitiesAt(objectAt(quota, "spec") ?? {}, "hard");
  return ["cpu", "memory", "storage", "ephemeral-storage"].flatMap((name) => {
    const bare = name === "cpu" || name === "memory" ? name : "";
    const asked = hard[`requests.${name}`] === undefined && hard[bare] !== undefined ? bare : `requests.${name}`;
    const [request, limit] = [hard[asked], hard[`limits.${name}`]];
    if (request === undefined || limit === undefined || amount(request) <= amount(limit)) return [];
    return [`ResourceQuota ${asked} (${request}) should be less than limits.${name} (${limit})`];
  });
}
