// Whoever follows the tutorial in the README of the generator gets what it shows: its files are a project that compiles and passes its
// test, and its mistakes give the messages that it quotes.
import { spawnSync } from "node:child_process";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { waitFor } from "#apiserver/wait-for.js";
import { runCommand } from "../support/command-line.js";
import { chosenCompilers } from "../support/projects/compile.js";
import { fencesOf } from "../support/projects/fences.js";
import { repositoryRoot } from "../support/repository.js";
import { createProcessGroup } from "../support/machine/process-group.js";
import { assert, shared, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { linkPackages } from "../support/projects/link-packages.js";

const README = "generator/README.md";

/** How long a command of the reader may take on a machine that is busy with other tests, and how much longer its own waits last. */
const COMMAND_MS = 110_000;
const PATIENT = { GEN_OPERATOR_WAIT_FACTOR: "5" };

const readme = await readFile(join(repositoryRoot, README), "utf8");
const tutorial = readme.slice(readme.indexOf("## Tutorial"), readme.indexOf("## What belongs to whom"));
const fences = fencesOf(README, tutorial);

/** Returns the only block that `isMeant` holds for. */
function codeWhere(what: string, isMeant: (fence: { info: string; code: string }) => boolean): string {
  const found = fences.filter(isMeant);
  assert.is(found.length, 1, `the tutorial has ${found.length} blocks with ${what}`);
  return found[0]!.code;
}

const diffs = fences.filter(({ info }) => info === "diff").map(({ code }) => code);
const files = fences.filter(({ info }) => info.startsWith("ts ")).map(({ code }) => code);
const mistakes = codeWhere("mistakes", ({ code }) => code.includes("# isPublik"));
const renamed = codeWhere("the renamed field", ({ code }) => code.startsWith("npm run generate && npm run build\n"));

/** A folder of a reader of the tutorial. */
interface Project extends AsyncDisposable {
  readonly path: string;
  /** Replaces a text that a file has to contain. */
  replace(file: string, from: string, to: string): Promise<void>;
  /** `npm run generate`; returns all that it prints. */
  generate(): Promise<string>;
  /** `npm run build`; returns all that it prints: nothing if all is well. */
  build(): string;
}

function projectIn(path: string, dispose: () => Promise<void>): Project {
  return {
    path,
    async replace(file, from, to) {
      const text = await readFile(join(path, file), "utf8");
      assert.ok(text.includes(from), `${file} does not contain ${from}`);
      await writeFile(join(path, file), text.replaceAll(from, to));
    },
    async generate() {
      const { stdout, stderr } = await runCommand(path, "generate");
      return stdout + stderr;
    },
    build: () => stripVTControlCharacters(chosenCompilers[0]!.compile(path, { pretty: true })),
    [Symbol.asyncDispose]: dispose,
  };
}

function run(folder: string, args: readonly string[]): string {
  // A test runner inside a test runner would report to the outer one.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const { stdout, stderr, error } = spawnSync(process.execPath, args, {
    ...{ cwd: folder, env: { ...env, ...PATIENT }, encoding: "utf8", timeout: COMMAND_MS },
  });
  if (error !== undefined) throw error;
  return stripVTControlCharacters(stdout + stderr);
}

/** Applies a difference of the tutorial: each line that goes stands in the file, and the line that comes takes its place. */
async function applyDiff(project: Project, file: string, diff: string): Promise<void> {
  const [gone = "", come = ""] = ["-", "+"].map((sign) => diff.split("\n").find((line) => line.startsWith(sign)));
  await project.replace(file, gone.slice(1), come.slice(1));
}

