import { readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { assert } from "../suite.js";
import { repositoryRoot } from "../repository.js";

/**
 * Asserts that a file has exactly this content.
 *
 * With GOLDEN_UPDATE=1, it rewrites the file and still fails, because a run that changes its golden files proves nothing.
 */
export function checkGolden(file: string, actual: string): void {
  const golden = readFileSync(file, "utf8");
  const name = relative(repositoryRoot, file);
  if (actual !== golden && process.env["GOLDEN_UPDATE"] === "1") {
    writeFileSync(file, actual);
    assert.unreachable(`${name} was rewritten: review the difference, and run the test again`);
  }
  assert.is(actual, golden, name);
}
