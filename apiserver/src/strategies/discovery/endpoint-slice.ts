import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  invalidError,
  requiredError,
  tooManyError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, deepEqual, memberOf, objectAt } from "../../json.js";
import { addressProblems, addressWarnings, exactAddressProblems } from "../../validation/addresses.js";
import {
  checkDomain,
  checkLabel,
  checkLabelName,
  checkLabelValue,
  checkLimited,
  checkOnce,
  checkOneOf,
  checkRequiredOneOf,
} from "../../validation/fields.js";
import { checkTextKept } from "../../validation/immutable-fields.js";
import { subdomainProblems } from "../../validation/names.js";
import { PROTOCOLS, checkApplication, labelOf, specialProblems } from "../core/endpoints.js";
import type { Strategy } from "../strategy.js";

export const endpointSliceStrategy: Strategy = {
  checksMetadata: ["object"],
  generation: "outside-metadata-and-labels",
  countsDropped: true,
  dropFields: (slice) => objectsAt(slice, "endpoints").forEach((endpoint) => delete endpoint["deprecatedTopology"]),
  validate: checkEndpointSlice,
  warnings: (slice, old) => [
    ...(old === undefined && textAt(slice, "addressType") === "FQDN"
      ? ["spec.addressType: FQDN endpoints are deprecated"]
      : []),
    ...sliceAddressWarnings(slice),
  ],
};

const MAX_LABEL = 63;
const MAX_ENDPOINTS = 1000;
const MAX_ADDRESSES = 100;

function checkEndpointSlice(slice: JsonObject, old: JsonObject | undefined): FieldError[] {
  const type = textAt(slice, "addressType");
  const names = new Set<string>();
  const endpoints = objectsAt(slice, "endpoints");
  // Unchanged invalid endpoints are tolerated.
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

// If there are too many hints of one kind, only that is reported.
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

// kube-controller-manager writes canonical addresses only.
const CONTROLLERS = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

/** Warns about addresses in non-canonical form. */
function sliceAddressWarnings(slice: JsonObject): string[] {
  if (CONTROLLERS.includes(labelOf(slice, "endpointslice.kubernetes.io/managed-by"))) return [];
  return objectsAt(slice, "endpoints").flatMap((endpoint, index) =>
    (arrayAt(endpoint, "addresses") ?? []).flatMap((address, place) =>
      addressWarnings(`endpoints[${index}].addresses[${place}]`, String(address)),
    ),
  );
}
