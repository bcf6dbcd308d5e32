import { compareVersions } from "#generator/model/schema/version-order.js";
import { assert, suite } from "../../../support/suite.js";

suite("compareVersions", (test) => {
  // The example of Kubernetes' documentation.
  const sorted = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];

  test("stable versions come first, then beta, alpha and all others by name", () => {
    assert.equal([...sorted].reverse().sort(compareVersions), sorted);
    assert.is(compareVersions("v1", "v1"), 0);
    assert.is(compareVersions("foo", "foo"), 0);
  });
});
