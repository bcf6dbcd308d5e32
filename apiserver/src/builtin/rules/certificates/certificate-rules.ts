// What a CertificateSigningRequest may ask for.
import {
  duplicateError,
  invalidError,
  notSupportedError,
  requiredError,
  type FieldError,
} from "../../../errors/field-error.js";
import { memberOf, objectAt, type JsonObject, type JsonValue } from "../../../json.js";
import { checkDomain } from "../field-rules.js";
import { subdomainProblems } from "../name-syntax.js";

const USAGES = [
  ...["any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment"],
  ...["decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel"],
  ...["ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime"],
  ...["server auth", "signing", "timestamping"],
];
const MIN_SECONDS = 600;

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
  const [domain = "", ...rest] = name.split("/");
  if (rest.length !== 1) {
    const form = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    return [invalidError(path, name, form)];
  }
  return [
    ...(domain.includes(".")
      ? subdomainProblems(domain)
      : ["should be a domain with at least two segments separated by dots"]
    ).map((problem) => invalidError(path, domain, problem)),
    ...checkDomain(path, rest[0] ?? ""),
  ];
}
