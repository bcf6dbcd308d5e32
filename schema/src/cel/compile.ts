// Compiles expressions for @bufbuild/cel, with functions replaced or added where the API server behaves differently.
import type { celEnv, CelValue } from "@bufbuild/cel";
import type { CelInput } from "./adapt-value.js";
import { spendMatch, TOO_COSTLY, withBudget } from "./budget.js";
import { loadLibrary, type Library } from "./library.js";
import { withoutOptionalOperators } from "./expression/optional-syntax.js";
import { prepareExpression } from "./expression/prepare-expression.js";
import { patternOrThrow } from "../strings/pattern.js";
import { coreFunctions } from "./functions/core.js";
import { formatFunctions } from "./functions/formats.js";
import { listFunctions, macroFunctions } from "./functions/lists.js";
import { networkFunctions, urlFunctions } from "./functions/network.js";
import { optionalFunctions } from "./functions/optional.js";
import { formatTextFunctions, paidFunctions, positionFunctions, textFunctions } from "./functions/strings.js";
import { quantityFunctions } from "./functions/quantities.js";
import { requestFunctions } from "./functions/requests.js";
import { semverFunctions } from "./functions/semver.js";

/** The variables of an expression by name: `self` and `oldSelf` of a validation rule, `object` and others of a policy. */
export type Bindings = { readonly [name: string]: CelInput };

/** The result of an evaluation. `budget` means that it exceeded the cost limit. */
type Outcome =
  | { readonly kind: "value"; readonly value: CelValue; readonly cost: number }
  | { readonly kind: "error" | "budget"; readonly message: string; readonly cost: number };

interface CompiledExpression {
  /** Whether the expression refers to `oldSelf`, which exists on updates only. */
  readonly usesOldSelf: boolean;
  /** Evaluates the expression. The evaluation is aborted if its cost exceeds the budget. */
  evaluate(bindings: Bindings, budget: number): Outcome;
  /** Evaluates the expression as part of another one, and charges its cost to the budget of that one. Throws evaluation errors. */
  evaluateInside(bindings: Bindings): CelValue;
}

/** A compiled expression, or the reason why the expression cannot be evaluated. */
export type Compilation =
  | { readonly expression: CompiledExpression }
  | {
      readonly problem: string;
      /** Whether the evaluator can parse the expression. It may be valid CEL even if not. */
      readonly isRead: boolean;
    };

const compiled = new Map<string, Compilation>();

/** Compiles an expression. The result is cached. */
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
    const parsed = parse(withoutOptionalOperators(text).text);
    const { problem, usesOldSelf } = prepareExpression(parsed.expr, env);
    if (problem !== undefined) return { problem, isRead: parsed.expr !== undefined };
    const evaluate = plan(env, parsed);
    return {
      expression: {
        usesOldSelf,
        evaluateInside(bindings) {
          const result = evaluate({ ...bindings });
          if (isCelError(result)) throw new Error(messageInGo(result.message));
          return result;
        },
        evaluate(bindings, budget) {
          const { result, cost } = withBudget(budget, () => evaluate({ ...bindings }));
          if (cost > budget) return { kind: "budget", message: TOO_COSTLY, cost };
          return isCelError(result)
            ? { kind: "error", message: messageInGo(result.message), cost }
            : { kind: "value", value: result, cost };
        },
      },
    };
  } catch (error) {
    return problemOf(error);
  }
}

// Error messages of cel-go for those of the evaluator; they are what users of Kubernetes know.
const WORDS: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/^field not found:/, "no such key:"],
  [/^Failed to parse timestamp: .*$/s, "type conversion error from 'string' to 'google.protobuf.Timestamp'"],
  [/^found no matching overload .*$/s, "no such overload"],
  [/^u?int (divide by|modulus by) zero$/, "$1 zero"],
  [/^divide by zero$/, "division by zero"],
  [/^uint overflow .*$/, "unsigned integer overflow"],
  [/^int overflow .*$/, "integer overflow"],
  [/^type mismatch: expected bool.*$/, "no such overload"],
  [/^Invalid time zone specified:/, "unknown time zone"],
  [/^timestamp out of range$/, "timestamp overflow"],
  [/^index (\S+) out of bounds .*$/, "index out of bounds: $1"],
];

function messageInGo(message: string): string {
  return WORDS.reduce((text, [pattern, words]) => text.replace(pattern, words), message);
}

function problemOf(error: unknown): Compilation {
  if (error instanceof RangeError) return { problem: "the expression is nested too deeply", isRead: false };
  const message = (error as Error).message.replace(/^<input>:/, "");
  return { problem: `cannot parse the expression: ${message}`, isRead: false };
}

let environment: ReturnType<typeof celEnv> | undefined;

/** Returns the environment of expressions: the functions of CEL, its string extension, and the Kubernetes CEL libraries. */
function loadEnvironment(): ReturnType<typeof celEnv> {
  return (environment ??= createEnvironment());
}

function createEnvironment(): ReturnType<typeof celEnv> {
  const library = loadLibrary();
  const own = [
    paidFunctions,
    coreFunctions,
    textFunctions,
    positionFunctions,
    formatTextFunctions,
    listFunctions,
    quantityFunctions,
    networkFunctions,
    urlFunctions,
    semverFunctions,
    formatFunctions,
    optionalFunctions,
    macroFunctions,
    requestFunctions,
  ];
  const funcs = own.flatMap((functionsOf) => functionsOf(library));
  return library.celEnv({ funcs, re2: { compile: patternOf } });
}

function patternOf(pattern: string) {
  return {
    test(text: string): boolean {
      spendMatch(text, pattern);
      return patternOrThrow(pattern).test(text);
    },
  };
}
