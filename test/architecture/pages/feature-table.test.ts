// Every feature of JOSDK is accounted for, and what is named exists.
import { JOSDK_FEATURES } from "../../support/tables/josdk-features.js";
import { headingsOf, readFeatureTable } from "../../support/tables/josdk-table.js";
import { untestedRows } from "../../support/tables/named-tests.js";
import { assert, suite } from "../../support/suite.js";

suite("JOSDK feature table", (test) => {
  const rows = readFeatureTable();

  test("lists every feature and every pitfall exactly once", () => {
    const wanted = JOSDK_FEATURES.flatMap(([letters, count]) =>
      Array.from({ length: count }, (_, index) => `${letters}${index + 1}`),
    );
    assert.equal(
      rows.map(({ id }) => id),
      wanted,
    );
  });

  test("has a section for every part of JOSDK, in order", () => {
    assert.equal(
      headingsOf("FEATURES.md"),
      JOSDK_FEATURES.map(([, , heading]) => heading),
    );
  });

  test('names a test or "later" for every feature, and a reason for every difference', () => {
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

  test("names only existing tests, in suites that always run", () => {
    assert.equal(untestedRows(rows), []);
  });
});
