// Where Services send what they get: Endpoints and EndpointSlices.
import {
  type FieldError,
  duplicateError,
  invalidError,
  requiredError,
  tooManyError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, deepEqual, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { addressProblems, exactAddressProblems, isAddress, usualAddress } from "../../validation/addresses.js";
import {
  checkDomain,
  checkIp,
  checkLabel,
  checkLabelName,
  checkLabelValue,
  checkLimited,
  checkOnce,
  checkOneOf,
  checkPort,
  checkQualifiedName,
  checkRequiredOneOf,
} from "../../validation/fields.js";
import { checkTextKept } from "../../validation/immutable-fields.js";
import { subdomainProblems } from "../../validation/names.js";

const MAX_LABEL = 63;
const MAX_ENDPOINTS = 1000;
const MAX_ADDRESSES = 100;
const PROTOCOLS = ["SCTP", "TCP", "UDP"];

// Addresses that are never those of an endpoint.
// By the usual form.
const UNSPECIFIED = /^(0\.0\.0\.0|::)$/;
const SPECIAL: [pattern: RegExp, problem: string][] = [
  [/^(127\.|::1$)/, "may not be in the loopback range (127.0.0.0/8, ::1/128)"],
  [/^(169\.254\.|fe[89ab][0-9a-f]:)/, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"],
  [/^(224\.0\.0\.|ff[0-9a-f]2:)/, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"],
];

/** Checks Endpoints. */
export function checkEndpoints(object: JsonObject): FieldError[] {
  return objectsAt(object, "subsets").flatMap((subset, index) => {
    const path = `subsets[${index}]`;
    const [ready, waiting, ports] = ["addresses", "notReadyAddresses", "ports"].map((key) =>
      objectsAt(subset, key),
    ) as [JsonObject[], JsonObject[], JsonObject[]];
    return [
      ...(ready.length === 0 && waiting.length === 0
        ? [requiredError(path, "must specify `addresses` or `notReadyAddresses`")]
        : []),
      ...ready.flatMap((address, place) => checkAddress(`${path}.addresses[${place}]`, address)),
      ...waiting.flatMap((address, place) => checkAddress(`${path}.notReadyAddresses[${place}]`, address)),
      ...ports.flatMap((port, place) => checkEndpointPort(`${path}.ports[${place}]`, port, ports.length > 1)),
    ];
  });
}

function checkAddress(path: string, address: JsonObject): FieldError[] {
  const [ip, host, node] = ["ip", "hostname", "nodeName"].map((key) => textAt(address, key)) as [
    string,
    string,
    string,
  ];
  const special = isAddress(ip) ? specialProblems(ip) : ["must be a valid IP address"];
  return [
    ...checkIp(`${path}.ip`, ip),
    ...(host === "" ? [] : checkLabelName(`${path}.hostname`, host)),
    ...(memberOf(address, "nodeName") === undefined ? [] : checkDomain(`${path}.nodeName`, node)),
    ...special.map((detail) => invalidError(`${path}.ip`, ip, detail)),
  ];
}

/** Demands an address that is not a special one. */
export function checkPublicAddress(field: string, address: string): FieldError[] {
  const problems = addressProblems(address);
  return (problems.length > 0 ? problems : specialProblems(address)).map((detail) =>
    invalidError(field, address, detail),
  );
}

function specialProblems(ip: string): string[] {
  const usual = usualAddress(ip);
  if (UNSPECIFIED.test(usual)) return [`may not be unspecified (${ip})`];
  return SPECIAL.filter(([pattern]) => pattern.test(usual)).map(([, problem]) => problem);
}

function checkEndpointPort(path: string, port: JsonObject, needsName: boolean): FieldError[] {
  const name = textAt(port, "name");
  return [
    ...(name !== "" || needsName ? checkLabelName(`${path}.name`, name) : []),
    ...checkPort(`${path}.port`, memberOf(port, "port") ?? 0),
    ...checkRequiredOneOf(`${path}.protocol`, textAt(port, "protocol"), PROTOCOLS),
    ...checkApplication(path, port),
  ];
}

function checkApplication(path: string, port: JsonObject): FieldError[] {
  const application = memberOf(port, "appProtocol");
  return typeof application === "string" ? checkQualifiedName(`${path}.appProtocol`, application) : [];
}

/** Checks an EndpointSlice. */
export function checkEndpointSlice(slice: JsonObject, old: JsonObject | undefined): FieldError[] {
  const type = textAt(slice, "addressType");
  const names = new Set<string>();
  const endpoints = objectsAt(slice, "endpoints");
  // What is there may stay, though it was wrong.
  const isSame = old !== undefined && deepEqual(endpoints, objectsAt(old, "endpoints"));
  return [
    ...checkRequiredOneOf("addressType", type, ["FQDN", "IPv4", "IPv6"]),
    ...(isSame
      ? []
      : checkLimited("endpoints", { items: endpoints, max: MAX_ENDPOINTS }, (all) =>
          all.flatMap((one, index) => checkEndpoint(`endpoints[${index}]`, one, type)),
        )),
    ...objectsAt(slice, "ports").flatMap((port, index) => {
      const name = textAt(port, "name");
      const isTaken = names.has(name);
      names.add(name);
      return [
        ...(name === "" ? [] : checkLabelName(`ports[${index}].name`, name)),
        ...(isTaken ? [duplicateError(`ports[${index}].name`, name)] : []),
        ...checkOneOf(`ports[${index}].protocol`, textAt(port, "protocol"), PROTOCOLS),
        ...checkApplication(`ports[${index}]`, port),
      ];
    }),
    ...(old === undefined ? [] : checkTextKept("addressType", slice, old)),
  ];
}

function checkEndpoint(path: string, endpoint: JsonObject, type: string): FieldError[] {
  const addresses = arrayAt(endpoint, "addresses") ?? [];
  const [node, host] = ["nodeName", "hostname"].map((key) => memberOf(endpoint, key));
  return [
    ...(addresses.length === 0 ? [requiredError(`${path}.addresses`, "must contain at least 1 address")] : []),
    ...(addresses.length > MAX_ADDRESSES ? [tooManyError(`${path}.addresses`, addresses.length, MAX_ADDRESSES)] : []),
    ...addresses.flatMap((address, index) => checkSliceAddress(`${path}.addresses[${index}]`, address, type)),
    ...(typeof node === "string" ? checkDomain(`${path}.nodeName`, node) : []),
    ...(typeof host === "string" ? checkLabel(`${path}.hostname`, host) : []),
    ...checkHints(`${path}.hints`, objectAt(endpoint, "hints") ?? {}),
  ];
}

const MAX_HINTS = 8;

// Too many of one kind are all that is told.
function checkHints(path: string, hints: JsonObject): FieldError[] {
  const [zones, nodes] = ["forZones", "forNodes"].map((key) =>
    objectsAt(hints, key).map((one) => textAt(one, "name")),
  ) as [string[], string[]];
  if (zones.length > MAX_HINTS) return [tooManyError(`${path}.forZones`, zones.length, MAX_HINTS)];
  const ofZones = [
    ...checkOnce(`${path}.forZones`, zones, ".name"),
    ...zones.flatMap((name, index) => checkLabelValue(`${path}.forZones[${index}].name`, name)),
  ];
  if (nodes.length > MAX_HINTS) return [...ofZones, tooManyError(`${path}.forNodes`, nodes.length, MAX_HINTS)];
  return [
    ...ofZones,
    ...checkOnce(`${path}.forNodes`, nodes, ".name"),
    ...nodes.flatMap((name, index) => checkDomain(`${path}.forNodes[${index}].name`, name)),
  ];
}

function checkFullName(path: string, text: string): FieldError[] {
  if (text === "") return [requiredError(path)];
  const name = text.replace(/\.$/, "");
  const problems = subdomainProblems(name);
  const detail = "should be a domain with at least two segments separated by dots";
  if (problems.length > 0) return [invalidError(path, name, problems.join(","))];
  if (!name.includes(".")) return [invalidError(path, name, detail)];
  return name
    .split(".")
    .filter((label) => label.length > MAX_LABEL)
    .slice(0, 1)
    .map((label) => invalidError(path, label, `must be no more than ${MAX_LABEL} characters`));
}

function checkSliceAddress(path: string, address: JsonValue, type: string): FieldError[] {
  const text = String(address);
  if (type === "FQDN") return checkFullName(path, text);
  if (type !== "IPv4" && type !== "IPv6") return [];
  const problems = type === "IPv4" ? addressProblems(text) : exactAddressProblems(text);
  if (problems.length > 0) return problems.map((detail) => invalidError(path, text, detail));
  const isOther = text.includes(":") !== (type === "IPv6");
  return [
    ...(isOther ? [invalidError(path.replace(/\[\d+\]$/, ""), text, `must be an ${type} address`)] : []),
    ...specialProblems(text).map((detail) => invalidError(path, text, detail)),
  ];
}
