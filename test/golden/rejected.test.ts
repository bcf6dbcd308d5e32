import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "../support/command-line.js";
import { checkGolden } from "../support/projects/golden-file.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";

const fixtures = join(repositoryRoot, "fixtures/rejected");

/**
 * Each folder is a project with something wrong, and `expected.txt`: all that the program prints. In folders whose name starts with
 * `warning-` something only looks wrong, which is an error with `--strict`. In those whose name starts with `check-` a file is missing,
 * which is an error with `--check`; without it, the file is written.
 */
suite("rejected projects", (test) => {
  const names = readdirSync(fixtures).sort();

  for (const name of names)
    test(
      `${name} fails with the recorded output and writes nothing`,
      async () => {
        const folder = join(fixtures, name);
        const before = contentOf(folder);
        const options = [
          ...(name.startsWith("warning-") ? ["--strict"] : []),
          ...(name.startsWith("check-") ? ["--check"] : []),
        ];
        const { status, stdout, stderr } = await runCommand(folder, "generate", ...options);
        assert.is(status, 1, stderr);
        assert.is(stdout, "");
        assert.equal(contentOf(folder), before);
        checkGolden(join(folder, "expected.txt"), stderr.replaceAll(folder, "/the/project"));
      },
      { timeoutMs: 120_000 },
    );
});

function contentOf(folder: string): [path: string, text: string][] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => [path, readFileSync(path, "latin1")]);
}
