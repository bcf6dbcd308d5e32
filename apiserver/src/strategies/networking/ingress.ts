// What lets traffic in: Ingresses and NetworkPolicies.
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, memberOf, objectAt } from "../../json.js";
import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { addressProblems, cidrProblems, isCidr, isPartOf } from "../../validation/addresses.js";
import {
  checkDomain,
  checkGivenDomain,
  checkLabel,
  checkLabelName,
  checkLabelSelector,
  checkOneOf,
  checkPort,
  checkPortName,
  checkRequiredSegment,
} from "../../validation/fields.js";
import { checkTextKept } from "../../validation/immutable-fields.js";
import { subdomainProblems } from "../../validation/names.js";

const FORBIDDEN_IN_PATHS = ["//", "/./", "/../", "%2f", "%2F"];
const FORBIDDEN_AT_END = ["/..", "/."];
const WILDCARD = /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const WILDCARD_RULE =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case " +
  "alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is " +
  "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const HTTP_PATH = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;
const HTTP_PATH_RULE = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";

/** The annotation that named the class before there was a field for it. */
export const INGRESS_CLASS = "kubernetes.io/ingress.class";

/** Checks an Ingress. */
export function checkIngress(ingress: JsonObject, old: JsonObject | undefined): FieldError[] {
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

/** Checks an IngressClass; what names its controller stays. */
export function checkIngressClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const parameters = objectAt(objectAt(object, "spec"), "parameters");
  return [
    ...(old === undefined ? [] : checkTextKept("spec.controller", object, old)),
    ...checkPrefixedPath("spec.controller", textAt(object, "spec.controller"), 250),
    ...(parameters === undefined ? [] : checkParameters("spec.parameters", parameters)),
  ];
}

/** Checks a path behind the name of a domain, which is of so many letters at most. */
export function checkPrefixedPath(path: string, text: string, limit: number): FieldError[] {
  if (text === "") return [requiredError(path)];
  const [, host, rest] = /^([^/]*)\/(.*)$/s.exec(text) ?? [];
  const tooLong = text.length > limit ? [tooLongError(path, limit)] : [];
  if (!host || !rest)
    return [...tooLong, invalidError(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  return [
    ...tooLong,
    ...checkDomain(path, host),
    ...(HTTP_PATH.test(rest) ? [] : [invalidError(path, rest, HTTP_PATH_RULE)]),
  ];
}

function checkParameters(path: string, parameters: JsonObject): FieldError[] {
  const [group, scope, namespace] = ["apiGroup", "scope", "namespace"].map((key) => memberOf(parameters, key));
  const field = `${path}.namespace`;
  const ofScope = `\`parameters.scope\` is set to '${String(scope)}'`;
  return [
    ...(typeof group === "string" ? checkDomain(`${path}.apiGroup`, group) : []),
    ...checkRequiredSegment(`${path}.kind`, textAt(parameters, "kind")),
    ...checkRequiredSegment(`${path}.name`, textAt(parameters, "name")),
    ...(scope === undefined
      ? [requiredError(`${path}.scope`)]
      : checkOneOf(`${path}.scope`, scope, ["Cluster", "Namespace"])),
    ...(scope === "Namespace" && namespace === undefined ? [requiredError(field, ofScope)] : []),
    ...(scope === "Namespace" && typeof namespace === "string" ? checkLabel(field, namespace) : []),
    ...(scope === "Cluster" && namespace !== undefined ? [forbiddenError(field, ofScope)] : []),
  ];
}

/** Checks a NetworkPolicy. */
export function checkNetworkPolicy(policy: JsonObject): FieldError[] {
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

/** Demands a range of addresses. */
export function checkCidr(path: string, cidr: string): FieldError[] {
  return cidrProblems(cidr).map((detail) => invalidError(path, cidr, detail));
}
