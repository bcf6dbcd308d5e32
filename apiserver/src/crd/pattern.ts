const POSIX_CLASSES: Record<string, string> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  ascii: "\\x00-\\x7F",
  blank: "\\t ",
  cntrl: "\\x00-\\x1F\\x7F",
  digit: "0-9",
  graph: "!-~",
  lower: "a-z",
  print: " -~",
  punct: "!-\\/:-@\\[-`{-~",
  space: "\\t\\n\\v\\f\\r ",
  upper: "A-Z",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f",
};

const compiled = new Map<string, RegExp | undefined>();

/** Compiles a pattern of Go's syntax (RE2); gives undefined if it cannot be understood. */
export function compilePattern(pattern: string): RegExp | undefined {
  if (!compiled.has(pattern)) compiled.set(pattern, compile(pattern));
  return compiled.get(pattern);
}

function compile(pattern: string): RegExp | undefined {
  const [, letters = ""] = /^\(\?([ims]+)\)/.exec(pattern) ?? [];
  const body = (letters === "" ? pattern : pattern.slice(letters.length + 3))
    .replace(/\[:([a-z]+):\]/g, (whole, name: string) => POSIX_CLASSES[name] ?? whole)
    .replace(/\(\?P</g, "(?<")
    .replace(/\\A/g, "^")
    .replace(/\\z/g, "$")
    .replace(/\\p([A-Z])/g, "\\p{$1}")
    .replace(/\\Q(.*?)(\\E|$)/g, (_, literal: string) => literal.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  // With "u" characters are code points, as in Go, but needless escapes are errors, which they are not in Go.
  return tryCompile(body, `${letters}u`) ?? tryCompile(body, letters);
}

function tryCompile(body: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(body, flags);
  } catch {
    // The caller tries another way, or treats the pattern as unusable.
    return undefined;
  }
}
