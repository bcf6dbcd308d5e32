import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { addressProblems, addressWarnings, isAddress, usualAddress } from "../../validation/addresses.js";
import {
  checkDomain,
  checkIp,
  checkLabelName,
  checkPort,
  checkQualifiedName,
  checkRequiredOneOf,
} from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const endpointsStrategy: Strategy = {
  createsOnUpdate: true,
  checksMetadata: ["object", "change"],
  validate: checkEndpoints,
  warnings: endpointsWarnings,
};

export const PROTOCOLS = ["SCTP", "TCP", "UDP"];

// Special addresses that are not allowed as endpoints, in canonical form.
const UNSPECIFIED = /^(0\.0\.0\.0|::)$/;

const SPECIAL: [pattern: RegExp, problem: string][] = [
  [/^(127\.|::1$)/, "may not be in the loopback range (127.0.0.0/8, ::1/128)"],
  [/^(169\.254\.|fe[89ab][0-9a-f]:)/, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"],
  [/^(224\.0\.0\.|ff[0-9a-f]2:)/, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"],
];

function checkEndpoints(object: JsonObject): FieldError[] {
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

/** Validates an IP that must not be unspecified, loopback, or link-local. */
export function checkPublicAddress(field: string, address: string): FieldError[] {
  const problems = addressProblems(address);
  return (problems.length > 0 ? problems : specialProblems(address)).map((detail) =>
    invalidError(field, address, detail),
  );
}

export function specialProblems(ip: string): string[] {
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

export function checkApplication(path: string, port: JsonObject): FieldError[] {
  const application = memberOf(port, "appProtocol");
  return typeof application === "string" ? checkQualifiedName(`${path}.appProtocol`, application) : [];
}

/** Warns about addresses in non-canonical form. */
function endpointsWarnings(endpoints: JsonObject): string[] {
  if (labelOf(endpoints, "endpoints.kubernetes.io/managed-by") === "endpoint-controller") return [];
  return objectsAt(endpoints, "subsets").flatMap((subset, index) =>
    ["addresses", "notReadyAddresses"].flatMap((list) =>
      objectsAt(subset, list).flatMap(({ ip }, place) =>
        addressWarnings(`subsets[${index}].${list}[${place}].ip`, String(ip)),
      ),
    ),
  );
}

export function labelOf(object: JsonObject, key: string): string {
  return String(memberOf(objectAt(objectAt(object, "metadata"), "labels"), key) ?? "");
}
