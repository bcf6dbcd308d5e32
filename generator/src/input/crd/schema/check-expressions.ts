// The texts of a schema in languages of their own: patterns of RE2, and rules of CEL.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { findPatternProblem } from "@gen-operator/schema";
import { quote } from "../../../diagnostic.js";
import { packageFile } from "../../../package-file.js";
import { isRecord } from "../../yaml/json.js";
import type { YamlPath } from "../../yaml/yaml-document.js";
import { visitSchemasIn } from "./check-schema.js";
import type * as RuleChecker from "./rule-checker.js";

/** A pattern that the API server refuses, or a rule that `parse` does not check. */
export interface ExpressionProblem {
  readonly kind: "pattern" | "rule";
  readonly path: YamlPath;
  readonly message: string;
}

/** Checks the patterns and the rules of a schema whose keywords have values of the right types. */
export function checkExpressions(schema: unknown): ExpressionProblem[] {
  const problems: ExpressionProblem[] = [];
  checkBelow(schema, [], problems);
  return problems;
}

/** `path` is the way to the schema: one list for all of them, of which only problems get a copy. */
function checkBelow(schema: unknown, path: (string | number)[], problems: ExpressionProblem[]): void {
  if (!isRecord(schema)) return;
  if (Object.hasOwn(schema, "pattern")) problems.push(...checkPattern(schema["pattern"], path));
  if (Object.hasOwn(schema, RULES)) problems.push(...checkRules(schema[RULES], path));
  visitSchemasIn(schema, path, (child) => checkBelow(child, path, problems));
}

const RULES = "x-kubernetes-validations";

function checkPattern(pattern: unknown, path: YamlPath): ExpressionProblem[] {
  const problem = typeof pattern === "string" ? findPatternProblem(pattern) : undefined;
  if (problem === undefined) return [];
  return [
    {
      kind: "pattern",
      path: [...path, "pattern"],
      message: `${quote(String(pattern))} is no pattern of RE2: ${problem}`,
    },
  ];
}

// Most runs read no new rule. What checks them is loaded with the first one: by `require`, which Node has for modules, too, since 20.19.
const require = createRequire(import.meta.url);
let checker: typeof RuleChecker | undefined;

function findExpressionProblem(expression: string): string | undefined {
  checker ??= require(fileURLToPath(packageFile("dist/input/crd/schema/rule-checker.js"))) as typeof RuleChecker;
  return checker.findExpressionProblem(expression);
}

function checkRules(rules: unknown, path: YamlPath): ExpressionProblem[] {
  return (Array.isArray(rules) ? rules : []).flatMap((rule: unknown, index): ExpressionProblem[] => {
    const expression = isRecord(rule) ? rule["rule"] : undefined;
    const problem = typeof expression === "string" ? findExpressionProblem(expression) : undefined;
    if (problem === undefined) return [];
    return [
      { kind: "rule", path: [...path, RULES, index, "rule"], message: `parse does not check this rule: ${problem}` },
    ];
  });
}
