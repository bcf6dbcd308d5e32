import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  clone,
  deepEqual,
  isObject,
  memberOf,
  objectAt,
} from "../../json.js";
import { now } from "../../object/object-meta.js";
import { labelNameProblems, subdomainProblems } from "../../validation/names.js";
import type { Strategy } from "../strategy.js";

export const certificateSigningRequestStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  nameRule: "path-segment",
  resetOnMain: [".status", ".spec"],
  prepareForUpdate(request, old, subresource) {
    if (subresource === "status") keepVerdicts(request, old);
    stampConditions(request, old, now());
  },
  validate: checkSigningRequest,
  validateStatus: (request, old) => checkCertificateStatus(request, old, "status"),
  validateSubresource: (request, old, subresource) =>
    subresource === "approval" ? checkCertificateStatus(request, old, "approval") : undefined,
};

const USAGES = [
  ...["any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment"],
  ...["decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel"],
  ...["ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime"],
  ...["server auth", "signing", "timestamping"],
];

const MIN_SECONDS = 600;
const MAX_DOMAIN = 253;

// Maximum length of a signer name: a domain, a slash, and a label and a subdomain separated by a dot.
const MAX_NAME = MAX_DOMAIN + 1 + 63 + 1 + MAX_DOMAIN;

/** Validates a new CertificateSigningRequest; its spec is immutable. */
function checkSigningRequest(request: JsonObject, old: JsonObject | undefined): FieldError[] {
  if (old !== undefined) return [];
  const spec = objectAt(request, "spec") ?? {};
  const seconds = memberOf(spec, "expirationSeconds");
  return [
    ...checkRequest(memberOf(spec, "request") ?? null),
    ...checkUsages(memberOf(spec, "usages")),
    ...checkSigner(String(memberOf(spec, "signerName") ?? "")),
    ...(typeof seconds === "number" && seconds < MIN_SECONDS
      ? [
          invalidError(
            "spec.expirationSeconds",
            seconds,
            `may not specify a duration less than ${MIN_SECONDS} seconds (10 minutes)`,
          ),
        ]
      : []),
  ];
}

// The signer parses the content.
function checkRequest(request: JsonValue): FieldError[] {
  const text = typeof request === "string" ? Buffer.from(request, "base64").toString("latin1") : "";
  const isRequest = /-----BEGIN CERTIFICATE REQUEST-----[^-]*-----END CERTIFICATE REQUEST-----/.test(text);
  return isRequest ? [] : [invalidError("spec.request", request, "PEM block type must be CERTIFICATE REQUEST")];
}

function checkUsages(given: JsonValue | undefined): FieldError[] {
  const usages = Array.isArray(given) ? given.map(String) : [];
  return [
    ...(usages.length === 0 ? [requiredError("spec.usages")] : []),
    ...usages.flatMap((usage, index) =>
      USAGES.includes(usage) ? [] : [notSupportedError(`spec.usages[${index}]`, usage, USAGES)],
    ),
    ...usages.flatMap((usage, index) =>
      usages.indexOf(usage) === index ? [] : [duplicateError(`spec.usages[${index}]`, usage)],
    ),
  ];
}

function checkSigner(name: string): FieldError[] {
  const path = "spec.signerName";
  if (name === "kubernetes.io/legacy-unknown")
    return [invalidError(path, name, "the legacy signerName is not allowed via this API version")];
  if (name === "") return [requiredError(path)];
  const [domain = "", signer = "", ...rest] = name.split("/");
  if (!name.includes("/") || rest.length > 0) {
    const form = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    return [invalidError(path, name, form)];
  }
  const labels = domain.split(".");
  return [
    ...(Buffer.byteLength(domain) > MAX_DOMAIN ? [tooLongError(path, MAX_DOMAIN)] : []),
    ...checkParts(path, domain, labelNameProblems),
    ...(labels.length < 2
      ? [invalidError(path, domain, "should be a domain with at least two segments separated by dots")]
      : []),
    ...checkParts(path, signer, subdomainProblems),
    ...(Buffer.byteLength(name) > MAX_NAME ? [tooLongError(path, MAX_NAME)] : []),
  ];
}

// Only the first invalid label is reported.
function checkParts(path: string, text: string, problemsOf: (part: string) => string[]): FieldError[] {
  const wrong = text.split(".").find((part) => problemsOf(part).length > 0);
  if (wrong === undefined) return [];
  return problemsOf(wrong).map((problem) => invalidError(path, text, `validating label ${quote(wrong)}: ${problem}`));
}

const VERDICTS = ["Approved", "Denied"];

/** Conditions that cannot have status False. */
const ENDS = [...VERDICTS, "Failed"];

const PATH = "status.conditions";

/** Validates conditions that are written through /status or /approval. */
function checkCertificateStatus(
  request: JsonObject,
  live: JsonObject,
  subresource: "status" | "approval",
): FieldError[] {
  const [conditions, before] = [request, live].map((one) => objectsAt(one, PATH)) as [JsonObject[], JsonObject[]];
  const removed = ENDS.filter((type) => ofType(conditions, type).length < ofType(before, type).length);
  return [
    ...checkConditions(conditions, before),
    ...checkCertificate(textAt(request, "status.certificate"), textAt(live, "status.certificate")),
    ...removed.map((type) => forbiddenError(PATH, `updates may not remove a condition of type ${quote(type)}`)),
    ...(subresource === "approval" ? [] : checkVerdictsKept(conditions, before)),
    ...checkCertificateKept(request, live),
  ];
}

