// Every feature of JOSDK is accounted for, and what is named exists.
import { JOSDK_FEATURES } from "../../support/tables/josdk-features.js";
import { headingsOf, readFeatureTable } from "../../support/tables/josdk-table.js";
import { untestedRows } from "../../support/tables/named-tests.js";
import { assert, suite } from "../../support/suite.js";

suite("the table of JOSDK's features", (test) => {
  const rows = readFeatureTable();

  test("names every feature, and every probable mistake, once", () => {
    const wanted = JOSDK_FEATURES.flatMap(([letters, count]) =>
      Array.from({ length: count }, (_, index) => `${letters}${index + 1}`),
    );
    assert.equal(
      rows.map(({ id }) => id),
      wanted,
    );
  });

  test("has a table for every part of JOSDK, in this order", () => {
    assert.equal(
      headingsOf("FEATURES.md"),
      JOSDK_FEATURES.map(([, , heading]) => heading),
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
