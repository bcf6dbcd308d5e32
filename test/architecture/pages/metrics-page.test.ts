import { readFileSync } from "node:fs";
import { join } from "node:path";
import { METRICS } from "#runtime/operate/metrics.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

suite("metrics page", (test) => {
  test("lists every metric with its type, labels and help text", () => {
    const page = readFileSync(join(repositoryRoot, "runtime/docs/metrics.md"), "utf8");
    const [, table = ""] = /<!-- metrics: begin -->([^]*)<!-- metrics: end -->/.exec(page) ?? [];
    const rows = table.split("\n").filter((line) => line.startsWith("| `"));
    const cellsOf = (row: string) =>
      row
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim());
    const wanted = Object.entries(METRICS).map(([name, { type, labels, help }]) => [
      ...[`\`${name}\``, type, labels.map((label) => `\`${label}\``).join(", "), help],
    ]);
    assert.equal(rows.map(cellsOf), wanted);
  });
});
