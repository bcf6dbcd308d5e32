import { readFileSync } from "node:fs";
import { packageFile } from "../package-file.js";

const TYPES_FILE = packageFile("data/kubernetes-1.36-go-types.json");

let memoisedTypes: Record<string, Record<string, string>> | undefined;

/** Facts about a Go struct field that its schema does not contain. */
export interface GoField {
  /** The embedded struct that declares the field, with a trailing dot; "" for a field of the struct itself. */
  embedded: string;
  /** The Go type; undefined if it can be derived from the schema. */
  type?: string;
}

/** Returns the Go field of a member of a named built-in schema. */
export function goFieldOf(schemaName: string | undefined, member: string): GoField {
  memoisedTypes ??= JSON.parse(readFileSync(TYPES_FILE, "utf8")) as Record<string, Record<string, string>>;
  const fields = schemaName === undefined ? undefined : memoisedTypes[schemaName];
  const fact = fields !== undefined && Object.hasOwn(fields, member) ? fields[member] : undefined;
  if (fact === undefined) return { embedded: "" };
  return fact.endsWith(".") ? { embedded: fact } : { embedded: "", type: fact };
}
