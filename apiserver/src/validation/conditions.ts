import {
  type FieldError,
  duplicateError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
} from "../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf } from "../json.js";
import { checkRequired } from "./fields.js";
import { qualifiedNameProblems } from "./names.js";

const REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?";
const REASON_RULE =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with " +
  "an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for " +
  `validation is '${REASON}')`;
const NOT_NEGATIVE = "must be greater than or equal to zero";
const MAX_REASON_BYTES = 1024;
const MAX_MESSAGE_BYTES = 32 * 1024;

function checkReason(field: string, reason: string): FieldError[] {
  if (reason === "") return [requiredError(field)];
  return [
    ...(new RegExp(`^${REASON}$`).test(reason) ? [] : [invalidError(field, reason, REASON_RULE)]),
    ...(Buffer.byteLength(reason) > MAX_REASON_BYTES ? [tooLongError(field, MAX_REASON_BYTES)] : []),
  ];
}

/** Validates conditions of meta/v1, which must be unique by type. */
export function checkConditions(path: string, conditions: JsonObject[]): FieldError[] {
  const types = new Set<JsonValue>();
  return conditions.flatMap((condition, index) => {
    const at = `${path}[${index}]`;
    const [type, status, reason] = ["type", "status", "reason"].map((key) => String(memberOf(condition, key) ?? ""));
    const isTaken = types.has(type as string);
    types.add(type as string);
    return [
      ...(isTaken ? [duplicateError(`${at}.type`, type as string)] : []),
      ...qualifiedNameProblems(type as string).map((detail) => invalidError(`${at}.type`, type as string, detail)),
      ...(["False", "True", "Unknown"].includes(status as string)
        ? []
        : [notSupportedError(`${at}.status`, status as string, ["False", "True", "Unknown"])]),
      ...(Number(memberOf(condition, "observedGeneration") ?? 0) < 0
        ? [invalidError(`${at}.observedGeneration`, condition["observedGeneration"] as JsonValue, NOT_NEGATIVE)]
        : []),
      ...checkRequired(`${at}.lastTransitionTime`, memberOf(condition, "lastTransitionTime")),
      ...checkReason(`${at}.reason`, reason as string),
      ...(Buffer.byteLength(String(memberOf(condition, "message") ?? "")) > MAX_MESSAGE_BYTES
        ? [tooLongError(`${at}.message`, MAX_MESSAGE_BYTES)]
        : []),
    ];
  });
}
