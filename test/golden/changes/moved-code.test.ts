// A dependent gets another name: what becomes of the user's files.
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generate, type GenerateOptions } from "#generator/generate.js";
import { diskOperations } from "#generator/write/write-files.js";
import { runCommand } from "../../support/command-line.js";
import { fastCompiler } from "../../support/projects/compile.js";
import { checkGolden } from "../../support/projects/golden-file.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const sample = join(repositoryRoot, "fixtures/samples/webpage");
const fixtures = join(repositoryRoot, "fixtures/moved-code");
const OLD_STUB = "src/webpage/dependents/deployment.ts";
const NEW_STUB = "src/webpage/dependents/web.ts";
const MOVED = "  moved:\n    - { from: deployment, to: web }\n";

/** The sample with more code, and what its spec says of a Deployment by another name. */
async function createProject({ installs = true } = {}) {
  const folder = await createTemporaryFolder();
  for (const part of ["src", "deploy", "crds", "test", "workflow.yaml"])
    await cp(join(sample, part), join(folder.path, part), { recursive: true });
  if (installs) await symlink(join(repositoryRoot, "node_modules"), join(folder.path, "node_modules"));
  await writeFile(join(folder.path, "package.json"), JSON.stringify({ name: "webpage", type: "module" }));
  const compilerOptions = {
    ...{ composite: false, rootDir: ".", noEmit: true, tsBuildInfoFile: null, noUnusedLocals: false },
  };
  const config = { extends: join(repositoryRoot, "tsconfig.json"), compilerOptions, include: ["src"] };
  await writeFile(join(folder.path, "tsconfig.json"), JSON.stringify(config));
  const path = (name: string) => join(folder.path, name);
  const run = (options: Omit<GenerateOptions, "project"> = {}) => generate({ project: folder.path, ...options });
  const before = await run();
  assert.equal(before.diagnostics, []);
  for (const name of ["uses", "taken"]) await cp(join(fixtures, `${name}.ts.txt`), path(`src/webpage/${name}.ts`));
  const text = await readFile(path("workflow.yaml"), "utf8");
  const renamed = text.replace("    deployment:\n", "    web:\n").replace("[deployment]", "[web]");
  return {
    path: folder.path,
    ...{ file: path, run },
    read: (name: string) => readFile(path(name), "utf8"),
    rename: (addition = MOVED) => writeFile(path("workflow.yaml"), renamed + addition),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

/** The text of every file below a folder, but for packages and caches. */
async function contentOf(folder: string): Promise<{ [path: string]: string }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes("node_modules"))
    .map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    await Promise.all(files.map(async (file) => [file, await readFile(file, "utf8")] as const)),
  );
}

/** Lets the generator change so many files, and nothing more until it is disposed of, as if the process had ended. */
function endAfter(changes: number): Disposable {
  const kept = { ...diskOperations };
  let count = 0;
  const limited = <Args extends unknown[]>(operation: (...args: Args) => Promise<unknown>) => {
    return async (...args: Args) => {
      if (count >= changes) throw new Error("the process has ended");
      count++;
      await operation(...args);
    };
  };
  const { replace, link, delete: remove } = kept;
  Object.assign(diskOperations, { replace: limited(replace), link: limited(link), delete: limited(remove) });
  return { [Symbol.dispose]: () => void Object.assign(diskOperations, kept) };
}

