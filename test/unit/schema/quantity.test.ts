import fc from "../../support/fast-check.js";
import { canonicalQuantity, compareQuantities, isSameQuantity, parseQuantity } from "@gen-operator/schema";
import { assert, suite } from "../../support/suite.js";

suite("quantity", (test) => {
  const same: [string | number, string | number][] = [
    ["1", 1],
    ["0.5", "500m"],
    ["0.010", "10m"],
    ["1000m", "1"],
    ["1Gi", "1024Mi"],
    ["16384Ki", "16Mi"],
    ["1.5Gi", "1536Mi"],
    ["1e3", "1k"],
    ["1E3", "1k"],
    ["1E", "1e18"],
    ["+1", "1"],
    ["-500m", "-0.5"],
    [".5", "500m"],
    ["5.", "5"],
    ["100000u", "100m"],
    ["0", "0Gi"],
    ["0", "-0"],
    ["0", "."],
    ["1e99999", "10e99998"],
    ["0.1n", "1n"],
    [" 1", "1"],
  ];
  for (const [a, b] of same) test(`treats ${a} and ${b} as equal`, () => assert.ok(isSameQuantity(a, b)));

  const different: [string, string][] = [
    ["1", "1m"],
    ["1G", "1Gi"],
    ["1M", "1m"],
    ["1", "-1"],
    ["1k", "1Ki"],
  ];
  for (const [a, b] of different) test(`treats ${a} and ${b} as different`, () => assert.not(isSameQuantity(a, b)));

  test("treats an invalid quantity as equal only to itself", () => {
    for (const text of ["", "abc", "1x", "1 Gi", "1..5", "1mi", "1e", "--1", "1e99999999999999999999"]) {
      assert.is(parseQuantity(text), undefined, JSON.stringify(text));
      assert.not(isSameQuantity(text, "1"));
      assert.ok(isSameQuantity(text, text));
    }
  });

  test("formats with the largest suffix that leaves an integer", () => {
    const table: [given: string, want: string][] = [
      ["0.5", "500m"],
      ["1000m", "1"],
      ["1000", "1k"],
      ["1024Mi", "1Gi"],
      ["0.5Gi", "512Mi"],
      ["1536Mi", "1536Mi"],
      ["0.1Ki", "102400m"],
      ["1e3", "1e3"],
      ["0.1n", "1n"],
      ["99999999999999999999e-10", "10e9"],
      ["-1.5Gi", "-1536Mi"],
      ["-9Ei", "-9223372036854775807"],
    ];
    for (const [given, want] of table) assert.equal(canonicalQuantity(given), { text: want }, given);
  });

  test("handles huge exponents and a million digits", () => {
    const long = "9".repeat(1_000_000);
    assert.equal(canonicalQuantity("1e99999998"), { text: "100e99999996" });
    assert.equal(canonicalQuantity("1e-99999999"), { text: "1e-9" });
    assert.equal(canonicalQuantity(`0.${long}Mi`), { text: "1Mi" });
    assert.equal(canonicalQuantity(`${long}Mi`), { text: "9223372036854775807" });
    assert.equal(canonicalQuantity(`0.${long}`), { text: "1" });
    assert.ok("problem" in canonicalQuantity(`${"0".repeat(1_000_000)}1x`));
    assert.not(isSameQuantity("1e99999998", "1e99999999"));
    assert.is(compareQuantities("1e99999999", "1e999"), 1);
    assert.is(compareQuantities("1e-99999999", "0"), 1);
  });

  test("formats canonically, with the same value", () => {
    const suffix = fc.constantFrom("", "n", "m", "k", "M", "Ki", "Mi", "Gi", "Ei", "e3", "e-5", "E21");
    const number = fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.option(fc.nat(1_000_000)));
    fc.assert(
      fc.property(number, suffix, ([whole, fraction], unit) => {
        const text = `${whole}${fraction === null ? "" : `.${fraction}`}${unit}`;
        const shown = canonicalQuantity(text) as { text: string };
        assert.equal(canonicalQuantity(shown.text), shown);
        assert.is(compareQuantities(shown.text, text), 0);
      }),
    );
  });

  test("is equal in every unit", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 12n }), (thousands) => {
        const milli = `${thousands}m`;
        assert.ok(isSameQuantity(milli, `${thousands * 1000n}u`));
        const padded = thousands.toString().padStart(4, "0");
        assert.ok(isSameQuantity(milli, `${padded.slice(0, -3)}.${padded.slice(-3)}`));
        assert.ok(isSameQuantity(milli, `${thousands}e-3`));
      }),
    );
  });
});
