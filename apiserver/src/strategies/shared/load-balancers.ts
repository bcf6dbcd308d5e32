import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError } from "../../errors/field-error.js";
import type { JsonObject } from "../../json.js";
import { addressProblems, addressWarnings } from "../../validation/addresses.js";
import { checkIp } from "../../validation/fields.js";
import { subdomainProblems } from "../../validation/names.js";

/** Validates the load balancer status of a Service or Ingress. */
export function checkLoadBalancer(object: JsonObject): FieldError[] {
  return objectsAt(object, "status.loadBalancer.ingress").flatMap((ingress, index) => {
    const path = `status.loadBalancer.ingress[${index}]`;
    const [ip, hostname] = [textAt(ingress, "ip"), textAt(ingress, "hostname")];
    const isAddress = addressProblems(hostname).length === 0 ? ["must be a DNS name, not an IP address"] : [];
    const problems = hostname === "" ? [] : [...subdomainProblems(hostname), ...isAddress];
    return [
      ...(ip === "" ? [] : checkIp(`${path}.ip`, ip)),
      ...problems.map((detail) => invalidError(`${path}.hostname`, hostname, detail)),
    ];
  });
}

/** Returns the warnings for the load balancer status of a Service or Ingress. */
export function loadBalancerWarnings(object: JsonObject): string[] {
  return objectsAt(object, "status.loadBalancer.ingress").flatMap(({ ip }, index) =>
    addressWarnings(`status.loadBalancer.ingress[${index}]`, String(ip)),
  );
}
