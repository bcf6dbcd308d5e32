// How a body spells whole numbers. Go's decoders tell 1.0 from 1, and JavaScript does not: `1.0` fits no field of a built-in kind that is an integer.
import { setMember, type JsonObject, type JsonValue } from "./json.js";

const textsOf = new WeakMap<object, Map<string | number, string>>();

// A look at the whole body is needed only if this is in it, in a string or not.
const MAY_HAVE_FLOAT = /[:[,\s]-?\d+(?:\.\d+|\.?\d*[eE][+-]?\d+)\s*[,\]}]/;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARK = `\u0000${crypto.randomUUID()}:`;

/** Parses JSON; whole numbers that are spelled as floats are remembered with the object or list that they are in. */
export function parseJsonWithTexts(json: string): JsonValue {
  const value = JSON.parse(json) as JsonValue;
  if (!MAY_HAVE_FLOAT.test(json)) return value;
  let isFound = false;
  const marked = json.replace(TOKEN, (token) => {
    if (token.startsWith('"') || !/[.eE]/.test(token) || !Number.isInteger(Number(token))) return token;
    isFound = true;
    return JSON.stringify(MARK + token);
  });
  if (!isFound) return value;
  const found = JSON.parse(marked) as JsonValue;
  remember(found);
  return found;
}

/** Returns the spelling of each whole number of an object or list that a body spells as a float; undefined if there is none. */
export function numberTextsIn(holder: object): ReadonlyMap<string | number, string> | undefined {
  return textsOf.get(holder);
}

function remember(holder: JsonValue): void {
  if (typeof holder !== "object" || holder === null) return;
  const entries = Array.isArray(holder) ? holder.entries() : Object.entries(holder);
  for (const [key, value] of entries) {
    if (typeof value !== "string" || !value.startsWith(MARK)) {
      remember(value);
      continue;
    }
    const text = value.slice(MARK.length);
    const texts = textsOf.get(holder) ?? new Map<string | number, string>();
    textsOf.set(holder, texts.set(key, text));
    if (Array.isArray(holder)) holder[key as number] = Number(text);
    else setMember(holder satisfies JsonObject, key as string, Number(text));
  }
}
