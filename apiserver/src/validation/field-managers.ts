import { type FieldError, invalidError, tooLongError } from "../errors/field-error.js";
import { type JsonValue, isObject, stringAt } from "../json.js";

/** How long the name of a field manager may be. */
export const MAX_MANAGER_BYTES = 128;
const MAX_SUBRESOURCE_BYTES = 256;

/** What Go prints as a code: of what separates words it prints the plain blank alone. */
export const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/gu;

/** Checks the name of a field manager. */
export function checkManager(field: string, manager: string): FieldError[] {
  const isTooLong = Buffer.byteLength(manager) > MAX_MANAGER_BYTES;
  const odd = [...manager.matchAll(UNPRINTABLE)].map(({ 0: character, index }) => {
    const code = (character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0");
    const position = Buffer.byteLength(manager.slice(0, index));
    return invalidError(field, manager, `invalid character U+${code} (at position ${position})`);
  });
  return [...(isTooLong ? [tooLongError(field, MAX_MANAGER_BYTES)] : []), ...odd];
}

/** Checks the names in `metadata.managedFields`. */
export function checkManagers(field: string, managedFields: readonly JsonValue[]): FieldError[] {
  return managedFields.filter(isObject).flatMap((entry, index) => {
    const isTooLong = Buffer.byteLength(stringAt(entry, "subresource") ?? "") > MAX_SUBRESOURCE_BYTES;
    return [
      ...checkManager(`${field}[${index}].manager`, stringAt(entry, "manager") ?? ""),
      ...(isTooLong ? [tooLongError(`${field}[${index}].subresource`, MAX_SUBRESOURCE_BYTES)] : []),
    ];
  });
}
