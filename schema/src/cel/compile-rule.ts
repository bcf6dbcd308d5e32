import type { CelValue } from "@bufbuild/cel";
import type { CelInput } from "./adapt-value.js";
import { TOO_COSTLY, withBudget } from "./budget.js";
import { loadEnvironment } from "./environment.js";
import { loadLibrary, type Library } from "./library.js";
import { prepareExpression } from "./prepare-expression.js";

/** What an expression sees. */
export interface Bindings {
  readonly self: CelInput;
  readonly oldSelf?: CelInput;
}

/** What came of an evaluation; `budget` means that it cost too much. */
export type Outcome =
  | { readonly kind: "value"; readonly value: CelValue; readonly cost: number }
  | { readonly kind: "error" | "budget"; readonly message: string; readonly cost: number };

/** An expression that can be evaluated. */
export interface CompiledExpression {
  /** Whether the expression needs an old object, which there is at an update alone. */
  readonly usesOldSelf: boolean;
  /** Evaluates the expression; a cost beyond the budget ends it. */
  evaluate(bindings: Bindings, budget: number): Outcome;
}

/** What compiling an expression came to: if `problem` is there, the expression cannot be evaluated. */
export type Compilation = { readonly expression: CompiledExpression } | { readonly problem: string };

const compiled = new Map<string, Compilation>();

/** Compiles an expression, once. */
export function compileExpression(text: string): Compilation {
  const known = compiled.get(text);
  if (known !== undefined) return known;
  const compilation = compile(text, loadLibrary());
  compiled.set(text, compilation);
  return compilation;
}

function compile(text: string, { parse, plan, isCelError }: Library): Compilation {
  try {
    const env = loadEnvironment();
    const parsed = parse(text);
    const { problem, usesOldSelf } = prepareExpression(parsed.expr, env);
    if (problem !== undefined) return { problem };
    const evaluate = plan(env, parsed);
    return {
      expression: {
        usesOldSelf,
        evaluate(bindings, budget) {
          const { result, cost } = withBudget(budget, () => evaluate({ ...bindings }));
          if (cost > budget) return { kind: "budget", message: TOO_COSTLY, cost };
          return isCelError(result)
            ? { kind: "error", message: result.message.replace("field not found:", "no such key:"), cost }
            : { kind: "value", value: result, cost };
        },
      },
    };
  } catch (error) {
    return { problem: describe(error) };
  }
}

function describe(error: unknown): string {
  if (error instanceof RangeError) return "it is nested too deeply";
  return `it is no expression that the evaluator reads: ${(error as Error).message.replace(/^<input>:/, "")}`;
}
