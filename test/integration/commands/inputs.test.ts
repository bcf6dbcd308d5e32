// What `types` and `init` take CRDs from: files, folders, patterns, the standard input, and a cluster.
import { spawnSync } from "node:child_process";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generateTypes } from "#generator/generate-types.js";
import { startTestApiServer } from "../../support/api/api-server.js";
import { runCommand } from "../../support/command-line.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const pageCrd = join(repositoryRoot, "fixtures/samples/webpage/crds/webpages.example.com.yaml");
const LONG = { timeoutMs: 90_000 };
const samples = join(repositoryRoot, "fixtures/samples");

/** A folder with two CRDs: at its top, and in a folder of its own. */
async function createInputs() {
  const folder = await createTemporaryFolder();
  await mkdir(join(folder.path, "crds/inner"), { recursive: true });
  await cp(pageCrd, join(folder.path, "crds/page.yaml"));
  await cp(join(samples, "podwatch/crds"), join(folder.path, "crds/inner"), { recursive: true });
  await writeFile(join(folder.path, "crds/notes.txt"), "no CRD");
  return folder;
}

async function kindsIn(folder: string): Promise<string[]> {
  const files = await readdir(join(folder, "out/resources"), { recursive: true });
  return files.filter((file) => /\.ts$/.test(file) && !file.endsWith(".schema.ts")).sort();
}

/** Runs `gen-operator` with a text on its standard input. */
function pipe(folder: string, input: string, ...args: string[]) {
  const program = join(repositoryRoot, "generator/bin/gen-operator.js");
  return spawnSync(process.execPath, [program, ...args], { cwd: folder, input, encoding: "utf8" });
}

suite("input of types", (test) => {
  test("is reported step by step for each file and kind", async () => {
    await using folder = await createInputs();
    const steps: string[] = [];
    const files = ["page.yaml", "inner/podwatches.example.com.yaml"].map((file) => join(folder.path, "crds", file));
    const out = join(folder.path, "out");
    const { diagnostics } = await generateTypes({ files, out, onStep: (step) => steps.push(step) });
    assert.equal(diagnostics, []);
    assert.match(steps[0] ?? "", /^reading .*page\.yaml \(1 of 2\)$/);
    assert.match(steps[1] ?? "", /^reading .*podwatches\.example\.com\.yaml \(2 of 2\)$/);
    assert.equal(steps.slice(2), [
      "generating the types of PodWatch v1 (1 of 2)",
      "generating the types of WebPage v1 (2 of 2)",
      "writing 5 files",
    ]);
  });

  test.thorough(
    "may be a folder, a glob or files, with the same output",
    async () => {
      const outputs: string[][] = [];
      for (const inputs of [["crds"], ["crds/**/*.yaml"], ["crds/page.yaml", "crds/inner", "./crds/page.yaml"]]) {
        await using folder = await createInputs();
        const { status, stderr } = await runCommand(folder.path, "types", ...inputs, "--out", "out");
        assert.is(status, 0, stderr);
        outputs.push(await kindsIn(folder.path));
      }
      assert.is(outputs[0]?.length, 2);
      assert.equal(outputs[1], outputs[0]);
      assert.equal(outputs[2], outputs[0]);
    },
    LONG,
  );

  test.thorough(
    "may be multiple documents, a list or JSON on stdin",
    async () => {
      const crd = await readFile(pageCrd, "utf8");
      const { parse } = await import("yaml");
      const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: [parse(crd)] });
      for (const input of [crd, `---\n# a comment\n---\n${crd}---\n`, list]) {
        await using folder = await createTemporaryFolder();
        const { status, stderr } = pipe(folder.path, input, "types", "-", "--out", "out");
        assert.is(status, 0, stderr);
        assert.is((await kindsIn(folder.path)).length, 1);
      }
      await using folder = await createTemporaryFolder();
      const broken = pipe(
        folder.path,
        `---\nkind: Namespace\n---\n${crd.replace("scope: Namespaced", "scope: Global")}`,
        "types",
        "-",
        "--out",
        "out",
      );
      assert.is(broken.status, 1);
      assert.match(
        broken.stderr,
        /^<stdin>:\d+:\d+: error crd-field: scope must be Namespaced or Cluster, found "Global"\n  at document 2, spec\.scope/,
      );
      for (const input of ["", "# nothing\n", "---\n---\n"]) {
        const empty = pipe(folder.path, input, "types", "-", "--out", "out");
        assert.is(empty.status, 1, empty.stderr);
        assert.match(empty.stderr, /error no-crds/);
      }
    },
    LONG,
  );

  test(
    "is rejected with advice for a URL, an empty folder, a glob without matches or a missing file",
    async () => {
      await using folder = await createTemporaryFolder();
      await mkdir(join(folder.path, "empty"));
      const cases: [string, RegExp][] = [
        [
          "https://example.com/crd.yaml",
          /"https:\/\/example\.com\/crd\.yaml" is a URL: must be a file, a folder, a pattern or -\n  .*curl/,
        ],
        ["empty", /no \.yaml, \.yml or \.json file found in folder "empty"/],
        ["crds/*.yaml", /no file matches "crds\/\*\.yaml"/],
        ["missing.yaml", /file "missing\.yaml" not found/],
      ];
      for (const [input, message] of cases) {
        const { status, stderr } = await runCommand(folder.path, "types", input, "--out", "out");
        assert.is(status, 1, input);
        assert.match(stderr, message);
      }
    },
    LONG,
  );

  test.thorough(
    "is filtered by --version and --served-only",
    async () => {
      await using folder = await createTemporaryFolder();
      const text = await readFile(pageCrd, "utf8");
      const { parse } = await import("yaml");
      const crd = parse(text) as { spec: { versions: object[] } };
      const [first] = crd.spec.versions;
      crd.spec.versions.push({ ...first, name: "v1alpha1", served: false, storage: false });
      await writeFile(join(folder.path, "crd.json"), JSON.stringify(crd));
      const types = (...args: string[]) => runCommand(folder.path, "types", "crd.json", "--out", "out", ...args);
      const versions = async () => [...new Set((await kindsIn(folder.path)).map((file) => file.split("/").at(-2)))];
      assert.is((await types()).status, 0);
      assert.equal(await versions(), ["v1", "v1alpha1"]);
      assert.is((await types("--served-only")).status, 0);
      assert.equal(await versions(), ["v1"]);
      assert.is((await types("--version", "v1alpha1")).status, 0);
      assert.equal(await versions(), ["v1alpha1"]);
      const { status, stderr } = await types("--version", "v2");
      assert.is(status, 1);
      assert.match(
        stderr,
        /error unknown-version: version "v2" not found in any CustomResourceDefinition\n  known versions: v1, v1alpha1/,
      );
    },
    LONG,
  );
});

