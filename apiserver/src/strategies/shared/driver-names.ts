// Names of drivers, pools, and other shared references.
import { textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, requiredError, tooLongError } from "../../errors/field-error.js";
import { type JsonObject, memberOf } from "../../json.js";
import { checkDomain, checkLabelName, checkRequiredDomain } from "../../validation/fields.js";
import { subdomainProblems } from "../../validation/names.js";

const MAX_DRIVER_BYTES = 63;
const MAX_POOL_BYTES = 253;

/** Validates a driver name, which may contain uppercase letters. */
export function checkDriverName(field: string, name: string): FieldError[] {
  if (name === "") return [requiredError(field)];
  return [
    ...(Buffer.byteLength(name) > MAX_DRIVER_BYTES ? [tooLongError(field, MAX_DRIVER_BYTES)] : []),
    ...subdomainProblems(name.toLowerCase()).map((problem) => invalidError(field, name, problem)),
  ];
}

/** Validates a pool name: DNS subdomains separated by slashes. */
export function checkPoolName(field: string, name: string): FieldError[] {
  if (name === "") return [requiredError(field)];
  return [
    ...(Buffer.byteLength(name) > MAX_POOL_BYTES ? [tooLongError(field, MAX_POOL_BYTES)] : []),
    ...name.split("/").flatMap((part) => checkDomain(field, part)),
  ];
}

/** Validates the name and namespace of a Secret reference. */
export function checkSecretReference(path: string, reference: JsonObject): FieldError[] {
  const [name, namespace] = [textAt(reference, "name"), textAt(reference, "namespace")];
  return [...checkRequiredDomain(`${path}.name`, name), ...checkLabelName(`${path}.namespace`, namespace)];
}

/** Validates that fields are not empty. */
export function checkMembers(path: string, object: JsonObject, keys: string[]): FieldError[] {
  return keys
    .filter((key) => {
      const value = memberOf(object, key) ?? "";
      return value === "" || (Array.isArray(value) && value.length === 0);
    })
    .map((key) => requiredError(`${path}.${key}`));
}
