import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { appendFile, chmod, cp, readFile, readlink, rm, stat, utimes, writeFile } from "node:fs/promises";
import fs, { existsSync, lstatSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import fc from "../../../support/fast-check.js";
import { generate, type GenerateOptions } from "#generator/generate.js";
import { repositoryRoot } from "../../../support/repository.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { applyEdit, edit, filesOf } from "./edits.js";

const SAMPLES = join(repositoryRoot, "fixtures/samples");

type Mode = Pick<GenerateOptions, "check" | "dryRun" | "strict">;

const mode: fc.Arbitrary<Mode> = fc.constantFrom({}, {}, {}, { check: true }, { dryRun: true }, { strict: true });

/** Returns all that a run does, as far as anybody sees it. */
async function outcomeOf(project: string, options: Mode) {
  const result = await generate({ project, ...options }).catch((error: unknown) =>
    (error as Error).message.replaceAll(project, "PROJECT"),
  );
  const files = await filesOf(project);
  const contents = await Promise.all(files.map(async (file) => [file, await contentOf(join(project, file))]));
  return { result, files: Object.fromEntries(contents) as Record<string, string> };
}

async function contentOf(path: string): Promise<string> {
  if (lstatSync(path).isSymbolicLink()) return `link to ${(await readlink(path)).replace(/.*\/project\//, "")}`;
  return readFile(path, "utf8");
}

async function createSample(name: string, folder: string): Promise<string> {
  const project = join(folder, "project");
  await cp(join(SAMPLES, name), project, { recursive: true });
  if (!existsSync(join(project, "package.json")))
    await writeFile(join(project, "package.json"), '{ "name": "sample" }');
  return project;
}

/** Generates the code of a project in a process of its own, and tells whether that loads TypeScript. */
async function loadsCompiler(project: string): Promise<boolean> {
  const script = `
    const { generate } = await import(${JSON.stringify(import.meta.resolve("#generator/generate.js"))});
    const { diagnostics } = await generate({ project: ${JSON.stringify(project)} });
    if (diagnostics.some(({ severity }) => severity === "error")) throw new Error(JSON.stringify(diagnostics));
    const { default: module } = await import("node:module");
    console.log(Object.keys(module._cache).some((path) => path.endsWith("/typescript.js")));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  return stdout.trim() === "true";
}

/** Sets the clock of this process ahead until it is disposed of; that of the file system stays. */
function advanceClock(byMs: number): Disposable {
  const { now } = Date;
  Date.now = () => now() + byMs;
  return { [Symbol.dispose]: () => void (Date.now = now) };
}

/** Records which files below a folder this process reads until it is disposed of. */
function observeReads(folder: string) {
  const paths = new Set<string>();
  const { readFileSync, promises } = fs;
  const { readFile } = promises;
  const observe = (path: unknown) => {
    if (String(path).startsWith(`${folder}/`)) paths.add(String(path).slice(folder.length + 1));
  };
  const replace = (functions: { readFileSync: typeof readFileSync; readFile: typeof readFile }) => {
    fs.readFileSync = functions.readFileSync;
    promises.readFile = functions.readFile;
    syncBuiltinESMExports();
  };
  replace({
    readFileSync: ((...args: Parameters<typeof readFileSync>) => {
      observe(args[0]);
      return readFileSync(...args);
    }) as typeof readFileSync,
    readFile: ((...args: Parameters<typeof readFile>) => {
      observe(args[0]);
      return readFile(...args);
    }) as typeof readFile,
  });
  return {
    /** Returns the files that were read since the last call, in order of their names. */
    take() {
      const taken = [...paths].sort();
      paths.clear();
      return taken;
    },
    [Symbol.dispose]: () => replace({ readFileSync, readFile }),
  };
}

/** What the last run of a project is remembered by. */
function memoryOf(project: string): string {
  return join(project, "node_modules/.cache/gen-operator");
}

suite("incremental generate", (declareTest) => {
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 600_000 });

  const thorough = (title: string, body: () => unknown) => declareTest.thorough(title, body, { timeoutMs: 600_000 });

  for (const [sample, declare] of [
    ["webpage", test],
    ["external", thorough],
  ] as const)
    declare(`has the same result as a full run after any edits of ${sample}`, async () => {
      await using original = await createTemporaryFolder();
      const origin = await createSample(sample, original.path);
      const steps = fc.array(fc.record({ edits: fc.array(edit, { maxLength: 2 }), mode }), {
        minLength: 1,
        maxLength: 5,
      });
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          await using folder = await createTemporaryFolder();
          await using twin = await createTemporaryFolder();
          const project = join(folder.path, "project");
          const forgetful = join(twin.path, "project");
          await cp(origin, project, { recursive: true });
          // As files that were written just now are always read, no law would see what is taken for unchanged.
          using _later = advanceClock(3_600_000);
          await generate({ project });
          for (const step of all) {
            for (const each of step.edits) await applyEdit(each, project, origin);
            await rm(forgetful, { recursive: true, force: true });
            await cp(project, forgetful, { recursive: true, verbatimSymlinks: true });
            await rm(memoryOf(forgetful), { recursive: true, force: true });
            const expected = await outcomeOf(forgetful, step.mode);
            assert.equal(await outcomeOf(project, step.mode), expected);
          }
        }),
        { numRuns: runs(8) },
      );
    });

  test("reports the same warnings without changes, and as errors with strict", async () => {
    await using folder = await createTemporaryFolder();
    const project = join(folder.path, "project");
    await cp(join(repositoryRoot, "fixtures/rejected/warning-constant-condition"), project, { recursive: true });
    await writeFile(join(project, "package.json"), "{}");

    await generate({ project });
    // The first run has created code of the user's and a manifest, which only a second run has seen.
    const first = await generate({ project });
    assert.ok(existsSync(join(memoryOf(project), "run.json")));
    const second = await generate({ project });
    assert.equal(second.diagnostics, first.diagnostics);
    assert.is(first.diagnostics.length > 0, true);
    assert.equal(second.report, first.report);

    const strict = await generate({ project, strict: true });
    assert.is(strict.report, undefined);
    assert.ok(strict.diagnostics.every(({ severity }) => severity === "error"));
  });

  test("detects an edit that keeps the size and mtime of a file", async () => {
    await using folder = await createTemporaryFolder();
    using _later = advanceClock(3_600_000);
    const project = await createSample("webpage", folder.path);
    await generate({ project });
    for (const [path, from, to] of [
      ["crds/webpages.example.com.yaml", "integer", "boolean"],
      ["src/generated/index.ts", "DO NOT EDIT", "DO NOT EDIZ"],
    ] as const) {
      const file = join(project, path);
      const { atime, mtime } = await stat(file);
      await writeFile(file, (await readFile(file, "utf8")).replace(from, to));
      await utimes(file, atime, mtime);
      const { report } = await generate({ project, check: true });
      assert.is.not(report?.stale.length, 0);
      await generate({ project });
    }
  });

  for (const [sample, loads, declare] of [
    ["webpage", true, thorough],
    ["bulk", false, test],
  ] as const)
    declare(
      `checks the generated code in the first run of ${sample}, so that the next run loads no compiler`,
      async () => {
        await using folder = await createTemporaryFolder();
        const project = await createSample(sample, folder.path);
        for (const part of ["src", "deploy", "test"]) await rm(join(project, part), { recursive: true, force: true });
        assert.is(await loadsCompiler(project), loads);
        // Whenever npm links the package, it does this to the program.
        const program = join(repositoryRoot, "generator/bin/gen-operator.js");
        await chmod(program, (await stat(program)).mode);
        assert.not.ok(await loadsCompiler(project));
      },
    );

  thorough("loads the compiler only after a change of a condition, its types, or user code", async () => {
    await using folder = await createTemporaryFolder();
    const project = await createSample("webpage", folder.path);
    const edit = async (path: string, from: string, to: string) => {
      const text = await readFile(join(project, path), "utf8");
      assert.ok(text.includes(from));
      await writeFile(join(project, path), text.replace(from, to));
    };
    assert.ok(await loadsCompiler(project));
    await edit("workflow.yaml", "spec:", "# nothing\nspec:");
    // The places of warnings have moved.
    assert.ok(await loadsCompiler(project));
    const crd = "crds/webpages.example.com.yaml";
    await writeFile(
      join(project, "crds/other.yaml"),
      (await readFile(join(project, crd), "utf8")).replaceAll(/(w)eb(p)age/gi, "$1ide$2age"),
    );
    await loadsCompiler(project);
    await edit("crds/other.yaml", "type: string", "type: boolean");
    assert.not.ok(await loadsCompiler(project));
    await edit(
      crd,
      "The document to serve.\n                  type: string",
      "What to serve.\n                  type: boolean",
    );
    assert.ok(await loadsCompiler(project));
    await edit("src/webpage/reconciler.ts", "import", "// new\nimport");
    assert.ok(await loadsCompiler(project));
    assert.not.ok(await loadsCompiler(project));
  });

  test("checks a condition with the types that the user code declares now", async () => {
    await using folder = await createTemporaryFolder();
    const project = await createSample("external", folder.path);
    const spec = join(project, "workflow.yaml");
    const text = await readFile(spec, "utf8");
    const when = 'reconcilePrecondition: { when: "secondary.domain?.[primary.spec.domain]?.isLive === true" }';
    await writeFile(
      spec,
      text.replace(/(\n {4}main:\n)/, (start) => `${start}      ${when}\n`),
    );
    const code = join(project, "src/zone/dependents/domain.ts");
    const messages = async () => (await generate({ project, check: true })).diagnostics.map(({ message }) => message);
    assert.match((await messages()).join("\n"), /Property 'isLive' does not exist/);
    await writeFile(
      code,
      (await readFile(code, "utf8")).replace(
        "readonly id: string;",
        "readonly id: string;\n  readonly isLive?: boolean;",
      ),
    );
    assert.not.match((await messages()).join("\n"), /isLive/);
  });

  test("reads no input and no generated file of a project that has not changed for a while", async () => {
    await using folder = await createTemporaryFolder();
    const project = await createSample("webpage", folder.path);
    await generate({ project });
    using _later = advanceClock(3_600_000);
    // One run sees the files that the first has written, the next one learns what they hold.
    await generate({ project });
    await generate({ project, check: true });
    const own = ["node_modules/.cache/gen-operator/run.json", "src/generated/.gen-operator.json"];
    const spec = join(project, "workflow.yaml");
    using reads = observeReads(project);
    for (const options of [{}, { check: true }]) {
      await generate({ project, ...options });
      assert.equal(reads.take(), own);
    }
    await appendFile(spec, "# more\n");
    await generate({ project });
    const again = reads.take();
    assert.ok(again.includes("workflow.yaml") && again.includes("src/webpage/reconciler.ts"), again.join());
  });

  test("creates no cache folder without package.json and node_modules", async () => {
    await using folder = await createTemporaryFolder();
    const project = await createSample("webpage", folder.path);
    await rm(join(project, "package.json"));
    await generate({ project });
    assert.not.ok(existsSync(join(project, "node_modules")));
  });

  test("creates no cache folder in a check", async () => {
    await using folder = await createTemporaryFolder();
    const project = await createSample("webpage", folder.path);
    await rm(memoryOf(project), { recursive: true, force: true });
    await generate({ project, check: true });
    assert.not.ok(existsSync(join(project, "node_modules")));
  });
});