suite("code of a renamed dependent", (declareTest) => {
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 120_000 });
  const thorough = (title: string, body: () => unknown) => declareTest.thorough(title, body, { timeoutMs: 120_000 });

  thorough("compiles before and after the rename", async () => {
    await using project = await createProject();
    assert.is(fastCompiler.compile(project.path), "", "before");
    await project.rename();
    await project.run();
    assert.is(fastCompiler.compile(project.path), "", "after");
  });

  test("is renamed in every form, and keeps its comments and format", async () => {
    await using project = await createProject();
    await project.rename();
    const { diagnostics, report } = await project.run();
    assert.equal(diagnostics, []);
    for (const name of ["uses", "taken"])
      checkGolden(join(fixtures, `${name}.moved.ts.txt`), await project.read(`src/webpage/${name}.ts`));
    assert.equal(report?.created, [NEW_STUB]);
    assert.equal(report?.deleted, [OLD_STUB]);
    const theirs = report?.updated.filter((path) => path.startsWith("src/webpage/"));
    assert.equal(theirs, ["src/webpage/reconciler.ts", "src/webpage/taken.ts", "src/webpage/uses.ts"]);
    const original = await readFile(join(sample, OLD_STUB), "utf8");
    assert.is(await project.read(NEW_STUB), original.replaceAll("DeploymentDesired", "WebDesired"));
  });

  thorough("is not changed by a second run, with or without the moved entry", async () => {
    await using project = await createProject();
    await project.rename();
    await project.run();
    const after = await contentOf(project.path);
    assert.equal((await project.run({ check: true })).report?.stale, []);
    await project.run();
    assert.equal(await contentOf(project.path), after);
    await project.rename("");
    const { diagnostics, report } = await project.run();
    assert.equal([diagnostics, report?.updated], [[], ["src/generated/webpage/workflow.ts"]], "movedFrom alone goes");
  });

  thorough("is only reported by --check and --dry-run", async () => {
    await using project = await createProject();
    await project.rename();
    const before = await contentOf(project.path);
    const checked = await project.run({ check: true });
    for (const path of [OLD_STUB, NEW_STUB, "src/webpage/uses.ts"])
      assert.ok(checked.report?.stale.includes(path), path);
    const { changes = [] } = await project.run({ dryRun: true });
    const texts = new Map(changes.map(({ path, after }) => [path, after]));
    assert.is(texts.get(OLD_STUB), undefined);
    assert.is(texts.get("src/webpage/uses.ts"), await readFile(join(fixtures, "uses.moved.ts.txt"), "utf8"));
    assert.equal(await contentOf(project.path), before);
  });

  thorough("is renamed without installed packages", async () => {
    await using project = await createProject({ installs: false });
    await project.rename();
    await project.run();
    checkGolden(join(fixtures, "uses.moved.ts.txt"), await project.read("src/webpage/uses.ts"));
  });

  thorough("is renamed without src/generated, based on the stub", async () => {
    await using project = await createProject();
    await rm(project.file("src/generated"), { recursive: true });
    await project.rename();
    assert.equal((await project.run()).diagnostics, []);
    checkGolden(join(fixtures, "uses.moved.ts.txt"), await project.read("src/webpage/uses.ts"));
    assert.not.ok((await readdir(project.file("src/webpage/dependents"))).includes("deployment.ts"));
  });

  thorough("keeps CRLF line endings and a byte order mark", async () => {
    await using project = await createProject();
    const file = project.file("src/webpage/uses.ts");
    await writeFile(file, (await readFile(file, "utf8")).replaceAll("\n", "\r\n").replace(/^/, "\ufeff"));
    await project.rename();
    await project.run();
    const wanted = await readFile(join(fixtures, "uses.moved.ts.txt"), "utf8");
    assert.is(await readFile(file, "utf8"), `\ufeff${wanted.replaceAll("\n", "\r\n")}`);
  });

  thorough("is not renamed if a file with the new name exists: generate exits with 1 and writes nothing", async () => {
    await using project = await createProject();
    await project.rename();
    await writeFile(project.file(NEW_STUB), "export const mine = 1;\n");
    const before = await contentOf(project.path);
    const { status, stderr } = await runCommand(project.path, "generate");
    assert.is(status, 1);
    assert.match(stderr, `error moved-dependent: cannot move ${OLD_STUB} to ${NEW_STUB}: the file already exists`);
    assert.match(stderr, /^workflow\.yaml:\d+:7: /);
    assert.equal(await contentOf(project.path), before);
  });

  thorough("is completed by the next run, wherever between two files the rename was interrupted", async () => {
    const wanted = await (async () => {
      await using project = await createProject();
      await project.rename();
      await project.run();
      return Object.values(await contentOf(join(project.path, "src")));
    })();
    await using original = await createProject();
    await original.rename();
    for (let changes = 0, isComplete = false; !isComplete; changes++) {
      await using folder = await createTemporaryFolder();
      await cp(original.path, folder.path, { recursive: true, verbatimSymlinks: true });
      {
        using _end = endAfter(changes);
        isComplete = await generate({ project: folder.path }).then(
          () => true,
          () => false,
        );
      }
      assert.ok(!isComplete || changes > 10, `${changes} changes`);
      assert.equal((await generate({ project: folder.path })).diagnostics, [], `after ${changes} changes`);
      const contents = Object.values(await contentOf(join(folder.path, "src")));
      assert.equal(contents, wanted, `after ${changes} changes`);
    }
  });

  thorough("is renamed from either of two former names", async () => {
    await using project = await createProject();
    await project.rename("  moved:\n    - { from: server, to: deployment }\n    - { from: deployment, to: web }\n");
    assert.equal((await project.run()).diagnostics, []);
    checkGolden(join(fixtures, "uses.moved.ts.txt"), await project.read("src/webpage/uses.ts"));
    assert.match(await project.read("src/generated/webpage/workflow.ts"), 'movedFrom: ["deployment", "server"]');
  });

  thorough("is renamed beside a file that does not compile, which is not changed", async () => {
    await using project = await createProject();
    await mkdir(project.file("src/broken"), { recursive: true });
    const broken = 'import { x } from "nowhere";\nexport const a: Missing = x.deployment["deployment"](;\n';
    await writeFile(project.file("src/broken/a.ts"), broken);
    await project.rename();
    await project.run();
    assert.is(await project.read("src/broken/a.ts"), broken);
    assert.match(await project.read("src/webpage/reconciler.ts"), "secondary.web?.status");
  });
});
