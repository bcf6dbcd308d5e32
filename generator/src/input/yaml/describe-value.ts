import { quote } from "../../diagnostic.js";

/** Describes a value that was found in a file: `the number 3`, `"text"`, `a list`, `nothing`. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" || typeof value === "boolean") return `the ${typeof value} ${String(value)}`;
  return Array.isArray(value) ? "a list" : "an object";
}
