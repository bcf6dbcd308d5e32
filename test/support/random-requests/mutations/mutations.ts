// Mutations to unusual values: a part of an object is removed, emptied, duplicated, or replaced by a value of another form, or a rare field is added.
import type { JsonObject, JsonValue } from "#apiserver/json.js";
import { builtinSchemas } from "../../kinds/kind-definitions.js";

const MAX_DEPTH = 8;
/** Lists at a greater depth are empty. */
const MAX_LIST_DEPTH = 3;

const ODD_TEXTS = ["", " ", "A_b", "a/b", "a.b", "*", "-1", "é", "x".repeat(300), "Always", "None", "10.0.0.1", "1Gi"];
const TEXTS = ["a", "b", "x.example.com", ...ODD_TEXTS];
const NUMBERS = [1, 2, -1, 0, 100, 65_536, 2_147_483_648, 1.5];
const KEYS = ["a", "b/c", "-", "x_y", "x".repeat(70)];

/** The keywords of a schema that mutations use. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly properties?: { readonly [name: string]: Schema };
  readonly additionalProperties?: Schema;
  readonly required?: readonly string[];
  readonly allOf?: readonly Schema[];
}

/** Makes choices from a seeded source of random numbers. */
export class Choices {
  readonly below: (count: number) => number;

  constructor(below: (count: number) => number) {
    this.below = below;
  }

  /** Returns true with a probability in percent. */
  often(percent: number): boolean {
    return this.below(100) < percent;
  }

  from<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error("there is nothing to choose from");
    return items[this.below(items.length)] as T;
  }
}

/** Descends from the root at random, changes the value that it reaches, and returns a description of the change. */
export function change(root: JsonObject, rootSchema: Schema, choose: Choices): string {
  let at: JsonValue = root;
  let schema = resolve(rootSchema);
  let path = "";
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const next: Next = Array.isArray(at)
      ? changeList(at, schema, choose)
      : changeObject(at as JsonObject, schema, { choose, isRoot: depth === 0 });
    path += next.step;
    if (next.value === undefined) return `${path} ${next.did}`;
    at = next.value;
    schema = next.schema;
  }
  return `${path} stays`;
}

/** The next step of the path, or the description of the change at its end. */
type Next =
  | { readonly step: string; readonly value: JsonValue; readonly schema: Schema }
  | { readonly step: string; readonly value?: undefined; readonly did: string };

function changeList(list: JsonValue[], { items = {} }: Schema, choose: Choices): Next {
  const ofItem = resolve(items);
  if (list.length === 0) {
    list.push(valueOf(ofItem, 1, choose));
    return { step: "[0]", did: `is ${JSON.stringify(list[0])}` };
  }
  const index = choose.below(list.length);
  const step = `[${index}]`;
  if (choose.often(15)) {
    list.push(structuredClone(list[index] as JsonValue));
    return { step, did: "is there twice" };
  }
  if (choose.often(10)) {
    list.splice(index, 1);
    return { step, did: "is left out" };
  }
  const item = list[index] as JsonValue;
  if (isObject(item) && !choose.often(20)) return { step, value: item, schema: ofItem };
  list[index] = valueOf(ofItem, 1, choose);
  return { step, did: `is ${JSON.stringify(list[index])}` };
}

function changeObject(
  object: JsonObject,
  { properties, additionalProperties }: Schema,
  { choose, isRoot }: { choose: Choices; isRoot: boolean },
): Next {
  const set = (name: string, schema: Schema): Next => {
    const value = valueOf(schema, 1, choose);
    object[name] = value;
    return { step: `.${name}`, did: `is ${JSON.stringify(value)}` };
  };
  if (properties === undefined)
    return set(choose.from([...KEYS, ...Object.keys(object)]), resolve(additionalProperties ?? {}));
  const isFixed = (name: string) =>
    name === "apiVersion" || name === "kind" || (isRoot && (name === "status" || name === "metadata"));
  const names = Object.keys(properties).filter((name) => !isFixed(name));
  if (names.length === 0) return { step: "", did: "stays" };
  const present = names.filter((name) => object[name] !== undefined);
  const isOfPresent = present.length > 0 && choose.often(60);
  const name = choose.from(isOfPresent ? present : names);
  const schema = resolve(properties[name] ?? {});
  const value = object[name];
  if (isOfPresent && isObject(value) && choose.often(80)) return { step: `.${name}`, value, schema };
  if (!isOfPresent || !choose.often(25)) return set(name, schema);
  delete object[name];
  return { step: `.${name}`, did: "is left out" };
}

function isObject(value: JsonValue | undefined): value is JsonObject | JsonValue[] {
  return typeof value === "object" && value !== null;
}

/** Resolves references. */
export function resolve(schema: Schema): Schema {
  const reference = schema.$ref ?? schema.allOf?.[0]?.$ref;
  if (reference === undefined) return schema;
  return resolve(builtinSchemas()[reference.slice(reference.lastIndexOf("/") + 1)] as Schema);
}

/** Returns a value of a type, usually an unusual one. */
export function valueOf(schema: Schema, depth: number, choose: Choices): JsonValue {
  const { type, format, enum: options, items = {}, properties, additionalProperties, required = [] } = schema;
  if (options !== undefined) return choose.from(options);
  if (type === "string" && format === "date-time") return choose.from(["2020-01-01T00:00:00Z", "x"]);
  if (type === "string" && format === "byte") return choose.from(["YQ==", "!"]);
  if (type === "string") return choose.from(TEXTS);
  if (type === "integer" || type === "number") return choose.from(NUMBERS);
  if (type === "boolean") return choose.often(50);
  if (type === "array") {
    const length = depth > MAX_LIST_DEPTH ? 0 : 1 + choose.below(2);
    return Array.from({ length }, () => valueOf(resolve(items), depth + 1, choose));
  }
  if (additionalProperties !== undefined)
    return { [choose.from(KEYS)]: valueOf(resolve(additionalProperties), depth + 1, choose) };
  if (properties === undefined) return choose.from<JsonValue>(["a", 1]);
  const object: JsonObject = {};
  for (const [name, property] of Object.entries(properties))
    if (choose.often(required.includes(name) ? 90 : 25 / (depth + 1)))
      object[name] = valueOf(resolve(property), depth + 1, choose);
  return object;
}
