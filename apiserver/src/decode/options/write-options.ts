import {
  forbiddenError,
  notSupportedError,
  requiredError,
  textNotSupportedError,
  type FieldError,
} from "../../errors/field-error.js";
import { invalid } from "../../errors/status-error.js";
import type { JsonObject } from "../../json.js";
import { checkManager, MAX_MANAGER_BYTES, UNPRINTABLE } from "../../builtin/rules/manager-names.js";
import { isTrue } from "./query-boolean.js";

/** What a request says about its write besides the object. */
export interface WriteOptions {
  isDryRun: boolean;
  /** The field manager as given; "" when none was. */
  fieldManager: string;
  fieldValidation: "Ignore" | "Warn" | "Strict";
  force: boolean;
  /** The options that were given, in the form of an object; without `force`, which only an apply has. */
  given: JsonObject;
}

type OptionsKind = "CreateOptions" | "UpdateOptions" | "PatchOptions" | "DeleteOptions";

const FIELD_VALIDATIONS = ["Ignore", "Warn", "Strict"] as const;

/** Parses the query of a write; `isApply` tells a server-side apply from the other patches. */
export function parseWriteOptions(query: URLSearchParams, kind: OptionsKind, { isApply = false } = {}): WriteOptions {
  const fieldManager = query.get("fieldManager") ?? "";
  const fieldValidation = query.get("fieldValidation") ?? "";
  const force = query.get("force");
  const errors = [
    ...(isApply || force === null || kind !== "PatchOptions"
      ? []
      : [forbiddenError("force", "may not be specified for non-apply patch")]),
    ...(isApply && fieldManager === "" ? [requiredError("fieldManager", "is required for apply patch")] : []),
    ...checkManager("fieldManager", fieldManager),
    ...checkDryRun(query.getAll("dryRun")),
    ...checkFieldValidation(fieldValidation),
  ];
  if (errors.length > 0) throw invalidOptions(kind, errors);
  return {
    isDryRun: query.has("dryRun"),
    fieldManager,
    fieldValidation: FIELD_VALIDATIONS.find((known) => known === fieldValidation) ?? "Warn",
    force: isTrue(force),
    given: {
      ...(query.has("dryRun") ? { dryRun: query.getAll("dryRun") } : {}),
      ...(fieldManager === "" ? {} : { fieldManager }),
      ...(fieldValidation === "" ? {} : { fieldValidation }),
    },
  };
}

/** Checks the values of `dryRun`, of which only `All` exists. */
export function checkDryRun(values: readonly string[]): FieldError[] {
  return values.every((value) => value === "All") ? [] : [notSupportedError("dryRun", [...values], ["All"])];
}

/** Builds the failure of a request whose options are wrong. */
export function invalidOptions(kind: string, errors: FieldError[]): Error {
  return invalid({ kind, group: "meta.k8s.io", name: "" }, errors);
}

function checkFieldValidation(value: string): FieldError[] {
  const isKnown = value === "" || (FIELD_VALIDATIONS as readonly string[]).includes(value);
  return isKnown ? [] : [textNotSupportedError("fieldValidation", value, ["", "Ignore", "Strict", "Warn"])];
}

/** Returns the field manager of a write that is no apply: the given one, else the client's name. */
export function fieldManagerOf(options: WriteOptions, userAgent: string | undefined): string {
  if (options.fieldManager !== "") return options.fieldManager;
  const program = (userAgent ?? "").split("/")[0] as string;
  const printable = program.replace(UNPRINTABLE, "");
  return Buffer.from(printable).subarray(0, MAX_MANAGER_BYTES).toString() || "unknown";
}
