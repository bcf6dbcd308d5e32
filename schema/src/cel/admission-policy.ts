// Expressions about a request to the API server: of admission policies, and match conditions.
import type { CelMap, CelValue } from "@bufbuild/cel";
import { RULE_LIMIT } from "./budget.js";
import { compileExpression, type Bindings } from "./compile.js";
import { authorizerOf, withSurroundings, type AccessQuestion, type RequestSurroundings } from "./functions/requests.js";
import { loadLibrary } from "./library.js";
import { bigintOf } from "../json/json.js";
import type { CelInput } from "./adapt-value.js";

/** What came of an expression. */
export type ExpressionResult = { readonly value: CelValue } | { readonly error: string };

/** What expressions see, as JSON; `requested` is the resource of the request, which `authorizer.requestResource` asks about. */
export interface ExpressionInput {
  readonly values: { readonly [name: string]: unknown };
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  readonly requested: Omit<Extract<AccessQuestion, { group: string }>, "user" | "verb">;
  readonly authorize: RequestSurroundings["authorize"];
}

/** Evaluates expressions about one request; all of them have one budget, and a variable is evaluated once, when it is needed. */
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

  /** Whether the budget is used up. */
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

/** Returns what an expression sees of JSON without a schema: a number without fraction is an int. */
function celInputOf(value: unknown): CelInput {
  if (typeof value === "number") return Number.isInteger(value) ? bigintOf(value) : value;
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) return loadLibrary().celList(value.map(celInputOf));
  if (typeof value !== "object") return value as CelInput;
  const entries = Object.entries(value).map(([name, member]): [string, CelInput] => [name, celInputOf(member)]);
  return loadLibrary().celMap(new Map(entries)) as CelMap;
}
