// A new user's steps with the packages as they would be published: nothing here comes from the checkout but the archives.
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../support/repository.js";
import { createProcessGroup } from "../support/machine/process-group.js";
import { startCommand } from "../support/machine/started-program.js";
import { assert, shared, suite } from "../support/suite.js";
import { runCommand, userEnvironment } from "./command.js";
import { findPackageProblems } from "./package-problems.js";
import { packageNames, packPackages, unpack } from "./packages.js";
import { createRunnerProject } from "./runner-project.js";
import { keepMovedObject } from "./moved-dependent.js";
import { convergeOnePage, CRD, startProjectServer } from "./running-operator.js";
import { createUserProject, installTools } from "./user-project.js";

const LONG = { timeoutMs: 280_000 };

const crds = {
  webpage: "fixtures/samples/webpage/crds/webpages.example.com.yaml",
  note: "fixtures/crds/notes.example.com.yaml",
  tenant: "fixtures/crds/tenants.example.com.yaml",
  postgresql: "fixtures/crds/postgresqls.db.example.com.yaml",
} as const;

type Kind = keyof typeof crds;

/** What every package has to contain besides its package.json. */
const contents: Record<keyof typeof packageNames, string[]> = {
  apiserver: ["bin/apiserver.js", "data/kubernetes-1.36-schemas.json", "dist/index.js", "dist/simulate/index.d.ts"],
  generator: [
    "bin/gen-operator.js",
    "dist/LICENSES.txt",
    "dist/codegen.d.ts",
    "data/kubernetes-1.36-schemas.json",
    "data/kubernetes-1.36-discovery.json",
    "data/workflow.schema.json",
    "dist/cli.js",
    "dist/index.d.ts",
  ],
  kinds: ["dist/apps/v1.js", "dist/apps/v1.d.ts", "dist/apps/v1.schema.js", "dist/meta/v1.d.ts"],
  runtime: ["dist/index.js", "dist/index.d.ts", "dist/api/codegen.js", "dist/api/codegen.d.ts"],
  schema: ["dist/index.js", "dist/index.d.ts", "dist/cel/index.js", "dist/cel/index.d.ts"],
  templates: [
    "project/_gitignore",
    "project/_dockerignore",
    "project/bundle.js",
    "project/ci.yaml",
    "project/package.json",
    "stubs/main.ts",
    "examples/webpage/workflow.yaml",
    "examples/webpage/src/main.ts",
    "deploy/kustomization.yaml",
    "deploy/.helmignore",
    "deploy/templates/deployment.yaml",
  ],
};

