// Checks that the tests in the tables of JOSDK's scenarios and features exist.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "#generator/model/typescript.js";
import type { JosdkRow } from "./josdk-table.js";
import { repositoryRoot } from "../repository.js";

const compiler = loadLibrary("typescript");

/** The suites that `npm test` runs. */
const SUITES = /^(unit|architecture|golden|types|integration|conformance)\//;

/** Lists the rows with tests that do not exist or do not always run. */
export function untestedRows(rows: readonly Pick<JosdkRow, "id" | "tests">[]): string[] {
  const titles = new Map<string, Titles | undefined>();
  for (const { file } of rows.flatMap(({ tests }) => tests)) if (!titles.has(file)) titles.set(file, readTitles(file));
  return rows.flatMap(({ id, tests }) =>
    tests.flatMap(({ file, title }) => {
      const declared = titles.get(file);
      if (declared === undefined) return [`${id}: there is no test/${file}.ts`];
      if (!SUITES.test(file)) return [`${id}: npm test does not run ${file}`];
      return declared.has(title) ? [] : [`${id}: test/${file}.ts has no test "${title}"`];
    }),
  );
}

/** The titles of the tests in a file. In titles that a loop creates, any text matches the variable parts. */
interface Titles {
  has(title: string): boolean;
}

/** Reads the titles that `test("…", …)` declares in a file; undefined if the file does not exist. Excludes skipped tests. */
function readTitles(file: string): Titles | undefined {
  const path = join(repositoryRoot, `test/${file}.ts`);
  if (!existsSync(path)) return undefined;
  const found = new Set<string>();
  const patterns: RegExp[] = [];
  const visit = (node: ts.Node): void => {
    if (compiler.isCallExpression(node) && compiler.isIdentifier(node.expression) && node.expression.text === "test") {
      const [title] = node.arguments;
      if (title !== undefined && compiler.isStringLiteralLike(title)) found.add(title.text);
      else if (title !== undefined && compiler.isTemplateExpression(title)) patterns.push(patternOf(title));
    }
    compiler.forEachChild(node, visit);
  };
  visit(compiler.createSourceFile(path, readFileSync(path, "utf8"), compiler.ScriptTarget.Latest));
  return { has: (title) => found.has(title) || patterns.some((pattern) => pattern.test(title)) };
}

// A title that matches but does not exist is detected in a run, by the titles of passed tests.
function patternOf({ head, templateSpans }: ts.TemplateExpression): RegExp {
  const fixed = [head.text, ...templateSpans.map(({ literal }) => literal.text)];
  return new RegExp(`^${fixed.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".+")}$`, "s");
}
