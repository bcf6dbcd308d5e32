// The string functions and string extension of CEL, and the Kubernetes CEL libraries for regular expressions and JSON patches. Each call is charged
// by the lengths of the strings that it reads and creates.
import type { CelFunc, CelList, CelValue } from "@bufbuild/cel";
import { spend, spendMatch, spendText } from "../budget.js";
import type { Library } from "../library.js";
import { kindOf, typesOf, type FunctionsOf } from "../kubernetes-value.js";
import { quote } from "../../strings/escape.js";
import { patternOrThrow, readPattern, type Matcher } from "../../strings/pattern.js";

/** The evaluator's functions that read or create strings, charged to the cost budget, and join, split with a limit, and replace of our own. */
export const paidFunctions: FunctionsOf = (library) => {
  const { celEnv, celFunc, celMethod, strings } = library;
  const { STRING, INT, LIST } = typesOf(library);
  const isText = (type: CelFunc["result"]) => ["string", "bytes", "list"].includes(type.name);
  const found = [...celEnv().funcs, ...strings].filter(
    ({ target, arguments: types }) => types.some(isText) || (target !== undefined && isText(target)),
  );
  const call = (func: CelFunc, target: CelValue | undefined, args: readonly CelValue[]) => {
    pay(library, [...args, ...(target === undefined ? [] : [target])]);
    const result = func.call(0, target, [...args]);
    if (result === undefined || library.isCelError(result)) throw result ?? new Error(`no such overload: ${func.name}`);
    if (typeof result === "string") spendText(result);
    return result;
  };
  return [
    ...found.map((func): CelFunc => {
      const { name, target, arguments: types, result } = func;
      if (target === undefined) return celFunc(name, types, result, (...args) => call(func, undefined, args));
      return celMethod(name, target, types, result, function (...args) {
        return call(func, this, args);
      });
    }),
    celMethod("join", LIST, [], STRING, function () {
      return join(this, "");
    }),
    celMethod("join", LIST, [STRING], STRING, function (separator) {
      return join(this, separator);
    }),
    celMethod("split", STRING, [STRING, INT], LIST, function (separator, most) {
      return split(this, { separator, most: most < 0n ? Infinity : Number(most) });
    }),
    celMethod("replace", STRING, [STRING, STRING], STRING, function (part, by) {
      return replace(this, { part, by, most: Infinity });
    }),
    celMethod("replace", STRING, [STRING, STRING, INT], STRING, function (part, by, most) {
      return replace(this, { part, by, most: most < 0n ? Infinity : Number(most) });
    }),
  ];
};

function pay({ isCelList }: Library, values: readonly CelValue[]): void {
  for (const value of values)
    if (typeof value === "string" || value instanceof Uint8Array) spendText(value);
    else if (isCelList(value)) spend(value.size);
}

// The result may be far longer than the arguments, so charge for it before it is created.
function join(list: CelList, separator: string): string {
  spend(list.size);
  const texts = [...list].map((item) => {
    if (typeof item !== "string")
      throw new Error("no such overload: join of a list with elements that are not strings");
    spendText(item);
    return item;
  });
  spendText({ length: texts.length * separator.length });
  return texts.join(separator);
}

// The last part contains the rest of the string.
function split(text: string, { separator, most }: { readonly separator: string; readonly most: number }): string[] {
  spendText(text);
  if (most === 0) return [];
  const parts = separator === "" ? [...text] : text.split(separator);
  if (parts.length <= most) return parts;
  return [...parts.slice(0, most - 1), parts.slice(most - 1).join(separator)];
}

interface Replacement {
  readonly part: string;
  readonly by: string;
  readonly most: number;
}

function replace(text: string, { part, by, most }: Replacement): string {
  spendText(text);
  const parts = text.split(part);
  const count = Math.min(most, parts.length - 1);
  spendText({ length: text.length + count * by.length });
  if (part === "") return replaceEmpty(text, by, most);
  return parts.map((each, index) => (index === 0 ? each : `${index <= count ? by : part}${each}`)).join("");
}

