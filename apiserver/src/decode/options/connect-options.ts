import { connectSchemas } from "../../builtin/schemas.js";
import { quote } from "../../errors/quote.js";
import { badRequest } from "../../errors/status-error.js";
import { isObject, objectAt, stringAt, type JsonObject, type JsonValue } from "../../json.js";
import { isTrue } from "./query-boolean.js";

const LARGEST_PORT = 65_535;

/** Reads the options of a connection, such as PodExecOptions, from a query; what is not given is left out. */
export function parseConnectOptions(type: { kind: string; schemaName?: string }, query: URLSearchParams): JsonObject {
  const options: JsonObject = { kind: type.kind, apiVersion: "v1" };
  const {
    apiVersion: _version,
    kind: _kind,
    ...members
  } = objectAt(connectSchemas[type.schemaName ?? ""], "properties") ?? {};
  for (const [name, schema] of Object.entries(members)) {
    const texts = query.getAll(name);
    const value = texts.length === 0 || !isObject(schema) ? undefined : valueOf(schema, texts);
    if (value !== undefined && value !== false && value !== "") options[name] = value;
  }
  return options;
}

function valueOf(schema: JsonObject, texts: readonly string[]): JsonValue {
  const [first = ""] = texts;
  if (schema["type"] === "boolean") return isTrue(first);
  if (schema["type"] === "string") return first;
  const isNumeric = stringAt(objectAt(schema, "items"), "type") === "integer";
  return isNumeric ? texts.flatMap((text) => text.split(",").map(portOf)) : [...texts];
}

function portOf(text: string): number {
  const problem = !/^[0-9]+$/.test(text)
    ? "invalid syntax"
    : Number(text) > LARGEST_PORT
      ? "value out of range"
      : undefined;
  if (problem === undefined) return Number(text);
  throw badRequest(`cannot convert to []int32: strconv.ParseUint: parsing ${quote(text)}: ${problem}`);
}
