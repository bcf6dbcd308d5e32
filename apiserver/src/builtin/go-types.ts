import { readFileSync } from "node:fs";
import { packageFile } from "../package-file.js";

const TYPES_FILE = packageFile("data/kubernetes-1.36-go-types.json");

let memoisedTypes: Record<string, Record<string, string>> | undefined;

/** What a schema does not say of the Go struct behind it. */
export interface GoField {
  /** The embedded struct that holds the field, with a dot; "" for a field of the struct itself. */
  embedded: string;
  /** The Go type; absent where the schema tells. */
  type?: string;
}

/** Says how Go's decoder names a member of a named built-in schema. */
export function goFieldOf(schemaName: string | undefined, member: string): GoField {
  memoisedTypes ??= JSON.parse(readFileSync(TYPES_FILE, "utf8")) as Record<string, Record<string, string>>;
  const fields = schemaName === undefined ? undefined : memoisedTypes[schemaName];
  const fact = fields !== undefined && Object.hasOwn(fields, member) ? fields[member] : undefined;
  if (fact === undefined) return { embedded: "" };
  return fact.endsWith(".") ? { embedded: fact } : { embedded: "", type: fact };
}
