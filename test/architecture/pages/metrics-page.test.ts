import { readFileSync } from "node:fs";
import { join } from "node:path";
import { METRICS } from "#runtime/operate/metrics.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

suite("the page of the metrics", (test) => {
  test("has every metric, with its type, its labels and what it means", () => {
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
