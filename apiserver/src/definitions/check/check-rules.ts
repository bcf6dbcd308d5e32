// What a definition may say in x-kubernetes-validations.
import type { Schema } from "@gen-operator/schema";
import { compileExpression, parseFieldPath } from "@gen-operator/schema/cel";
import { invalidError, notSupportedError, requiredError, type FieldError } from "../../errors/field-error.js";
import { arrayAt, isObject, memberOf, stringAt, type JsonObject, type JsonValue } from "../../json.js";
import { itemSchema, propertiesOf, type StructuralSchema } from "../schema/structural.js";

const REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
const LINE_BREAKS = "must not contain line breaks";
const EMPTY = "must be non-empty if specified";

/** Checks the members of the rules of one schema. */
export function checkRuleFields(schema: StructuralSchema, path: string): FieldError[] {
  return rulesOf(schema).flatMap((rule, index) => checkFields(rule, { schema, path: rulePath(path, index) }));
}

/** Checks the expressions of all rules in a schema that is right otherwise. */
export function checkExpressions(schema: StructuralSchema, path: string, uncorrelated?: string): FieldError[] {
  const inner = (child: JsonValue | undefined, childPath: string, cut = uncorrelated): FieldError[] =>
    isObject(child) ? checkExpressions(child, childPath, cut) : [];
  // Items are known again in a list with keys alone.
  const isCut =
    uncorrelated === undefined && itemSchema(schema) !== undefined && schema["x-kubernetes-list-type"] !== "map";
  return [
    ...Object.entries(propertiesOf(schema)).flatMap(([name, child]) => inner(child, `${path}.properties[${name}]`)),
    ...inner(memberOf(schema, "additionalProperties"), `${path}.additionalProperties`),
    ...inner(memberOf(schema, "items"), `${path}.items`, isCut ? path : uncorrelated),
    ...(arrayAt(schema, "allOf") ?? []).flatMap((child, index) => inner(child, `${path}.allOf[${index}]`)),
    ...rulesOf(schema).flatMap((rule, index) => checkExpression(rule, { path: rulePath(path, index), uncorrelated })),
  ];
}

/** Names the expressions of a schema that are valid, and that the server cannot evaluate: objects are accepted without them. */
export function unevaluatedRules(schema: JsonValue | undefined): string[] {
  if (!isObject(schema)) return [];
  const children = [
    memberOf(schema, "additionalProperties"),
    memberOf(schema, "items"),
    ...Object.values(propertiesOf(schema)),
  ];
  const own = rulesOf(schema).flatMap((rule) => {
    const compilation = compileExpression(stringAt(rule, "rule") ?? "");
    return "problem" in compilation ? [`${stringAt(rule, "rule") ?? ""}: ${compilation.problem}`] : [];
  });
  return [...own, ...[...children, ...(arrayAt(schema, "allOf") ?? [])].flatMap(unevaluatedRules)];
}

function rulesOf(schema: StructuralSchema): JsonObject[] {
  return (arrayAt(schema, "x-kubernetes-validations") ?? []).filter(isObject);
}

function rulePath(path: string, index: number): string {
  return `${path}.x-kubernetes-validations[${index}]`;
}

function checkFields(given: JsonObject, { schema, path }: { schema: StructuralSchema; path: string }): FieldError[] {
  const [rule, message, reason] = [stringAt(given, "rule") ?? "", stringAt(given, "message") ?? "", given["reason"]];
  const [expression, field] = [stringAt(given, "messageExpression") ?? "", stringAt(given, "fieldPath") ?? ""];
  const errors: FieldError[] = [];
  if (rule.trim() === "") errors.push(requiredError(`${path}.rule`, "rule is not specified"));
  else if (message !== "" && message.trim() === "") errors.push(invalidError(`${path}.message`, message, EMPTY));
  else if (message.trim().includes("\n")) errors.push(invalidError(`${path}.message`, message, LINE_BREAKS));
  else if (rule.trim().includes("\n") && message === "")
    errors.push(requiredError(`${path}.message`, "message must be specified if rule contains line breaks"));
  if (expression !== "" && expression.trim() === "")
    errors.push(requiredError(`${path}.messageExpression`, "messageExpression must be non-empty if specified"));
  if (typeof reason === "string" && !REASONS.includes(reason))
    errors.push(notSupportedError(`${path}.reason`, reason, REASONS));
  if (field !== "" && field.trim() === "") errors.push(invalidError(`${path}.fieldPath`, field, EMPTY));
  if (field.includes("\n")) errors.push(invalidError(`${path}.fieldPath`, field, LINE_BREAKS));
  if (field !== "" && parseFieldPath(field, schema as Schema) === undefined)
    errors.push(invalidError(`${path}.fieldPath`, field, "must be a valid path"));
  return errors;
}

function checkExpression(
  rule: JsonObject,
  { path, uncorrelated }: { path: string; uncorrelated: string | undefined },
): FieldError[] {
  const text = stringAt(rule, "rule") ?? "";
  const errors = [
    ...compileErrors(rule, text, { field: `${path}.rule`, prefix: "" }),
    ...compileErrors(rule, stringAt(rule, "messageExpression") ?? "", {
      field: `${path}.messageExpression`,
      prefix: "messageExpression ",
    }),
  ];
  const compilation = compileExpression(text);
  if ("problem" in compilation) return errors;
  const optional = rule["optionalOldSelf"];
  if (!compilation.expression.usesOldSelf) {
    if (typeof optional === "boolean")
      errors.push(invalidError(`${path}.optionalOldSelf`, optional, "may not be set if oldSelf is not used in rule"));
  } else if (uncorrelated !== undefined) {
    const words = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`;
    errors.push(invalidError(`${path}.rule`, text, words));
  }
  return errors;
}

function compileErrors(
  rule: JsonObject,
  text: string,
  { field, prefix }: { field: string; prefix: string },
): FieldError[] {
  const compilation = text === "" ? undefined : compileExpression(text);
  if (compilation === undefined || !("problem" in compilation) || compilation.kind === "unsupported") return [];
  return [invalidError(field, goRuleOf(rule), `${prefix}compilation failed: ${errorText(text, compilation)}`)];
}

function errorText(
  text: string,
  compilation: Extract<ReturnType<typeof compileExpression>, { problem: string }>,
): string {
  const { problem, kind, position = { line: 1, column: 1 } } = compilation;
  const message =
    kind === "syntax"
      ? `Syntax error: ${problem.replace(/^.*?: \d+:\d+: /s, "")}`
      : `undeclared reference to '${problem.replace(/^the function (.*) is not supported$/, "$1")}' (in container '')`;
  const line = text.split("\n")[position.line - 1] ?? "";
  return `ERROR: <input>:${position.line}:${position.column}: ${message}\n | ${line}\n | ${".".repeat(Math.max(0, position.column - 1))}^`;
}

// The server shows a rule as its own type has it.
function goRuleOf(rule: JsonObject): JsonObject {
  return {
    Rule: rule["rule"] ?? "",
    Message: rule["message"] ?? "",
    MessageExpression: rule["messageExpression"] ?? "",
    Reason: rule["reason"] ?? null,
    FieldPath: rule["fieldPath"] ?? "",
    OptionalOldSelf: rule["optionalOldSelf"] ?? null,
  };
}
