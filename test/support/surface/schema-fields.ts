// The fields of a file that users write, according to its JSON Schema, without descriptions.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../repository.js";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Schema = { readonly [key: string]: Json };

/** Keywords for humans and editors. */
const WORDS = new Set(["$schema", "title", "description", "examples", "errorMessage", "markdownDescription"]);
/** Keywords with nested schemas. */
const BRANCHES = ["allOf", "anyOf", "oneOf"];
const CONDITIONS = ["if", "then", "else", "not", "propertyNames", "contains", "dependencies"];

/**
 * Returns the fields of a JSON Schema, one per line in alphabetical order: the path, whether it is required, and the constraints of its value.
 *
 * A definition that several fields share is written once, below its name. An unknown keyword is an error, so that none is omitted.
 */
export function schemaFieldsOf(file: string): string {
  const schema = JSON.parse(readFileSync(join(repositoryRoot, file), "utf8")) as Schema;
  const lines = fieldsOf("(root)", schema);
  const definitions = Object.entries((schema["definitions"] ?? {}) as { [name: string]: Schema })
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, each]) => [`## ${name}`, "", ...fieldsOf("(value)", each)].join("\n"));
  const id = typeof schema["$id"] === "string" ? [`$id ${schema["$id"]}`, ""] : [];
  return `${[[...id, ...lines].join("\n"), ...definitions].join("\n\n")}\n`;
}

/** Returns the line of a field, and those of its nested fields. */
function fieldsOf(path: string, schema: Json, note = ""): string[] {
  if (typeof schema === "boolean") return [`${path}${note}: ${schema ? "anything" : "nothing"}`];
  const own = schema as Schema;
  const facts: string[] = [];
  const below: string[] = [];
  const inner = (name: string) => (path.startsWith("(") && !path.includes(")[") ? name : `${path}.${name}`);
  const required = new Set((own["required"] ?? []) as readonly string[]);
  for (const [keyword, value] of Object.entries(own)) {
    if (WORDS.has(keyword) || keyword === "$id" || keyword === "definitions") continue;
    if (keyword === "type" || keyword === "enum" || keyword === "const") facts.push(`${keyword} ${textOf(value)}`);
    else if (keyword === "default") facts.push(`default ${JSON.stringify(value)}`);
    else if (keyword === "$ref") facts.push(`is ${String(value).replace("#/definitions/", "")}`);
    else if (keyword === "properties")
      for (const [name, field] of Object.entries(value as Schema).sort(([one], [other]) => (one < other ? -1 : 1)))
        below.push(...fieldsOf(inner(name), field, required.has(name) ? " (required)" : ""));
    else if (keyword === "required") {
      const known = Object.keys((own["properties"] ?? {}) as Schema);
      const elsewhere = [...required].filter((name) => !known.includes(name));
      if (elsewhere.length > 0) facts.push(`requires ${elsewhere.join(", ")}`);
    } else if (keyword === "items") below.push(...fieldsOf(`${path}[]`, value));
    else if (keyword === "additionalProperties") {
      if (value === false) facts.push("no other fields");
      else below.push(...fieldsOf(inner("*"), value));
    } else if (BRANCHES.includes(keyword)) {
      const branches = value as readonly Schema[];
      // A reference that is wrapped in allOf to add a description.
      const [only] = branches;
      if (keyword === "allOf" && branches.length === 1 && Object.keys(only!).join() === "$ref")
        facts.push(`is ${String(only!["$ref"]).replace("#/definitions/", "")}`);
      else
        for (const [index, branch] of branches.entries())
          below.push(...fieldsOf(`${path} <${keyword} ${index + 1}>`, branch));
    } else if (CONDITIONS.includes(keyword)) facts.push(`${keyword} ${JSON.stringify(withoutWords(value))}`);
    else if (/^(min|max)[A-Z]|^(minimum|maximum|pattern|uniqueItems|format|multipleOf)$/.test(keyword))
      facts.push(`${keyword} ${String(value)}`);
    else throw new Error(`${path}: the keyword ${keyword} has no place in the report of fields yet`);
  }
  facts.sort((one, other) => rankOf(one) - rankOf(other) || (one < other ? -1 : 1));
  return [`${path}${note}: ${facts.length === 0 ? "anything" : facts.join(", ")}`, ...below];
}

/** The type of a value comes first; the order of keywords in the file is not significant. */
function rankOf(fact: string): number {
  return /^(type|enum|const|is) /.test(fact) ? 0 : 1;
}

function textOf(value: Json): string {
  return Array.isArray(value) ? value.map((each) => JSON.stringify(each)).join("|") : String(value);
}

function withoutWords(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutWords);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, member]) => !WORDS.has(key) || typeof member === "object")
      .map(([key, member]) => [key, withoutWords(member)]),
  );
}
