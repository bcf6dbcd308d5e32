import fc from "../../../../support/fast-check.js";
import { snapshotHeadroom } from "#runtime/operate/debug-endpoint.js";
import { runs } from "../../../../support/runs.js";
import { assert, suite } from "../../../../support/suite.js";

const MB = 1_000_000;

suite("heap snapshot headroom", (test) => {
  const cases = [
    ["suffices on a machine with free memory", { residentBytes: 100 * MB, freeBytes: 2_000 * MB }, 0],
    ["suffices below the memory limit", { residentBytes: 100 * MB, limitBytes: 512 * MB, freeBytes: 2_000 * MB }, 0],
    [
      "lacks what exceeds the memory limit",
      { residentBytes: 200 * MB, limitBytes: 512 * MB, freeBytes: 2_000 * MB },
      88,
    ],
    [
      "lacks what exceeds the free memory of the machine",
      { residentBytes: 100 * MB, limitBytes: 900 * MB, freeBytes: 150 * MB },
      250,
    ],
    ["is 0 for a process above its limit", { residentBytes: 600 * MB, limitBytes: 512 * MB, freeBytes: 900 * MB }, 400],
  ] as const;
  for (const [title, facts, missing] of cases)
    test(title, () => {
      const { neededBytes, missingBytes } = snapshotHeadroom({ usedHeapBytes: 50 * MB, ...facts });
      assert.is(neededBytes, 400 * MB);
      assert.is(missingBytes, missing * MB);
    });

  test("never decreases with a larger limit, and adds up to the need with what is missing", () =>
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
