import { spawnSync } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { COMMANDS } from "#generator/cli.js";
import { fastCompiler } from "../../support/projects/compile.js";
import { runCommand, runProgram, type CommandOutcome } from "../../support/command-line.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { linkPackages } from "../../support/projects/link-packages.js";

const crds = join(repositoryRoot, "fixtures/crds");
const sample = join(repositoryRoot, "fixtures/samples/webpage");

function assertSucceeds({ status, stdout, stderr }: CommandOutcome): void {
  assert.is(stderr, "");
  assert.is(status, 0, stdout);
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** A project with the CRD and the workflow of the sample, and nothing generated yet. */
async function createProject(workflow?: string) {
  const folder = await createTemporaryFolder();
  await cp(join(sample, "crds"), join(folder.path, "crds"), { recursive: true });
  const text = workflow ?? (await readFile(join(sample, "workflow.yaml"), "utf8"));
  await writeFile(join(folder.path, "workflow.yaml"), text);
  return folder;
}

suite("gen-operator", (test) => {
  test("prints help, which names every command, and version to stdout", async () => {
    const help = runProgram(repositoryRoot, "--help");
    assertSucceeds(help);
    for (const [command, { summary }] of COMMANDS)
      assert.match(help.stdout.replaceAll(/\s+/g, " "), new RegExp(`gen-operator ${command}( [^ ]+)* ${summary}`));
    const manifest = await readFile(join(repositoryRoot, "generator/package.json"), "utf8");
    const { version } = JSON.parse(manifest) as { version: string };
    assert.is(runProgram(repositoryRoot, "--version").stdout, `${version}\n`);
  });

  test("exits with 2 and a message on stderr for an invalid command line", async () => {
    const cases: [args: string[], message: RegExp][] = [
      [[], /a command is required/],
      [["generat"], /^gen-operator: unknown command "generat"; did you mean "generate"\? /],
      [["generate", "--chek"], /^gen-operator: unknown argument "chek"; did you mean "--check"\? /],
      [["generate", "--watch", "--forget", "page"], /^gen-operator: --forget cannot be combined with --watch /],
      [
        ["generate", "--project", "package.json"],
        /^gen-operator: invalid value "package\.json" of --project: must be a folder /,
      ],
      [["generate", "--project", "nowhere"], /^gen-operator: folder "nowhere" of --project not found /],
      [["init"], /^gen-operator: an argument is required: gen-operator init DIR /],
      [["add", "dependent"], /^gen-operator: an argument is required: gen-operator add dependent <name> /],
      [["generate", "extra"], /extra/],
      [["--hlep"], /^gen-operator: unknown argument "hlep"; did you mean "--help"\? \(see gen-operator --help\)/],
      [["types", "--ot", "x"], /^gen-operator: unknown argument "ot"; did you mean "--out"\? /],
      [
        ["add", "dependent", "a", "--resorce=v1/Secret"],
        /^gen-operator: unknown argument "resorce"; did you mean "--resource"\? /,
      ],
      [["add", "dependnt", "a"], /^gen-operator: unknown argument "dependnt"; did you mean "dependent"\? /],
      [["types"], /at least 1|files|out/],
      [["init", "a"], /crd/],
    ];
    for (const [args, message] of cases) {
      const outcome = await runCommand(repositoryRoot, ...args);
      assert.is(outcome.status, 2, args.join(" "));
      assert.is(outcome.stdout, "");
      assert.match(outcome.stderr, message);
    }
    assert.equal(runProgram(repositoryRoot, "generat"), await runCommand(repositoryRoot, "generat"));
  });
});

suite("long argument", (test) => {
  const long = "x".repeat(20_000);
  const commands: readonly (readonly string[])[] = [
    [long],
    ["generate", `--${long}`],
    ["generate", "--project", long],
    ["graph", "--output", long],
    ["explain", long],
    ["add", "dependent", long, "--resource", "v1/Pod"],
    ["add", "dependent", "web", "--resource", long],
    ["types", long, "--out", "out"],
    ["init", long, "--example", "webpage"],
  ];
  for (const [index, args] of commands.entries())
    test(`is shortened in errors: ${args.join(" ").replaceAll(long, "LONG")}`, async () => {
      const { status, stderr } = await runCommand(repositoryRoot, ...args);
      assert.is.not(status, 0, String(index));
      assert.ok(stderr.length > 0 && stderr.length < 1_000, `${stderr.length} characters`);
    });
});

suite("gen-operator generate", (test) => {
  test(
    "writes code once, then reports unchanged files, and lists stale files with --check",
    async () => {
      await using project = await createProject();
      const first = await runCommand(project.path, "generate");
      assertSucceeds(first);
      assert.match(first.stdout, "created src/generated/webpage/workflow.ts\n");
      assert.match(first.stdout, /\n\d+ created\n$/);
      const again = await runCommand(project.path, "generate");
      assertSucceeds(again);
      assert.match(again.stdout, /^\d+ unchanged, \d+ kept\n$/);
      assertSucceeds(await runCommand(project.path, "generate", "--check"));

      const workflow = join(project.path, "workflow.yaml");
      const text = await readFile(workflow, "utf8");
      await writeFile(workflow, text.replace("primary.spec.exposed === true", "primary.spec.exposed !== false"));
      const generated = join(project.path, "src/generated/webpage/workflow.ts");
      const before = await readFile(generated, "utf8");
      const stale = await runCommand(project.path, "generate", "--check");
      assert.is(stale.status, 1);
      assert.is(stale.stdout, "");
      assert.match(
        stale.stderr,
        /^stale src\/generated\/webpage\/workflow.ts\ngenerated code is not up to date: 1 file; run: npx gen-operator generate\n$/,
      );
      assert.is(await readFile(generated, "utf8"), before);
      const update = await runCommand(repositoryRoot, "generate", "--project", project.path);
      assertSucceeds(update);
      assert.match(
        update.stdout,
        /^updated src\/generated\/webpage\/workflow.ts\n1 updated, \d+ unchanged, \d+ kept\n$/,
      );
    },
    { timeoutMs: 120_000 },
  );

  test(
    "writes nothing after an error, and keeps earlier output",
    async () => {
      await using project = await createProject();
      assertSucceeds(await runCommand(project.path, "generate"));
      const workflow = join(project.path, "workflow.yaml");
      await writeFile(
        workflow,
        (await readFile(workflow, "utf8")).replace("primary.spec.exposed", "primary.spec.exposd"),
      );
      const before = await filesOf(project.path);
      const { status, stderr } = await runCommand(project.path, "generate");
      assert.is(status, 1);
      assert.match(stderr, /^workflow.yaml:\d+:\d+: error when-type: Property 'exposd' does not exist/);
      assert.equal(await filesOf(project.path), before);
    },
    { timeoutMs: 60_000 },
  );

  test("rejects a missing folder with 2 and a folder without specs with 1", async () => {
    await using folder = await createTemporaryFolder();
    const empty = await runCommand(repositoryRoot, "generate", "--project", folder.path);
    assert.is(empty.status, 1);
    assert.match(empty.stderr, `error no-workflow: workflow.yaml not found in folder "${folder.path}"`);
    const missing = join(folder.path, "nothing");
    const { status, stderr } = await runCommand(repositoryRoot, "generate", "--project", missing);
    assert.is(status, 2);
    assert.match(stderr, `gen-operator: folder "${missing}" of --project not found `);
    assert.equal(await filesOf(folder.path), []);
  });

  test("does not overwrite a user's file in src/generated", async () => {
    await using project = await createProject("");
    const spec = {
      apiVersion: "gen-operator.dev/v1alpha1",
      kind: "Workflow",
      metadata: { name: "deployment" },
      spec: { primary: "apps/v1/Deployment" },
    };
    // JSON is a spec, too, and a controller needs neither a CRD nor dependents.
    await rm(join(project.path, "workflow.yaml"));
    await writeFile(join(project.path, "deployment.workflow.json"), JSON.stringify(spec));
    await mkdir(join(project.path, "src/generated"), { recursive: true });
    await writeFile(join(project.path, "src/generated/index.ts"), "mine\n");
    const { status, stderr } = await runCommand(project.path, "generate");
    assert.is(status, 1);
    assert.is(
      stderr.split("\n")[0]?.startsWith("gen-operator: refused to overwrite src/generated/index.ts"),
      true,
      stderr,
    );
    assert.equal(await readdir(join(project.path, "src/generated")), ["index.ts"]);
    await rm(join(project.path, "src/generated/index.ts"));
    assertSucceeds(await runCommand(project.path, "generate"));
  });
});

suite("gen-operator types", (test) => {
  test("writes a class for every version of every CRD, and detects stale files", async () => {
    await using folder = await createTemporaryFolder();
    const file = join(crds, "ordinary/gateways.yaml");
    const first = await runCommand(folder.path, "types", file, "--out", "src/resources");
    assertSucceeds(first);
    const files = await filesOf(join(folder.path, "src/resources"));
    assert.equal(
      files.filter((path) => path.endsWith(".ts") && !path.endsWith(".schema.ts")),
      [
        "index.ts",
        "resources/net.example.com/v1/gateway-class.ts",
        "resources/net.example.com/v1/gateway.ts",
        "resources/net.example.com/v1alpha1/gateway-class.ts",
        "resources/net.example.com/v1alpha1/gateway.ts",
        "resources/net.example.com/v1beta1/gateway.ts",
        "resources/net.example.com/v1beta2/gateway.ts",
      ],
    );
    assertSucceeds(await runCommand(folder.path, "types", file, "--out", "src/resources", "--check"));
    await rm(join(folder.path, "src/resources/index.ts"));
    const stale = await runCommand(folder.path, "types", file, "--out", "src/resources", "--check");
    assert.is(stale.status, 1);
    assert.match(stale.stderr, /^stale index.ts\n/);
  });

  test("rejects files without a CRD and writes nothing", async () => {
    await using folder = await createTemporaryFolder();
    await writeFile(join(folder.path, "a.yaml"), "kind: ConfigMap\n");
    const { status, stderr } = await runCommand(folder.path, "types", "a.yaml", "--out", "out");
    assert.is(status, 1);
    assert.is(
      stderr,
      "a.yaml:1:1: warning not-a-crd: no CustomResourceDefinition found; the file is ignored\n" +
        "error no-crds: no CustomResourceDefinition found in the files\n1 error; nothing was written\n",
    );
    assert.is((await runCommand(folder.path, "types", "b.yaml", "--out", "out")).status, 1);
    assert.equal(await filesOf(folder.path), ["a.yaml"]);
  });
});

suite("gen-operator init", (test) => {
  test.thorough(
    "creates a generated project, and overwrites nothing on the second run",
    async () => {
      await using folder = await createTemporaryFolder();
      const crd = join(sample, "crds/webpages.example.com.yaml");
      const first = runProgram(folder.path, "init", "pages", "--crd", crd);
      assertSucceeds(first);
      for (const path of ["package.json", "workflow.yaml", "src/main.ts", "src/generated/index.ts"])
        assert.match(first.stdout, `created ${path}\n`);
      const stub = join(folder.path, "pages/src/main.ts");
      await writeFile(stub, "// mine\n");
      assertSucceeds(await runCommand(folder.path, "init", "pages", "--crd", crd));
      assert.is(await readFile(stub, "utf8"), "// mine\n");
    },
    { timeoutMs: 60_000 },
  );

  test(
    "creates a controller for each kind of a file, and quotes the folder in its next step",
    async () => {
      await using folder = await createTemporaryFolder();
      const outcome = await runCommand(folder.path, "init", "the net's", "--crd", join(crds, "ordinary/gateways.yaml"));
      assertSucceeds(outcome);
      // A shell takes the line as it is.
      assert.match(outcome.stdout, `next: cd 'the net'\\''s' && npm install && npm run dev\n`);
      const workflow = await readFile(join(folder.path, "the net's/workflow.yaml"), "utf8");
      assert.match(workflow, "primary: net.example.com/v1/Gateway\n");
      assert.match(workflow, "primary: net.example.com/v1alpha1/GatewayClass\n");
    },
    { timeoutMs: 60_000 },
  );

  test("rejects a file that is not a CRD and creates no folder", async () => {
    await using folder = await createTemporaryFolder();
    await writeFile(join(folder.path, "a.yaml"), "kind: CustomResourceDefinition\n");
    const { status, stderr } = await runCommand(folder.path, "init", "pages", "--crd", "a.yaml");
    assert.is(status, 1);
    assert.match(stderr, /^a.yaml:1:1: error crd-version: apiVersion must be apiextensions.k8s.io\/v1, found nothing/);
    assert.equal(await readdir(folder.path), ["a.yaml"]);
  });
});

suite("hostile strings and names", (test) => {
  const kinds = [
    "Object",
    "Map",
    "Promise",
    "Condition",
    "Desired",
    "NonNullable",
    "Foo",
    "FooInput",
    "Partial",
    "class",
  ];
  const workflow = `apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: resource }
spec:
  primary: example.com/v1/Hostile
  controller:
    fieldManager: "*/ \`\${process.exit(1)}\` '\\""
    labelSelector: "a notin (b), c"
  dependents:
${kinds.map((kind, index) => `    d${index}: { resource: kinds.example.com/v1/${kind}, dependsOn: [${index > 0 ? `d${index - 1}` : ""}] }\n`).join("")}
    ready:
      resource: v1/ConfigMap
      dependsOn: [d1]
      readyPostcondition: { function: ready }
      reconcilePrecondition:
        when: |
          // the text of a field, not a way out: \`\${process.exit(1)}\` */
          primary.spec?.["*/ process.exit(1); /*"] === "\`\${process.exit(1)}\`" && secondary.d1 === undefined
`;

  test.thorough(
    "are emitted as data in code that compiles",
    async () => {
      await using folder = await createTemporaryFolder();
      await cp(join(crds, "hostile"), join(folder.path, "crds"), { recursive: true });
      // The CRD of a primary has to be one that an API server takes: no line breaks in messages, and no rule about a field that is not there.
      const texts = await readFile(join(folder.path, "crds/texts.json"), "utf8");
      await writeFile(
        join(folder.path, "crds/texts.json"),
        texts
          .replace("/*\\n@ts-ignore", "/* @ts-ignore")
          .replace("please\\nprocess", "please process")
          .replace("self.a == '*/'", "size('*/') == 2"),
      );
      await writeFile(join(folder.path, "workflow.yaml"), workflow);
      const outcome = await runCommand(folder.path, "generate");
      assertSucceeds(outcome);
      await linkPackages(folder.path);
      await writeFile(join(folder.path, "package.json"), '{ "type": "module" }\n');
      const flags =
        "--module nodenext --target es2022 --lib es2023,esnext.disposable --types node --strict --skipLibCheck";
      const strict =
        "--exactOptionalPropertyTypes --noUncheckedIndexedAccess --verbatimModuleSyntax --erasableSyntaxOnly";
      const compiled = spawnSync(
        process.execPath,
        [fastCompiler.command, ...`${flags} ${strict} --outDir dist`.split(" "), "src/generated/index.ts"],
        { cwd: folder.path, encoding: "utf8" },
      );
      assert.is(compiled.stdout, "");
      const script =
        'const { Hostile } = await import("./dist/generated/index.js"); const { properties } = Hostile.definition.schema;' +
        "console.log(JSON.stringify([Object.keys(properties.spec.properties), Object.getPrototypeOf(properties) === Object.prototype]))";
      const loaded = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
        cwd: folder.path,
        encoding: "utf8",
      });
      assert.is(loaded.status, 0, loaded.stderr);
      const crd = JSON.parse(await readFile(join(crds, "hostile/texts.json"), "utf8")) as HostileCrd;
      const names = Object.keys(crd.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties);
      assert.equal(JSON.parse(loaded.stdout), [names, true]);
    },
    { timeoutMs: 120_000 },
  );
});

interface HostileCrd {
  spec: { versions: [{ schema: { openAPIV3Schema: { properties: { spec: { properties: object } } } } }] };
}
