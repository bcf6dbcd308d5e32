// What an object counts for in a ResourceQuota. https://kubernetes.io/docs/concepts/policy/resource-quotas/
import { arrayAt, objectAt, stringAt, type JsonObject } from "../json.js";
import { askedBy, askedByPod, type Asked, type Quantities } from "../builtin/quantities/asked.js";

// Those that are counted under their own name, too.
const PLAIN_COUNTS = new Set(["configmaps", "replicationcontrollers", "resourcequotas", "secrets"]);
const COMPUTED = ["cpu", "memory", "ephemeral-storage"];

/** Returns what an object of a type counts for. */
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

/** Returns what containers ask for under the names of quotas. */
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
