import { jsonSyntaxError } from "../../errors/decode-errors.js";
import { type FieldError, invalidError, requiredError } from "../../errors/field-error.js";
import { goTypeOf } from "../../errors/go-format.js";
import { type JsonObject, type JsonValue, isObject, memberOf, objectAt } from "../../json.js";
import { textAt } from "../../builtin/read-path.js";
import { bytesOf, checkDataSize, checkSealed, decodedLength } from "./config-map.js";
import { checkConfigKeys, checkImmutable } from "../../validation/fields.js";

const ACCOUNT_NAME = "kubernetes.io/service-account.name";
const REQUIRED_KEYS: Record<string, string[]> = {
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/dockercfg": [".dockercfg"],
};

// One of them is enough.
function checkBasicAuth(object: JsonObject, data: JsonObject): FieldError[] {
  const keys = ["username", "password"];
  if (textAt(object, "type") !== "kubernetes.io/basic-auth" || keys.some((key) => Object.hasOwn(data, key))) return [];
  return keys.map((key) => requiredError(`data[${key}]`));
}

// A key that is empty is none.
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

// null is a map without members.
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

/** Checks a Secret. */
export function checkSecret(object: JsonObject, old: JsonObject | undefined): FieldError[] {
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
