// A path element is kept in its FieldsV1 spelling, made canonical, so that equal elements are equal strings:
// `f:<name>`, `k:<json of the key fields>`, `v:<json>`, `i:<index>`.
import { formatValue } from "../../errors/field-error.js";
import { quote } from "../../errors/quote.js";
import {
  canonicalJson,
  compareText,
  isObject,
  sortedPairs,
  type JsonObject,
  type JsonValue,
  type MemberPair,
} from "../../json.js";

/** One step of a field path, in canonical FieldsV1 spelling. */
export type PathElement = string;

/** The step to a struct field or map key. */
export function fieldElement(name: string): PathElement {
  return `f:${name}`;
}

/** The step to an item of a keyed list; `keys` holds the key fields that the item has. */
export function keyElement(keys: JsonObject): PathElement {
  return `k:${canonicalJson(keys)}`;
}

/** The step to an item of a set. */
export function valueElement(value: JsonValue): PathElement {
  return `v:${canonicalJson(value)}`;
}

/**
 * Makes a FieldsV1 key canonical.
 *
 * Gives undefined for an unknown prefix, which readers skip; throws if the rest does not fit the prefix.
 */
export function parsePathElement(text: string): PathElement | undefined {
  if (text.length < 2 || text[1] !== ":") throw new Error(`unable to parse path element ${quote(text)}`);
  const rest = text.slice(2);
  switch (text[0]) {
    case "f":
      return text;
    case "k": {
      const keys: unknown = JSON.parse(rest);
      if (!isObject(keys)) throw new Error(`unable to parse path element ${quote(text)}: not an object`);
      if (Object.keys(keys).length === 0) throw new Error(`unable to parse path element ${quote(text)}: no keys`);
      return keyElement(keys);
    }
    case "v":
      return valueElement(JSON.parse(rest) as JsonValue);
    case "i":
      if (!/^[+-]?\d+$/.test(rest)) throw new Error(`unable to parse path element ${quote(text)}: not a number`);
      return `i:${Number(rest)}`;
    default:
      return undefined;
  }
}

/** Writes a step as it appears in messages: `.name`, `[port=80,protocol="TCP"]`, `[="value"]`, `[3]`. */
export function pathElementText(element: PathElement): string {
  const rest = element.slice(2);
  switch (element[0]) {
    case "f":
      return `.${rest}`;
    case "k":
      return `[${keyPairs(element)
        .map(([name, value]) => `${name}=${valueText(value)}`)
        .join(",")}]`;
    case "v":
      return `[=${valueText(JSON.parse(rest) as JsonValue)}]`;
    default:
      return `[${rest}]`;
  }
}

// The members of a map stand side by side.
function valueText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(",")}]`;
  if (!isObject(value)) return formatValue(value);
  return sortedPairs(value)
    .map(([name, member]) => `${name}=${valueText(member)}`)
    .join("");
}

/** Orders steps as Kubernetes writes them: fields, keys, values, indices. */
export function comparePathElements(a: PathElement, b: PathElement): number {
  if (a === b) return 0;
  if (a[0] !== b[0]) return "fkvi".indexOf(a[0] as string) - "fkvi".indexOf(b[0] as string);
  switch (a[0]) {
    case "f":
      return compareText(a, b);
    case "k":
      return compareKeys(keyPairs(a), keyPairs(b));
    case "v":
      return compareValues(JSON.parse(a.slice(2)) as JsonValue, JSON.parse(b.slice(2)) as JsonValue);
    default:
      return Number(a.slice(2)) - Number(b.slice(2));
  }
}

/** Orders values: numbers, strings, booleans, lists, maps, null. */
export function compareValues(a: JsonValue, b: JsonValue): number {
  const rank = valueRank(a) - valueRank(b);
  if (rank !== 0) return rank;
  if (typeof a === "number") return a - (b as number);
  if (typeof a === "string") return compareText(a, b as string);
  if (typeof a === "boolean") return Number(a) - Number(b);
  if (Array.isArray(a)) return compareLists(a, b as JsonValue[]);
  if (a === null) return 0;
  return compareKeys(sortedPairs(a), sortedPairs(b as JsonObject));
}

// The same few elements are compared again and again.
const CACHE_LIMIT = 4096;
const parsedKeys = new Map<PathElement, MemberPair[]>();

function keyPairs(element: PathElement): MemberPair[] {
  let pairs = parsedKeys.get(element);
  if (pairs === undefined) {
    pairs = sortedPairs(JSON.parse(element.slice(2)) as JsonObject);
    if (parsedKeys.size >= CACHE_LIMIT) parsedKeys.clear();
    parsedKeys.set(element, pairs);
  }
  return pairs;
}

function compareKeys(a: MemberPair[], b: MemberPair[]): number {
  for (let index = 0; index < a.length && index < b.length; index++) {
    const [nameA, valueA] = a[index] as MemberPair;
    const [nameB, valueB] = b[index] as MemberPair;
    const order = compareText(nameA, nameB) || compareValues(valueA, valueB);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareLists(a: JsonValue[], b: JsonValue[]): number {
  for (let index = 0; index < a.length && index < b.length; index++) {
    const order = compareValues(a[index] as JsonValue, b[index] as JsonValue);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function valueRank(value: JsonValue): number {
  if (value === null) return 5;
  if (Array.isArray(value)) return 3;
  return { number: 0, string: 1, boolean: 2, object: 4 }[typeof value as "number" | "string" | "boolean" | "object"];
}
