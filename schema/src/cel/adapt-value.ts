// Converts JSON values to CEL values according to their schema, as UnstructuredToVal of k8s.io/apiserver/pkg/cel/common does.
import type { celList } from "@bufbuild/cel";
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { followRef, type Definitions, type Schema } from "../values/schema.js";
import { bigintOf, isJsonObject } from "../json/json.js";
import { escapeName, isPlainlyNamed, resourceFields } from "./fields.js";
import { setKey, setMerging, setUnknown } from "./equality.js";
import { loadLibrary } from "./library.js";

/** A JavaScript value that the CEL evaluator accepts as input. */
export type CelInput = Exclude<Parameters<typeof celList>[0], { readonly add: unknown }>[number];

interface Known {
  readonly schema: Schema;
  readonly isResource: boolean;
  readonly adapted: CelInput | undefined;
}

/** Returns the error that kube-apiserver reports if a value does not have the type of its schema; undefined if it has. */
export function misfitText(value: unknown, schema: Schema): string | undefined {
  const { type = "" } = schema;
  if (schema["x-kubernetes-int-or-string"] === true || value === null) return undefined;
  const isFit = FITTING[type];
  if (isFit === undefined || isFit(value)) return undefined;
  const [article, expected] = EXPECTED[type] ?? ["", ""];
  if (article !== "") return `invalid data, expected ${article} ${expected} for the provided schema with type=${type}`;
  return `invalid data, expected ${expected}, got ${goTypeOf(value)}`;
}

const FITTING: { readonly [type: string]: (value: unknown) => boolean } = {
  object: isJsonObject,
  array: Array.isArray,
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  integer: (value) => typeof value === "number" && Number.isInteger(value),
  number: (value) => typeof value === "number",
};

const EXPECTED: { readonly [type: string]: readonly [article: string, expected: string] } = {
  object: ["a", "map"],
  array: ["an", "array"],
  string: ["", "string"],
  boolean: ["", "bool"],
  integer: ["", "int"],
  number: ["", "float"],
};

function goTypeOf(value: unknown): string {
  if (Array.isArray(value)) return "[]interface {}";
  if (isJsonObject(value)) return "map[string]interface {}";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : "string";
}

/** Converts values for validation rules. The converted value of an object or list is cached, so that all rules share it. */
export class ValueAdapter {
  readonly #definitions: Definitions;
  readonly #known = new WeakMap<object, Known>();

  constructor(definitions: Definitions) {
    this.#definitions = definitions;
  }

  /**
   * Converts a value to CEL; returns undefined if its schema does not describe it well enough.
   *
   * The apiVersion, kind, and names of a resource are always visible to rules, even if the schema does not declare them.
   */
  adapt(
    value: unknown,
    given: Schema,
    isResource = given["x-kubernetes-embedded-resource"] === true,
  ): CelInput | undefined {
    const schema = followRef(given, this.#definitions);
    if (typeof value !== "object" || value === null) return adaptScalar(value, schema);
    const known = this.#known.get(value);
    if (known?.schema === schema && known.isResource === isResource) return known.adapted;
    const adapted = Array.isArray(value) ? this.#list(value, schema) : this.#object(value, schema, isResource);
    this.#known.set(value, { schema, isResource, adapted });
    return adapted;
  }

  #list(items: readonly unknown[], { items: schema, ...list }: Schema): CelInput | undefined {
    if (schema === undefined) return undefined;
    const adapted = items.map((item) => this.adapt(item ?? null, schema));
    if (adapted.includes(undefined)) return undefined;
    const made = loadLibrary().celList(adapted as CelInput[]);
    const type = list["x-kubernetes-list-type"];
    if (type === "set" || type === "map") setMerging(made, type);
    const keys = list["x-kubernetes-list-map-keys"] ?? [];
    if (type === "map")
      items.forEach((item, index) => {
        const key = isJsonObject(item) ? JSON.stringify(keys.map((name) => item[name])) : undefined;
        if (key !== undefined) setKey(adapted[index] as object, key);
      });
    return made;
  }

