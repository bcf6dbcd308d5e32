import { quote } from "./go-format.js";

/** Returns the error of Go's JSON parser for invalid JSON, which Kubernetes passes on to clients; "" if the JSON is valid. */
export function jsonSyntaxError(body: Buffer): string {
  // Go's parser works on bytes.
  const text = body.toString("latin1");
  try {
    const end = skipSpace(text, skipValue(text, 0));
    return end < text.length ? unexpected(text, end, "after top-level value") : "";
  } catch (error) {
    if (error instanceof Misplaced) return error.message;
    throw error;
  }
}

class Misplaced extends Error {}

const LITERALS: Record<string, string> = { t: "true", f: "false", n: "null" };
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Returns the end of the value that begins at `start`. */
function skipValue(text: string, start: number): number {
  const at = skipSpace(text, start);
  const first = characterAt(text, at);
  if (first === "{") return skipMembers(text, at);
  if (first === "[") return skipItems(text, at);
  if (first === '"') return skipString(text, at);
  const literal = LITERALS[first];
  if (literal !== undefined) return skipLiteral(text, at, literal);
  NUMBER.lastIndex = at;
  if (!NUMBER.test(text)) throw misplaced(text, at, "looking for beginning of value");
  return NUMBER.lastIndex;
}

function skipMembers(text: string, start: number): number {
  let at = skipSpace(text, start + 1);
  if (characterAt(text, at) === "}") return at + 1;
  for (;;) {
    if (characterAt(text, at) !== '"') throw misplaced(text, at, "looking for beginning of object key string");
    at = skipSpace(text, skipString(text, at));
    if (characterAt(text, at) !== ":") throw misplaced(text, at, "after object key");
    at = skipSpace(text, skipValue(text, at + 1));
    const next = characterAt(text, at);
    if (next === "}") return at + 1;
    if (next !== ",") throw misplaced(text, at, "after object key:value pair");
    at = skipSpace(text, at + 1);
  }
}

function skipItems(text: string, start: number): number {
  let at = skipSpace(text, start + 1);
  if (characterAt(text, at) === "]") return at + 1;
  for (;;) {
    at = skipSpace(text, skipValue(text, at));
    const next = characterAt(text, at);
    if (next === "]") return at + 1;
    if (next !== ",") throw misplaced(text, at, "after array element");
    at++;
  }
}

function skipString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    const character = characterAt(text, at);
    if (character === '"') return at + 1;
    if (character < " ") throw misplaced(text, at, "in string literal");
    if (character !== "\\") continue;
    at++;
    const escaped = characterAt(text, at);
    if (!'"\\/bfnrtu'.includes(escaped)) throw misplaced(text, at, "in string escape code");
  }
}

function skipLiteral(text: string, start: number, literal: string): number {
  for (let index = 1; index < literal.length; index++) {
    if (characterAt(text, start + index) === literal[index]) continue;
    throw misplaced(text, start + index, `in literal ${literal} (expecting '${literal[index]}')`);
  }
  return start + literal.length;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && " \t\r\n".includes(text[at] as string)) at++;
  return at;
}

function characterAt(text: string, at: number): string {
  const character = text[at];
  if (character === undefined) throw new Misplaced("unexpected end of JSON input");
  return character;
}

function misplaced(text: string, at: number, where: string): Misplaced {
  return new Misplaced(unexpected(text, at, where));
}

function unexpected(text: string, at: number, where: string): string {
  const character = quote(text[at] ?? "")
    .slice(1, -1)
    .replace('\\"', '"')
    .replace("'", "\\'");
  return `invalid character '${character}' ${where}`;
}

// The Go scheme that Kubernetes names in these errors.
const SCHEME = 'scheme "pkg/runtime/scheme.go:111"';

/** Returns the error for a kind that is not registered in a version. */
export function unregisteredKind(kind: string, apiVersion: string): string {
  return `no kind ${quote(kind)} is registered for version ${quote(apiVersion)} in ${SCHEME}`;
}

/** Returns the error for a Go type, such as `v1.Scale`, that is not registered. */
export function unregisteredType(goType: string): string {
  return `no kind is registered for the type ${goType} in ${SCHEME}`;
}

type BodyFormat = "json" | "yaml" | "protobuf";

/** A body that cannot be parsed. The messages resemble those of Kubernetes' parsers. */
export class BodySyntaxError extends Error {
  override readonly name = "BodySyntaxError";
  readonly format: BodyFormat;

  constructor(message: string, format: BodyFormat = "json") {
    super(message);
    this.format = format;
  }
}
