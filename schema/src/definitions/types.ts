import type { FieldError } from "./field-error.js";
import { memberOf, type JsonValue } from "../json/json.js";
import { isInt64 } from "../values/numbers.js";
import { wrongType } from "./schema-messages.js";
import type { StructuralSchema } from "./structural-schema.js";

/** Gives the JSON type of a value in the words of a schema; a number without fraction is an integer. */
export function actualType(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return isInt64(value) ? "integer" : "number";
  return typeof value;
}

/** Checks a value's JSON type; a fraction where an integer format is declared is named by its Go type. */
export function checkType(schema: StructuralSchema, path: string, value: JsonValue): FieldError[] {
  const types = typesOf(schema);
  if (types.length === 0) return [];
  const actual = actualType(value);
  if (actual === "null") return schema["nullable"] === true ? [] : [wrongType(path, types.join(","), actual)];
  if (types.includes(actual) || (actual === "integer" && types.includes("number"))) return [];
  const format = memberOf(schema, "format");
  const isNumeric = types.includes("number") || types.includes("integer");
  if (typeof format === "string" && format !== "") {
    const isTextOrList = typeof value === "string" || Array.isArray(value);
    // What Kubernetes does with a formatted schema: texts and lists pass as anything but a number, others show their format.
    if (!isTextOrList) return [wrongType(path, format, goNumberType(value))];
    if (!isNumeric) return [];
  }
  return [wrongType(path, types.join(","), actual)];
}

function typesOf(schema: StructuralSchema): string[] {
  if (schema["x-kubernetes-int-or-string"] === true) return ["integer", "string"];
  const type = memberOf(schema, "type");
  return typeof type === "string" && type !== "" ? [type] : [];
}

function goNumberType(value: JsonValue): string {
  if (typeof value !== "number") return "";
  return isInt64(value) ? "int64" : "float64";
}
