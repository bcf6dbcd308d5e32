// Validation rules (`x-kubernetes-validations`) with the messages of kube-apiserver: validation of the rules of a CRD, estimation of their cost from
// the size limits in the schema, and evaluation for an object.
import { hasRules, type Schema } from "../values/schema.js";
import { parseFieldPath, type Step } from "../cel/fields.js";
import type { CheckedExpression, RuleFailure } from "../cel/index.js";
import { checkText, loadCel, type CheckedText } from "./expressions.js";
import {
  duplicateError,
  fieldErrorText,
  forbiddenError,
  internalError,
  invalidError,
  notSupportedError,
  requiredError,
  withoutValue,
  type FieldError,
} from "./field-error.js";
import { arrayAt, isJsonObject, memberOf, stringAt, type JsonObject, type JsonValue } from "../json/json.js";
import { itemSchema, memberSchema, propertiesOf, type StructuralSchema } from "./structural-schema.js";

const REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
const LINE_BREAK = /[\n\r]/;
const LINE_BREAKS = "must not contain line breaks";
const UNTYPED =
  "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
const EMPTY = "must be non-empty if specified";

/** Validates the fields of the rules of a schema. */
export function checkRuleFields(schema: StructuralSchema, path: string): FieldError[] {
  return rulesOf(schema).flatMap((rule, index) => checkFields(rule, { schema, path: rulePath(path, index) }));
}

/** The location of a schema. */
interface Place {
  readonly path: string;
  /** The nearest enclosing list whose items are not correlated with old ones. */
  readonly uncorrelated?: string | undefined;
  readonly isRoot: boolean;
  /** The structural schema, which differs from the schema of the rules in a branch of `allOf`. */
  readonly node: StructuralSchema;
  /** The maximum number of values of the schema in one object; undefined if it is unlimited. */
  readonly copies: number | undefined;
  readonly costs: RuleCosts;
  /** Other errors of the whole schema. Expressions at or around their paths cannot be type-checked. */
  readonly known: readonly FieldError[];
}

/** Validates the expressions of all rules of a structural schema, except in parts that have other errors. */
export function checkExpressions(
  schema: StructuralSchema,
  { path, errors: known }: { path: string; errors: readonly FieldError[] },
): FieldError[] {
  const costs = new RuleCosts();
  const errors = checkBelow(schema, { path, isRoot: true, node: schema, copies: 1, costs, known });
  return [...errors, ...costs.check(path)];
}

function checkBelow(schema: StructuralSchema, place: Place): FieldError[] {
  const { path, uncorrelated, node } = place;
  // Only the items of a `map` list are correlated.
  const isCut = uncorrelated === undefined && node["x-kubernetes-list-type"] !== "map";
  const copies = copiesBelow(node, place.copies);
  const inner = (child: JsonValue | undefined, name: string, more: Partial<Place> = {}): FieldError[] =>
    isJsonObject(child)
      ? checkBelow(child, {
          ...place,
          uncorrelated,
          copies,
          path: `${path}.${name}`,
          isRoot: false,
          node: child,
          ...more,
        })
      : [];
  return [
    ...Object.entries(propertiesOf(schema)).flatMap(([name, child]) =>
      inner(child, `properties[${name}]`, { node: memberSchema(node, name) ?? {} }),
    ),
    ...inner(memberOf(schema, "additionalProperties"), "additionalProperties"),
    ...inner(memberOf(schema, "items"), "items", {
      uncorrelated: isCut ? path : uncorrelated,
      node: itemSchema(node) ?? {},
    }),
    ...(arrayAt(schema, "allOf") ?? []).flatMap((child, index) =>
      inner(child, `allOf[${index}]`, { node, isRoot: place.isRoot, copies: place.copies }),
    ),
    ...(place.known.some(({ field }) => field.startsWith(path)) ? [] : checkOwnRules(schema, place)),
  ];
}

/** Lists the valid expressions of a schema that this package cannot evaluate. Objects are accepted without them. */
export function unevaluatedRules(schema: JsonValue | undefined): string[] {
  if (!isJsonObject(schema)) return [];
  const children = [
    memberOf(schema, "additionalProperties"),
    memberOf(schema, "items"),
    ...Object.values(propertiesOf(schema)),
  ];
  const own = rulesOf(schema).flatMap((rule) => {
    const compilation = loadCel().compileExpression(stringAt(rule, "rule") ?? "");
    return "problem" in compilation ? [`${stringAt(rule, "rule") ?? ""}: ${compilation.problem}`] : [];
  });
  return [...own, ...[...children, ...(arrayAt(schema, "allOf") ?? [])].flatMap(unevaluatedRules)];
}

function checkOwnRules(schema: StructuralSchema, place: Place): FieldError[] {
  const { node, isRoot, path } = place;
  const rules = rulesOf(schema);
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true;
  if (isOpen && rules.length > 0 && loadCel().typeOfSchema(node as Schema, {}, { isRoot }) === undefined)
    return [internalError(`${path}.x-kubernetes-validations`, UNTYPED)];
  return rules.flatMap((rule, index) => checkExpression(rule, { ...place, path: rulePath(path, index) }));
}

