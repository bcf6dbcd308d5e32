// Static allocation: requested cluster IPs and node ports must be in the ranges of this cluster and not in use.
import { objectsAt, textAt } from "../../builtin/read-path.js";
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

/** The ranges of this cluster. */
export interface Ranges {
  readonly addresses: string;
  holdsAddress(address: string): boolean;
  isTaken(addressOrPort: string | number): boolean;
}

/** Context for the validation of requested values. */
interface Asked {
  readonly ranges: Ranges;
  readonly old: JsonObject | undefined;
  readonly isDryRun: boolean;
}

/** Default --service-node-port-range of kube-apiserver. */
export const NODE_PORTS = { first: 30_000, last: 32_767 };

/** Returns why a requested healthCheckNodePort cannot be allocated; only checked when the Service starts to need one. */
export function healthPortProblem(spec: JsonObject, { ranges, old, isDryRun }: Asked): string | undefined {
  const port = memberOf(spec, HEALTH_PORT) ?? 0;
  if (typeof port !== "number" || port === 0 || !tellsHealth(spec) || (old !== undefined && tellsHealth(old))) return;
  const isOwn = objectsAt(spec, "ports").some((other) => nodePortOf(other) === port);
  const problem = isOwn ? TAKEN : portProblem(port, ranges, { isDryRun });
  return problem === undefined ? undefined : `failed to allocate requested HealthCheck NodePort ${port}: ${problem}`;
}

const HEALTH_PORT = "healthCheckNodePort";

function tellsHealth(spec: JsonObject): boolean {
  return memberOf(spec, "type") === "LoadBalancer" && memberOf(spec, "externalTrafficPolicy") === "Local";
}

/** Returns the node port that an update contains twice with the same protocol. */
export function doubleNodePort(spec: JsonObject): string | undefined {
  const hasAny = memberOf(spec, "type") === "NodePort" || memberOf(spec, "type") === "LoadBalancer";
  const ports = hasAny ? objectsAt(spec, "ports").filter((port) => nodePortOf(port) !== 0) : [];
  const places = ports.map((port) => `{${textAt(port, "protocol")} ${nodePortOf(port)}}`);
  return places.find((place, index) => places.indexOf(place) < index);
}

/** Validates the requested cluster IP and node ports. */
export function checkAsked(spec: JsonObject, asked: Asked): FieldError[] {
  const ofAddress = checkAddress(spec, asked);
  return ofAddress.length > 0 ? ofAddress : checkNodePorts(spec, asked);
}

function checkAddress(spec: JsonObject, { ranges, old, isDryRun }: Asked): FieldError[] {
  const address = memberOf(spec, "clusterIP");
  const isNew = old === undefined || memberOf(old, "type") === "ExternalName";
  if (!isNew || typeof address !== "string" || address === "" || address === "None") return [];
  const problem = addressProblem(address, ranges, { isDryRun });
  if (problem === undefined) return [];
  const shown = [...(arrayAt(spec, "clusterIPs") ?? [])];
  return [invalidError("spec.clusterIPs", shown, `failed to allocate IP ${address}: ${problem}`)];
}

function addressProblem(address: string, ranges: Ranges, { isDryRun }: { isDryRun: boolean }): string | undefined {
  if (ranges.holdsAddress(address))
    return ranges.isTaken(address) && !isDryRun ? "provided IP is already allocated" : undefined;
  if (!isDryRun) return "the provided network does not match the current range";
  const range = `The range of valid IPs is ${ranges.addresses}`;
  return `the provided IP (${address}) is not in the valid range. ${range}`;
}

function checkNodePorts(spec: JsonObject, { ranges, old, isDryRun }: Asked): FieldError[] {
  const type = memberOf(spec, "type");
  if (type !== "NodePort" && type !== "LoadBalancer") return [];
  const ports = objectsAt(spec, "ports");
  const given = new Set<number>();
  for (const [index, nodePort] of old === undefined ? askedByNew(ports) : askedByUpdate(ports, old)) {
    const problem = given.has(nodePort) ? TAKEN : portProblem(nodePort, ranges, { isDryRun });
    if (problem !== undefined) return [invalidError(`spec.ports[${index}].nodePort`, nodePort, problem)];
    given.add(nodePort);
  }
  return [];
}

/** Index of a Service port and its requested node port. */
type AskedPort = [index: number, nodePort: number];

function nodePortOf(port: JsonObject): number {
  const nodePort = memberOf(port, "nodePort");
  return typeof nodePort === "number" ? nodePort : 0;
}

// On create, ports with the same number share the first requested node port, unless they request another one.
function askedByNew(ports: JsonObject[]): AskedPort[] {
  const shared = new Map<JsonValue | undefined, number>();
  return ports.flatMap((port, index): AskedPort[] => {
    const [number, own] = [memberOf(port, "port"), nodePortOf(port)];
    const first = shared.get(number);
    const same = ports.find((other) => memberOf(other, "port") === number && nodePortOf(other) !== 0);
    const asked = first === undefined ? (same === undefined ? 0 : nodePortOf(same)) : own === first ? 0 : own;
    if (first === undefined) shared.set(number, asked);
    return asked === 0 ? [] : [[index, asked]];
  });
}

// On update, a new node port may be requested by several ports.
function askedByUpdate(ports: JsonObject[], old: JsonObject): AskedPort[] {
  const kept = objectsAt(old, "ports").map(nodePortOf);
  const all = ports.map(nodePortOf);
  return all.flatMap((nodePort, index): AskedPort[] =>
    nodePort === 0 || kept.includes(nodePort) || all.indexOf(nodePort) < index ? [] : [[index, nodePort]],
  );
}

const TAKEN = "provided port is already allocated";

function portProblem(port: number, ranges: Ranges, { isDryRun }: { isDryRun: boolean }): string | undefined {
  const { first, last } = NODE_PORTS;
  if (!isDryRun && (port < first || port > last))
    return `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;
  return ranges.isTaken(port) ? TAKEN : undefined;
}

const FAMILIES = ["IPv4", "IPv6"];
const POLICIES = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const POLICY = "spec.ipFamilyPolicy";

/** Validates cluster IPs and IP families before allocation; stops at the first group of errors. */
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

/** True for a headless Service without selector, which can have any IP family. */
function isOfAnyFamily(spec: JsonObject): boolean {
  return memberOf(spec, "clusterIP") === "None" && objectAt(spec, "selector") === undefined;
}

function policyOf(spec: JsonObject, old: JsonObject | undefined): JsonValue {
  const given = memberOf(spec, "ipFamilyPolicy") ?? memberOf(old, "ipFamilyPolicy");
  return given ?? (isOfAnyFamily(spec) ? "RequireDualStack" : "SingleStack");
}

/** Validates the syntax of addresses and families. */
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
