// The texts of a schema in languages of their own: patterns of RE2, and rules of CEL.
import { createRequire } from "node:module";
import { findPatternProblem } from "@gen-operator/schema";
import type * as Cel from "@gen-operator/schema/cel";
import { quote } from "../../../diagnostic.js";
import { isRecord } from "../../yaml/json.js";
import type { YamlPath } from "../../yaml/yaml-document.js";
import { schemasIn } from "./check-schema.js";

/** A pattern that the API server refuses, or a rule that `parse` does not check. */
export interface ExpressionProblem {
  readonly kind: "pattern" | "rule";
  readonly path: YamlPath;
  readonly message: string;
}

/** Checks the patterns and the rules of a schema whose keywords have values of the right types. */
export function checkExpressions(schema: unknown, path: YamlPath = []): ExpressionProblem[] {
  if (!isRecord(schema)) return [];
  const own = (keyword: string) => (Object.hasOwn(schema, keyword) ? schema[keyword] : undefined);
  return [
    ...checkPattern(own("pattern"), [...path, "pattern"]),
    ...checkRules(own("x-kubernetes-validations"), [...path, "x-kubernetes-validations"]),
    ...schemasIn(schema).flatMap(([rest, child]) => checkExpressions(child, [...path, ...rest])),
  ];
}

function checkPattern(pattern: unknown, path: YamlPath): ExpressionProblem[] {
  const problem = typeof pattern === "string" ? findPatternProblem(pattern) : undefined;
  if (problem === undefined) return [];
  return [{ kind: "pattern", path, message: `${quote(String(pattern))} is no pattern of RE2: ${problem}` }];
}

// Most runs read no new rule. What checks them is loaded with the first one: by `require`, which Node has for modules, too, since 20.19.
const require = createRequire(import.meta.url);
let cel: typeof Cel | undefined;

function findExpressionProblem(expression: string): string | undefined {
  cel ??= require("@gen-operator/schema/cel") as typeof Cel;
  return cel.findExpressionProblem(expression);
}

function checkRules(rules: unknown, path: YamlPath): ExpressionProblem[] {
  return (Array.isArray(rules) ? rules : []).flatMap((rule: unknown, index): ExpressionProblem[] => {
    const expression = isRecord(rule) ? rule["rule"] : undefined;
    const problem = typeof expression === "string" ? findExpressionProblem(expression) : undefined;
    if (problem === undefined) return [];
    return [{ kind: "rule", path: [...path, index, "rule"], message: `parse does not check this rule: ${problem}` }];
  });
}
