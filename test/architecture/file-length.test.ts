import { dirname } from "node:path";
import { assert, suite } from "../support/suite.js";
import { packages, readSources } from "./source-files.js";

/** Hand-written sources grow no longer than this; what is longer is split by concept. */
const LIMIT = 300;

/** Tests may be longer: each of their cases stands for itself, and is found by its title. */
const TEST_LIMIT = 400;

/** A folder has room for a dozen files, which a reader can take in at once. */
const FOLDER_LIMIT = 12;

/** Sources that may be longer than the limit, with the reason. What is added here makes a file harder to read. */
const longFiles: Record<string, string> = {
  "generator/src/explain/rule-pages.ts": "a table: a page for every rule",
};

/** Folders that have more files than the limit, with the number that they may have and the reason. The numbers may only shrink. */
const fullFolders: Record<string, [count: number, reason: string]> = {};

suite("file length", (test) => {
  const inPackages = packages.flatMap((name) => readSources(`${name}/src`));
  const others = ["test", "bench", "demo"].flatMap(readSources);
  const limitOf = (path: string) => (/(^test\/|\.test\.ts$)/.test(path) ? TEST_LIMIT : LIMIT);
  const lengths = new Map(
    [...inPackages, ...others]
      .filter(({ path }) => !path.includes("/generated/"))
      .map(({ path, text }) => [path, text.split("\n").length - 1]),
  );

  test(`no source is longer than ${LIMIT} lines, and no test longer than ${TEST_LIMIT}, without a reason`, () => {
    const tooLong = [...lengths].filter(([path, length]) => length > limitOf(path) && longFiles[path] === undefined);
    assert.equal(
      tooLong.map(([path, length]) => `${path}: ${length} lines`),
      [],
    );
  });

  test("every exception for a file is still needed and has a reason", () => {
    const needless = Object.entries(longFiles).filter(
      ([path, reason]) => (lengths.get(path) ?? 0) <= limitOf(path) || reason === "",
    );
    assert.equal(
      needless.map(([path]) => path),
      [],
    );
  });

  const counts = new Map<string, number>();
  for (const { path } of inPackages) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);

  test(`no folder of a package has more than ${FOLDER_LIMIT} files, or more than its exception allows`, () => {
    const tooFull = [...counts].filter(([folder, count]) => count > (fullFolders[folder]?.[0] ?? FOLDER_LIMIT));
    assert.equal(
      tooFull.map(([folder, count]) => `${folder}: ${count} files`),
      [],
    );
  });

  test("every exception for a folder is still needed and has a reason", () => {
    const needless = Object.entries(fullFolders).filter(
      ([folder, [, reason]]) => (counts.get(folder) ?? 0) <= FOLDER_LIMIT || reason === "",
    );
    assert.equal(
      needless.map(([folder]) => folder),
      [],
    );
  });
});
