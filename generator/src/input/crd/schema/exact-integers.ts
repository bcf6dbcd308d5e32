// The API server keeps a default, an enum value and an example as the integer that is written, also where JavaScript has no such number.
import { parseInteger } from "../../yaml/kubectl-scalars.js";
import { isRecord } from "../../yaml/json.js";
import type { YamlPath } from "../../yaml/yaml-document.js";
import { isRounded, visitSchemasIn } from "./check-schema.js";

/** An integer of a definition that JavaScript rounds. */
export interface ExactInteger {
  readonly path: YamlPath;
  readonly value: bigint;
}

const INT64_LIMIT = 2n ** 63n;
const LARGEST_INT64_NUMBER = 2 ** 63 - 1024;

/** Lists the paths of the numbers in defaults, enums and examples of a schema that JavaScript may have rounded. */
export function findRoundedNumbers(schema: unknown): YamlPath[] {
  const paths: YamlPath[] = [];
  const visitValue = (value: unknown, path: YamlPath): void => {
    if (typeof value === "number" && isRounded(value)) paths.push(path);
    if (Array.isArray(value)) value.forEach((item, index) => visitValue(item, [...path, index]));
    else if (isRecord(value)) for (const [key, member] of Object.entries(value)) visitValue(member, [...path, key]);
  };
  const visit = (node: unknown, path: (string | number)[]): void => {
    if (!isRecord(node)) return;
    for (const keyword of ["default", "enum", "example"])
      if (Object.hasOwn(node, keyword)) visitValue(node[keyword], [...path, keyword]);
    visitSchemasIn(node, path, (child) => visit(child, path));
  };
  visit(schema, []);
  return paths;
}

/** Returns the integer that a plain scalar is; undefined if it is none, or if the API server reads it as a float: beyond int64. */
export function parseInt64(text: string | undefined): bigint | undefined {
  const value = text === undefined ? undefined : parseInteger(text);
  return value !== undefined && value >= -INT64_LIMIT && value < INT64_LIMIT ? value : undefined;
}

/** Returns the nearest number within int64: the nearest of all may be beyond, as that of 2^63 - 1 is. */
export function numberOfInt64(value: bigint): number {
  const number = Number(value);
  return Math.min(Math.max(number, -LARGEST_INT64_NUMBER), LARGEST_INT64_NUMBER);
}

/** Returns a copy of a definition with its exact integers. */
export function withExactIntegers(definition: object, integers: readonly ExactInteger[]): object {
  const copy = structuredClone(definition);
  for (const { path, value } of integers) setAt(copy, path, value);
  return copy;
}

/** Replaces a value that is there. */
export function setAt(root: object, path: YamlPath, value: unknown): void {
  const holder = path
    .slice(0, -1)
    .reduce<unknown>((at, step) => (at as { [step: string | number]: unknown })[step], root);
  (holder as { [step: string | number]: unknown })[path.at(-1)!] = value;
}

/** For `JSON.stringify`: prints exact integers as the nearest numbers that JavaScript has. */
export function exactAsNumber(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? numberOfInt64(value) : value;
}

/** For `JSON.stringify`: prints exact integers so that no two are alike. */
export function exactAsText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}n` : value;
}