suite("published packages", (test) => {
  const packages = shared(() => packPackages(process.execPath));
  const once = <T>(create: () => Promise<T>) => {
    let created: Promise<T> | undefined;
    return () => (created ??= create());
  };
  const tools = once(async () => installTools(await packages()));
  const projectOf = (kind: Kind) =>
    once(async () =>
      createUserProject(await packages(), { name: `${kind}-operator`, crd: crds[kind], tools: await tools() }),
    );
  const projects = {
    webpage: projectOf("webpage"),
    note: projectOf("note"),
    tenant: projectOf("tenant"),
    postgresql: projectOf("postgresql"),
  };

  test(
    "contain all required files, and no sources, tests or paths of the build machine",
    async () => {
      const { archiveOf, folder, checkout } = await packages();
      const licence = await readFile(join(repositoryRoot, "LICENSE"), "utf8");
      const machine = [repositoryRoot, checkout, folder, `${homedir()}/`];
      for (const [workspace, name] of Object.entries(packageNames)) {
        const unpacked = join(folder, "unpacked", workspace);
        const files = await unpack(archiveOf(name), unpacked);
        const needed = ["LICENSE", "README.md", "package.json", ...contents[workspace as keyof typeof contents]];
        assert.equal(
          needed.filter((file) => !files.includes(file)),
          [],
          `${name} lacks`,
        );
        const unwanted = /\.map$|\.tsbuildinfo$|(^|\/)(test|tests|src|node_modules)\/|\.test\.(js|d\.ts)$|tsconfig/;
        assert.equal(
          files.filter((file) => unwanted.test(file) && !TEMPLATES.has(file) && !file.startsWith("examples/")),
          [],
          `${name} has`,
        );
        assert.is(await readFile(join(unpacked, "LICENSE"), "utf8"), licence, `${name} has another licence`);
        for (const file of files) {
          const text = await readFile(join(unpacked, file), "utf8");
          for (const path of machine) assert.not.ok(text.includes(path), `${name}/${file} names ${path}`);
          assert.not.match(text, /^\/\/# sourceMappingURL=/m, `${name}/${file} points to a source map`);
        }
      }
    },
    LONG,
  );

  test(
    "pass publint and attw",
    async () => {
      const { archiveOf } = await packages();
      for (const name of Object.values(packageNames))
        assert.equal(await findPackageProblems(archiveOf(name)), [], `${name} has`);
    },
    LONG,
  );

  test(
    "import only declared dependencies in the generator's program",
    async () => {
      const { archiveOf, folder } = await packages();
      const unpacked = join(folder, "unpacked-program");
      const files = await unpack(archiveOf("gen-operator"), unpacked);
      const text = await readFile(join(unpacked, "package.json"), "utf8");
      const declared = Object.keys((JSON.parse(text) as { dependencies: object }).dependencies);
      for (const file of files.filter((each) => /^(bin|dist)\/.*\.(js|d\.ts)$/.test(each))) {
        const code = await readFile(join(unpacked, file), "utf8");
        const imported = code.matchAll(
          /^(?:import|(?:import|export)\b[^"\n]* from|\} from) "([^."][^"]*)"|\bimport\("([^."][^"]*)"\)/gm,
        );
        const needed = [...imported]
          .map(([, first, second]) => first ?? second ?? "")
          .filter((each) => !isBuiltin(each));
        const isDeclared = (name: string) => declared.some((each) => name === each || name.startsWith(`${each}/`));
        assert.equal(
          needed.filter((name) => !isDeclared(name)),
          [],
          `${file} imports`,
        );
      }
    },
    LONG,
  );

  const runners = once(async () => createRunnerProject(await packages()));
  for (const runner of ["vitest", "jest"] as const)
    test(
      `run the API server with watch and simulation in ${runner} under fake timers`,
      async () => {
        const { code, stdout, stderr } = await (await runners()).run(runner);
        assert.is(code, 0, stdout + stderr);
        assert.match(stdout + stderr, /Tests.*1 passed/);
      },
      LONG,
    );

  for (const [kind, project] of Object.entries(projects))
    test(
      `init creates a ${kind} project that builds, passes its test and is up to date`,
      async () => {
        const { output, runOrThrow, read } = await project();
        assert.match(output, /^created package\.json$/m);
        assert.match(output, /^created \.gitignore$/m);
        assert.match(output, new RegExp(`^created src/${kind}/dependents/config-map\\.ts$`, "m"));
        assert.match(await read(".gitignore"), /^node_modules\/$/m);
        // An editor completes the spec with the schema that its first line names.
        const [, schema = ""] = /\$schema=(\S+)/.exec(await read("workflow.yaml")) ?? [];
        assert.is((JSON.parse(await read(schema)) as { type: string }).type, "object");
        await runOrThrow("npm", "run", "build");
        assert.match(await runOrThrow("npm", "test"), /^# pass 1$/m);
        await runOrThrow("npx", "gen-operator", "generate", "--check");
      },
      LONG,
    );

  test(
    "init keeps existing files and edited stubs, and lists them",
    async () => {
      const { folder, read, replace, run } = await projects.webpage();
      const stub = "src/webpage/dependents/config-map.ts";
      await replace(stub, "metadata: {", "// mine\n  metadata: {");
      const paths = ["package.json", "workflow.yaml", "tsconfig.json", "README.md", stub, "test/webpage.test.ts"];
      const before = await Promise.all(paths.map(read));
      const init = ["npx", "gen-operator", "init", folder, "--crd", join(repositoryRoot, crds.webpage)];
      const { code, stdout } = await run(...init);
      assert.is(code, 0);
      assert.not.match(stdout, /^(created|updated) /m);
      for (const path of ["workflow.yaml", "tsconfig.json", "README.md", "crds/webpages.example.com.yaml"])
        assert.ok(stdout.includes(`kept    ${path}\n`), `${path} is not named in:\n${stdout}`);
      assert.equal(await Promise.all(paths.map(read)), before);
      await run("npx", "gen-operator", "generate");
      assert.equal(await Promise.all(paths.map(read)), before);
    },
    LONG,
  );

  test(
    "print the same from the bundled program as from the repository's",
    async () => {
      const { folder } = await projects.webpage();
      const program = { cwd: folder, node: process.execPath };
      const commands = await commandsOf(join(repositoryRoot, "generator/src/cli"));
      assert.ok(commands.length > 8);
      for (const args of [...commands.map((command) => [command, "--help"]), ...PRINTING]) {
        const [bundled, own] = await Promise.all([
          runCommand(["node", join(folder, "node_modules/.bin/gen-operator"), ...args], program),
          runCommand(["node", join(repositoryRoot, "generator/bin/gen-operator.js"), ...args], program),
        ]);
        assert.equal(bundled, own, args.join(" "));
        assert.not.match(bundled.stderr, /^ +at .*:\d+:\d+/m);
      }
    },
    LONG,
  );

  test(
    "init adds only missing entries to an existing package.json",
    async () => {
      const { folder } = await packages();
      const existing = join(folder, "existing");
      await mkdir(existing);
      const own = { name: "mine", version: "7.0.0", scripts: { test: "echo own" }, dependencies: { yaml: "^2.0.0" } };
      await writeFile(join(existing, "package.json"), JSON.stringify(own, undefined, 4));
      const { run } = await projects.webpage();
      const { code, stdout, stderr } = await run(
        ...["npx", "gen-operator", "init", existing, "--crd", join(repositoryRoot, crds.webpage)],
      );
      assert.is(code, 0, stderr);
      assert.match(stdout, /^added {3}scripts\.build to package\.json$/m);
      assert.not.match(stdout, /scripts\.test to/);
      assert.match(stderr, /scripts\.test of package\.json/);
      const text = await readFile(join(existing, "package.json"), "utf8");
      const merged = JSON.parse(text) as typeof own & { dependencies: { "@gen-operator/runtime"?: string } };
      assert.is(merged.name, "mine");
      assert.is(merged.version, "7.0.0");
      assert.is(merged.scripts.test, "echo own");
      assert.is(merged.dependencies.yaml, "^2.0.0");
      assert.ok(merged.dependencies["@gen-operator/runtime"]);
      assert.match(text, /^ {4}"name"/m);
    },
    LONG,
  );

  test(
    "generate creates only the stub of an added dependent, and keeps the stub of a removed one",
    async () => {
      const { read, run, runOrThrow, replace, write } = await projects.webpage();
      const stub = "src/webpage/dependents/deployment.ts";
      const configMap = "    configMap:\n      resource: v1/ConfigMap\n";
      const deployment = "    deployment:\n      resource: apps/v1/Deployment\n      dependsOn: [configMap]\n";
      await replace("workflow.yaml", configMap, configMap + deployment);
      assert.is((await run("npx", "gen-operator", "generate", "--check")).code, 1);
      const added = await runOrThrow("npx", "gen-operator", "generate");
      const created = added.split("\n").filter((line) => line.startsWith("created "));
      assert.equal(
        created.filter((line) => !line.startsWith("created src/generated/")),
        [`created ${stub}`],
      );
      await runOrThrow("npm", "test");
      await runOrThrow("npx", "gen-operator", "generate", "--check");

      const written = await read(stub);
      await replace("workflow.yaml", deployment, "");
      assert.is((await run("npx", "gen-operator", "generate")).code, 1);
      const removed = "  removed:\n    deployment: { resource: apps/v1/Deployment, deletion: ordered }\n";
      await write("workflow.yaml", `${await read("workflow.yaml")}${removed}`);
      const { code, stdout, stderr } = await run("npx", "gen-operator", "generate");
      assert.is(code, 0);
      assert.match(stdout, /^updated src\/generated\/webpage\/workflow\.ts$/m);
      assert.ok(stderr.includes(stub), `${stub} is not named in:\n${stdout}${stderr}`);
      assert.is(await read(stub), written);
    },
    LONG,
  );

  test(
    "run the API server by its command name, and the built operator against it",
    async () => {
      const { folder, runOrThrow } = await projects.webpage();
      await runOrThrow("rm", "-f", "src/webpage/dependents/deployment.ts");
      await runOrThrow("npm", "run", "build");
      await convergeOnePage(folder, { node: process.execPath });
    },
    LONG,
  );

  test(
    "keep the object of a dependent that a second version renames",
    async () => {
      const all = await packages();
      const options = { name: "pages", crd: crds.webpage, tools: await tools() };
      const { folder, runOrThrow } = await createUserProject(all, options);
      const group = await createProcessGroup("gen-operator-e2e-");
      try {
        const { node } = all;
        const { connection, kubeconfig } = await startProjectServer(group, folder, { node, crd: CRD });
        const generate = async () => void (await runOrThrow("npx", "gen-operator", "generate"));
        const compile = async () => void (await runOrThrow("npm", "run", "build"));
        await keepMovedObject({ folder, server: connection, kubeconfig, node, generate, compile });
      } finally {
        await group.close();
      }
    },
    LONG,
  );

  test(
    "npm run dev applies edits, and leaves no files or processes after Ctrl+C",
    async () => {
      const { folder, replace } = await projects.tenant();
      await followEdits(folder, { stub: "src/tenant/dependents/config-map.ts", replace });
    },
    LONG,
  );

  test(
    "generate code in a project that uses TypeScript 7",
    async () => {
      const { folder, runOrThrow, replace, read } = await projects.note();
      await runOrThrow("npm", "install", "--prefer-offline", "--save-dev", "typescript@7.0.2");
      assert.match(await runOrThrow("npx", "tsc", "--version"), /^Version 7\./);
      await runOrThrow("npm", "test");
      const stub = "src/note/dependents/config-map.ts";
      await replace(stub, "metadata:", "dat: {},\n    metadata:");
      await runOrThrow("npx", "gen-operator", "generate", "--check");
      assert.match(await read(stub), /dat: \{\}/);
      await replace(stub, "dat: {},\n    metadata:", "metadata:");
      await followEdits(folder, { stub, replace });
    },
    LONG,
  );
});

/** What loads each part of the program that is loaded when it is needed, and what fails. */
const PRINTING = [
  ["--version"],
  ["--help"],
  ["completion", "fish"],
  ["--get-yargs-completions", "gen-operator", "graph", "--output", ""],
  ["schema"],
  ["schema", "WebPage"],
  ["schema", "apps/v1/Deployment"],
  ["explain"],
  ["explain", "unknown-field"],
  ["graph"],
  ["graph", "--output", "mermaid"],
  ["graph", "--output", "svg"],
  ["types", "crds", "--out", "nowhere", "--check"],
  ["types", "crds/*.yaml", "--out", "nowhere", "--check", "--format", "json"],
  ["types", "missing.yaml", "--out", "nowhere"],
  ["generate", "--check"],
  ["generate", "--dry-run"],
  ["generate", "--check", "--format", "github"],
  // What checks a spec is compiled into the program.
  ...["dependent-name", "external-shape", "missing-field", "wrong-type"].map((rule) => [
    ...["generate", "--check", "--project", join(repositoryRoot, "fixtures/rejected", rule)],
  ]),
  ["suggest", "caches", "--dry-run"],
  ["diff", "--against", "."],
  ["add", "dependent", "web", "--resource", "apps/v1/Deploiment"],
  ["init", "other", "--crd", "missing.yaml"],
  ["generate", "--project", "missing"],
  ["generat"],
  ["types", "crds", "--ot", "there"],
];

async function commandsOf(folder: string): Promise<string[]> {
  return (await readdir(folder)).flatMap((file) => /^(\w+)-command\.ts$/.exec(file)?.[1] ?? []);
}

/** Runs `npm run dev`, breaks a stub and mends it. */
async function followEdits(
  folder: string,
  { stub, replace }: { stub: string; replace(path: string, from: string, to: string): Promise<void> },
): Promise<void> {
  await using dev = startCommand(folder, ["npm", "run", "dev"], userEnvironment(process.execPath));
  await dev.see(/operator ready in \d/);
  await replace(stub, "metadata:", "dat: {},\n    metadata:");
  await dev.see(/config-map\.ts:\d+:\d+ - error TS2\d+: .*'dat'/);
  await dev.see("1 error; the operator keeps running with the previous code");
  await replace(stub, "dat: {},\n    metadata:", "metadata:");
  await replace(stub, "metadata:", "// mended\n    metadata:");
  await dev.see(/operator ready in \d/);
  dev.stop();
  await dev.ended;
  // npm may end before what it has started.
  await waitFor("the end of dist/dev", () => !existsSync(join(folder, "dist/dev")));
}

// These are templates of such files.
const TEMPLATES = new Set(["project/tsconfig.json", "stubs/controller.test.ts"]);
