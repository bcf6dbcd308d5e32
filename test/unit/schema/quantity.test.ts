import fc from "fast-check";
import { isSameQuantity, parseQuantity } from "@gen-operator/schema";
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
    ["0.1n", "1n"],
    [" 1", "1"],
  ];
  for (const [a, b] of same) test(`${a} is the same amount as ${b}`, () => assert.ok(isSameQuantity(a, b)));

  const different: [string, string][] = [
    ["1", "1m"],
    ["1G", "1Gi"],
    ["1M", "1m"],
    ["1", "-1"],
    ["1k", "1Ki"],
  ];
  for (const [a, b] of different) test(`${a} is another amount than ${b}`, () => assert.not(isSameQuantity(a, b)));

  test("what is no quantity is equal only to itself", () => {
    for (const text of ["", "abc", "1x", "1 Gi", ".", "m", "1mi", "1e", "--1", "1e99999"]) {
      assert.is(parseQuantity(text), undefined, JSON.stringify(text));
      assert.not(isSameQuantity(text, "1"));
      assert.ok(isSameQuantity(text, text));
    }
  });

  test("an amount is the same in every unit in which it can be written", () => {
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
