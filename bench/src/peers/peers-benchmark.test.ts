import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assert, suite } from "#test/support/suite.js";
import { createTemporaryFolder } from "#test/support/temporary-folder.js";
import { findPeers } from "./implementations.js";
import type { PhaseCost } from "./operator-phases.js";
import { measurementsOf } from "./peers-benchmark.js";
import { measureInTurns } from "./turns.js";

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

suite("peers benchmark", (test) => {
  test("has rows for each phase, and memory rows for the end and the peak", () => {
    const ours = [cost, { ...cost, phase: "touch" as const, residentMb: 40, peakMb: 55 }];
    const rows = measurementsOf([[ours], [[{ ...cost, cpuSeconds: 9 }]]]);
    assert.equal(
      rows.map(({ name, ours: own, peers }) => [name, own, peers]),
      [
        ["start: wall", 1, [1]],
        ["start: CPU", 2, [9]],
        ["start: server CPU", 3, [3]],
        ["start: CPU together", 5, [12]],
        ["start: requests", 5, [5]],
        ["touch: CPU", 2, [undefined]],
        ["touch: server CPU", 3, [undefined]],
        ["touch: CPU together", 5, [undefined]],
        ["touch: requests", 5, [undefined]],
        ["all phases: CPU", 4, [9]],
        ["all phases: CPU together", 10, [12]],
        ["all but touch: CPU together", 5, [12]],
        ["memory at the end", 40, [50]],
        ["peak memory", 60, [60]],
      ],
    );
  });

  test("reports the median of each figure, and the median of sums", () => {
    const runOf = (start: number, idle: number, peakMb: number) => [
      { ...cost, cpuSeconds: start, peakMb },
      { ...cost, phase: "idle" as const, cpuSeconds: idle },
    ];
    const rows = measurementsOf([[runOf(3, 1, 60), runOf(1, 4, 90), runOf(2, 5, 70)]]);
    const figureOf = (name: string) => rows.find((row) => row.name === name)?.ours;
    assert.equal(["start: CPU", "idle: CPU", "all phases: CPU", "peak memory"].map(figureOf), [2, 4, 5, 70]);
  });

  test("leaves missing measurements empty", () => {
    const rows = measurementsOf([[], [], [[cost]]]);
    assert.equal(rows.map(({ ours, peers }) => [ours, peers])[1], [undefined, [undefined, 2]]);
  });

  test("alternates the order of turns, and drops contestants that failed", async () => {
    const order: string[] = [];
    const failures: string[] = [];
    const contestantOf = (name: string, fails = false) => ({
      name,
      measure: () => (order.push(name), fails ? Promise.reject(new Error(name)) : Promise.resolve([cost])),
    });
    const contestants = [contestantOf("a"), contestantOf("b", true), contestantOf("c")];
    const options = { turns: 2, onTurn: () => {}, onFailure: (text: string) => failures.push(text) };
    const runs = await measureInTurns(contestants, options);
    assert.equal(order, ["a", "b", "c", "c", "a"]);
    assert.equal([failures, runs], [["b, turn 1 of 2"], [[[cost], [cost]], [], [[cost], [cost]]]]);
    const failing = measureInTurns([contestantOf("d", true)], { turns: 1, onTurn: () => {} });
    assert.is(await failing.then(() => "measured", String), "Error: d");
  });

  test("finds peers by their build file", async () => {
    await using folder = await createTemporaryFolder();
    for (const [name, file] of [
      ["kube-rs", "Cargo.toml"],
      ["client-node", "package.json"],
      ["josdk", "README.md"],
      ["unknown", "go.mod"],
    ] as const) {
      await mkdir(join(folder.path, name));
      await writeFile(join(folder.path, name, file), "");
    }
    assert.equal(
      findPeers(folder.path).map(({ name }) => name),
      ["kube-rs", "client-node", "client-node-one-dispatcher"],
    );
    assert.equal(findPeers(join(folder.path, "absent")), []);
  });
});
