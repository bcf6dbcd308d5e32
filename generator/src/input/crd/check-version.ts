import { describeValue } from "../yaml/describe-value.js";
import { isRecord } from "../yaml/json.js";
import type { SchemaProblem } from "./schema/check-schema.js";

type Fields = { readonly [key: string]: unknown };

const COLUMN_TYPES = ["boolean", "date", "integer", "number", "string"];

/** Checks what a version of a CRD says about its table and its end. */
export function checkVersion({ additionalPrinterColumns, deprecated, deprecationWarning }: Fields): SchemaProblem[] {
  const problems = columnProblems(additionalPrinterColumns);
  if (typeof deprecationWarning === "string" && (deprecated !== true || deprecationWarning === ""))
    problems.push({
      path: ["deprecationWarning"],
      message:
        deprecated === true ? "deprecationWarning must not be empty" : "deprecationWarning needs deprecated: true",
    });
  return problems;
}

function columnProblems(columns: unknown): SchemaProblem[] {
  const path = ["additionalPrinterColumns"];
  if (columns === undefined || columns === null) return [];
  if (!Array.isArray(columns))
    return [{ path, message: `expected a list of columns, found ${describeValue(columns)}` }];
  return columns.flatMap((column: unknown, index): SchemaProblem[] => {
    const at = [...path, index];
    if (!isRecord(column)) return [{ path: at, message: `expected a column, found ${describeValue(column)}` }];
    const { name, type, jsonPath } = column;
    const wrong: SchemaProblem[] = [];
    const expect = (field: string, isRight: boolean, words: string) => {
      if (!isRight)
        wrong.push({
          path: [...at, field],
          message: `${field} of a column must be ${words}, found ${describeValue(column[field])}`,
        });
    };
    expect("name", typeof name === "string" && name !== "", "a text");
    expect("type", COLUMN_TYPES.includes(type as string), `one of ${COLUMN_TYPES.join(", ")}`);
    expect("jsonPath", typeof jsonPath === "string" && jsonPath.startsWith("."), "a path such as .spec.size");
    return wrong;
  });
}

/** Checks the names of a CRD beside each other, and how its versions are converted. */
export function checkSpec({ names, conversion }: Fields): SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  if (isRecord(names) && names["kind"] !== undefined && names["kind"] === names["listKind"])
    problems.push({ path: ["names", "listKind"], message: "listKind and kind must differ" });
  if (conversion === undefined || conversion === null) return problems;
  const { strategy, webhook } = isRecord(conversion) ? conversion : { strategy: conversion };
  if (strategy !== "None" && strategy !== "Webhook")
    problems.push({
      path: ["conversion", "strategy"],
      message: `strategy must be None or Webhook, found ${describeValue(strategy)}`,
    });
  if (strategy === "Webhook" && !isRecord(isRecord(webhook) ? webhook["clientConfig"] : undefined))
    problems.push({ path: ["conversion"], message: "the strategy Webhook needs webhook.clientConfig" });
  return problems;
}
