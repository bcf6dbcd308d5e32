// The names that storage and devices go by.
import { invalidError, requiredError, tooLongError, type FieldError } from "../../../errors/field-error.js";
import { memberOf, type JsonObject } from "../../../json.js";
import { textAt } from "../../read-path.js";
import { checkLabelName } from "../field-rules.js";
import { subdomainProblems } from "../name-syntax.js";

const MAX_DRIVER_BYTES = 63;
const MAX_POOL_BYTES = 253;

/** Demands a DNS subdomain; its length counts in characters here, though it is bytes that are counted. */
export function checkDomain(field: string, name: string): FieldError[] {
  return domainProblems(name).map((problem) => invalidError(field, name, problem));
}

/** Demands a DNS subdomain, if there is any. */
export function checkGivenDomain(field: string, name: string): FieldError[] {
  return name === "" ? [] : checkDomain(field, name);
}

/** Demands the name of a driver, in which capitals may be. */
export function checkDriverName(field: string, name: string): FieldError[] {
  if (name === "") return [requiredError(field)];
  return [
    ...(Buffer.byteLength(name) > MAX_DRIVER_BYTES ? [tooLongError(field, MAX_DRIVER_BYTES)] : []),
    ...domainProblems(name.toLowerCase()).map((problem) => invalidError(field, name, problem)),
  ];
}

/** Demands the name of a pool: DNS subdomains with slashes between. */
export function checkPoolName(field: string, name: string): FieldError[] {
  if (name === "") return [requiredError(field)];
  return [
    ...(Buffer.byteLength(name) > MAX_POOL_BYTES ? [tooLongError(field, MAX_POOL_BYTES)] : []),
    ...name.split("/").flatMap((part) => checkDomain(field, part)),
  ];
}

/** Demands a DNS label, and says of one with dots that it has them. */
export function checkLabel(field: string, name: string): FieldError[] {
  const isDotted = name.includes(".") && !subdomainProblems(name).some((problem) => problem.startsWith("a lowercase"));
  const own = checkLabelName(field, name === "" ? "-" : name);
  return own.map((error) => {
    if (name === "") return { ...error, message: error.message.replace('"-"', '""') };
    return isDotted && error.message.includes("a lowercase")
      ? invalidError(field, name, "must not contain dots")
      : error;
  });
}

/** Demands the name and the namespace of a Secret. */
export function checkSecretReference(path: string, reference: JsonObject): FieldError[] {
  const [name, namespace] = [textAt(reference, "name"), textAt(reference, "namespace")];
  return [
    ...(name === "" ? [requiredError(`${path}.name`)] : checkDomain(`${path}.name`, name)),
    ...(namespace === "" ? [requiredError(`${path}.namespace`)] : checkLabel(`${path}.namespace`, namespace)),
  ];
}

/** Demands members that are there. */
export function checkMembers(path: string, object: JsonObject, keys: string[]): FieldError[] {
  return keys
    .filter((key) => {
      const value = memberOf(object, key) ?? "";
      return value === "" || (Array.isArray(value) && value.length === 0);
    })
    .map((key) => requiredError(`${path}.${key}`));
}

function domainProblems(name: string): string[] {
  return subdomainProblems(name).map((problem) => problem.replace(/ bytes$/, " characters"));
}
