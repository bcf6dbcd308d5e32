// Every feature of JOSDK is accounted for, and what is named exists.
import { readFeatureTable } from "../support/josdk-table.js";
import { untestedRows } from "../support/named-tests.js";
import { assert, suite } from "../support/suite.js";

/** The letters of the features, with their last numbers. */
const FEATURES: Record<string, number> = {
  ...{ D: 20, X: 7, W: 22, P: 5 },
  ...{ R: 35, T: 13, E: 18, M: 8, F: 5, K: 9, N: 4, O: 5 },
  // JOSDK 5.6
  V: 4,
};

/** How many things of JOSDK are probably mistakes. */
const MISTAKES = 22;

suite("the table of JOSDK's features", (test) => {
  const rows = readFeatureTable();

  test("names every feature, and every probable mistake, once", () => {
    const wanted = Object.entries({ ...FEATURES, "Probable mistakes ": MISTAKES }).flatMap(([before, last]) =>
      Array.from({ length: last }, (_, index) => `${before}${index + 1}`),
    );
    assert.equal(
      rows.map(({ id }) => id),
      wanted,
    );
  });

  test("shows every feature by a test, unless it is still to come; what differs is shown, too", () => {
    const unshown = rows.filter(
      ({ tests, remarks }) => tests.length === 0 && !remarks.some(({ word }) => word === "later"),
    );
    assert.equal(
      unshown.map(({ id, line }) => `${id} (line ${line})`),
      [],
    );
    const silent = rows.flatMap(({ id, remarks }) =>
      remarks.filter(({ word, reason }) => !["different", "later"].includes(word) || reason === "").map(() => id),
    );
    assert.equal(silent, []);
  });

  test("names tests that exist, in suites that always run", () => {
    assert.equal(untestedRows(rows), []);
  });
});