/** The project after the first five steps. */
const finished = shared(async () => {
  const folder = await createTemporaryFolder();
  await writeFile(
    join(folder.path, "guestbook.yaml"),
    codeWhere("the CRD", ({ info }) => info === "yaml guestbook.yaml"),
  );
  const { status, stderr } = await runCommand(folder.path, "init", "guestbook", "--crd", "guestbook.yaml");
  assert.is(status, 0, stderr);
  const project = projectIn(join(folder.path, "guestbook"), async () => folder[Symbol.asyncDispose]());
  await linkPackages(project.path);
  assert.match(await readFile(join(project.path, "test/guestbook.test.ts"), "utf8"), quotedTest("npm install"));
  await writeFile(
    join(project.path, "workflow.yaml"),
    codeWhere("the workflow", ({ info }) => info === "yaml"),
  );
  const [, created = ""] = /`(created src\/[^`]+)`/.exec(tutorial) ?? [];
  assert.match(await project.generate(), `${created}\n`);
  await applyDiff(project, "src/guestbook/dependents/config-map.ts", diffs[0]!);
  for (const code of files) {
    const [, file = ""] = /^\/\/ (\S+\.ts)\n/.exec(code) ?? [];
    await writeFile(join(project.path, file), code);
  }
  assert.match(await project.generate(), quotedUpdate());
  return project;
});

/** What `npm run generate` prints once there is a reconciler. */
function quotedUpdate(): string {
  return /`(updated src\/[^`]+)`/.exec(tutorial)?.[1] ?? "an update";
}

/** The title of the test that a command of the tutorial prints. */
function quotedTest(command: string): string {
  const behind = tutorial.slice(tutorial.indexOf(command));
  return /✔ ([^`\n]+)/.exec(behind)?.[1] ?? "a title";
}

async function copyProject(): Promise<Project> {
  const folder = await createTemporaryFolder();
  await cp((await finished()).path, folder.path, { recursive: true, verbatimSymlinks: true });
  return projectIn(folder.path, async () => folder[Symbol.asyncDispose]());
}

/** Returns the lines of a block that quote output: all but commands and comments. */
const quotedLines = (block: string) => block.split("\n").filter((line) => line !== "" && !/^(#|npm )/.test(line));

/** Runs the commands of the step in which the operator runs. */
async function comparePlay(): Promise<void> {
  await using project = await copyProject();
  assert.is(project.build(), "");
  const group = await createProcessGroup("gen-operator-tutorial-");
  try {
    const kubeconfig = join(group.folder, "kubeconfig");
    const environment = [`KUBECONFIG=${kubeconfig}`, "LOG_FORMAT=pretty", process.execPath];
    const apiserver = join(project.path, "node_modules/.bin/apiserver");
    const options = ["--simulate", "--crds", join(project.path, "crds/guestbook.yaml"), "--kubeconfig", kubeconfig];
    group.start("apiserver", process.execPath, [apiserver, ...options]);
    await waitFor("a kubeconfig", () => readFile(kubeconfig, "utf8").catch(() => ""), {
      timeoutMs: COMMAND_MS / 2,
    });
    group.start("operator", "env", [...environment, join(project.path, "dist/src/main.js")]);
    const log = () => readFile(join(group.folder, "operator.log"), "utf8");
    await waitFor("a line of the operator", log, { timeoutMs: COMMAND_MS / 2 });
    const printed = spawnSync("env", [...environment, join(project.path, "dist/src/play.js")], {
      ...{ env: { ...process.env, ...PATIENT }, encoding: "utf8", timeout: COMMAND_MS },
    });
    const quoted = quotedLines(codeWhere("output of the script", ({ code }) => code.startsWith("Guestbook created")));
    // The log names a repair when its write is answered; the script may have seen the result before.
    const missing = async () => {
      const output = stripVTControlCharacters(printed.stdout + printed.stderr + (await log()));
      return quoted.filter((line) => !output.includes(line));
    };
    await waitFor("all quoted lines", async () => (await missing()).length === 0).catch(() => undefined);
    assert.equal(await missing(), [], printed.stdout + printed.stderr);
  } finally {
    await group.close();
  }
}

suite("tutorial", (test) => {
  test.thorough(
    "contains a project that compiles and passes its test",
    async () => {
      await using project = await copyProject();
      assert.is(project.build(), "");
      const output = run(project.path, ["--test", "--test-reporter", "spec", "dist/test/guestbook.test.js"]);
      assert.match(output, `✔ ${quotedTest("`npm test` prints")}`);
      assert.match(output, "ℹ fail 0");
    },
    { timeoutMs: 2 * COMMAND_MS },
  );

  test.thorough("quotes the output of its script and the operator's log", comparePlay, { timeoutMs: 2 * COMMAND_MS });

  const edits: Record<string, [file: string, from: string, to: string]> = {
    isPublik: ["workflow.yaml", "primary.spec.isPublic", "primary.spec.isPublik"],
    greting: ["src/guestbook/dependents/config-map.ts", "spec.greeting", "spec.greting"],
    "no dependsOn": ["workflow.yaml", "dependsOn: [configMap], ", ""],
  };
  const quoted = mistakes.split(/^# /m).slice(1);

  test("shows exactly the mistakes that are tested here", () => {
    assert.equal(
      quoted.map((block) => Object.keys(edits).find((mistake) => block.startsWith(mistake))),
      Object.keys(edits),
    );
  });

  for (const [index, [mistake, edit]] of Object.entries(edits).entries())
    test(
      `quotes the output for "${mistake}"`,
      async () => {
        await using project = await copyProject();
        await project.replace(...edit);
        const [heading = "", ...lines] = (quoted[index] ?? "").split("\n").filter((line) => line !== "");
        const generated = heading.includes("npm run generate") ? await project.generate() : "";
        const output = generated + (heading.includes("npm run build") ? project.build() : "");
        assert.ok(lines.length > 0);
        for (const line of lines) assert.match(output, line);
      },
      { timeoutMs: 2 * COMMAND_MS },
    );

  test(
    "quotes the output for a renamed field, and its fix compiles without the old name",
    async () => {
      await using project = await copyProject();
      await project.replace(
        "crds/guestbook.yaml",
        "greeting: { type: string }",
        "message: { type: string }\n                footer: { type: string }",
      );
      await project.replace("crds/guestbook.yaml", "required: [greeting]", "required: [message]");
      const output = (await project.generate()) + project.build();
      for (const line of quotedLines(renamed)) assert.match(output, line);
      await applyDiff(project, "src/guestbook/dependents/config-map.ts", diffs[1]!);
      const [, named = ""] = /Rename `greeting` in (.+?), and\s+use/s.exec(tutorial) ?? [];
      for (const [, file = ""] of named.matchAll(/`([^`]+)`/g)) await project.replace(file, "greeting:", "message:");
      assert.is(project.build(), "");
      for (const folder of ["crds", "deploy", "examples", "src", "test"])
        for (const file of await readdir(join(project.path, folder), { recursive: true, withFileTypes: true }))
          if (file.isFile())
            assert.not.match(await readFile(join(file.parentPath, file.name), "utf8"), "greeting", file.name);
    },
    { timeoutMs: 2 * COMMAND_MS },
  );
});
