// Patterns of CRDs are matched as RE2, as in the API server. RE2 takes linear time for all patterns and texts, unlike the regular expressions of V8.
import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

/** A compiled pattern. The type is declared here so that compiling an operator does not require the types of re2js. */
export interface Pattern {
  test(text: string): boolean;
  matcher(text: string): Matcher;
}

/** Finds successive matches. */
export interface Matcher {
  find(): boolean;
  group(): string | null;
}

/** Tests whether a text contains a match of an RE2 pattern; returns undefined if the pattern is invalid. */
export function hasMatch(text: string, pattern: string): boolean | undefined {
  const found = readPattern(pattern);
  return typeof found === "string" ? undefined : found.test(text);
}

/** Returns why an RE2 pattern is invalid; undefined if it is valid. */
export function findPatternProblem(pattern: string): string | undefined {
  const found = readPattern(pattern);
  return typeof found === "string" ? found : undefined;
}

type Library = { readonly RE2JS: typeof RE2JS };

let library: Library | undefined;
const read = new Map<string, Pattern | string>();

// A schema has few patterns, but rules can also read patterns from the validated objects, so the cache is bounded.
const MOST_KEPT = 1000;

/** Compiles an RE2 pattern; returns an error message if it is invalid. */
export function readPattern(pattern: string): Pattern | string {
  const known = read.get(pattern);
  if (known !== undefined) return known;
  const found = compile(pattern);
  if (read.size >= MOST_KEPT) read.clear();
  read.set(pattern, found);
  return found;
}

/** Compiles an RE2 pattern; throws Go's error message if it is invalid. */
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

/** A Unicode class such as `\p{L}`. Quoted and escaped text matches first, so that `\\\\p{L}` contains no class. */
const CLASS = /\\Q[^]*?(?:\\E|$)|\\(?![pP]\{)[^]|\\([pP])\{([^}]*)\}/g;

function classesIn(pattern: string): string[] {
  return [...pattern.matchAll(CLASS)].flatMap(([, , name]) => (name === undefined ? [] : [name]));
}

/** The long names of the Unicode general categories. */
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
 * Returns the name of a class in RE2JS: a general category, a script, or `Any`. Go 1.25 ignores case, spaces, underscores, and hyphens in names, and
 * rejects other properties that RE2JS supports, such as Emoji.
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

// Load re2js only if a pattern is used. Bundlers resolve only calls of `require`, which is undefined in an ES module of Node.js.
function loadLibrary(): Library {
  return (typeof require === "function" ? require("re2js") : createRequire(import.meta.url)("re2js")) as Library;
}
