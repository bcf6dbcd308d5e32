// Patterns of a CRD are RE2, as the API server reads them: no pattern and no text takes more than linear time, whatever V8 would make of it.
import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

/** A compiled pattern. Declared here, so that the compiler reads no types of re2js for an operator. */
export interface Pattern {
  test(text: string): boolean;
  matcher(text: string): Matcher;
}

/** Finds one match after another. */
export interface Matcher {
  find(): boolean;
  /** Returns the current match. */
  group(): string | null;
}

/** Tells whether a text has a match of an RE2 pattern; undefined if RE2 cannot read the pattern. */
export function hasMatch(text: string, pattern: string): boolean | undefined {
  const found = readPattern(pattern);
  return typeof found === "string" ? undefined : found.test(text);
}

/** Returns why RE2 cannot read a pattern; undefined if it can. */
export function findPatternProblem(pattern: string): string | undefined {
  const found = readPattern(pattern);
  return typeof found === "string" ? found : undefined;
}

type Library = { readonly RE2JS: typeof RE2JS };

let library: Library | undefined;
const read = new Map<string, Pattern | string>();

// A schema has few patterns, but a rule may take patterns from the objects that it checks.
const MOST_KEPT = 1000;

/** Returns a pattern ready to match, or why RE2 cannot read it. */
export function readPattern(pattern: string): Pattern | string {
  const known = read.get(pattern);
  if (known !== undefined) return known;
  const found = compile(pattern);
  if (read.size >= MOST_KEPT) read.clear();
  read.set(pattern, found);
  return found;
}

/** Returns a pattern ready to match; throws in Go's words if RE2 cannot read the pattern. */
export function patternOrThrow(pattern: string): Pattern {
  const found = readPattern(pattern);
  if (typeof found === "string") throw new Error(`error parsing regexp: ${found}`);
  return found;
}

function compile(pattern: string): Pattern | string {
  library ??= loadLibrary();
  const odd = classesIn(pattern).find((name) => classOf(name) === undefined);
  if (odd !== undefined) return `invalid character class range: \`\\p{${odd}}\``;
  try {
    return library.RE2JS.compile(
      pattern.replace(CLASS, (text, sign: string, name: string) =>
        name === undefined ? text : `\\${sign}{${name.startsWith("^") ? "^" : ""}${classOf(name) ?? name}}`,
      ),
    );
  } catch (error) {
    return (error as Error).message.replace("error parsing regexp: ", "");
  }
}

/** A class by its name, after what is quoted or escaped: in `\\\\p{L}` none. */
const CLASS = /\\Q[^]*?(?:\\E|$)|\\(?![pP]\{)[^]|\\([pP])\{([^}]*)\}/g;

function classesIn(pattern: string): string[] {
  return [...pattern.matchAll(CLASS)].flatMap(([, , name]) => (name === undefined ? [] : [name]));
}

/** The long names of the general categories. */
const CATEGORIES: { readonly [name: string]: string } = {
  ...{ other: "C", control: "Cc", cntrl: "Cc", format: "Cf", unassigned: "Cn", privateuse: "Co", surrogate: "Cs" },
  ...{ letter: "L", casedletter: "LC", lowercaseletter: "Ll", modifierletter: "Lm", otherletter: "Lo" },
  ...{ titlecaseletter: "Lt", uppercaseletter: "Lu", mark: "M", combiningmark: "M", spacingmark: "Mc" },
  ...{ enclosingmark: "Me", nonspacingmark: "Mn", number: "N", decimalnumber: "Nd", digit: "Nd" },
  ...{ letternumber: "Nl", othernumber: "No", punctuation: "P", punct: "P", connectorpunctuation: "Pc" },
  ...{ dashpunctuation: "Pd", closepunctuation: "Pe", finalpunctuation: "Pf", initialpunctuation: "Pi" },
  ...{ otherpunctuation: "Po", openpunctuation: "Ps", symbol: "S", currencysymbol: "Sc", modifiersymbol: "Sk" },
  ...{ mathsymbol: "Sm", othersymbol: "So", separator: "Z", lineseparator: "Zl", paragraphseparator: "Zp" },
  spaceseparator: "Zs",
};

/**
 * Returns a class as RE2JS names it: a general category, a script or `Any`. Go takes names in any case, with blanks and hyphens (1.25), and not
 * the properties that RE2JS takes besides, such as Emoji.
 */
function classOf(given: string): string | undefined {
  const name = given.replace(/^\^/, "");
  const plain = name.replace(/[\s_-]/g, "").toLowerCase();
  if (plain === "any") return "Any";
  const category = CATEGORIES[plain] ?? plain.charAt(0).toUpperCase() + plain.slice(1);
  if (category.length <= 2 && isClass(`gc=${category}`)) return category;
  const words = name.trim().split(/[\s_-]+/);
  const script = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase()).join("_");
  return isClass(`Script=${script}`) ? script : undefined;
}

function isClass(name: string): boolean {
  try {
    return new RegExp(`\\p{${name}}`, "u").source !== "";
  } catch {
    return false;
  }
}

// An operator that never checks a pattern does not load the library. A bundler follows `require` alone, which a module of Node lacks.
function loadLibrary(): Library {
  return (typeof require === "function" ? require("re2js") : createRequire(import.meta.url)("re2js")) as Library;
}
