import { readFile } from "node:fs/promises";
import type { ValidateFunction } from "ajv";
import { packageFile } from "../package-file.js";

/**
 * Returns what checks a value against the published JSON Schema of workflow specs.
 *
 * In the published program, the code that is compiled here takes the place of the compiler, which takes longer than any spec takes to check.
 */
export async function loadSpecValidator(): Promise<ValidateFunction> {
  const [{ Ajv }, text] = await Promise.all([
    import("ajv"),
    readFile(packageFile("data/workflow.schema.json"), "utf8"),
  ]);
  return new Ajv({ ...VALIDATOR_OPTIONS, code: { optimize: false } }).compile(JSON.parse(text) as object);
}

/** What the checks find depends on. */
export const VALIDATOR_OPTIONS = { allErrors: true, verbose: true } as const;
