// CEL expressions of admission policies and match conditions: evaluates them for one request to the API server, and converts the results of mutating
// policies to JSON.
import type { CelMap, CelValue } from "@bufbuild/cel";
import { RULE_LIMIT } from "./budget.js";
import { compileExpression, type Bindings } from "./compile.js";
import { authorizerOf, withSurroundings, type AccessQuestion, type RequestSurroundings } from "./functions/requests.js";
import { loadLibrary } from "./library.js";
import { bigintOf, int64Number, type JsonObject, type JsonValue } from "../json/json.js";
import type { CelInput } from "./adapt-value.js";
import { KIND, kindOf } from "./kubernetes-value.js";
import type { PatchOperation } from "../json/patch.js";

/** The value of an expression, or the error message of a failed evaluation. */
export type ExpressionResult = { readonly value: CelValue } | { readonly error: string };

/**
 * The variables of the expressions as JSON values, and the policy's own `variables`. `requested` is the resource that `authorizer.requestResource`
 * checks.
 */
interface ExpressionInput {
  readonly values: { readonly [name: string]: unknown };
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  readonly requested: Omit<Extract<AccessQuestion, { group: string }>, "user" | "verb">;
  readonly authorize: RequestSurroundings["authorize"];
}

/** Evaluates expressions for one request. They share one cost budget; each variable of the policy is evaluated lazily and at most once. */
export class RequestExpressions implements RequestSurroundings {
  readonly authorize: RequestSurroundings["authorize"];
  readonly #bindings: Bindings;
  readonly #sources: ReadonlyMap<string, string>;
  readonly #variables = new Map<string, CelValue>();
  #left: number;

