import { assert, suite } from "#test/support/suite.js";
import { type BenchmarkResult, medianOf, quantile, renderTable } from "./measurement.js";

const result: BenchmarkResult = {
  benchmark: "speed",
  peers: ["Other", "Third"],
  notes: ["taken by night"],
  measurements: [
    { name: "wall", unit: "s", better: "lower", ours: 1.5, peers: [3, 6] },
    { name: "rate", unit: "1/s", better: "higher", ours: 300, peers: [200, undefined] },
    { name: "calls", unit: "calls", better: "lower", ours: 0, peers: [undefined, 2000] },
    { name: "alone", unit: "MB", better: "lower", ours: 12.34 },
  ],
};

suite("measurement", (test) => {
  test("renders a table of ours beside every peer, compared with the best one", () => {
    assert.equal(renderTable(result).split("\n"), [
      "## speed, beside Other, Third",
      "",
      "|               | ours | Other | Third | of the best | better |",
      "| ------------- | ---: | ----: | ----: | ----------: | ------ |",
      "| wall (s)      | 1.50 |     3 |     6 |       0.50× | lower  |",
      "| rate (1/s)    |  300 |   200 |     – |       1.50× | higher |",
      "| calls (calls) |    0 |     – |  2000 |       0.00× | lower  |",
      "| alone (MB)    | 12.3 |     – |     – |           – | lower  |",
      "",
      "taken by night",
    ]);
  });

  test("renders a table without peers without a comparison", () => {
    const table = renderTable({ ...result, peers: [], measurements: result.measurements.slice(3) });
    assert.equal(table.split("\n").slice(0, 3), ["## speed", "", "|            | ours | better |"]);
  });

  test("omits the ratio if the peer's value is 0", () => {
    const measurements = [{ name: "calls", unit: "1", better: "lower" as const, ours: 4, peers: [0] }];
    assert.ok(renderTable({ ...result, peers: ["Other"], measurements }).includes("|    4 |     0 |     – |"));
  });

  test("computes quantiles and medians", () => {
    assert.is(quantile([5, 1, 4, 2, 3], 0.5), 3);
    assert.is(quantile([5, 1, 4, 2, 3], 1), 5);
    assert.is(
      medianOf([{ cost: 2 }, { cost: 9 }, { cost: 3 }], ({ cost }) => cost),
      3,
    );
  });
});
