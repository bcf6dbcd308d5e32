// The alerts and the dashboard of a new project read metrics that an operator has.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { METRICS, type MetricDefinition, ProcessMetrics } from "#runtime/operate/metrics.js";
import { readPromql } from "../support/machine/promql.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";

/** Labels that Prometheus adds by what prometheus-operator configures for a PodMonitor. */
const TARGET_LABELS = ["job", "namespace", "pod"];

interface Expression {
  readonly title: string;
  readonly text: string;
  /** What people read, with the labels of the result in braces. */
  readonly words: readonly string[];
}

suite("alerts and dashboard of a new project", (test) => {
  const expressions = [...readAlerts(), ...readPanels()];
  const series = seriesOfAnOperator();

  test("exist: at least 10 alerts and 20 panels", () => {
    assert.ok(readAlerts().length >= 10);
    assert.ok(readPanels().length >= 20);
  });

  for (const { title, text, words } of expressions)
    test(`"${title}" uses only series and labels that the operator exports`, () => {
      const names = readPromql(text);
      const unknown = [...names.series].filter((name) => !series.has(name));
      assert.equal(unknown, []);
      const labels = new Set([...TARGET_LABELS, ...[...names.series].flatMap((name) => series.get(name) ?? [])]);
      assert.equal(
        [...names.labels].filter((label) => !labels.has(label)),
        [],
      );
      assert.ok(names.labels.has("job"), "selects no other operator");
      const written = words.flatMap((line) =>
        [...line.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, name]) => name!),
      );
      assert.equal(
        written.filter((label) => !names.labels.has(label)),
        [],
        "a label that the result lacks",
      );
    });

  test("detects unknown series in PromQL, and rejects invalid PromQL", () => {
    assert.equal([...readPromql('sum by (a) (rate(b{c="d"}[$__rate_interval])) / e').series], ["b", "e"]);
    assert.throws(() => readPromql("sum by (a (b"), "no PromQL at column");
  });
});

/** Returns the series by their names, with their labels. */
function seriesOfAnOperator(): ReadonlyMap<string, readonly string[]> {
  const lines: string[] = [];
  const metrics = new ProcessMetrics(() => 0);
  metrics.render(lines);
  const ofProcess = lines.flatMap((line) => /^# TYPE (\S+)/.exec(line)?.[1] ?? []);
  const ofTable = Object.entries<MetricDefinition>(METRICS).flatMap(([name, { type, labels }]) =>
    type === "histogram"
      ? [
          [`${name}_bucket`, [...labels, "le"]] as const,
          [`${name}_count`, labels] as const,
          [`${name}_sum`, labels] as const,
        ]
      : [[name, labels] as const],
  );
  return new Map([...ofTable, ...ofProcess.map((name) => [name, [] as readonly string[]] as const)]);
}

function readAlerts(): Expression[] {
  const { spec } = parse(read("prometheus-rule.yaml")) as {
    spec: { groups: { rules: { alert: string; expr: string; annotations: Record<string, string> }[] }[] };
  };
  return spec.groups.flatMap(({ rules }) =>
    rules.map(({ alert, expr, annotations }) => ({ title: alert, text: expr, words: Object.values(annotations) })),
  );
}

function readPanels(): Expression[] {
  const { panels } = JSON.parse(read("dashboard.json")) as {
    panels: { title: string; targets?: { refId: string; expr: string; legendFormat: string }[] }[];
  };
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, expr, legendFormat }) => ({
      title: `${title} ${refId}`,
      text: expr,
      words: [legendFormat],
    })),
  );
}

function read(name: string): string {
  return readFileSync(join(repositoryRoot, "templates/deploy/monitoring", name), "utf8");
}