// As in Go, an empty string matches before each character and at the end.
function replaceEmpty(text: string, by: string, most: number): string {
  const characters = [...text];
  const before = characters.map((character, index) => `${index < most ? by : ""}${character}`).join("");
  return before + (characters.length < most ? by : "");
}

/** `charAt`, `substring`, `indexOf`, and `lastIndexOf`. Positions count characters; error messages are those of cel-go. */
export const positionFunctions: FunctionsOf = (library) => {
  const { celMethod } = library;
  const { STRING, INT } = typesOf(library);
  return [
    celMethod("charAt", STRING, [INT], STRING, function (position) {
      const characters = charactersOf(this);
      checkPosition(characters, position);
      return characters[Number(position)] ?? "";
    }),
    celMethod("substring", STRING, [INT], STRING, function (start) {
      const characters = charactersOf(this);
      checkPosition(characters, start);
      return characters.slice(Number(start)).join("");
    }),
    celMethod("substring", STRING, [INT, INT], STRING, function (start, end) {
      const characters = charactersOf(this);
      if (start > end) throw new Error(`invalid substring range. start: ${start}, end: ${end}`);
      checkPosition(characters, start);
      checkPosition(characters, end);
      return characters.slice(Number(start), Number(end)).join("");
    }),
    celMethod("indexOf", STRING, [STRING, INT], INT, function (part, start) {
      const characters = charactersOf(this);
      if (start < 0n) throw outOfRange(start);
      if (part === "") return start;
      const before = characters.slice(0, Number(start)).join("").length;
      return positionOf(this, start >= BigInt(characters.length) ? -1 : this.indexOf(part, before));
    }),
    celMethod("lastIndexOf", STRING, [STRING, INT], INT, function (part, start) {
      const characters = charactersOf(this);
      if (start < 0n) throw outOfRange(start);
      if (part === "") return start;
      const before = characters.slice(0, Number(start)).join("").length;
      return positionOf(this, start >= BigInt(characters.length) ? -1 : this.lastIndexOf(part, before));
    }),
  ];
};

function charactersOf(text: string): string[] {
  spendText(text);
  return [...text];
}

function positionOf(text: string, index: number): bigint {
  return index === -1 ? -1n : BigInt([...text.slice(0, index)].length);
}

function checkPosition(characters: readonly string[], position: bigint): void {
  if (position < 0n || position > BigInt(characters.length)) throw outOfRange(position);
}

function outOfRange(position: bigint): Error {
  return new Error(`index out of range: ${position}`);
}

/** `format`, which accepts more arguments than verbs. Messages for invalid verbs and arguments are those of cel-go. */
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
  /** The error message of cel-go for other types. */
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

/** `find`, `findAll`, `matches` as a global function, and `jsonpatch.escapeKey`. */
export const textFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod } = library;
  const { BOOL, STRING, INT, LIST } = typesOf(library);
  return [
    celFunc("jsonpatch.escapeKey", [STRING], STRING, (key) => {
      spendText(key);
      return key.replaceAll("~", "~0").replaceAll("/", "~1");
    }),
    celFunc("matches", [STRING, STRING], BOOL, (text, pattern) => matcherOf(text, pattern).find()),
    celMethod("find", STRING, [STRING], STRING, function (pattern) {
      return findAll(this, pattern, 1)[0] ?? "";
    }),
    celMethod("findAll", STRING, [STRING], LIST, function (pattern) {
      return findAll(this, pattern, Infinity);
    }),
    celMethod("findAll", STRING, [STRING, INT], LIST, function (pattern, most) {
      return findAll(this, pattern, most < 0n ? Infinity : Number(most));
    }),
  ];
};

function findAll(text: string, pattern: string, most: number): string[] {
  const compiled = readPattern(pattern);
  if (typeof compiled === "string") throw new Error(`Illegal regex: error parsing regexp: ${compiled}`);
  const matcher = matcherOf(text, pattern);
  const found: string[] = [];
  while (found.length < most && matcher.find()) found.push(matcher.group() ?? "");
  return found;
}

function matcherOf(text: string, pattern: string): Matcher {
  spendMatch(text, pattern);
  return patternOrThrow(pattern).matcher(text);
}
