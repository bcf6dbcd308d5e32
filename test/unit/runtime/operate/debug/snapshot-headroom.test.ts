import fc from "../../../../support/fast-check.js";
import { snapshotHeadroom } from "#runtime/operate/debug-endpoint.js";
import { runs } from "../../../../support/runs.js";
import { assert, suite } from "../../../../support/suite.js";

const MB = 1_000_000;

suite("the headroom of a heap snapshot", (test) => {
  const cases = [
    ["is enough on a machine with free memory", { residentBytes: 100 * MB, freeBytes: 2_000 * MB }, 0],
    ["is what the limit leaves", { residentBytes: 100 * MB, limitBytes: 512 * MB, freeBytes: 2_000 * MB }, 0],
    [
      "is missing by what the limit is too low",
      { residentBytes: 200 * MB, limitBytes: 512 * MB, freeBytes: 2_000 * MB },
      88,
    ],
    [
      "is missing by what the machine has too little",
      { residentBytes: 100 * MB, limitBytes: 900 * MB, freeBytes: 150 * MB },
      250,
    ],
    [
      "is nothing for a process that is beyond its limit",
      { residentBytes: 600 * MB, limitBytes: 512 * MB, freeBytes: 900 * MB },
      400,
    ],
  ] as const;
  for (const [title, facts, missing] of cases)
    test(title, () => {
      const { neededBytes, missingBytes } = snapshotHeadroom({ usedHeapBytes: 50 * MB, ...facts });
      assert.is(neededBytes, 400 * MB);
      assert.is(missingBytes, missing * MB);
    });

  test("and what is missing are what is needed, and a larger limit never makes it less", () =>
    fc.assert(
      fc.property(fc.nat(), fc.nat(), fc.nat(), fc.nat(), (usedHeapBytes, residentBytes, limitBytes, freeBytes) => {
        const facts = { usedHeapBytes, residentBytes, freeBytes };
        const given = snapshotHeadroom({ ...facts, limitBytes });
        assert.ok(given.missingBytes >= 0 && given.availableBytes >= 0);
        assert.ok(given.missingBytes === 0 || given.missingBytes + given.availableBytes === given.neededBytes);
        const more = snapshotHeadroom({ ...facts, limitBytes: limitBytes + 1_000 });
        assert.ok(more.availableBytes >= given.availableBytes);
        assert.ok(snapshotHeadroom(facts).availableBytes >= more.availableBytes);
      }),
      { numRuns: runs(200) },
    ));
});
