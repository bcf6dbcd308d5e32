import { X509Certificate, createPrivateKey } from "node:crypto";
import { textAt } from "../../builtin/read-path.js";
import { jsonSyntaxError } from "../../errors/decode-errors.js";
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { goTypeOf } from "../../errors/go-format.js";
import { type JsonObject, type JsonValue, isObject, memberOf, objectAt, setMember } from "../../json.js";
import { checkConfigKeys, checkImmutable } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";
import { bytesOf, checkDataSize, checkSealed, decodedLength } from "./config-map.js";

export const secretStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  defaults: encodeStringData,
  validate: checkSecret,
  warnings: keyPairWarnings,
};

const ACCOUNT_NAME = "kubernetes.io/service-account.name";

const REQUIRED_KEYS: Record<string, string[]> = {
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/dockercfg": [".dockercfg"],
};

// At least one of the keys is required.
function checkBasicAuth(object: JsonObject, data: JsonObject): FieldError[] {
  const keys = ["username", "password"];
  if (textAt(object, "type") !== "kubernetes.io/basic-auth" || keys.some((key) => Object.hasOwn(data, key))) return [];
  return keys.map((key) => requiredError(`data[${key}]`));
}

// The key must not be empty.
function checkSshKey(object: JsonObject, data: JsonObject): FieldError[] {
  const hasKey = textAt(data, "ssh-privatekey") !== "";
  return hasKey || textAt(object, "type") !== "kubernetes.io/ssh-auth" ? [] : [requiredError("data[ssh-privatekey]")];
}

const REGISTRY_LOGINS = ["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"];

function checkRegistryLogin(object: JsonObject, data: JsonObject): FieldError[] {
  const type = textAt(object, "type");
  const key = REQUIRED_KEYS[type]?.[0] ?? "";
  const value = memberOf(data, key);
  if (!REGISTRY_LOGINS.includes(type) || typeof value !== "string") return [];
  const problem = mapProblem(Buffer.from(value, "base64"));
  return problem === "" ? [] : [invalidError(`data[${key}]`, "<secret contents redacted>", problem)];
}

// Go decodes null into a nil map.
function mapProblem(json: Buffer): string {
  const unreadable = jsonSyntaxError(json);
  if (unreadable !== "") return unreadable;
  const value = JSON.parse(json.toString()) as JsonValue;
  if (value === null || isObject(value)) return "";
  return `json: cannot unmarshal ${goTypeOf(value)} into Go value of type map[string]interface {}`;
}

function checkAccountToken(object: JsonObject): FieldError[] {
  const name = memberOf(objectAt(objectAt(object, "metadata"), "annotations"), ACCOUNT_NAME) ?? "";
  if (textAt(object, "type") !== "kubernetes.io/service-account-token" || name !== "") return [];
  return [requiredError(`metadata.annotations[${ACCOUNT_NAME}]`)];
}

function checkSecret(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const data = objectAt(object, "data") ?? {};
  const required = REQUIRED_KEYS[textAt(object, "type")] ?? [];
  return [
    ...checkConfigKeys(object, "data"),
    ...required.filter((key) => memberOf(data, key) === undefined).map((key) => requiredError(`data[${key}]`)),
    ...checkBasicAuth(object, data),
    ...checkSshKey(object, data),
    ...checkRegistryLogin(object, data),
    ...checkAccountToken(object),
    ...checkDataSize("data", bytesOf(object, "data", decodedLength)),
    ...checkImmutable("", { spec: object, old, keys: ["type"] }),
    ...checkSealed(object, old, ["data"]),
  ];
}

/** Encodes stringData into data. */
function encodeStringData(secret: JsonObject): void {
  const plain = objectAt(secret, "stringData");
  delete secret["stringData"];
  if (plain === undefined || Object.keys(plain).length === 0) return;
  const data = objectAt(secret, "data") ?? {};
  for (const [key, text] of Object.entries(plain)) {
    setMember(data, key, Buffer.from(String(text), "utf8").toString("base64"));
  }
  secret["data"] = data;
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g;

/** Warns about an invalid key pair of a TLS Secret. */
function keyPairWarnings(secret: JsonObject): string[] {
  if (textAt(secret, "type") !== "kubernetes.io/tls") return [];
  const data = objectAt(secret, "data") ?? {};
  const [certificate, key] = ["tls.crt", "tls.key"].map((name) =>
    Buffer.from(typeof data[name] === "string" ? data[name] : "", "base64").toString(),
  ) as [string, string];
  const problem = certificateProblem(certificate) ?? keyProblem(key) ?? pairProblem(certificate, key);
  return problem === undefined ? [] : [`tls: ${problem}`];
}

function typesOf(pem: string): string[] {
  return [...pem.matchAll(BLOCK)].map(([, type]) => type as string);
}

function certificateProblem(pem: string): string | undefined {
  const types = typesOf(pem);
  if (types.includes("CERTIFICATE")) return undefined;
  if (types.length === 0) return "failed to find any PEM data in certificate input";
  if (types.length === 1 && isKey(types[0] as string))
    return "failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched";
  return `failed to find "CERTIFICATE" PEM block in certificate input ${skipped(types)}`;
}

function keyProblem(pem: string): string | undefined {
  const types = typesOf(pem);
  if (types.some(isKey)) return undefined;
  if (types.length === 0) return "failed to find any PEM data in key input";
  if (types.length === 1 && types[0] === "CERTIFICATE")
    return "found a certificate rather than a key in the PEM for the private key";
  return `failed to find PEM block with type ending in "PRIVATE KEY" in key input ${skipped(types)}`;
}

const isKey = (type: string): boolean => type.endsWith("PRIVATE KEY");
const skipped = (types: string[]): string => `after skipping PEM blocks of the following types: [${types.join(" ")}]`;

function pairProblem(certificate: string, key: string): string | undefined {
  try {
    const isPair = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
    return isPair ? undefined : "private key does not match public key";
  } catch {
    return "failed to parse private key";
  }
}
