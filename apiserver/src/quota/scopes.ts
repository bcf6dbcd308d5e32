import { objectsAt } from "../builtin/read-path.js";
import { arrayAt, objectAt, stringAt, type JsonObject } from "../json.js";
import { amount, askedBy } from "../builtin/quantities/asked.js";

/** Tells whether an object is among those that the scopes of a ResourceQuota name; without scopes every object is. */
export function isInScopes(quota: JsonObject, object: JsonObject, { isPod }: { isPod: boolean }): boolean {
  const spec = objectAt(quota, "spec") ?? {};
  const named = (arrayAt(spec, "scopes") ?? []).map((scope): JsonObject => ({
    scopeName: scope,
    operator: "Exists",
  }));
  const all = [...named, ...objectsAt(spec, "scopeSelector.matchExpressions")];
  return all.length === 0 || (isPod && all.every((requirement) => meets(objectAt(object, "spec") ?? {}, requirement)));
}

function meets(spec: JsonObject, requirement: JsonObject): boolean {
  const values = (arrayAt(requirement, "values") ?? []).map(String);
  switch (requirement["scopeName"]) {
    case "Terminating":
      return isTerminating(spec);
    case "NotTerminating":
      return !isTerminating(spec);
    case "BestEffort":
      return isBestEffort(spec);
    case "NotBestEffort":
      return !isBestEffort(spec);
    case "PriorityClass":
      return meetsClass(stringAt(spec, "priorityClassName") ?? "", requirement["operator"], values);
    case "CrossNamespacePodAffinity":
      return affinityTerms(spec).some(
        (term) => arrayAt(term, "namespaces")?.length || term["namespaceSelector"] !== undefined,
      );
    default:
      return false;
  }
}

function meetsClass(name: string, operator: unknown, values: readonly string[]): boolean {
  if (operator === "In") return values.includes(name);
  if (operator === "NotIn") return !values.includes(name);
  return (operator === "Exists") === (name !== "");
}

function isTerminating(spec: JsonObject): boolean {
  return typeof spec["activeDeadlineSeconds"] === "number";
}

function isBestEffort(spec: JsonObject): boolean {
  const holders = [...objectsAt(spec, "containers"), ...objectsAt(spec, "initContainers"), spec];
  return holders.every((holder) => {
    const { requests, limits } = askedBy(holder);
    return ["cpu", "memory"].every(
      (name) => amount(requests[name] ?? "0") === 0n && amount(limits[name] ?? "0") === 0n,
    );
  });
}

function affinityTerms(spec: JsonObject): JsonObject[] {
  return ["podAffinity", "podAntiAffinity"].flatMap((kind) => [
    ...objectsAt(spec, `affinity.${kind}.requiredDuringSchedulingIgnoredDuringExecution`),
    ...objectsAt(spec, `affinity.${kind}.preferredDuringSchedulingIgnoredDuringExecution`).map(
      (weighted) => objectAt(weighted, "podAffinityTerm") ?? {},
    ),
  ]);
}
