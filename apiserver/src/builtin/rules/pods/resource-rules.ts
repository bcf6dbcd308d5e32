// What a container asks for and may use at most.
import { compareQuantities } from "@gen-operator/schema";
import { invalidError, type FieldError } from "../../../errors/field-error.js";
import { memberOf, objectAt, type JsonObject } from "../../../json.js";
import { qualifiedNameProblems } from "../name-syntax.js";

const OF_CONTAINERS = /^(cpu|memory|ephemeral-storage|hugepages-.+)$/;
const STANDARD =
  /^((requests|limits)\.(cpu|memory|ephemeral-storage|storage)|requests\.hugepages-.+|pods|services|replicationcontrollers|resourcequotas|secrets|configmaps|persistentvolumeclaims|services\.(nodeports|loadbalancers)|storage)$/;

/** Checks the resources of a container. */
export function checkResources(path: string, resources: JsonObject | undefined): FieldError[] {
  const limits = objectAt(resources, "limits") ?? {};
  const requests = objectAt(resources, "requests") ?? {};
  const excessive = Object.entries(requests).flatMap(([name, request]) => {
    const limit = memberOf(limits, name);
    if (limit === undefined || (compareQuantities(String(request), String(limit)) ?? 0) <= 0) return [];
    return [
      invalidError(`${path}.requests`, request, `must be less than or equal to ${name} limit of ${String(limit)}`),
    ];
  });
  return [...checkAmounts(`${path}.limits`, limits), ...checkAmounts(`${path}.requests`, requests), ...excessive];
}

/** Checks what Pods of a kind take besides their containers, which is checked as limits are. */
export function checkOverhead(path: string, overhead: JsonObject | undefined): FieldError[] {
  return checkAmounts(`${path}.limits`, overhead ?? {});
}

function checkAmounts(path: string, amounts: JsonObject): FieldError[] {
  return Object.entries(amounts).flatMap(([name, amount]) => {
    const at = `${path}[${name}]`;
    const isNegative = String(amount).startsWith("-");
    return [
      ...containerResourceProblems(name).map((detail) => invalidError(at, name, detail)),
      ...(isNegative ? [invalidError(at, amount, "must be greater than or equal to 0")] : []),
    ];
  });
}

/** Lists what is wrong with the name of a resource of containers. */
export function containerResourceProblems(name: string): string[] {
  const problems = resourceNameProblems(name);
  if (name.includes("/") || OF_CONTAINERS.test(name)) return problems;
  return [...problems, "must be a standard resource for containers"];
}

/** Lists what is wrong with the name of a resource. */
export function resourceNameProblems(name: string): string[] {
  const problems = qualifiedNameProblems(name);
  const isKnown = name.includes("/") || OF_CONTAINERS.test(name) || STANDARD.test(name);
  return problems.length > 0 || isKnown ? problems : ["must be a standard resource type or fully qualified"];
}
