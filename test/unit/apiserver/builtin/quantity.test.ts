import { canonicalQuantity, compareQuantities } from "#apiserver/builtin/quantity.js";
import fc from "fast-check";
import { assert, suite } from "../../../support/suite.js";

suite("quantities", (test) => {
  test("a quantity is printed with the largest suffix that leaves a whole number", () => {
    const table: [given: string, want: string | undefined][] = [
      ["0", "0"],
      ["0.5", "500m"],
      ["1.5", "1500m"],
      ["1000m", "1"],
      ["1000", "1k"],
      ["1024Mi", "1Gi"],
      ["0.5Gi", "512Mi"],
      ["1536Mi", "1536Mi"],
      ["1.5Gi", "1536Mi"],
      ["0.1Ki", "102400m"],
      ["1e3", "1e3"],
      ["12e6", "12e6"],
      ["1E", "1E"],
      ["-1", "-1"],
      ["+1", "1"],
      ["1n", "1n"],
      ["0.1n", "1n"],
      [".5", "500m"],
      ["1.", "1"],
      ["100M", "100M"],
      ["", undefined],
      ["x", undefined],
      ["1 Gi", undefined],
      ["1KI", undefined],
    ];
    for (const [given, want] of table) assert.is(canonicalQuantity(given), want, given);
  });

  test("the canonical form is canonical and of the same amount", () => {
    const suffix = fc.constantFrom("", "m", "k", "M", "Ki", "Mi", "Gi", "e3");
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e9 }), suffix, (amount, unit) => {
        const canonical = canonicalQuantity(`${amount}${unit}`) as string;
        assert.is(canonicalQuantity(canonical), canonical);
        assert.is(compareQuantities(canonical, `${amount}${unit}`), 0);
      }),
    );
  });
});
