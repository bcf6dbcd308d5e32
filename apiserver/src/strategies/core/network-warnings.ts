// What Kubernetes 1.36 warns of in the addresses of kinds.
import { type JsonObject, arrayAt, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { addressWarnings, cidrWarnings } from "../../validation/addresses.js";

/** Warns of the ranges that a NetworkPolicy names. */
export function policyWarnings(policy: JsonObject): string[] {
  return (["ingress", "egress"] as const).flatMap((way) =>
    objectsAt(policy, `spec.${way}`).flatMap((rule, index) => {
      const peers = way === "ingress" ? "from" : "to";
      return objectsAt(rule, peers).flatMap((peer, place) => {
        const [block, path] = [objectAt(peer, "ipBlock"), `spec.${way}[${index}].${peers}[${place}].ipBlock`];
        const except = arrayAt(block, "except") ?? [];
        return [
          ...cidrWarnings(`${path}.cidr`, textAt(block ?? {}, "cidr")),
          ...except.flatMap((range, one) => cidrWarnings(`${path}.except[${one}]`, String(range))),
        ];
      });
    }),
  );
}

/** Warns of the addresses of Endpoints. */
export function endpointsWarnings(endpoints: JsonObject): string[] {
  if (labelOf(endpoints, "endpoints.kubernetes.io/managed-by") === "endpoint-controller") return [];
  return objectsAt(endpoints, "subsets").flatMap((subset, index) =>
    ["addresses", "notReadyAddresses"].flatMap((list) =>
      objectsAt(subset, list).flatMap(({ ip }, place) =>
        addressWarnings(`subsets[${index}].${list}[${place}].ip`, String(ip)),
      ),
    ),
  );
}

// They write no others.
const CONTROLLERS = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

/** Warns of the addresses of an EndpointSlice. */
export function sliceAddressWarnings(slice: JsonObject): string[] {
  if (CONTROLLERS.includes(labelOf(slice, "endpointslice.kubernetes.io/managed-by"))) return [];
  return objectsAt(slice, "endpoints").flatMap((endpoint, index) =>
    (arrayAt(endpoint, "addresses") ?? []).flatMap((address, place) =>
      addressWarnings(`endpoints[${index}].addresses[${place}]`, String(address)),
    ),
  );
}

function labelOf(object: JsonObject, key: string): string {
  return String(memberOf(objectAt(objectAt(object, "metadata"), "labels"), key) ?? "");
}

/** Warns of the addresses in the status of a kind. */
export function statusWarnings(kind: string, object: JsonObject): string[] {
  if (kind === "Service" || kind === "Ingress")
    return objectsAt(object, "status.loadBalancer.ingress").flatMap(({ ip }, index) =>
      addressWarnings(`status.loadBalancer.ingress[${index}]`, String(ip)),
    );
  if (kind !== "Pod") return [];
  return ["podIPs", "hostIPs"].flatMap((list) =>
    objectsAt(object, `status.${list}`).flatMap(({ ip }, index) =>
      addressWarnings(`status.${list}[${index}].ip`, String(ip)),
    ),
  );
}
