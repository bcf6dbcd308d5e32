import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, memberOf, objectAt } from "../../json.js";
import { cidrWarnings, isCidr, isPartOf } from "../../validation/addresses.js";
import { checkCidr, checkLabelSelector, checkOneOf, checkPort, checkPortName } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const networkPolicyStrategy: Strategy = {
  generation: "spec-as-given",
  structDefaults: { "networking.v1.NetworkPolicySpec": defaultPolicyTypes },
  validate: checkNetworkPolicy,
  warnings: policyWarnings,
};

function checkNetworkPolicy(policy: JsonObject): FieldError[] {
  const spec = objectAt(policy, "spec") ?? {};
  return [
    ...checkLabelSelector("spec.podSelector", objectAt(spec, "podSelector")),
    ...objectsAt(spec, "ingress").flatMap((rule, index) => checkRule(`spec.ingress[${index}]`, rule, "from")),
    ...objectsAt(spec, "egress").flatMap((rule, index) => checkRule(`spec.egress[${index}]`, rule, "to")),
    ...checkPolicyTypes(arrayAt(spec, "policyTypes") ?? []),
  ];
}

function checkPolicyTypes(types: readonly JsonValue[]): FieldError[] {
  if (types.length > 2)
    return [invalidError("spec.policyTypes", [...types], "may not specify more than two policyTypes")];
  return types.flatMap((type, index) =>
    type === "Ingress" || type === "Egress"
      ? []
      : [notSupportedError(`spec.policyTypes[${index}]`, type, ["Ingress", "Egress"])],
  );
}

function checkRule(path: string, rule: JsonObject, peers: "from" | "to"): FieldError[] {
  return [
    ...objectsAt(rule, "ports").flatMap((port, index) => checkPolicyPort(`${path}.ports[${index}]`, port)),
    ...objectsAt(rule, peers).flatMap((peer, index) => checkPeer(`${path}.${peers}[${index}]`, peer)),
  ];
}

function checkPolicyPort(path: string, port: JsonObject): FieldError[] {
  const [number, last] = [memberOf(port, "port"), memberOf(port, "endPort")];
  const field = `${path}.endPort`;
  const isLess = typeof number === "number" && typeof last === "number" && last < number;
  const unfit = number === undefined ? "not specified" : "non-numeric";
  return [
    ...checkOneOf(`${path}.protocol`, memberOf(port, "protocol"), ["TCP", "UDP", "SCTP"]),
    ...(typeof number === "number" ? checkPort(`${path}.port`, number) : []),
    ...(typeof number === "string" ? checkPortName(`${path}.port`, number) : []),
    ...(isLess ? [invalidError(field, number, "must be greater than or equal to `port`")] : []),
    ...(typeof number === "number" && last !== undefined ? checkPort(field, last) : []),
    ...(typeof number !== "number" && last !== undefined
      ? [invalidError(field, last, `may not be specified when \`port\` is ${unfit}`)]
      : []),
  ];
}

function checkPeer(path: string, peer: JsonObject): FieldError[] {
  const block = objectAt(peer, "ipBlock");
  const selectors = ["podSelector", "namespaceSelector"].filter((key) => objectAt(peer, key) !== undefined);
  const both = "may not specify both ipBlock and another peer";
  return [
    ...selectors.flatMap((key) => checkLabelSelector(`${path}.${key}`, objectAt(peer, key))),
    ...(block === undefined ? [] : checkBlock(`${path}.ipBlock`, block)),
    ...(block === undefined && selectors.length === 0 ? [requiredError(path, "must specify a peer")] : []),
    ...(block !== undefined && selectors.length > 0 ? [forbiddenError(path, both)] : []),
  ];
}

function checkBlock(path: string, block: JsonObject): FieldError[] {
  const cidr = textAt(block, "cidr");
  if (cidr === "") return [requiredError(`${path}.cidr`)];
  const except = isCidr(cidr) ? (arrayAt(block, "except") ?? []).map(String) : [];
  return [
    ...checkCidr(`${path}.cidr`, cidr),
    ...except.flatMap((part, index) => [
      ...checkCidr(`${path}.except[${index}]`, part),
      ...(isCidr(part) && !isPartOf(part, cidr)
        ? [invalidError(`${path}.except[${index}]`, part, "must be a strict subset of `cidr`")]
        : []),
    ]),
  ];
}

/** Sets the default policyTypes: Ingress, and Egress if there are egress rules. */
function defaultPolicyTypes(spec: JsonObject): void {
  spec["policyTypes"] ??= arrayAt(spec, "egress") === undefined ? ["Ingress"] : ["Ingress", "Egress"];
}

/** Returns the warnings for the CIDRs of a NetworkPolicy. */
function policyWarnings(policy: JsonObject): string[] {
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