  #object(value: object, schema: Schema, isResource: boolean): CelInput | undefined {
    const { properties, additionalProperties } = schema;
    const fields = isResource ? resourceFields(properties) : properties;
    const values = typeof additionalProperties === "object" ? additionalProperties : undefined;
    if (!isJsonObject(value)) return undefined;
    if (fields === undefined && values === undefined && schema["x-kubernetes-preserve-unknown-fields"] !== true)
      return undefined;
    const entries = new Map<string, CelInput>();
    const unknown = new Map<string, unknown>();
    for (const [name, member] of Object.entries(value)) {
      if (values === undefined && !Object.hasOwn(fields ?? {}, name)) unknown.set(name, member);
      const inner = fields === undefined ? values : Object.hasOwn(fields, name) ? fields[name] : undefined;
      // A null field counts as absent; a null map value does not.
      if (inner === undefined || member === undefined || (fields !== undefined && member === null)) continue;
      const key = fields === undefined ? name : escapeName(name);
      const adapted = this.adapt(member, inner);
      if (key !== undefined && adapted !== undefined) entries.set(key, adapted);
      if (values === undefined && adapted === undefined) unknown.set(name, member);
      if (fields !== undefined && isPlainlyNamed(name) && adapted !== undefined) entries.set(name, adapted);
    }
    const made = loadLibrary().celMap(entries);
    setUnknown(made, unknown);
    return made;
  }
}

function adaptScalar(value: unknown, schema: Schema): CelInput | undefined {
  if (value === null) return null;
  if (typeof value === "boolean") return value;
  if (typeof value === "number") return adaptNumber(value, schema);
  if (typeof value !== "string") return undefined;
  if (schema.type !== "string") return schema["x-kubernetes-int-or-string"] === true ? value : undefined;
  switch (schema.format) {
    case "byte":
      return decodeBase64(value);
    case "duration":
      return parseDuration(value);
    case "date":
    case "date-time":
      return parseTime(value);
    default:
      return value;
  }
}

function adaptNumber(value: number, { type, ...schema }: Schema): CelInput | undefined {
  if (type === "number") return value;
  return type === "integer" || schema["x-kubernetes-int-or-string"] === true ? bigintOf(value) : undefined;
}

const SECOND = 1_000_000_000n;
const TIME = /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})?)?$/;
const PART = /(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-zµ\u03bc]+)/g;

// Durations of the units in nanoseconds. The patterns match prefixes, so they also accept the long unit names, such as "seconds".
const UNITS: readonly (readonly [pattern: RegExp, nanoseconds: bigint])[] = [
  [/^(ns|nano)/i, 1n],
  [/^(us|µs|\u03bcs|micro)/i, 1_000n],
  [/^(ms|milli)/i, 1_000_000n],
  [/^s/i, SECOND],
  [/^m/i, 60n * SECOND],
  [/^h/i, 3_600n * SECOND],
  [/^d/i, 86_400n * SECOND],
  [/^w/i, 604_800n * SECOND],
];

function decodeBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "base64"));
}

/** Parses a string of format `date` or `date-time`; returns undefined if it is invalid. */
function parseTime(text: string): Timestamp | undefined {
  const [, date, time = "00:00:00", fraction = "", zone = "Z"] = TIME.exec(text) ?? [];
  const milliseconds = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(milliseconds) ? undefined : timeOf(BigInt(milliseconds / 1000), Number(fraction.padEnd(9, "0")));
}

/** Creates a timestamp from seconds since the Unix epoch. */
export function timeOf(seconds: bigint, nanos = 0): Timestamp {
  const { create, TimestampSchema } = loadLibrary();
  return create(TimestampSchema, { seconds, nanos });
}

/** Parses a duration such as `1h30m` or `2 weeks`; returns undefined if it is invalid. */
export function parseDuration(text: string): Duration | undefined {
  const parts = [...text.matchAll(PART)].map(([, count = "", unit = ""]) => nanosecondsOf(count, unit));
  if (parts.includes(undefined) || (parts.length === 0 && Number(text) !== 0)) return undefined;
  const sum = (parts as bigint[]).reduce((total, part) => total + part, 0n) * (text.startsWith("-") ? -1n : 1n);
  const { create, DurationSchema } = loadLibrary();
  return create(DurationSchema, { seconds: sum / SECOND, nanos: Number(sum % SECOND) });
}

function nanosecondsOf(count: string, unit: string): bigint | undefined {
  const nanoseconds = UNITS.find(([pattern]) => pattern.test(unit))?.[1];
  if (nanoseconds === undefined) return undefined;
  const [whole = "", fraction = ""] = count.split(".");
  return BigInt(whole) * nanoseconds + (BigInt(fraction) * nanoseconds) / 10n ** BigInt(fraction.length);
}
