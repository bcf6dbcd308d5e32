import { quote } from "../strings/escape.js";
import { isJsonObject, memberOf, type JsonObject } from "../json/json.js";
import { unattributed, type SchemaResult } from "./schema-messages.js";
import type { StructuralSchema } from "./structural-schema.js";

/**
 * Checks anyOf, oneOf, allOf and not of a value at `path`, with `check` for the branches. What failed best among the branches is reported
 * too, except for `not`.
 */
export function checkJunctors(
  schema: StructuralSchema,
  path: string,
  check: (branch: JsonObject) => SchemaResult,
): SchemaResult {
  const parts = [
    checkAnyOf(path, branchesOf(schema, "anyOf").map(check)),
    checkOneOf(path, branchesOf(schema, "oneOf").map(check)),
    checkAllOf(path, branchesOf(schema, "allOf").map(check)),
  ];
  const not = memberOf(schema, "not");
  if (isJsonObject(not) && check(not).errors.length === 0) {
    parts.push({ errors: [unattributed(`${quote(path)} must not validate the schema (not)`)], matches: 0 });
  }
  return {
    errors: parts.flatMap((part) => part.errors),
    matches: 1 + parts.reduce((sum, part) => sum + part.matches, 0),
  };
}

function checkAnyOf(path: string, results: SchemaResult[]): SchemaResult {
  const best = bestFailure(results);
  if (best === undefined || results.some(isValid)) return NO_ERRORS;
  const message = `${quote(path)} must validate at least one schema (anyOf)`;
  return { errors: [unattributed(message), ...best.errors], matches: best.matches };
}

function checkOneOf(path: string, results: SchemaResult[]): SchemaResult {
  const valid = results.filter(isValid).length;
  if (results.length === 0 || valid === 1) return NO_ERRORS;
  const found = valid === 0 ? "Found none valid" : `Found ${valid} valid alternatives`;
  const message = `${quote(path)} must validate one and only one schema (oneOf). ${found}`;
  const best = valid === 0 ? bestFailure(results) : undefined;
  return { errors: [unattributed(message), ...(best?.errors ?? [])], matches: best?.matches ?? 0 };
}

function checkAllOf(path: string, results: SchemaResult[]): SchemaResult {
  const errors = results.flatMap((result) => result.errors);
  const matches = results.reduce((sum, result) => sum + result.matches + 1, 0);
  const valid = results.filter(isValid).length;
  if (valid === results.length) return { errors, matches };
  const none = valid === 0 ? ". None validated" : "";
  return { errors: [...errors, unattributed(`${quote(path)} must validate all the schemas (allOf)${none}`)], matches };
}

const NO_ERRORS: SchemaResult = { errors: [], matches: 0 };

function isValid(result: SchemaResult): boolean {
  return result.errors.length === 0;
}

function bestFailure(results: SchemaResult[]): SchemaResult | undefined {
  return results
    .filter((result) => !isValid(result))
    .reduce<SchemaResult | undefined>(
      (best, result) => (best && best.matches >= result.matches ? best : result),
      undefined,
    );
}

function branchesOf(schema: StructuralSchema, junctor: "anyOf" | "oneOf" | "allOf"): JsonObject[] {
  const branches = memberOf(schema, junctor);
  return Array.isArray(branches) ? branches.filter(isJsonObject) : [];
}
