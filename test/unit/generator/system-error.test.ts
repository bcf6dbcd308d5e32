import { mkdtempSync, readFileSync, readdirSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeSystemError, isSystemError, reasonOf } from "#generator/system-error.js";
import { assert, suite } from "../../support/suite.js";

function errorOf(call: () => unknown): NodeJS.ErrnoException {
  try {
    call();
  } catch (error) {
    if (isSystemError(error)) return error;
  }
  throw new Error("the system has refused nothing");
}

suite("describeSystemError", (test) => {
  test("describes a failed system call without its name", () => {
    const folder = mkdtempSync(join(tmpdir(), "gen-operator-test-"));
    try {
      assert.is(
        describeSystemError(errorOf(() => readdirSync(`${folder}/it's, not here`))),
        `cannot list the folder ${folder}/it's, not here: no such file or directory`,
      );
      assert.is(
        describeSystemError(errorOf(() => readFileSync(`${folder}/a`))),
        `cannot open ${folder}/a: no such file or directory`,
      );
      assert.is(reasonOf(errorOf(() => readFileSync(folder))), "illegal operation on a directory");
    } finally {
      rmdirSync(folder);
    }
  });

  test("keeps the message of other errors", () => {
    const error = Object.assign(new Error("connection lost: try again"), { code: "ELOST" });
    assert.is(describeSystemError(error), "connection lost: try again");
    assert.is(reasonOf(error), "connection lost: try again");
    assert.is(isSystemError(new Error("EACCES: permission denied")), false);
  });
});
