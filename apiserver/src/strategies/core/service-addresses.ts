// The addresses of a Service and the families that they are of. This cluster has addresses of IPv4 alone.
import {
  type FieldError,
  duplicateError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, deepEqual, memberOf, objectAt } from "../../json.js";
import { addressProblems } from "../../validation/addresses.js";
import { checkOneOf } from "../../validation/fields.js";

const FAMILIES = ["IPv4", "IPv6"];
const POLICIES = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const POLICY = "spec.ipFamilyPolicy";

/** Checks the addresses of a Service before it gets those that it lacks; what is wrong first is all that is told. */
export function checkAddresses(spec: JsonObject, old: JsonObject | undefined): FieldError[] {
  const policy = policyOf(spec, old);
  const checks = [checkAddressForms, checkCounts, checkFamilies];
  for (const check of checks) {
    const errors = check(spec, { policy, old });
    if (errors.length > 0) return errors;
  }
  return [];
}

interface Context {
  readonly policy: JsonValue;
  readonly old: JsonObject | undefined;
}

const addressesOf = (spec: JsonObject): string[] => (arrayAt(spec, "clusterIPs") ?? []).map(String);
const familiesOf = (spec: JsonObject): JsonValue[] => [...(arrayAt(spec, "ipFamilies") ?? [])];
const familyOf = (address: string): string => (address.includes(":") ? "IPv6" : "IPv4");

/** True for a Service that has neither an address nor Pods, and so may be of any family. */
function isOfAnyFamily(spec: JsonObject): boolean {
  return memberOf(spec, "clusterIP") === "None" && objectAt(spec, "selector") === undefined;
}

function policyOf(spec: JsonObject, old: JsonObject | undefined): JsonValue {
  const given = memberOf(spec, "ipFamilyPolicy") ?? memberOf(old, "ipFamilyPolicy");
  return given ?? (isOfAnyFamily(spec) ? "RequireDualStack" : "SingleStack");
}

/** Checks addresses and families by what they look like. */
export function checkAddressForms(spec: JsonObject, { policy }: Pick<Context, "policy">): FieldError[] {
  const [addresses, families] = [addressesOf(spec), familiesOf(spec)];
  const forms = addresses.flatMap((address, index) =>
    address === "None" && index === 0
      ? []
      : addressProblems(address).map((detail) => invalidError(`spec.clusterIPs[${index}]`, address, detail)),
  );
  const isCrowded = addresses[0] === "None" && addresses.length > 1;
  const field = "spec.clusterIPs";
  const isTwice = new Set(addresses.map(familyOf)).size < 2;
  return [
    ...checkFirst(memberOf(spec, "clusterIP") ?? "", addresses),
    ...families.flatMap((family, index) => [
      ...(FAMILIES.includes(String(family)) ? [] : [notSupportedError(`spec.ipFamilies[${index}]`, family, FAMILIES)]),
      ...(families.indexOf(family) < index ? [duplicateError(`spec.ipFamilies[${index}]`, family)] : []),
    ]),
    ...checkOneOf(POLICY, policy, POLICIES),
    ...(isCrowded ? [invalidError(field, addresses, "'None' must be the first and only value")] : []),
    ...forms,
    ...(addresses.length > 2 ? [invalidError(field, addresses, "may only hold up to 2 values")] : []),
    ...(forms.length === 0 && !isCrowded && addresses.length > 1 && isTwice
      ? [invalidError(field, addresses, "may specify no more than one IP for each IP family")]
      : []),
    ...(forms.length === 0 && !isCrowded && addresses[0] !== "None" ? checkMatch(addresses, families) : []),
  ];
}

function checkFirst(address: JsonValue, addresses: string[]): FieldError[] {
  if (address !== "" && addresses.length === 0) return [requiredError("spec.clusterIPs")];
  if (addresses.length === 0 || (address !== "" && addresses[0] === address)) return [];
  const detail =
    address === "" ? "must be empty when `clusterIP` is not specified" : "first value must match `clusterIP`";
  return [invalidError("spec.clusterIPs", addresses, detail)];
}

function checkMatch(addresses: string[], families: JsonValue[]): FieldError[] {
  return addresses.slice(0, families.length).flatMap((address, index) => {
    const family = families[index];
    if (!FAMILIES.includes(String(family)) || family === familyOf(address)) return [];
    const detail = `expected an ${String(family)} value as indicated by \`ipFamilies[${index}]\``;
    return [invalidError(`spec.clusterIPs[${index}]`, address, detail)];
  });
}

function checkCounts(spec: JsonObject, { policy, old }: Context): FieldError[] {
  const [addresses, families] = [addressesOf(spec), familiesOf(spec)];
  const wrong = (detail: string) => [invalidError(POLICY, policy, detail)];
  const isReduced = (now: unknown[], before: unknown[]) => now.length > 0 && now.length < before.length;
  const isSame = old !== undefined && deepEqual(families, familiesOf(old));
  const both = (what: string) => `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`;
  const other = addresses.findIndex((address) => address !== "None" && familyOf(address) !== "IPv4");
  return [
    ...(policy !== "SingleStack" && old !== undefined && isReduced(families, familiesOf(old))
      ? wrong("must be 'SingleStack' to release the secondary IP family")
      : []),
    ...(policy === "SingleStack" && addresses.length === 2 ? wrong(both("cluster IPs")) : []),
    ...(policy === "SingleStack" && families.length === 2 && !isSame ? wrong(both("IP families")) : []),
    ...(other >= families.length
      ? [invalidError(`spec.clusterIPs[${other}]`, addresses, "IPv6 is not configured on this cluster")]
      : []),
  ];
}

function checkFamilies(spec: JsonObject, { policy }: Context): FieldError[] {
  if (isOfAnyFamily(spec)) return [];
  return [
    ...(policy === "RequireDualStack"
      ? [invalidError(POLICY, policy, "this cluster is not configured for dual-stack services")]
      : []),
    ...familiesOf(spec).flatMap((family, index) =>
      family === "IPv4" ? [] : [invalidError(`spec.ipFamilies[${index}]`, family, "not configured on this cluster")],
    ),
  ];
}
