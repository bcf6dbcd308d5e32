// Preserves integers beyond 2^53. Objects are processed with the nearest JavaScript numbers; the exact integers are restored in the JSON text, by
// their path or, if it has changed, by their value.
import { exactJson, int64Number, mayHaveLongIntegers, parseExactJson } from "@gen-operator/schema";
import { type JsonObject, type JsonValue, isObject, setMember } from "./json.js";

/** The path to a value. */
export type Steps = readonly (string | number)[];

interface Entry {
  readonly steps: Steps;
  readonly value: bigint;
}

/** The int64 values of a JSON or YAML text that JavaScript cannot represent exactly. */
export class LongIntegers {
  readonly #entries: readonly Entry[];
  readonly #byPlace: ReadonlyMap<string, bigint>;
  readonly #byNumber = new Map<number, bigint>();

  private constructor(entries: readonly Entry[]) {
    this.#entries = entries;
    this.#byPlace = new Map(entries.map(({ steps, value }) => [keyOf(steps), value]));
    for (const { value } of entries) {
      const number = int64Number(value);
      if (!this.#byNumber.has(number)) this.#byNumber.set(number, value);
    }
  }

  /** Collects such integers from the bigints in a value; undefined if there are none. */
  static in(exact: unknown): LongIntegers | undefined {
    const entries: Entry[] = [];
    const visit = (value: unknown, steps: Steps): void => {
      if (typeof value === "bigint" && isLong(Number(value)) && BigInt.asIntN(64, value) === value)
        entries.push({ steps, value });
      else if (Array.isArray(value)) value.forEach((item, index) => visit(item, [...steps, index]));
      else if (typeof value === "object" && value !== null)
        for (const [name, member] of Object.entries(value)) visit(member, [...steps, name]);
    };
    visit(exact, []);
    return LongIntegers.#of(entries);
  }

  /** Collects such integers from a JSON text; undefined if there are none. */
  static inJson(json: string): LongIntegers | undefined {
    return mayHaveLongIntegers(json) ? LongIntegers.in(parseExactJson(json)) : undefined;
  }

  static #of(entries: readonly Entry[]): LongIntegers | undefined {
    return entries.length === 0 ? undefined : new LongIntegers(entries);
  }

  /** Returns the integers with their paths in another value. An integer for whose path `placeOf` returns undefined is found by its value only. */
  placed(placeOf: (steps: Steps) => Steps | undefined): LongIntegers | undefined {
    return LongIntegers.#of(this.#entries.map(({ steps, value }) => ({ steps: placeOf(steps) ?? NOWHERE, value })));
  }

  /** Replaces rounded integers in a value, in place, with numbers within the range of int64. */
  settle(value: JsonValue): void {
    for (const { steps, value: integer } of this.#entries) {
      if (isObject(value) && isFloat(value, steps)) continue;
      const holder = steps
        .slice(0, -1)
        .reduce<unknown>((at, step) => (at as { [step: string | number]: unknown })[step], value);
      const last = steps.at(-1);
      if (Array.isArray(holder)) holder[last as number] = int64Number(integer);
      else if (isObject(holder as JsonValue)) setMember(holder as JsonObject, String(last), int64Number(integer));
    }
  }

  /** Returns the integer at a path if it rounds to `number`. */
  at(key: string, number: number): bigint | undefined {
    const value = this.#byPlace.get(key);
    return value !== undefined && int64Number(value) === number ? value : undefined;
  }

  /** Returns an integer that rounds to `number`. */
  like(number: number): bigint | undefined {
    return this.#byNumber.get(number);
  }

