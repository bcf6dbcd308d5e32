import { compareText, isJsonObject, type JsonValue } from "../json/json.js";

/** Names a JSON value's type as Go's decoder does in its messages. */
export function goTypeOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** Writes a float as Go does with `%v`: with an exponent from a million on, and below a ten thousandth. */
export function floatText(value: number): string {
  const magnitude = Math.abs(value);
  if (value === 0 || (magnitude >= 1e-4 && magnitude < 1e6)) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/** Writes a value as Go prints it with `%v`: `map[a:1 b:[x y]]`, keys sorted. */
export function goFormat(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goFormat).join(" ")}]`;
  if (!isJsonObject(value)) return String(value);
  const keys = Object.keys(value).sort(compareText);
  return `map[${keys.map((key) => `${key}:${goFormat(value[key] as JsonValue)}`).join(" ")}]`;
}
