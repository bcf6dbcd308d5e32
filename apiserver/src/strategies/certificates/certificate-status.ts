// What may become of a CertificateSigningRequest: a verdict, which is given through /approval and stays, and a certificate.
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { quote } from "../../errors/go-format.js";
import { type JsonObject, deepEqual } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";

const VERDICTS = ["Approved", "Denied"];
/** Conditions that are there or not, and never false. */
const ENDS = [...VERDICTS, "Failed"];
const PATH = "status.conditions";

/** Checks the status that is written through /status, or the conditions that are written through /approval. */
export function checkCertificateStatus(
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
  // What was wrong already may stay so.
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

// What is wrong first with the certificates in a text, as far as can be told without reading them.
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
