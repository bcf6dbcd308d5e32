// The usage of objects in a ResourceQuota. https://kubernetes.io/docs/concepts/policy/resource-quotas/
import { type Asked, type Quantities, amount, askedBy, askedByPod } from "./strategies/shared/resource-requests.js";
import { objectsAt } from "./builtin/read-path.js";
import { type JsonObject, arrayAt, objectAt, stringAt } from "./json.js";

// Core resources that also have an object count under their plural name.
const PLAIN_COUNTS = new Set(["configmaps", "replicationcontrollers", "resourcequotas", "secrets"]);
const COMPUTED = ["cpu", "memory", "ephemeral-storage"];

/** Returns the usage of an object. */
export function usageOf(type: { group: string; plural: string }, object: JsonObject): Quantities {
  const count = { [`count/${type.plural}${type.group === "" ? "" : `.${type.group}`}`]: "1" };
  if (type.group !== "") return count;
  switch (type.plural) {
    case "pods":
      return hasEnded(object) ? count : { ...count, pods: "1", ...computed(askedByPod(object)) };
    case "services":
      return {
        ...count,
        services: "1",
        ...usageOfService(objectAt(object, "spec") ?? {}),
      };
    case "persistentvolumeclaims":
      return {
        ...count,
        persistentvolumeclaims: "1",
        ...usageOfClaim(objectAt(object, "spec") ?? {}),
      };
    default:
      return PLAIN_COUNTS.has(type.plural) ? { ...count, [type.plural]: "1" } : count;
  }
}

/** Returns the requests and limits of containers under their names in quotas. */
export function computed({ requests, limits }: Asked): Quantities {
  const usage: Record<string, string> = {};
  for (const name of COMPUTED) {
    const [request, limit] = [requests[name], limits[name]];
    if (request !== undefined) Object.assign(usage, { [name]: request, [`requests.${name}`]: request });
    if (limit !== undefined) usage[`limits.${name}`] = limit;
  }
  for (const [name, request] of Object.entries(requests)) {
    if (name.startsWith("hugepages-")) usage[name] = request;
    if (name.startsWith("hugepages-") || isExtended(name)) usage[`requests.${name}`] = request;
  }
  return usage;
}

function isExtended(name: string): boolean {
  return name.includes("/") && !name.split("/")[0]?.endsWith("kubernetes.io");
}

function hasEnded(pod: JsonObject): boolean {
  return ["Succeeded", "Failed"].includes(stringAt(objectAt(pod, "status"), "phase") ?? "");
}

function usageOfService(spec: JsonObject): Quantities {
  const ports = (arrayAt(spec, "ports") ?? []) as JsonObject[];
  const type = stringAt(spec, "type") ?? "";
  const isBalanced = type === "LoadBalancer";
  const allocates = type === "NodePort" || (isBalanced && spec["allocateLoadBalancerNodePorts"] !== false);
  const given = isBalanced ? ports.filter(({ nodePort }) => typeof nodePort === "number" && nodePort > 0).length : 0;
  return {
    "services.nodeports": String(allocates ? ports.length : given),
    "services.loadbalancers": isBalanced ? "1" : "0",
  };
}

function usageOfClaim(spec: JsonObject): Quantities {
  const storage = askedBy(spec).requests["storage"];
  const storageClass = stringAt(spec, "storageClassName") ?? "";
  const ofClass = `${storageClass}.storageclass.storage.k8s.io`;
  return {
    ...(storage === undefined ? {} : { "requests.storage": storage }),
    ...(storageClass === "" ? {} : { [`${ofClass}/persistentvolumeclaims`]: "1" }),
    ...(storageClass === "" || storage === undefined ? {} : { [`${ofClass}/requests.storage`]: storage }),
  };
}

/** Reports whether an object matches the scopes of a ResourceQuota. A quota without scopes matches every object. */
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
