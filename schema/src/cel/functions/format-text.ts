// `format` of the extension for texts: what cel-go says of clauses and of values that they cannot take.
import type { CelList, CelValue } from "@bufbuild/cel";
import { quote } from "../../strings/escape.js";
import { spend, spendText } from "../budget.js";
import { kindOf, typesOf, type FunctionsOf } from "../kubernetes-value.js";
import type { Library } from "../library.js";

/** `format`, which takes more values than it has clauses for. */
export const formatTextFunctions: FunctionsOf = (library) => {
  const { celMethod, celList, strings } = library;
  const { STRING, LIST } = typesOf(library);
  const standard = strings.find(({ name }) => name === "format");
  return [
    celMethod("format", STRING, [LIST], STRING, function (values) {
      spendText(this);
      spend(values.size);
      const verbs = verbsOf(this, values);
      verbs.forEach((verb, index) => checkValue(library, verb, values.get(index) as CelValue));
      const used = celList([...values].slice(0, verbs.length) as never[]);
      const result = standard?.call(0, this, [used]);
      if (typeof result !== "string") throw result ?? new Error("no such overload: format");
      spendText(result);
      return result;
    }),
  ];
};

const CLAUSE = /%(?:(\.)(\d*))?(%|[^]|$)/gu;

function verbsOf(text: string, values: CelList): string[] {
  const verbs: string[] = [];
  for (const [, dot, precision = "", verb = ""] of text.matchAll(CLAUSE)) {
    if (verb === "%" && dot === undefined) continue;
    if (verb === "") throw new Error("unexpected end of string");
    if (verbs.length >= values.size) throw new Error(`index ${verbs.length} out of range`);
    if (dot !== undefined && precision === "")
      throw new Error(
        'could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
      );
    if (!Object.hasOwn(TAKERS, verb))
      throw new Error(`could not parse formatting clause: unrecognized formatting clause ${quote(verb)}`);
    verbs.push(verb);
  }
  return verbs;
}

interface Taker {
  /** What cel-go says of other values. */
  readonly words: string;
  readonly types: readonly string[];
}

const DOUBLES = "can only be used on doubles";
const HEX: Taker = {
  words: "only integers, byte buffers, and strings can be formatted as hex",
  types: ["int", "uint", "string", "bytes"],
};
const TAKERS: { readonly [verb: string]: Taker } = {
  s: {
    words:
      "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
    types: [],
  },
  d: { words: "decimal clause can only be used on integers", types: ["int", "uint"] },
  f: { words: `fixed-point clause ${DOUBLES}`, types: ["double"] },
  e: { words: `scientific clause ${DOUBLES}`, types: ["double"] },
  b: { words: "only integers and bools can be formatted as binary", types: ["int", "uint", "bool"] },
  x: HEX,
  X: HEX,
  o: { words: "octal clause can only be used on integers", types: ["int", "uint"] },
};

function checkValue(library: Library, verb: string, value: CelValue): void {
  const { words, types } = TAKERS[verb] as Taker;
  const type = typeNameOf(library, value);
  if (types.length > 0 && !types.includes(type))
    throw new Error(`error during formatting: ${words}, was given ${type}`);
}

function typeNameOf({ isCelMap, celEnv }: Library, value: CelValue): string {
  if (isCelMap(value) && kindOf(value) !== undefined) return String(kindOf(value));
  const type = celEnv().funcs.find("type")?.call(0, undefined, [value]);
  return (type as { name?: string } | undefined)?.name ?? "";
}
