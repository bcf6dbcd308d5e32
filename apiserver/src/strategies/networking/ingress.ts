import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, notSupportedError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { addressProblems } from "../../validation/addresses.js";
import {
  checkDomain,
  checkGivenDomain,
  checkLabelName,
  checkPort,
  checkPortName,
  checkRequiredSegment,
} from "../../validation/fields.js";
import { subdomainProblems } from "../../validation/names.js";
import { checkLoadBalancer, loadBalancerWarnings } from "../shared/load-balancers.js";
import type { Strategy } from "../strategy.js";

export const ingressStrategy: Strategy = {
  generation: "spec",
  checksMetadata: ["object", "change"],
  validate: checkIngress,
  validateStatus: checkLoadBalancer,
  warnings: ingressWarnings,
  statusWarnings: loadBalancerWarnings,
};

const FORBIDDEN_IN_PATHS = ["//", "/./", "/../", "%2f", "%2F"];
const FORBIDDEN_AT_END = ["/..", "/."];
const WILDCARD = /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const WILDCARD_RULE =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case " +
  "alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is " +
  "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/** Legacy annotation with the class. */
const INGRESS_CLASS = "kubernetes.io/ingress.class";

function checkIngress(ingress: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(ingress, "spec") ?? {};
  const rules = objectsAt(spec, "rules");
  const backend = objectAt(spec, "defaultBackend");
  const className = memberOf(spec, "ingressClassName");
  return [
    ...(rules.length === 0 && backend === undefined
      ? [
          invalidError(
            "spec",
            wasGivenEmpty(spec, "rules") ? [] : null,
            "either `defaultBackend` or `rules` must be specified",
          ),
        ]
      : []),
    ...(backend === undefined ? [] : checkBackend("spec.defaultBackend", backend)),
    ...rules.flatMap((rule, index) => checkHostRule(`spec.rules[${index}]`, rule)),
    ...objectsAt(spec, "tls").flatMap((tls, index) => checkTls(`spec.tls[${index}]`, tls)),
    ...(typeof className === "string" ? checkDomain("spec.ingressClassName", className) : []),
    ...(typeof className === "string" && old === undefined ? checkClassOnce(ingress, className) : []),
  ];
}

function checkClassOnce(ingress: JsonObject, className: string): FieldError[] {
  const annotated = memberOf(objectAt(objectAt(ingress, "metadata"), "annotations"), INGRESS_CLASS);
  const detail = "must match `ingressClassName` when both are specified";
  return annotated === undefined || annotated === className
    ? []
    : [invalidError(`annotations.${INGRESS_CLASS}`, annotated, detail)];
}

function checkHostRule(path: string, rule: JsonObject): FieldError[] {
  const http = objectAt(rule, "http");
  const paths = objectsAt(rule, "http.paths");
  return [
    ...checkHost(`${path}.host`, textAt(rule, "host")),
    ...(http !== undefined && paths.length === 0 ? [requiredError(`${path}.http.paths`)] : []),
    ...paths.flatMap((one, index) => checkPath(`${path}.http.paths[${index}]`, one)),
  ];
}

function checkHost(path: string, host: string): FieldError[] {
  if (host === "") return [];
  const isAddress = addressProblems(host).length === 0;
  return [
    ...(isAddress ? [invalidError(path, host, "must be a DNS name, not an IP address")] : []),
    ...checkGivenHost(path, host),
  ];
}

function checkGivenHost(path: string, host: string): FieldError[] {
  const problems = host.includes("*") ? (WILDCARD.test(host) ? [] : [WILDCARD_RULE]) : subdomainProblems(host);
  return problems.map((problem) => invalidError(path, host, problem));
}

function checkPath(path: string, one: JsonObject): FieldError[] {
  const type = memberOf(one, "pathType") ?? null;
  if (type === null) return [requiredError(`${path}.pathType`, "pathType must be specified")];
  const backend = objectAt(one, "backend") ?? {};
  return [...checkPathOfType(path, String(type), textAt(one, "path")), ...checkBackend(`${path}.backend`, backend)];
}

function checkPathOfType(path: string, type: string, text: string): FieldError[] {
  const relative = text.startsWith("/") ? [] : [invalidError(`${path}.path`, text, "must be an absolute path")];
  if (type === "ImplementationSpecific") return text === "" ? [] : relative;
  if (type !== "Exact" && type !== "Prefix")
    return [notSupportedError(`${path}.pathType`, type, ["Exact", "ImplementationSpecific", "Prefix"])];
  return [
    ...relative,
    ...FORBIDDEN_IN_PATHS.filter((part) => text.includes(part)).map((part) =>
      invalidError(`${path}.path`, text, `must not contain '${part}'`),
    ),
    ...FORBIDDEN_AT_END.filter((end) => text.endsWith(end)).map((end) =>
      invalidError(`${path}.path`, text, `cannot end with '${end}'`),
    ),
  ];
}

function checkBackend(path: string, backend: JsonObject): FieldError[] {
  const service = objectAt(backend, "service");
  const resource = objectAt(backend, "resource");
  if (service !== undefined && resource !== undefined)
    return [invalidError(path, "", "cannot set both resource and service backends")];
  if (resource !== undefined) return checkResource(`${path}.resource`, resource);
  if (service === undefined) return [invalidError(path, "", "resource or service backend is required")];
  const [name, number] = [textAt(service, "port.name"), memberOf(objectAt(service, "port"), "number") ?? 0];
  return [
    ...checkLabelName(`${path}.service.name`, memberOf(service, "name")),
    ...(name !== "" && number !== 0 ? [invalidError(path, "", "cannot set both port name & port number")] : []),
    ...(name !== "" && number === 0 ? checkPortName(`${path}.service.port.name`, name) : []),
    ...(name === "" && number === 0 ? [requiredError(path, "port name or number is required")] : []),
    ...(name === "" && number !== 0 ? checkPort(`${path}.service.port.number`, number) : []),
  ];
}

function checkResource(path: string, resource: JsonObject): FieldError[] {
  const group = memberOf(resource, "apiGroup");
  return [
    ...(typeof group === "string" ? checkDomain(`${path}.apiGroup`, group) : []),
    ...["kind", "name"].flatMap((key) => checkRequiredSegment(`${path}.${key}`, textAt(resource, key))),
  ];
}

function checkTls(path: string, tls: JsonObject): FieldError[] {
  const hosts = memberOf(tls, "hosts");
  return [
    ...(Array.isArray(hosts) ? hosts : []).flatMap((host, index) =>
      checkGivenHost(`${path}.hosts[${index}]`, String(host)),
    ),
    ...checkGivenDomain(`${path}.secretName`, textAt(tls, "secretName")),
  ];
}

function ingressWarnings(ingress: JsonObject, old: JsonObject | undefined): string[] {
  const annotations = objectAt(objectAt(ingress, "metadata"), "annotations");
  const hasClass = memberOf(objectAt(ingress, "spec"), "ingressClassName") !== undefined;
  if (old !== undefined || hasClass || memberOf(annotations, INGRESS_CLASS) === undefined) return [];
  return [`annotation "${INGRESS_CLASS}" is deprecated, please use 'spec.ingressClassName' instead`];
}
