// What a CertificateSigningRequest may ask for.
import {
  type FieldError,
  duplicateError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import { type JsonObject, type JsonValue, memberOf, objectAt } from "../../json.js";
import { labelNameProblems, subdomainProblems } from "../../validation/names.js";

const USAGES = [
  ...["any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment"],
  ...["decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel"],
  ...["ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime"],
  ...["server auth", "signing", "timestamping"],
];
const MIN_SECONDS = 600;
const MAX_DOMAIN = 253;
// Of a domain, a label and a domain, and what is between them.
const MAX_NAME = MAX_DOMAIN + 1 + 63 + 1 + MAX_DOMAIN;

/** Checks a new CertificateSigningRequest; its spec is never changed. */
export function checkSigningRequest(request: JsonObject, old: JsonObject | undefined): FieldError[] {
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

// What is inside is read by the one who signs.
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

// Of the parts between dots the first wrong one is told.
function checkParts(path: string, text: string, problemsOf: (part: string) => string[]): FieldError[] {
  const wrong = text.split(".").find((part) => problemsOf(part).length > 0);
  if (wrong === undefined) return [];
  return problemsOf(wrong).map((problem) => invalidError(path, text, `validating label ${quote(wrong)}: ${problem}`));
}
