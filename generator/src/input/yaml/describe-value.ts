import { quote } from "../../diagnostic.js";

/** Describes a value that was found in a file: `the number 3`, `"text"`, `a list`, `nothing`. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" || typeof value === "boolean") return `the ${typeof value} ${String(value)}`;
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return "an object";
}
