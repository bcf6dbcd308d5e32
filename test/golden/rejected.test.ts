import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";

const fixtures = join(repositoryRoot, "fixtures/rejected");
const program = join(repositoryRoot, "generator/bin/gen-operator.js");

/**
 * Each folder is a project with something wrong, and `expected.txt`: all that the program prints. In folders whose name starts with
 * `warning-` something only looks wrong, which is an error with `--strict`.
 */
suite("rejected projects", (test) => {
  const names = readdirSync(fixtures).sort();

  test("there is one for every rule of the model", () => {
    const rules = readdirSync(join(repositoryRoot, "generator/src/model/rules")).map((file) => file.slice(0, -3));
    const printed = names.map((name) => readFileSync(join(fixtures, name, "expected.txt"), "utf8")).join("");
    const reported = new Set([...printed.matchAll(/ error ([a-z-]+): /g)].map(([, rule]) => rule));
    // Some rules are reported under more precise names.
    const aliases: Record<string, string> = { "condition-expression": "when-syntax", "primary-crd": "not-a-crd" };
    assert.equal(
      rules.filter((rule) => !reported.has(aliases[rule] ?? rule)),
      [],
    );
  });

  const outcomes = runAll(names);
  for (const name of names)
    test(
      `${name} is reported word for word, and nothing is written`,
      async () => {
        const folder = join(fixtures, name);
        const { exitCode, stdout, stderr, before } = await outcomes.get(name)!;
        assert.is(exitCode, 1, stderr);
        assert.is(stdout, "");
        if (process.env["UPDATE_GOLDEN"] === "1") return writeFileSync(join(folder, "expected.txt"), stderr);
        assert.is(stderr, readFileSync(join(folder, "expected.txt"), "utf8"));
        assert.equal(contentOf(folder), before);
      },
      { timeoutMs: 120_000 },
    );
});

interface Outcome {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly before: [path: string, text: string][];
}

/** Starts the program in all folders, as many at once as there are processors. */
function runAll(names: readonly string[]): Map<string, Promise<Outcome>> {
  const lanes = Array.from({ length: availableParallelism() }, () => Promise.resolve<unknown>(undefined));
  return new Map(
    names.map((name, index) => {
      const lane = index % lanes.length;
      const outcome = lanes[lane]!.then(() => run(join(fixtures, name)));
      lanes[lane] = outcome;
      return [name, outcome];
    }),
  );
}

function run(folder: string): Promise<Outcome> {
  const before = contentOf(folder);
  const strict = basename(folder).startsWith("warning-") ? ["--strict"] : [];
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, "generate", ...strict], { cwd: folder }, (_, stdout, stderr) =>
      resolve({ exitCode: child.exitCode, stdout, stderr, before }),
    );
  });
}

function contentOf(folder: string): [path: string, text: string][] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => [path, readFileSync(path, "latin1")]);
}
