// Checks of literals that kube-apiserver runs after type checking: invalid constant arguments, lists and maps of mixed types, and the arguments of a
// constant format string.
import { findPatternProblem } from "../../strings/pattern.js";
import { OBJECT_LIMIT } from "../budget.js";
import { compileExpression } from "../compile.js";
import { isOptionalMark, textConstant, valuesOf, type Call, type Expression } from "../expression/ast.js";
import { DYN, isSameType, longNameOfType, nameOfType, type CheckedType } from "./types.js";

interface LiteralProblem {
  readonly at: Expression;
  readonly message: string;
}

type Types = ReadonlyMap<Expression, CheckedType>;

/**
 * Checks all literals of an expression, given the types of its subexpressions. Literals in `free`, those in calls of `format`, may have mixed types.
 */
export function checkLiterals(types: Types, free: ReadonlySet<Expression>): LiteralProblem[] {
  return [...types.keys()].flatMap((part) => {
    const { exprKind } = part;
    if (exprKind.case === "callExpr") {
      const format = problemOfFormat(exprKind.value, types);
      const ofFormat = format === undefined ? [] : [{ at: format.at ?? part, message: format.message }];
      return [...checkConstant(exprKind.value), ...ofFormat];
    }
    if (free.has(part)) return [];
    if (exprKind.case === "listExpr") return checkItems(exprKind.value.elements, types).slice(0, 1);
    if (exprKind.case !== "structExpr" || exprKind.value.messageName !== "") return [];
    const keys = exprKind.value.entries.flatMap(({ keyKind }) => (keyKind.case === "mapKey" ? [keyKind.value] : []));
    const names = keys.filter((each) => !isOptionalMark(each));
    return [...checkItems(names, types), ...checkItems(valuesOf(exprKind.value.entries), types)];
  });
}

/** Returns why an invalid constant pattern prevents cel-go from building a program; undefined if the pattern is valid or not constant. */
export function patternProblemOf({ function: name, target, args }: Call): string | undefined {
  const isFunction = name === "matches" && target === undefined;
  const pattern =
    isFunction || name === "find" || name === "findAll" ? textConstant(args[isFunction ? 1 : 0]) : undefined;
  const problem = pattern === undefined ? undefined : findPatternProblem(pattern);
  return problem === undefined ? undefined : `error parsing regexp: ${problem}`;
}

function checkConstant({ function: name, args: [argument] }: Call): LiteralProblem[] {
  const constant = textConstant(argument);
  if (argument === undefined || constant === undefined || !isWrong(name, constant)) return [];
  return [{ at: argument, message: `invalid ${name} argument` }];
}

function isWrong(name: string, value: string): boolean {
  if (name === "matches") return findPatternProblem(value) !== undefined;
  if (name !== "duration" && name !== "timestamp") return false;
  const compilation = compileExpression(`${name}(text)`);
  return "expression" in compilation && compilation.expression.evaluate({ text: value }, OBJECT_LIMIT).kind === "error";
}

function checkItems(items: readonly Expression[], types: Types): LiteralProblem[] {
  const all = items.flatMap((item, index) => {
    const type = types.get(item) ?? DYN;
    const isOptional = isOptionalMark(items[index - 1]) && type.kind === "optional";
    return isOptionalMark(item) ? [] : [{ at: item, type: isOptional ? type.element : type }];
  });
  const wanted = all[0]?.type ?? DYN;
  return all
    .filter(({ type }) => !isSameType(wanted, type))
    .map(({ at, type }) => ({ at, message: `expected type '${nameOfType(wanted)}' but found '${nameOfType(type)}'` }));
}

interface Clause {
  readonly kinds: ReadonlySet<string>;
  readonly words: string;
}

function clause(kinds: string, words: string): Clause {
  return { kinds: new Set(kinds.split(" ")), words };
}

const AS_HEX = clause(
  "int uint string bytes",
  "only integers, byte buffers, and strings can be formatted as hex, was given",
);
const CLAUSES: { readonly [letter: string]: Clause } = {
  s: clause(
    "list map int uint double bool string timestamp bytes duration type null",
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given",
  ),
  d: clause("int uint", "decimal clause can only be used on integers, was given"),
  f: clause("double string", "fixed-point clause can only be used on doubles, was given"),
  e: clause("double string", "scientific clause can only be used on doubles, was given"),
  b: clause("int uint bool", "only integers and bools can be formatted as binary, was given"),
  x: AS_HEX,
  X: AS_HEX,
  o: clause("int uint", "octal clause can only be used on integers, was given"),
};

/** A problem of one argument, or of the whole call if `at` is absent. */
interface FormatProblem {
  readonly at?: Expression;
  readonly message: string;
}

function problemOfFormat({ function: name, target, args }: Call, types: Types): FormatProblem | undefined {
  const text = name === "format" ? textConstant(target) : undefined;
  const list = args[0]?.exprKind;
  if (text === undefined || args.length !== 1 || list?.case !== "listExpr") return undefined;
  const items = list.value.elements.filter((each) => !isOptionalMark(each));
  let asked = 0;
  // A percent sign followed by another percent sign, by an optional precision and a verb, or by the end of the string.
  for (const [, sign, dot, digits = "", letter] of text.matchAll(/%(?:(%)|(\.(\d*))?(.)?)/gsu)) {
    if (sign !== undefined) continue;
    const item = items[asked];
    if (letter === undefined && dot === undefined) return { message: "unexpected end of string" };
    if (item === undefined) return { message: `index ${asked} out of range` };
    asked++;
    const problem = dot === undefined ? undefined : problemOfPrecision(digits, letter);
    if (problem !== undefined)
      return { message: `could not parse formatting clause: error while parsing precision: ${problem}` };
    const wanted = CLAUSES[letter ?? ""];
    if (wanted === undefined) {
      const byte = String.fromCharCode(Buffer.from(letter ?? "")[0] ?? 0);
      return { message: `could not parse formatting clause: unrecognized formatting clause "${byte}"` };
    }
    const wrong = wrongPart(item, wanted, types);
    if (wrong === undefined) continue;
    const given = longNameOfType(types.get(wrong) ?? DYN).replace(/\(.*/, "");
    return { at: wrong, message: `error during formatting: ${wanted.words} ${given}` };
  }
  if (items.length === asked) return undefined;
  return { message: `too many arguments supplied to string.format (expected ${asked}, got ${items.length})` };
}

function problemOfPrecision(digits: string, letter: string | undefined): string | undefined {
  if (letter === undefined) return "could not find end of precision specifier";
  const problem = digits === "" ? "invalid syntax" : Number(digits) < 2 ** 63 ? undefined : "value out of range";
  if (problem === undefined) return undefined;
  return `error while converting precision to integer: strconv.Atoi: parsing "${digits}": ${problem}`;
}

// `%s` formats each element of a list or map literal as a string, so check them one by one.
function wrongPart(item: Expression, wanted: Clause, types: Types): Expression | undefined {
  const { kind } = types.get(item) ?? DYN;
  if (kind !== "dyn" && !wanted.kinds.has(kind)) return item;
  const { exprKind } = item;
  if (wanted !== CLAUSES["s"]) return undefined;
  const keys =
    exprKind.case === "structExpr"
      ? exprKind.value.entries.flatMap(({ keyKind, value }) => [
          ...(keyKind.case === "mapKey" ? [keyKind.value] : []),
          ...(value === undefined ? [] : [value]),
        ])
      : [];
  const parts = exprKind.case === "listExpr" ? exprKind.value.elements : keys;
  for (const part of parts) {
    const wrong = isOptionalMark(part) ? undefined : wrongPart(part, wanted, types);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}
