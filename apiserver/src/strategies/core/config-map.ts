import { wasGivenEmpty } from "../../builtin/normal-form.js";
import { type FieldError, forbiddenError, invalidError, tooLongError } from "../../errors/field-error.js";
import { type JsonObject, deepEqual, memberOf, objectAt } from "../../json.js";
import { checkConfigKeys } from "../../validation/fields.js";
import type { Strategy } from "../strategy.js";

export const configMapStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  validate: checkConfigMap,
};

/** Limit for all values of a ConfigMap or Secret (MaxSecretSize). */
const MAX_DATA_BYTES = 1024 * 1024;

function checkConfigMap(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const keys = [...checkConfigKeys(object, "data"), ...checkConfigKeys(object, "binaryData"), ...checkKeysOnce(object)];
  const bytes = bytesOf(object, "data", Buffer.byteLength) + bytesOf(object, "binaryData", decodedLength);
  return [...keys, ...checkDataSize("[]", bytes), ...checkSealed(object, old, ["data", "binaryData"])];
}

function checkKeysOnce(object: JsonObject): FieldError[] {
  const binary = objectAt(object, "binaryData") ?? {};
  return Object.keys(objectAt(object, "data") ?? {})
    .filter((key) => Object.hasOwn(binary, key))
    .map((key) => invalidError(`data[${key}]`, key, "duplicate of key present in binaryData"));
}

/** Validates the total size of the values. */
export function checkDataSize(field: string, bytes: number): FieldError[] {
  return bytes > MAX_DATA_BYTES ? [tooLongError(field, MAX_DATA_BYTES)] : [];
}

/** Returns the total size of the values of a map, in bytes. */
export function bytesOf(object: JsonObject, member: string, lengthOf: (text: string) => number): number {
  const texts = Object.values(objectAt(object, member) ?? {}).filter((text) => typeof text === "string");
  return texts.reduce((total, text) => total + lengthOf(text), 0);
}

/** Returns the decoded size of a base64 string. */
export function decodedLength(base64: string): number {
  return Buffer.byteLength(base64, "base64");
}

/** Validates that an immutable ConfigMap or Secret is unchanged. */
export function checkSealed(object: JsonObject, old: JsonObject | undefined, members: string[]): FieldError[] {
  if (old?.["immutable"] !== true) return [];
  const detail = "field is immutable when `immutable` is set";
  return [
    ...(object["immutable"] === true ? [] : [forbiddenError("immutable", detail)]),
    ...members
      // The data of a ConfigMap is always decoded into a map.
      .filter((member) => {
        const isGivenEmpty = wasGivenEmpty(object, member) && !(object["kind"] === "ConfigMap" && member === "data");
        return isGivenEmpty || !deepEqual(memberOf(object, member), memberOf(old, member));
      })
      .map((member) => forbiddenError(member, detail)),
  ];
}
