import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkGolden } from "../projects/golden-file.js";
import { repositoryRoot } from "../repository.js";
import { assert } from "../suite.js";

const MOST_LINES = 40;

/**
 * Asserts that a file of `fixtures/surface` has exactly this content, and prints the lines that differ.
 *
 * With GOLDEN_UPDATE=1, it rewrites the file and still fails.
 */
export function checkSurface(file: string, actual: string): void {
  const path = join(repositoryRoot, "fixtures/surface", file);
  if (process.env["GOLDEN_UPDATE"] === "1") {
    if (!existsSync(path)) writeFileSync(path, "");
    return checkGolden(path, actual);
  }
  const recorded = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (recorded === actual) return;
  const changes = changedLines(recorded.split("\n"), actual.split("\n"));
  const rest = changes.length - MOST_LINES;
  assert.unreachable(
    [
      `fixtures/surface/${file} differs from what users of this version see:`,
      ...changes.slice(0, MOST_LINES),
      ...(rest > 0 ? [`… and ${rest} lines more`] : []),
      ...(changes.length === 0 ? ["the same lines in another order"] : []),
      "users depend on this: take the change back, or, if it is meant, run this test again with GOLDEN_UPDATE=1",
      "and name the change and what users have to do in the body of the commit",
    ].join("\n"),
  );
}

/** A line with the headings that it belongs to, because equal lines of two declarations are different members. */
interface Line {
  readonly text: string;
  readonly context: readonly string[];
}

/** Returns the lines that only one of the texts contains, grouped below their context. */
function changedLines(before: readonly string[], after: readonly string[]): string[] {
  const [gone, added] = [onlyIn(before, after, "-"), onlyIn(after, before, "+")];
  const changes = [...gone, ...added].sort((one, other) => one.index - other.index);
  let shown = "";
  return changes.flatMap(({ sign, text, context }) => {
    const lines = context.map((each) => `  ${each}`).join("\n");
    const head = lines === shown || lines === "" ? [] : [lines];
    shown = lines;
    return [...head, `${sign} ${text}`];
  });
}

function onlyIn(lines: readonly string[], others: readonly string[], sign: "-" | "+") {
  const keyOf = ({ context, text }: Line) => [...context, text].join("\n");
  const counts = new Map<string, number>();
  for (const line of linesOf(others)) counts.set(keyOf(line), (counts.get(keyOf(line)) ?? 0) + 1);
  return linesOf(lines).flatMap((line, index) => {
    const count = counts.get(keyOf(line)) ?? 0;
    counts.set(keyOf(line), count - 1);
    return count > 0 || line.text === "" ? [] : [{ ...line, index, sign }];
  });
}

function linesOf(lines: readonly string[]): Line[] {
  let [heading, parent]: [string[], string[]] = [[], []];
  return lines.map((text) => {
    const context = [...heading, ...(/^\s/.test(text) ? parent : [])];
    if (text.startsWith("## ")) [heading, parent] = [[text], []];
    else if (/^[^\s}]/.test(text)) parent = [text];
    return { text, context: text.startsWith("## ") ? [] : context };
  });
}
