// What of a Service may change.
import { type FieldError, forbiddenError, invalidError } from "../../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, memberOf } from "../../../json.js";
import { checkQualifiedName } from "../field-rules.js";

/** Demands that a Service keeps its addresses, the class of its load balancer and the port that tells its health. */
export function checkServiceUpdate(spec: JsonObject, old: JsonObject): FieldError[] {
  return [
    ...checkAddressesKept(spec, old),
    ...checkBalancerClassKept(spec, old),
    // Kubernetes looks at it once more in an update.
    ...checkBalancerClass(spec),
    ...checkHealthPortKept(spec, old),
  ];
}

const isBalancer = (spec: JsonObject): boolean => memberOf(spec, "type") === "LoadBalancer";

/** Checks the class of a load balancer, which nothing else has. */
export function checkBalancerClass(spec: JsonObject): FieldError[] {
  const [field, name] = ["spec.loadBalancerClass", memberOf(spec, "loadBalancerClass")];
  if (name === undefined) return [];
  if (isBalancer(spec)) return checkQualifiedName(field, String(name));
  return [forbiddenError(field, "may only be used when `type` is 'LoadBalancer'")];
}

function checkBalancerClassKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [spec, old].map((one) => memberOf(one, "loadBalancerClass") ?? null);
  if (!isBalancer(spec) || !isBalancer(old) || now === before) return [];
  return [invalidError("spec.loadBalancerClass", now ?? null, "may not change once set")];
}

function checkHealthPortKept(spec: JsonObject, old: JsonObject): FieldError[] {
  const isChecked = (one: JsonObject) => isBalancer(one) && memberOf(one, "externalTrafficPolicy") === "Local";
  const port = "healthCheckNodePort";
  if (!isChecked(spec) || !isChecked(old) || memberOf(spec, port) === memberOf(old, port)) return [];
  return [forbiddenError(`spec.${port}`, "field is immutable")];
}

function checkAddressesKept(spec: JsonObject, old: JsonObject): FieldError[] {
  if ([spec, old].some((one) => memberOf(one, "type") === "ExternalName")) return [];
  const [now, before] = [spec, old].map((one) => arrayAt(one, "clusterIPs") ?? []) as [JsonValue[], JsonValue[]];
  const isChanged = (index: number) => now[index] !== before[index];
  const field = (index: number) => `spec.clusterIPs[${index}]`;
  if (before.length > 0 && now.length === 0) return [invalidError(field(0), [], "primary clusterIP can not be unset")];
  const compared = now.length === before.length ? [...before.keys()] : before.length > 0 ? [0] : [];
  return compared.filter(isChanged).map((index) => invalidError(field(index), [...now], "may not change once set"));
}
