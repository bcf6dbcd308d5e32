import { checkNode } from "#generator/doctor/check-packages.js";
import { assert, suite } from "../../../support/suite.js";

suite("checkNode", (test) => {
  test("accepts the versions in the engines range of package.json", () => {
    const range = "^20.19 || >=22.12";
    const cases: [version: string, outcome: string][] = [
      ["18.20.0", "failed"],
      ["20.18.3", "failed"],
      ["20.19.0", "ok"],
      ["20.20.2", "ok"],
      ["21.7.0", "failed"],
      ["22.11.0", "failed"],
      ["22.12.0", "ok"],
      ["22.9.0", "failed"],
      ["24.0.0-nightly", "ok"],
    ];
    for (const [version, outcome] of cases) assert.is(checkNode(version, range).outcome, outcome, version);
  });

  test("reports the supported versions", () => {
    const { message, advice } = checkNode("18.0.0", ">=20.19");
    assert.is(message, "18.0.0 is not supported: gen-operator needs >=20.19");
    assert.is(advice, "install a newer Node.js");
  });
});
