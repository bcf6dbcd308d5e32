import { at, countAt, objectsAt, textAt } from "../builtin/read-path.js";
import { type JsonObject, arrayAt, objectAt, stringAt } from "../json.js";
import { ageOf } from "./age.js";
import { type Printer, firstOf, formatLabels, formatLoadBalancer, formatSelector } from "./printer.js";

const CREATED = "metadata.creationTimestamp";
const MAX_LISTED = 3;

export const servicePrinter: Printer = {
  columns: ["Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"],
  cells: (service, now) => [
    textAt(service, "spec.type"),
    textAt(service, "spec.clusterIP") || "<none>",
    externalIpOf(service),
    portsOf(service),
    ageOf(at(service, CREATED), now),
    formatLabels(at(service, "spec.selector")),
  ],
};

function externalIpOf(service: JsonObject): string {
  const external = (arrayAt(objectAt(service, "spec"), "externalIPs") ?? []).map(String).join(",");
  switch (at(service, "spec.type")) {
    case "ExternalName":
      return textAt(service, "spec.externalName");
    case "LoadBalancer": {
      const texts = [formatLoadBalancer(service), external].filter((text) => text !== "");
      return texts.join(",") || "<pending>";
    }
    default:
      return external || "<none>";
  }
}

function portsOf(service: JsonObject): string {
  const ports = objectsAt(service, "spec.ports").map((port) => {
    const nodePort = countAt(port, "nodePort");
    return `${countAt(port, "port")}${nodePort === 0 ? "" : `:${nodePort}`}/${stringAt(port, "protocol") ?? "TCP"}`;
  });
  return ports.join(",") || "<none>";
}

export const ingressPrinter: Printer = {
  columns: ["Class", "Hosts", "Address", "Ports", "Age"],
  cells: (ingress, now) => {
    const hosts = objectsAt(ingress, "spec.rules").map((rule) => stringAt(rule, "host") ?? "");
    return [
      textAt(ingress, "spec.ingressClassName") || "<none>",
      firstOf(
        hosts.filter((host) => host !== ""),
        { max: MAX_LISTED, separator: "," },
      ) || "*",
      formatLoadBalancer(ingress),
      objectsAt(ingress, "spec.tls").length > 0 ? "80, 443" : "80",
      ageOf(at(ingress, CREATED), now),
    ];
  },
};

export const ingressClassPrinter: Printer = {
  columns: ["Controller", "Parameters", "Age"],
  cells: (object, now) => [textAt(object, "spec.controller"), parametersOf(object), ageOf(at(object, CREATED), now)],
};

function parametersOf(ingressClass: JsonObject): string {
  const kind = textAt(ingressClass, "spec.parameters.kind");
  if (kind === "") return "<none>";
  const group = textAt(ingressClass, "spec.parameters.apiGroup");
  return `${kind}${group === "" ? "" : `.${group}`}/${textAt(ingressClass, "spec.parameters.name")}`;
}

export const networkPolicyPrinter: Printer = {
  columns: ["Pod-Selector", "Age"],
  cells: (object, now) => [formatSelector(at(object, "spec.podSelector")), ageOf(at(object, CREATED), now)],
};

export const endpointsPrinter: Printer = {
  columns: ["Endpoints", "Age"],
  cells: (object, now) => {
    const texts = objectsAt(object, "subsets").flatMap((subset) => {
      const addresses = objectsAt(subset, "addresses").map((address) => stringAt(address, "ip") ?? "");
      const ports = objectsAt(subset, "ports").map((port) => countAt(port, "port"));
      if (ports.length === 0) return addresses;
      return ports.flatMap((port) => addresses.map((address) => `${address}:${port}`));
    });
    return [firstOf(texts, { max: MAX_LISTED, separator: "," }) || "<none>", ageOf(at(object, CREATED), now)];
  },
};

export const endpointSlicePrinter: Printer = {
  columns: ["AddressType", "Ports", "Endpoints", "Age"],
  cells: (object, now) => {
    const ports = objectsAt(object, "ports").map((port) => textAt(port, "port") || "*");
    const addresses = objectsAt(object, "endpoints").flatMap((one) => (arrayAt(one, "addresses") ?? []).map(String));
    const options = { max: MAX_LISTED, separator: "," };
    return [
      textAt(object, "addressType"),
      firstOf(ports, options) || "<unset>",
      firstOf(addresses, options) || "<unset>",
      ageOf(at(object, CREATED), now),
    ];
  },
};