function ofType(conditions: JsonObject[], type: string): JsonObject[] {
  return conditions.filter((condition) => textAt(condition, "type") === type);
}

function checkConditions(conditions: JsonObject[], before: JsonObject[]): FieldError[] {
  const types = conditions.map((condition) => textAt(condition, "type"));
  const oldTypes = before.map((condition) => textAt(condition, "type"));
  // Violations in the old conditions are tolerated.
  const mayBeEmpty = oldTypes.includes("");
  const mayBeTwice = new Set(oldTypes).size < oldTypes.length;
  const mayContradict = VERDICTS.every((type) => oldTypes.includes(type));
  return conditions.flatMap((condition, index) => {
    const [type, at] = [types[index] ?? "", `${PATH}[${index}]`];
    const earlier = types.slice(0, index);
    const contradicts = VERDICTS.includes(type) && VERDICTS.some((other) => other !== type && earlier.includes(other));
    return [
      ...(type === "" && !mayBeEmpty ? [requiredError(`${at}.type`)] : []),
      ...checkConditionStatus(`${at}.status`, textAt(condition, "status"), type),
      ...(contradicts && !mayContradict
        ? [invalidError(PATH, type, "Approved and Denied conditions are mutually exclusive")]
        : []),
      ...(earlier.includes(type) && !mayBeTwice ? [duplicateError(`${at}.type`, type)] : []),
    ];
  });
}

function checkConditionStatus(field: string, status: string, type: string): FieldError[] {
  const allowed = ENDS.includes(type) ? ["True"] : ["False", "True", "Unknown"];
  if (status === "") return [requiredError(field)];
  return allowed.includes(status) ? [] : [notSupportedError(field, status, allowed)];
}

function checkVerdictsKept(conditions: JsonObject[], before: JsonObject[]): FieldError[] {
  return VERDICTS.flatMap((type) => {
    const [now, old] = [ofType(conditions, type), ofType(before, type)];
    if (now.length > old.length)
      return [forbiddenError(PATH, `updates may not add a condition of type ${quote(type)}`)];
    if (now.length < old.length || deepEqual(now, old)) return [];
    return [forbiddenError(PATH, `updates may not modify a condition of type ${quote(type)}`)];
  });
}

function checkCertificate(certificate: string, before: string): FieldError[] {
  if (certificate === "" || certificate === before) return [];
  const problem = certificateProblem(Buffer.from(certificate, "base64").toString("latin1"));
  return problem === undefined ? [] : [invalidError("status.certificate", "<certificate data>", problem)];
}

const BLOCK = /-----BEGIN ([^\n-]*)-----\n([^-]*)-----END \1-----/g;

// Returns the first problem of a certificate chain that is detectable without parsing the certificates.
function certificateProblem(text: string): string | undefined {
  const blocks = [...text.matchAll(BLOCK)];
  for (const [, type = "", content = ""] of blocks) {
    if (type !== "CERTIFICATE") return `only CERTIFICATE PEM blocks are allowed, found ${quote(type)}`;
    if (content.includes(":")) return "no PEM block headers are permitted";
    const bytes = Buffer.from(content, "base64");
    if (bytes.length === 0) return "found CERTIFICATE PEM block containing 0 certificates";
    if (bytes[0] !== SEQUENCE) return "x509: malformed certificate";
  }
  return blocks.length === 0 ? "must contain at least one CERTIFICATE PEM block" : undefined;
}

const SEQUENCE = 0x30;

function checkCertificateKept(request: JsonObject, live: JsonObject): FieldError[] {
  const [now, before] = [request, live].map((one) => textAt(one, "status.certificate"));
  if (now === before || before === "") return [];
  return [forbiddenError("status.certificate", "updates may not modify existing certificate content")];
}

/**
 * Restores the Approved and Denied conditions, which /status must not change. If their number differs, they are left for the validation to reject.
 */
export function keepVerdicts(request: JsonObject, old: JsonObject): void {
  const conditions = arrayAt(objectAt(request, "status"), "conditions");
  const isOf = (verdict: string) => (condition: JsonValue) => isObject(condition) && condition["type"] === verdict;
  for (const verdict of ["Approved", "Denied"]) {
    const before = (arrayAt(objectAt(old, "status"), "conditions") ?? []).filter(isOf(verdict));
    if (conditions === undefined || conditions.filter(isOf(verdict)).length !== before.length) continue;
    for (const [index, condition] of conditions.entries())
      if (isOf(verdict)(condition)) conditions[index] = clone(before.shift() as JsonValue);
  }
}

/** Sets the times of conditions: the old time if the condition existed with this status, otherwise now. */
export function stampConditions(request: JsonObject, old: JsonObject | undefined, now: string): void {
  const conditionsOf = (object: JsonObject | undefined) =>
    (arrayAt(objectAt(object, "status"), "conditions") ?? []).filter(isObject);
  for (const condition of conditionsOf(request)) {
    const same = conditionsOf(old).find(
      ({ type, status }) => type === condition["type"] && status === condition["status"],
    );
    condition["lastTransitionTime"] ??= same?.["lastTransitionTime"] ?? now;
    condition["lastUpdateTime"] ??= now;
  }
}
