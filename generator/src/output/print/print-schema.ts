import type { Schema } from "@gen-operator/runtime/codegen";
import { reservedWords } from "../../model/reserved-words.js";
import { camelCase, pascalCase } from "../naming.js";
import { constantName, printValue } from "./print-value.js";

/** Prints a schema as an exported constant, after constants for what is in it several times: of large kinds that is most of it. */
export function printSchema(name: string, schema: Schema): string[] {
  const { bySchema, distinct } = findShared(schema, name);
  const partOf = (part: Schema): unknown => {
    const { constant } = bySchema.get(part) ?? {};
    return constant === undefined ? withParts(part, partOf) : constantName(constant);
  };
  const constants = distinct.flatMap(({ schema: each, constant }) =>
    constant === undefined ? [] : [declare(`const ${constant}`, withParts(each, partOf))],
  );
  return [...constants, declare(`export const ${name}`, withParts(schema, partOf))];
}

/** Prints a schema as an exported constant; `definitions` are the names of constants that have those of it. */
export function printSchemaAlone(name: string, schema: Schema, definitions: readonly string[] = []): string {
  const named = definitions.map((each) => [each, constantName(each)] as const);
  return declare(
    `export const ${name}`,
    named.length === 0 ? schema : { ...schema, definitions: Object.fromEntries(named) },
  );
}

function declare(head: string, value: object): string {
  return `${head}: Schema = ${printValue(value, 0, `${head}: Schema = `.length)};`;
}

/** Returns a schema with its parts replaced. */
function withParts(schema: Schema, partOf: (part: Schema) => unknown): object {
  const { properties, items, additionalProperties } = schema;
  const named = Object.entries(properties ?? {}).map(([name, part]) => [name, partOf(part)] as const);
  return {
    ...schema,
    ...(properties === undefined ? {} : { properties: Object.fromEntries(named) }),
    ...(items === undefined ? {} : { items: partOf(items) }),
    ...(typeof additionalProperties === "object" ? { additionalProperties: partOf(additionalProperties) } : {}),
  };
}

/** A schema with all that are equal to it. */
interface SharedSchema {
  readonly schema: Schema;
  /** The field in which it was found first. */
  readonly field: string;
  /** How many were found before. */
  readonly number: number;
  /** How many others have it as a part. */
  count: number;
  /** How long its text is, with constants in it. */
  length: number;
  /** The constant that has it, if that makes the text shorter. */
  constant?: string;
}

/** What is shorter reads better where it stands. */
const SHORT = 80;

/** What a constant costs besides its text and its name. */
const DECLARATION = "const : Schema = ;\n\n".length;

interface SharedSchemas {
  readonly bySchema: ReadonlyMap<Schema, SharedSchema>;
  /** Each once, after its parts. */
  readonly distinct: readonly SharedSchema[];
}

/** Finds the schemas that are equal, and names those that are worth a constant. */
function findShared(root: Schema, rootName: string): SharedSchemas {
  const bySchema = new Map<Schema, SharedSchema>();
  const byContent = new Map<string, SharedSchema>();
  const distinct: SharedSchema[] = [];
  const visit = (schema: Schema, field: string): SharedSchema => {
    const parts = partsOf(schema).map(([name, part]) => visit(part, name ?? field));
    const content = contentOf(schema, (part) => bySchema.get(part)?.number);
    const known = byContent.get(content);
    const shared = known ?? { schema, field, number: distinct.length, count: 0, length: content.length };
    if (known === undefined) {
      distinct.push(shared);
      byContent.set(content, shared);
      for (const part of parts) part.count++;
    }
    bySchema.set(schema, shared);
    return shared;
  };
  visit(root, "");
  const taken = new Set([rootName, "Schema"]);
  for (const shared of distinct) {
    for (const [, part] of partsOf(shared.schema)) {
      const { constant, length } = bySchema.get(part) ?? { length: 0 };
      shared.length += constant?.length ?? length;
    }
    if (shared.count < 2 || shared.length < SHORT) continue;
    const name = constantNameOf(shared.field, taken);
    const gain = (shared.count - 1) * shared.length - shared.count * name.length - DECLARATION;
    if (gain <= 0) continue;
    taken.add(name);
    shared.constant = name;
  }
  return { bySchema, distinct };
}

/** Returns a schema as JSON in which its parts count as the numbers of what they are equal to. */
function contentOf(schema: Schema, numberOf: (part: Schema) => number | undefined): string {
  let content = "";
  for (const [keyword, value] of Object.entries(schema) as [string, unknown][]) {
    content += `${content === "" ? "{" : ","}"${keyword}":`;
    // Of most fields nothing but the type is stated.
    if (keyword === "type") content += `"${value as string}"`;
    else if (!PARTS.has(keyword) || typeof value !== "object") content += JSON.stringify(value);
    else if (keyword !== "properties") content += numberOf(value as Schema);
    else {
      const fields = Object.entries(value as { readonly [name: string]: Schema });
      content += `{${fields.map(([name, part]) => `${JSON.stringify(name)}:${numberOf(part)}`).join()}}`;
    }
  }
  return `${content === "" ? "{" : content}}`;
}

const PARTS: ReadonlySet<string> = new Set(["properties", "items", "additionalProperties"]);

/** Returns the schemas that are parts of one, with the names of the fields that have them. */
function partsOf({ properties, items, additionalProperties }: Schema): (readonly [string | undefined, Schema])[] {
  const parts: (readonly [string | undefined, Schema])[] = properties === undefined ? [] : Object.entries(properties);
  if (items !== undefined) parts.push([undefined, items]);
  if (typeof additionalProperties === "object") parts.push([undefined, additionalProperties]);
  return parts;
}

// The name of a field says more than a number, and stays when other fields come.
function constantNameOf(field: string, taken: ReadonlySet<string>): string {
  const word = camelCase(field) || "part";
  const base = NO_NAMES.has(word) || !/^[a-z]/i.test(word) ? `schema${pascalCase(word)}` : word;
  let name = base;
  for (let number = 2; taken.has(name); number++) name = `${base}${number}`;
  return name;
}

// TypeScript lets no module declare the last two.
const NO_NAMES: ReadonlySet<string> = new Set([...reservedWords, "undefined", "globalThis"]);
