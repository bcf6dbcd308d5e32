// Compiles expressions for the evaluator, whose functions are replaced or extended where the API server differs from it.
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

/** What an expression sees, by the names of its variables: `self` and `oldSelf` of a rule, `object` and others of a policy. */
export type Bindings = { readonly [name: string]: CelInput };

/** What came of an evaluation; `budget` means that it cost too much. */
type Outcome =
  | { readonly kind: "value"; readonly value: CelValue; readonly cost: number }
  | { readonly kind: "error" | "budget"; readonly message: string; readonly cost: number };

/** An expression that can be evaluated. */
interface CompiledExpression {
  /** Whether the expression needs an old object, which there is at an update alone. */
  readonly usesOldSelf: boolean;
  /** Evaluates the expression; a cost beyond the budget ends it. */
  evaluate(bindings: Bindings, budget: number): Outcome;
  /** Evaluates the expression as a part of another one, whose budget pays for it. Throws what fails. */
  evaluateInside(bindings: Bindings): CelValue;
}

/** What compiling an expression came to: if `problem` is there, the expression cannot be evaluated. */
export type Compilation =
  | { readonly expression: CompiledExpression }
  | {
      readonly problem: string;
      /** Whether the evaluator reads the expression. What it does not may still be one of CEL. */
      readonly isRead: boolean;
    };

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

// The words of cel-go, which users of Kubernetes know.
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
  if (error instanceof RangeError) return { problem: "it is nested too deeply", isRead: false };
  const message = (error as Error).message.replace(/^<input>:/, "");
  return { problem: `it is no expression that the evaluator reads: ${message}`, isRead: false };
}

let environment: ReturnType<typeof celEnv> | undefined;

/** Returns the functions that expressions can call: those of CEL, of its extension for strings, and Kubernetes' own. */
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
