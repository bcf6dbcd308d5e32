import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { checkFiles, compilers, strictOptions } from "../support/projects/compile.js";
import { checkGolden } from "../support/projects/golden-file.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { linkPackages } from "../support/projects/link-packages.js";

const cases = join(repositoryRoot, "test/types/cases");

suite("generated types", (declareTest) => {
  // Compilers and formatters take seconds, more so when other tests run beside them.
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 60_000 });
  test("accept valid code, and reject invalid code with the recorded message and line", () => {
    const accepted = filesIn("accepts");
    const rejected = filesIn("rejects");
    const problems = checkFiles([...accepted, ...rejected]);
    for (const file of accepted) assert.equal(problems.get(file) ?? [], [], file);
    for (const file of rejected) {
      const actual = `${(problems.get(file) ?? []).join("\n")}\n`;
      checkGolden(file.replace(/\.ts$/, ".txt"), actual);
    }
    const known = new Set([...accepted, ...rejected]);
    assert.equal(
      [...problems.keys()].filter((file) => !known.has(file)),
      [],
    );
  });

  test("accept the same code without exactOptionalPropertyTypes", () => {
    const options = strictOptions({ exactOptionalPropertyTypes: false });
    assert.equal([...checkFiles(filesIn("accepts"), options)], []);
  });

  const native = compilers.find(({ name }) => name === "typescript 7");
  if (native === undefined)
    declareTest.skip("are rejected on the same lines by TypeScript 7", "typescript-7 is not installed");
  else
    test("are rejected on the same lines with the same error codes by TypeScript 7", async () => {
      await using folder = await createTemporaryFolder();
      const files = [...filesIn("accepts"), ...filesIn("rejects")];
      const compilerOptions = { composite: false, noEmit: true, rootDir: repositoryRoot, outDir: "dist" };
      const config = { extends: join(repositoryRoot, "tsconfig.json"), compilerOptions, files };
      await linkPackages(folder.path);
      await writeFile(join(folder.path, "tsconfig.json"), JSON.stringify(config));
      const printed = native.compile(folder.path);
      const actual = [...printed.matchAll(/([\w-]+\.ts)\((\d+),\d+\): error (TS\d+)/g)].map(
        ([, file, line, code]) => `${file} ${line}: ${code}`,
      );
      const expected = filesIn("rejects").flatMap((file) => {
        const golden = readFileSync(file.replace(/\.ts$/, ".txt"), "utf8");
        return [...golden.matchAll(/^(\d+: TS\d+) /gm)].map(([, place]) => `${basename(file)} ${place}`);
      });
      assert.equal(actual.sort(), expected.sort(), printed);
    });

  test("have a recorded error for every file of invalid code", () => {
    for (const file of filesIn("rejects"))
      assert.match(readFileSync(file.replace(/\.ts$/, ".txt"), "utf8"), /^\d+: TS\d+ /, file);
  });
});

function filesIn(folder: string): string[] {
  return readdirSync(join(cases, folder))
    .filter((name) => name.endsWith(".ts"))
    .sort()
    .map((name) => join(cases, folder, name));
}