suite("input of init", (test) => {
  test("is rejected if two CRDs define one kind, and nothing is written", async () => {
    await using folder = await createInputs();
    await cp(pageCrd, join(folder.path, "crds/inner/again.yaml"));
    const { status, stdout, stderr } = await runCommand(folder.path, "init", "pages", "--crd", "crds");
    assert.equal([status, stdout], [1, ""]);
    assert.match(
      stderr,
      /^crds\/page\.yaml:\d+:\d+: error duplicate-kind: kind WebPage of example\.com is already defined at crds\/inner\/again\.yaml:\d+:\d+\n.*\n {2}remove one of the two CRDs\n1 error; nothing was written\n$/,
    );
    assert.not.ok((await readdir(folder.path)).includes("pages"));
  });

  test("is rejected if a spec of the folder is in conflict, and nothing is written", async () => {
    await using folder = await createTemporaryFolder();
    await mkdir(join(folder.path, "pages"));
    const spec =
      "apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: webpage }\nspec: { primary: v1/Pod, dependents: {} }\n";
    await writeFile(join(folder.path, "pages/own.workflow.yaml"), spec);
    const { status, stdout, stderr } = await runCommand(folder.path, "init", "pages", "--crd", pageCrd);
    assert.equal([status, stdout], [1, ""]);
    assert.match(stderr, /error duplicate-controller: .*\n1 error; nothing was written\n$/s);
    assert.equal(await readdir(join(folder.path, "pages")), ["own.workflow.yaml"]);
  });
});

suite("input from a cluster", (test) => {
  test.thorough(
    "is found by kind, plural, group and version, and generates the same types as from files",
    async () => {
      await using server = await startTestApiServer({ crds: [pageCrd] });
      await using files = await createTemporaryFolder();
      assert.is((await runCommand(files.path, "types", pageCrd, "--out", "out")).status, 0);
      const wanted = await readFile(join(files.path, "out/resources/example.com/v1/web-page.ts"), "utf8");
      for (const name of [
        "WebPage",
        "webpages",
        "webpages.example.com",
        "example.com/WebPage",
        "example.com/v1/WebPage",
      ]) {
        await using folder = await createTemporaryFolder();
        const args = ["types", "--from-cluster", name, "--kubeconfig", server.kubeconfig, "--out", "out"];
        const { status, stderr } = await runCommand(folder.path, ...args);
        assert.is(status, 0, stderr);
        assert.is(await readFile(join(folder.path, "out/resources/example.com/v1/web-page.ts"), "utf8"), wanted, name);
      }
      await using folder = await createTemporaryFolder();
      const wrong = await runCommand(
        folder.path,
        "types",
        "--from-cluster",
        "WebPag",
        "--kubeconfig",
        server.kubeconfig,
        "--out",
        "out",
      );
      assert.is(wrong.status, 1);
      assert.match(
        wrong.stderr,
        /error unknown-kind: kind "WebPag" not found in the cluster\n  did you mean "WebPage"\?/,
      );
      const nowhere = await runCommand(
        folder.path,
        "types",
        "--from-cluster",
        "WebPage",
        "--kubeconfig",
        "/nowhere",
        "--out",
        "out",
      );
      assert.is(nowhere.status, 1);
      assert.match(nowhere.stderr, /error unreadable-cluster: .*\/nowhere/);
    },
    LONG,
  );

  test(
    "creates a project whose CRD has no server-side fields, and an example that is not recreated",
    async () => {
      await using server = await startTestApiServer({ crds: [pageCrd] });
      await using folder = await createTemporaryFolder();
      const { status, stderr } = await runCommand(
        folder.path,
        "init",
        "pages",
        "--from-cluster",
        "WebPage",
        "--kubeconfig",
        server.kubeconfig,
      );
      assert.is(status, 0, stderr);
      const text = await readFile(join(folder.path, "pages/crds/webpages.example.com.yaml"), "utf8");
      assert.not.match(text, /uid|resourceVersion|managedFields|^status/m);
      assert.match(text, /^apiVersion: apiextensions.k8s.io\/v1$/m);
      // Something to begin with, once: whoever deletes it does not get it again.
      const example = join(folder.path, "pages/examples/web-page.example.com.yaml");
      assert.match(
        await readFile(example, "utf8"),
        /^kind: WebPage\nmetadata:\n {2}name: example\n {2}namespace: default\nspec:\n {2}html: x$/m,
      );
      await rm(example);
      assert.is((await runCommand(folder.path, "init", "pages", "--crd", pageCrd)).status, 0);
      assert.equal(await readdir(join(folder.path, "pages/examples")), []);
    },
    LONG,
  );
});