  /** Reports whether both contain the same integers at the same paths. */
  equals(other: LongIntegers | undefined): boolean {
    if (other === undefined || other.#byPlace.size !== this.#byPlace.size) return false;
    return [...this.#byPlace].every(([key, value]) => other.#byPlace.get(key) === value);
  }
}

const NOWHERE: Steps = ["\u0000"];

/** Parses the JSON of an object. Long integers become numbers within the range of int64. */
export function parseRounded(json: string): JsonObject {
  const value = JSON.parse(json) as JsonObject;
  LongIntegers.inJson(json)?.settle(value);
  return value;
}

/** Returns a copy of an object with its long integers as bigints, from the first source that has them. */
export function withLongIntegers(object: JsonObject, sources: readonly LongIntegers[]): JsonObject {
  const restored = (number: number, steps: Steps): bigint | number => {
    if (isFloat(object, steps)) return number;
    const key = keyOf(steps);
    for (const source of sources) {
      const value = source.at(key, number);
      if (value !== undefined) return value;
    }
    for (const source of sources) {
      const value = source.like(number);
      if (value !== undefined) return value;
    }
    return number;
  };
  const visit = (value: JsonValue, steps: Steps): unknown => {
    if (typeof value === "number") return isLong(value) ? restored(value, steps) : value;
    if (Array.isArray(value)) return value.map((item, index) => visit(item, [...steps, index]));
    if (!isObject(value)) return value;
    const copy: JsonObject = {};
    for (const [name, member] of Object.entries(value))
      setMember(copy, name, visit(member, [...steps, name]) as JsonValue);
    return copy;
  };
  return visit(object, []) as JsonObject;
}

/** Returns an object as JSON with its exact integers. */
export function exactTextOf(object: JsonObject, sources: readonly LongIntegers[]): string {
  return exactJson(withLongIntegers(object, sources));
}

/**
 * Returns the integers in the defaults of a CustomResourceDefinition, with their paths in its custom resources. Those inside of lists have no such
 * path.
 */
export function integersOfDefaults(definition: LongIntegers): LongIntegers | undefined {
  return definition.placed((steps) => {
    const [spec, versions, , schema, root, ...inside] = steps;
    if (spec !== "spec" || versions !== "versions" || schema !== "schema" || root !== "openAPIV3Schema")
      return undefined;
    const place: (string | number)[] = [];
    for (let at = 0; at < inside.length; at++) {
      const step = inside[at];
      if (step === "default") return [...place, ...inside.slice(at + 1)];
      if (step !== "properties") return undefined;
      place.push(inside[++at] as string | number);
    }
    return undefined;
  });
}

function isLong(number: number): boolean {
  return Number.isInteger(number) && !Number.isSafeInteger(number);
}

function keyOf(steps: Steps): string {
  return steps.join("\u0000");
}

const OF_NAMES: ReadonlySet<unknown> = new Set(["properties", "patternProperties", "definitions", "dependencies"]);
const OF_VALUES: ReadonlySet<unknown> = new Set(["default", "enum", "example"]);
const OF_FLOATS: ReadonlySet<unknown> = new Set(["minimum", "maximum", "multipleOf"]);

/** Reports whether Kubernetes stores a float at a path: the limits in the schema of a CustomResourceDefinition. */
function isFloat(object: JsonObject, steps: Steps): boolean {
  if (object["kind"] !== "CustomResourceDefinition" || !OF_FLOATS.has(steps.at(-1))) return false;
  // The path starts with spec.versions[].schema.openAPIV3Schema.
  for (let at = 5; at < steps.length; at++) {
    if (OF_VALUES.has(steps[at])) return false;
    if (OF_NAMES.has(steps[at])) at++;
  }
  return true;
}

// The literals of integers that a body writes as floats. Go's decoders distinguish 1.0 from 1, JavaScript does not: `1.0` is invalid for an integer
// field of a built-in kind.

const textsOf = new WeakMap<object, Map<string | number, string>>();

// A quick test before the whole body is scanned. It also matches inside of strings.
const MAY_HAVE_FLOAT = /[:[,\s]-?\d+(?:\.\d+|\.?\d*[eE][+-]?\d+)\s*[,\]}]/;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARK = `\u0000${crypto.randomUUID()}:`;

/** Parses JSON. The literals of integers that are written as floats are recorded with the object or list that contains them. */
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

/** Returns the recorded literals of an object or list, by key or index; undefined if there are none. */
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