function rulesOf(schema: StructuralSchema): JsonObject[] {
  return (arrayAt(schema, "x-kubernetes-validations") ?? []).filter(isJsonObject);
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
  else if (LINE_BREAK.test(message.trim())) errors.push(invalidError(`${path}.message`, message, LINE_BREAKS));
  else if (LINE_BREAK.test(rule.trim()) && message === "")
    errors.push(requiredError(`${path}.message`, "message must be specified if rule contains line breaks"));
  if (expression !== "" && expression.trim() === "")
    errors.push(requiredError(`${path}.messageExpression`, "messageExpression must be non-empty if specified"));
  if (typeof reason === "string" && !REASONS.includes(reason))
    errors.push(notSupportedError(`${path}.reason`, reason, REASONS));
  if (field !== "" && field.trim() === "") errors.push(invalidError(`${path}.fieldPath`, field, EMPTY));
  if (LINE_BREAK.test(field)) errors.push(invalidError(`${path}.fieldPath`, field, LINE_BREAKS));
  if (field !== "" && parseFieldPath(field, schema as Schema) === undefined)
    errors.push(invalidError(`${path}.fieldPath`, field, "must be a valid path"));
  return errors;
}

function checkExpression(rule: JsonObject, place: Place): FieldError[] {
  const { path, uncorrelated, isRoot, node, copies } = place;
  const [text, message] = [stringAt(rule, "rule") ?? "", stringAt(rule, "messageExpression") ?? ""];
  const optional = rule["optionalOldSelf"];
  const self = loadCel().typeOfSchema(node as Schema, {}, { isRoot }) ?? { kind: "dyn" };
  const variables = { self, oldSelf: optional === true ? ({ kind: "optional", element: self } as const) : self };
  const asked = { node, isRoot, copies };
  const wrong = (member: string, words: string) => [invalidError(`${path}.${member}`, goRuleOf(rule), words)];
  const checked = checkText(text, variables);
  const problem = problemOf(checked, "bool", "cel expression");
  const ofRule = "checked" in checked ? checked.checked : undefined;
  const errors: FieldError[] = [];
  if (problem !== undefined) errors.push(...wrong("rule", problem));
  else if (ofRule !== undefined) errors.push(...place.costs.checkRule(`${path}.rule`, ofRule, asked));
  // The messageExpression of an invalid rule is not validated.
  if (problem === undefined && message !== "") {
    const found = checkText(message, variables);
    const words = problemOf(found, "string", "messageExpression");
    if (words !== undefined) errors.push(...wrong("messageExpression", words));
    else if ("checked" in found)
      errors.push(...place.costs.checkMessage(`${path}.messageExpression`, found.checked, asked));
  }
  if ("unread" in checked) return errors;
  if (!(ofRule?.usesOldSelf ?? false)) {
    if (typeof optional === "boolean")
      errors.push(invalidError(`${path}.optionalOldSelf`, optional, "may not be set if oldSelf is not used in rule"));
  } else if (uncorrelated !== undefined) {
    const words = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`;
    errors.push(invalidError(`${path}.rule`, text, words));
  }
  return errors;
}

function problemOf(checked: CheckedText, type: "bool" | "string", name: string): string | undefined {
  const ofMessage = type === "string" ? `${name} ` : "";
  if ("problem" in checked) return `${ofMessage}${checked.problem}`;
  if ("unread" in checked) return undefined;
  if (checked.type !== type) return `${name} must evaluate to a ${type}`;
  const { programProblem } = checked.checked;
  if (programProblem === undefined) return undefined;
  return `${ofMessage || "program "}instantiation failed: ${programProblem}`;
}

// Error messages print a rule as its Go struct.
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

const EXPRESSION_LIMIT = 10_000_000;
const TOTAL_LIMIT = 100_000_000;
const MOST_NAMED = 4;
const UNBOUNDED = 2 ** 64;
const ADVICE =
  "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";

/** The value that a rule validates. */
interface Asked {
  readonly node: JsonObject;
  readonly isRoot: boolean;
  readonly copies: number | undefined;
}

/** Estimates the cost of the rules of a schema, and sums it up. */
class RuleCosts {
  #total = 0;
  readonly #expensive: { readonly path: string; readonly cost: number }[] = [];

  /** Rejects a rule whose cost, multiplied by the number of values in one object, exceeds the limit. */
  checkRule(path: string, rule: CheckedExpression, asked: Asked): FieldError[] {
    const { cost, copies } = costOf(rule, asked);
    return this.#observe(path, "estimated rule cost", copies === 0 ? 0 : Math.min(cost * copies, UNBOUNDED));
  }

  /** Rejects a messageExpression whose cost exceeds the limit. */
  checkMessage(path: string, message: CheckedExpression, asked: Asked): FieldError[] {
    return this.#observe(path, "estimated messageExpression cost", costOf(message, asked).cost);
  }

  /** Rejects rules whose total cost exceeds the limit, and reports the most expensive ones. */
  check(path: string): FieldError[] {
    if (this.#total <= TOTAL_LIMIT) return [];
    const words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
    const total = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    const named = [...this.#expensive].sort((one, other) => other.cost - one.cost).slice(0, MOST_NAMED);
    return [
      ...named.map((each) => forbiddenError(each.path, words)),
      forbiddenError(path, exceeded(total, this.#total, TOTAL_LIMIT)),
    ];
  }

  #observe(path: string, name: string, cost: number): FieldError[] {
    this.#total = Math.min(this.#total + cost, UNBOUNDED);
    if (cost >= TOTAL_LIMIT / 100) this.#expensive.push({ path, cost });
    return cost > EXPRESSION_LIMIT ? [forbiddenError(path, exceeded(name, cost, EXPRESSION_LIMIT))] : [];
  }
}

/** Returns the maximum number of values of a directly nested schema in one object; undefined if it is unlimited. */
function copiesBelow(schema: JsonObject, copies: number | undefined): number | undefined {
  const isMap = schema["type"] === "object" && memberOf(schema, "additionalProperties") !== undefined;
  const most = isMap ? schema["maxProperties"] : schema["type"] === "array" ? schema["maxItems"] : 1;
  return copies === undefined || typeof most !== "number" ? undefined : Math.min(copies * Math.max(0, most), UNBOUNDED);
}

function costOf(checked: CheckedExpression, { node, isRoot, copies }: Asked): { cost: number; copies: number } {
  const { estimateCost, LARGEST_REQUEST, sizedTypeOf } = loadCel();
  const sized = sizedTypeOf(node as Schema, {}, isRoot || node["x-kubernetes-embedded-resource"] === true);
  if (sized === undefined) return { cost: 0, copies: 0 };
  const cost = estimateCost(checked, sized);
  return { cost, copies: copies ?? Math.floor(LARGEST_REQUEST / (sized.minBytes + 1)) };
}

function exceeded(name: string, cost: number, limit: number): string {
  const factor = cost / limit;
  const shown = factor > 100 ? "more than 100x" : factor < 1.5 ? `${factor.toFixed(6)}x` : `${factor.toFixed(1)}x`;
  return `${name} exceeds budget by factor of ${shown} ${ADVICE}`;
}

/** The results of evaluating the rules for an object: errors, and warnings about violations that an update does not change. */
interface RuleFindings {
  readonly errors: FieldError[];
  readonly warnings: string[];
}

const NO_FINDINGS: RuleFindings = { errors: [], warnings: [] };
const NO_MORE = "no further validation rules will be run";
const NOT_CHECKED =
  "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

// If the object has one of these errors, rules could fail for the same reason.
const BLOCKING: ReadonlySet<FieldError["reason"]> = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

/** Evaluates the rules of a schema unless `found` contains errors about the types, sizes, or required fields of the object. */
export function evaluateRules(
  given: StructuralSchema,
  { object, old, found }: { object: JsonObject; old?: JsonObject | undefined; found: readonly FieldError[] },
): RuleFindings {
  const schema = given as Schema;
  if (!hasRules(schema, {})) return NO_FINDINGS;
  if (found.some(({ reason }) => BLOCKING.has(reason)))
    return { errors: [invalidError("", null, NOT_CHECKED)], warnings: [] };
  const failures = loadCel().findFailures({ object, old, schema, definitions: {} });
  return {
    errors: failures.filter(({ isForgiven }) => !isForgiven).map(errorOf),
    warnings: failures.filter(({ isForgiven }) => isForgiven).map((failure) => fieldErrorText(errorOf(failure))),
  };
}

function errorOf(failure: RuleFailure): FieldError {
  const { steps, type, kind, message, rule } = failure;
  const path = pathOf(steps);
  const name = rule.message?.trim() || rule.rule.trim();
  switch (kind) {
    case "broken":
      return brokenError(failure, path);
    case "budget":
      return invalidError(path, type, `validation failed due to running out of cost budget, ${NO_MORE}`);
    case "limit":
      return invalidError(
        path,
        type,
        `'operation cancelled: actual cost limit exceeded': ${NO_MORE} due to call cost exceeds limit for rule: ${name}`,
      );
    default:
      return invalidError(
        path,
        type,
        message.startsWith("no such overload")
          ? `'${message}': call arguments did not match a supported operator, function or macro signature for rule: ${name}`
          : `${message} evaluating rule: ${name}`,
      );
  }
}

function brokenError({ value, type, rule, message }: RuleFailure, field: string): FieldError {
  const isComposed = type === "object" || type === "array";
  switch (rule.reason) {
    case "FieldValueForbidden":
      return forbiddenError(field, message);
    case "FieldValueRequired":
      return requiredError(field, message);
    case "FieldValueDuplicate":
      return isComposed ? withoutValue(field, rule.reason) : duplicateError(field, value as JsonValue);
    default:
      return isComposed
        ? withoutValue(field, "FieldValueInvalid", message)
        : invalidError(field, value as JsonValue, message);
  }
}

function pathOf(steps: readonly Step[]): string {
  return steps.reduce((path, step) => {
    if (step.kind === "field") return path === "" ? step.name : `${path}.${step.name}`;
    return `${path}[${step.kind === "index" ? step.index : step.name}]`;
  }, "");
}
