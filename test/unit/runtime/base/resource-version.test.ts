import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";
import { compareResourceVersions } from "#runtime/base/kubernetes-object.js";

suite("compareResourceVersions", (test) => {
  test("orders versions numerically, beyond 2^53", () => {
    const version = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    fc.assert(
      fc.property(version, version, (a, b) => {
        assert.is(Math.sign(compareResourceVersions(`${a}`, `${b}`)), a < b ? -1 : a > b ? 1 : 0);
      }),
    );
  });
});
