// What is refused of every body before anything else looks at it: values that are nested too deeply, and numbers that no float64 holds.
import { MAX_DEPTH } from "@gen-operator/schema";

/** Says that a body is valid JSON or YAML, and holds a number that Kubernetes cannot keep. */
export class NumberRangeError extends Error {
  override readonly name = "NumberRangeError";

  constructor(number: string) {
    super(`json: cannot unmarshal number ${number} into Go value of type float64`);
  }
}

/** Returns the bracket of a JSON text that is one level too deep; undefined if there is none. */
export function tooDeepBracket(json: string): "{" | "[" | undefined {
  // Each level takes two characters.
  if (json.length < 2 * MAX_DEPTH) return undefined;
  let depth = 0;
  for (let at = 0; at < json.length; at++)
    switch (json.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(json, at);
        break;
      case 0x7b: // {
      case 0x5b: // [
        if (++depth > MAX_DEPTH) return json[at] as "{" | "[";
        break;
      case 0x7d: // }
      case 0x5d: // ]
        depth--;
    }
  return undefined;
}

// Three digits of an exponent, or as many digits as the largest number has.
const CAN_OVERFLOW = /[eE]\+?0*[1-9]\d\d|\d{309}/;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Throws a NumberRangeError if a valid JSON text has a number that is too large. */
export function checkNumbers(json: string): void {
  if (!CAN_OVERFLOW.test(json)) return;
  for (const [token] of json.matchAll(TOKEN))
    if (!token.startsWith('"') && !Number.isFinite(Number(token))) throw new NumberRangeError(token);
}

/** Returns where the string that begins at `start` ends; the text has to be valid JSON, or the end of the text is returned. */
export function endOfString(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === 0x22) return at;
    if (code === 0x5c) at++;
  }
  return json.length;
}
