// Kubernetes' libraries of regular expressions and of JSON patches.
import { patternOrThrow, readPattern, type Matcher } from "../../strings/pattern.js";
import { spendMatch, spendText } from "../budget.js";
import { typesOf, type FunctionsOf } from "../kubernetes-value.js";

/** `find`, `findAll`, `matches` as a function, and `jsonpatch.escapeKey`. */
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
