import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assert, suite } from "#test/support/suite.js";
import { createTemporaryFolder } from "#test/support/temporary-folder.js";
import { findPeers } from "./implementations.js";
import type { PhaseCost } from "./operator-phases.js";
import { measurementsOf, mediansOf } from "./peers-benchmark.js";

const cost: PhaseCost = {
  phase: "start",
  wallSeconds: 1,
  cpuSeconds: 2,
  serverCpuSeconds: 3,
  requests: new Map([
    ["APPLY", 4],
    ["LIST", 1],
  ]),
  residentMb: 50,
  peakMb: 60,
};

suite("peers", (test) => {
  test("each phase has its rows, and memory is told once: at the end and at its peak", () => {
    const ours = [cost, { ...cost, phase: "idle" as const, residentMb: 40, peakMb: 55 }];
    const rows = measurementsOf(ours, [[{ ...cost, cpuSeconds: 9 }]]);
    assert.equal(
      rows.map(({ name, ours: own, peers }) => [name, own, peers]),
      [
        ["start: wall", 1, [1]],
        ["start: CPU", 2, [9]],
        ["start: server CPU", 3, [3]],
        ["start: CPU together", 5, [12]],
        ["start: requests", 5, [5]],
        ["idle: CPU", 2, [undefined]],
        ["idle: server CPU", 3, [undefined]],
        ["idle: CPU together", 5, [undefined]],
        ["idle: requests", 5, [undefined]],
        ["all phases: CPU", 4, [9]],
        ["all phases: CPU together", 10, [12]],
        ["memory at the end", 40, [50]],
        ["peak memory", 60, [60]],
      ],
    );
  });

  test("of several turns each figure is the median of its own", () => {
    const runs = [
      [{ ...cost, cpuSeconds: 3, peakMb: 60 }],
      [{ ...cost, cpuSeconds: 1, peakMb: 90 }],
      [{ ...cost, cpuSeconds: 2, peakMb: 70 }],
    ];
    assert.equal(mediansOf(runs), [{ ...cost, cpuSeconds: 2, peakMb: 70 }]);
    assert.equal(mediansOf([]), []);
  });

  test("what could not be measured leaves its place empty", () => {
    const rows = measurementsOf([], [[], [cost]]);
    assert.equal(rows.map(({ ours, peers }) => [ours, peers])[1], [undefined, [undefined, 2]]);
  });

  test("peers are found by the file that says how they are built", async () => {
    await using folder = await createTemporaryFolder();
    for (const [name, file] of [
      ["kube-rs", "Cargo.toml"],
      ["josdk", "README.md"],
      ["unknown", "go.mod"],
    ] as const) {
      await mkdir(join(folder.path, name));
      await writeFile(join(folder.path, name, file), "");
    }
    assert.equal(
      findPeers(folder.path).map(({ name }) => name),
      ["kube-rs"],
    );
    assert.equal(findPeers(join(folder.path, "absent")), []);
  });
});
