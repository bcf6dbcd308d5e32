import { LOOP_NAMES } from "../expression/macros.js";
import { functionNames, typeNames } from "./declarations.js";

/** The names that an expression can refer to. */
export interface DeclaredNames {
  /** Functions and macros. */
  readonly functions: readonly string[];
  /** Variables of the rule and of its macros, and types. */
  readonly variables: readonly string[];
}

const MACRO_VARIABLES = new RegExp(`\\.(?:${LOOP_NAMES.join("|")})\\(\\s*(\\w+)\\s*,(?:\\s*(\\w+)\\s*,)?`, "g");

/** Lists the names that a rule of a CRD can refer to, to suggest one of them in place of a name that is undeclared. */
export function declaredNames(rule: string): DeclaredNames {
  const ofMacros = [...rule.matchAll(MACRO_VARIABLES)].flatMap(([, first, second]) => [first, second]);
  return {
    functions: [...functionNames(), ...LOOP_NAMES, "has"],
    variables: ["self", "oldSelf", ...ofMacros.filter((name) => name !== undefined), ...typeNames()],
  };
}