  constructor({ values, variables = [], requested, authorize }: ExpressionInput, budget: number) {
    const library = loadLibrary();
    const bindings = Object.entries(values).map(([name, value]) => [name, celInputOf(value)]);
    this.#bindings = {
      ...(Object.fromEntries(bindings) as Bindings),
      authorizer: authorizerOf(library, "", { user: "", ...requested }),
    };
    this.#sources = new Map(variables.map(({ name, expression }) => [name, expression]));
    this.authorize = authorize;
    this.#left = budget;
  }

  /** Whether the cost budget is exhausted. */
  get isSpent(): boolean {
    return this.#left < 0;
  }

  evaluate(expression: string): ExpressionResult {
    const compilation = compileExpression(expression);
    if ("problem" in compilation) return { error: `compilation failed: ${compilation.problem}` };
    const { evaluate } = compilation.expression;
    const outcome = withSurroundings(this, () => evaluate(this.#bindings, Math.min(this.#left, RULE_LIMIT)));
    const isTooCostly = outcome.kind === "budget" && this.#left > RULE_LIMIT;
    this.#left = outcome.kind === "budget" && !isTooCostly ? -1 : this.#left - outcome.cost;
    if (isTooCostly)
      return { error: `expression '${expression}' resulted in error: operation cancelled: actual cost limit exceeded` };
    if (outcome.kind === "value") return { value: outcome.value };
    if (outcome.kind === "error") return { error: `expression '${expression}' resulted in error: ${outcome.message}` };
    return {
      error: "validation failed due to running out of cost budget, no further validation rules will be run",
    };
  }

  variable(name: string): CelValue {
    const known = this.#variables.get(name);
    if (known !== undefined) return known;
    const compilation = compileExpression(this.#sources.get(name) ?? "");
    if ("problem" in compilation)
      throw new Error(`composited variable "${name}" fails to compile: ${compilation.problem}`);
    try {
      const value = compilation.expression.evaluateInside(this.#bindings);
      this.#variables.set(name, value);
      return value;
    } catch (error) {
      throw new Error(`composited variable "${name}" fails to evaluate: ${(error as Error).message}`);
    }
  }
}

/** Converts JSON values without a schema. Numbers without a fraction become ints. */
function celInputOf(value: unknown): CelInput {
  if (typeof value === "number") return Number.isInteger(value) ? bigintOf(value) : value;
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) return loadLibrary().celList(value.map(celInputOf));
  if (typeof value !== "object") return value as CelInput;
  const entries = Object.entries(value).map(([name, member]): [string, CelInput] => [name, celInputOf(member)]);
  return loadLibrary().celMap(new Map(entries)) as CelMap;
}

/** Converts the result of an apply configuration expression; throws if the types of the constructed objects do not match their field paths. */
export function applyConfigurationOf(value: CelValue): JsonObject {
  const { isCelMap } = loadLibrary();
  if (!isCelMap(value) || kindOf(value) !== "Object")
    throw new Error("unsupported return type from ApplyConfiguration expression");
  checkTypes(value);
  return objectOf(value);
}

/** Converts the result of a JSON patch expression to patch operations; throws if it is not a list of JSONPatch objects. */
export function jsonPatchOf(value: CelValue): PatchOperation[] {
  const { isCelList, isCelMap } = loadLibrary();
  if (!isCelList(value)) throw new Error("type mismatch: JSONPatchType.expression should evaluate to array");
  return [...value].map((operation) => {
    if (!isCelMap(operation) || kindOf(operation) !== "JSONPatch")
      throw new Error("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch");
    const textAt = (field: string): string => {
      const text = operation.get(field) ?? "";
      if (typeof text !== "string")
        throw new Error(`unexpected type ${typeof text} for JSONPatchType '${field}' field`);
      return text;
    };
    const [from, given] = [textAt("from"), operation.get("value")];
    if (given !== undefined) checkTypes(given);
    return {
      op: textAt("op"),
      path: textAt("path"),
      ...(from === "" ? {} : { from }),
      ...(given === undefined ? {} : { value: jsonOf(given) }),
    };
  });
}

// The type name of a nested object is the type name of its parent followed by the name of the field.
function checkTypes(root: CelValue): void {
  const { isCelMap } = loadLibrary();
  const name = isCelMap(root) ? kindOf(root) : undefined;
  const problems = typeof name === "string" ? typeProblems(root, name) : [];
  if (problems.length > 0) throw new Error(`type mismatch: ${problems.join("\n")}`);
}

function typeProblems(value: CelValue, path: string): string[] {
  const { isCelList, isCelMap } = loadLibrary();
  if (isCelList(value)) return [...value].flatMap((item) => typeProblems(item, path));
  if (!isCelMap(value)) return [];
  const name = kindOf(value);
  const fields = [...value.entries()].filter(([field]) => field !== KIND);
  if (typeof name !== "string") return fields.flatMap(([, member]) => typeProblems(member, path));
  const root = "which matches field name path from root Object type";
  return [
    ...(name === path
      ? []
      : [`unexpected type name ${JSON.stringify(name)}, expected ${JSON.stringify(path)}, ${root}`]),
    ...fields.flatMap(([field, member]) => typeProblems(member, `${path}.${String(field)}`)),
  ];
}

function objectOf(object: CelMap): JsonObject {
  const fields = [...object.entries()].filter(([name]) => name !== KIND);
  return Object.fromEntries(fields.map(([name, value]) => [String(name), fieldOf(value)]));
}

// kube-apiserver does not convert the elements of lists and maps. A list or map nested in one therefore becomes a string that no field accepts.
function fieldOf(value: CelValue, isInside = false): JsonValue {
  const { isCelList, isCelMap } = loadLibrary();
  if (value === null || value instanceof Uint8Array)
    throw new Error(`invalid field value: must not be ${value === null ? "null" : "bytes"}`);
  if (isCelMap(value) && kindOf(value) !== undefined) return objectOf(value);
  if ((isCelList(value) || isCelMap(value)) && isInside) return UNCONVERTED;
  if (isCelList(value)) return [...value].map((item) => fieldOf(item, true));
  if (!isCelMap(value)) return jsonOf(value);
  return Object.fromEntries([...value.entries()].map(([name, member]) => [String(name), fieldOf(member, true)]));
}

// Go's name of the unconverted type. The string is valid neither for a list field nor for a map field.
const UNCONVERTED = "map[ref.Val]ref.Val";

function jsonOf(value: CelValue): JsonValue {
  const { isCelList, isCelMap, isCelUint } = loadLibrary();
  if (value === null || typeof value === "boolean" || typeof value === "string" || typeof value === "number")
    return value;
  if (typeof value === "bigint") return int64Number(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (isCelUint(value)) return Number(value.value);
  if (isCelList(value)) return [...value].map(jsonOf);
  if (!isCelMap(value)) throw new Error("invalid value: its type has no JSON representation");
  const entries = [...value.entries()].filter(([name]) => name !== KIND);
  return Object.fromEntries(entries.map(([name, member]) => [String(name), jsonOf(member)]));
}
