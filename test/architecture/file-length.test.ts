import { assert, suite } from "../support/suite.js";
import { packages, readSources } from "./source-files.js";

/** Hand-written files grow no longer than this; what is longer is split by concept. */
const LIMIT = 400;

/** Files that may be longer, with the reason. */
const exceptions: Record<string, string> = {};

suite("file length", (test) => {
  const folders = [...packages.map((name) => `${name}/src`), "test", "bench", "demo"];
  const lengths = new Map(
    folders
      .flatMap(readSources)
      .filter(({ path }) => !path.includes("/generated/"))
      .map(({ path, text }) => [path, text.split("\n").length - 1]),
  );

  test(`no source file is longer than ${LIMIT} lines without a reason`, () => {
    const tooLong = [...lengths].filter(([path, length]) => length > LIMIT && exceptions[path] === undefined);
    assert.equal(
      tooLong.map(([path, length]) => `${path}: ${length} lines`),
      [],
    );
  });

  test("every exception is still needed and has a reason", () => {
    const needless = Object.entries(exceptions)
      .filter(([path, reason]) => (lengths.get(path) ?? 0) <= LIMIT || reason === "")
      .map(([path]) => path);
    assert.equal(needless, []);
  });
});
