import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkGolden } from "../../support/projects/golden-file.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

suite("golden file", (test) => {
  test("is rewritten with GOLDEN_UPDATE=1, and fails the test until the next run", async () => {
    await using folder = await createTemporaryFolder();
    const file = join(folder.path, "golden.txt");
    writeFileSync(file, "before");
    assert.throws(() => checkGolden(file, "after"), "golden.txt");
    assert.is(readFileSync(file, "utf8"), "before");
    process.env["GOLDEN_UPDATE"] = "1";
    try {
      assert.throws(() => checkGolden(file, "after"), "was rewritten: review the difference");
      checkGolden(file, "after");
    } finally {
      delete process.env["GOLDEN_UPDATE"];
    }
    assert.is(readFileSync(file, "utf8"), "after");
  });
});
