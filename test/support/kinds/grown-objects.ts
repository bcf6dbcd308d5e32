// Random objects of built-in kinds. An API server decides whether they are valid: an object grows by one change at a time, and the caller keeps the
// changes that the server accepts.
import type { JsonObject, JsonValue } from "#apiserver/json.js";
import { builtinSchemas, schemaNameOf } from "./kind-definitions.js";

/** Returns random numbers in [0, 1). */
export type Random = () => number;

/** An object after a change. */
export interface Growth {
  readonly object: JsonObject;
  /** The path of the change, without list indexes. */
  readonly path: string;
}

interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly properties?: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

const QUANTITIES = [
  "1",
  "1000m",
  "0.5",
  "500m",
  "1Gi",
  "1024Mi",
  "1e3",
  "1k",
  "0",
  "2",
  2,
  0.5,
  "1.5Gi",
  "1536Mi",
  "100u",
];
const TIMES = [
  "2026-01-01T00:00:00Z",
  "2026-01-01T01:00:00+01:00",
  "2026-01-01T00:00:00.000000Z",
  "2026-01-01T00:00:00.1Z",
];
const WORDS = [
  "a",
  "b",
  "c1",
  "",
  "a.example.com",
  "/a",
  "example.com/a",
  "10.0.0.1",
  "10.1.0.0/16",
  "Always",
  "Default",
  "true",
  "*",
];
const NUMBERS = [0, 1, 2, 5, 30, 80, 1000, 8080];
const MAX_DEPTH = 5;

/** Returns a deterministic random number generator (mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Creates random changes of objects of a kind. */
export class ObjectGrower {
  readonly #random: Random;
  readonly #schema: Schema;

  constructor(kind: { readonly apiVersion: string; readonly kind: string }, random: Random) {
    this.#random = random;
    const { properties = {}, ...rest } = builtinSchemas()[schemaNameOf(kind.apiVersion, kind.kind)] as Schema;
    const { apiVersion: _apiVersion, kind: _kind, status: _status, ...content } = properties;
    const text: Schema = { type: "object", additionalProperties: { type: "string" } };
    const metadata: Schema = { type: "object", properties: { labels: text, annotations: text } };
    this.#schema = { ...rest, properties: { ...content, metadata } };
  }

  /** Returns a copy of an object with one value added, replaced, or removed. */
  grow(object: JsonObject): Growth {
    const copy = structuredClone(object);
    const path: string[] = [];
    this.#change(copy, this.#schema, path);
    return { object: copy, path: path.join(".") };
  }

  #change(value: JsonObject, schema: Schema, path: string[]): void {
    const { properties, additionalProperties } = resolve(schema);
    const names = properties === undefined ? ["a", "b", "example.com/c"] : Object.keys(properties);
    if (names.length === 0) return;
    const name = this.#oneOf(names);
    path.push(properties === undefined ? "*" : name);
    const other = typeof additionalProperties === "object" ? additionalProperties : {};
    const child = resolve(properties?.[name] ?? other);
    const present = value[name];
    if (present !== undefined && this.#changeWithin(present, child, path)) return;
    if (present !== undefined && path[0] !== "metadata" && this.#random() < 0.2) delete value[name];
    else value[name] = this.#valueOf(child, name, path.length);
  }

  // Usually changes an existing nested value.
  #changeWithin(value: JsonValue, schema: Schema, path: string[]): boolean {
    if (this.#random() < 0.1) return false;
    if (isRecord(value) && (schema.properties !== undefined || schema.additionalProperties !== undefined)) {
      this.#change(value, schema, path);
      return true;
    }
    if (!Array.isArray(value) || value.length === 0 || schema.items === undefined) return false;
    const items = resolve(schema.items);
    const index = Math.floor(this.#random() * (value.length + 0.3));
    const item = value[index];
    if (item === undefined) value.push(this.#valueOf(items, "", path.length));
    else if (isRecord(item)) this.#change(item, items, path);
    else value[index] = this.#valueOf(items, "", path.length);
    return true;
  }

  #valueOf(given: Schema, name: string, depth: number): JsonValue {
    const schema = resolve(given);
    const { type, format, properties, additionalProperties, items } = schema;
    if (schema.enum !== undefined) return this.#oneOf(schema.enum);
    if (format === "int-or-string") return this.#oneOf<JsonValue>([0, 1, 80, "80", "50%", "http"]);
    if (schema.oneOf !== undefined) return this.#oneOf<JsonValue>(QUANTITIES);
    if (type === "boolean") return this.#random() < 0.5;
    if (type === "integer" || type === "number") return this.#oneOf(NUMBERS);
    if (type === "string") return this.#textOf(name, format);
    if (type === "array")
      return Array.from({ length: this.#lengthAt(depth) }, () => this.#valueOf(items ?? {}, "", depth + 1));
    if (properties !== undefined) return this.#structOf(schema, depth);
    const value = typeof additionalProperties === "object" ? additionalProperties : { type: "string" };
    const names = ["a", "b", "example.com/c"].slice(0, this.#lengthAt(depth));
    return Object.fromEntries(names.map((key) => [key, this.#valueOf(value, key, depth + 1)]));
  }

  #structOf({ properties = {}, required = [] }: Schema, depth: number): JsonObject {
    const optional = Object.keys(properties).filter((name) => !required.includes(name));
    const chosen = optional.filter(() => depth < MAX_DEPTH && this.#random() < Math.min(0.5, 1.2 / optional.length));
    return Object.fromEntries(
      [...required, ...chosen].map((name) => [name, this.#valueOf(properties[name] ?? {}, name, depth + 1)]),
    );
  }

  #textOf(name: string, format: string | undefined): string {
    if (format === "date-time") return this.#oneOf(TIMES);
    if (format === "byte") return this.#oneOf(["YQ==", "", "YWJj"]);
    if (/image$/.test(name)) return this.#oneOf(["nginx", "nginx:1.29"]);
    if (/path$/i.test(name)) return this.#oneOf(["/a", "/b", "a"]);
    if (/name$/i.test(name)) return this.#oneOf(["a", "b", "c1"]);
    if (/(time|period|duration|timeout)/i.test(name)) return this.#oneOf(["1m0s", "60s", ...TIMES]);
    return this.#oneOf(WORDS);
  }

  #lengthAt(depth: number): number {
    return depth >= MAX_DEPTH ? 0 : Math.floor(this.#random() * 3);
  }

  #oneOf<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)]!;
  }
}

function resolve(schema: Schema): Schema {
  const [only] = schema.allOf ?? [];
  const reference = schema.$ref ?? only?.$ref;
  if (reference === undefined) return schema;
  return builtinSchemas()[reference.replace("#/components/schemas/", "")] as Schema;
}

function isRecord(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
