import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { initProject } from "../../../support/projects/new-project.js";
import { mergePackage } from "#generator/init/init-project.js";
import { repositoryRoot } from "../../../support/repository.js";
import { readNewCrdFiles } from "../../../support/kinds/new-crds.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { parseAllDocuments } from "yaml";

const crd = join(repositoryRoot, "fixtures/samples/webpage/crds/webpages.example.com.yaml");

const definitionText = readFileSync(crd, "utf8");

suite("init", (test) => {
  test("creates a package with all files but the generated ones", async () => {
    await using folder = await createTemporaryFolder();
    const directory = join(folder.path, "My Operator");
    const { created, kept } = await initProject({ directory, crdFiles: await readNewCrdFiles(crd) });
    const isManifest = (path: string) => path.startsWith("deploy/");
    assert.equal(created.filter(isManifest), created.filter(isManifest).toSorted());
    assert.ok(
      ["deploy/kustomization.yaml", "deploy/Chart.yaml", "deploy/.helmignore"].every((path) => created.includes(path)),
    );
    assert.equal(
      created.filter((path) => !isManifest(path)),
      [
        ".dockerignore",
        ".github/workflows/ci.yaml",
        ".gitignore",
        "Dockerfile",
        "README.md",
        "bundle.js",
        "crds/webpages.example.com.yaml",
        "package.json",
        "tsconfig.json",
        "workflow.yaml",
      ],
    );
    assert.equal(kept, []);
    const manifest = JSON.parse(await readFile(join(directory, "package.json"), "utf8")) as {
      name: string;
      type: string;
      scripts: { start: string };
    };
    assert.equal([manifest.name, manifest.type], ["my-operator", "module"]);
    const dockerfile = await readFile(join(directory, "Dockerfile"), "utf8");
    const command = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(dockerfile)?.[1] ?? "[]") as string[];
    const [node, ...rest] = manifest.scripts.start.split(" ");
    assert.equal([node, rest.pop()], ["node", "dist/src/main.js"]);
    assert.equal(command, ["/nodejs/bin/node", ...rest, "dist/bundle/operator.mjs"]);
    const [workflow] = parseAllDocuments(await readFile(join(directory, "workflow.yaml"), "utf8"));
    assert.equal(workflow?.toJS(), {
      apiVersion: "gen-operator.dev/v1alpha1",
      kind: "Workflow",
      metadata: { name: "webpage" },
      spec: {
        primary: "example.com/v1/WebPage",
        dependents: { configMap: { resource: "v1/ConfigMap" } },
      },
    });
  });

  test("adds a suffix to a controller name that is reserved", async () => {
    await using folder = await createTemporaryFolder();
    const kinds = ["Con", "Generated", "Page"];
    const text = kinds.map((kind) => definitionText.replaceAll("WebPage", kind)).join("---\n");
    const file = join(folder.path, "all.yaml");
    await writeFile(file, text);
    await initProject({ directory: folder.path, crdFiles: await readNewCrdFiles(file), name: "pages" });
    const workflows = parseAllDocuments(await readFile(join(folder.path, "workflow.yaml"), "utf8"));
    assert.equal(
      workflows.map((each) => (each.toJS() as { metadata: { name: string } }).metadata.name),
      ["con-controller", "generated-controller", "page"],
    );
  });

  test("leaves no placeholder in any file", async () => {
    await using folder = await createTemporaryFolder();
    const { created } = await initProject({
      directory: folder.path,
      crdFiles: await readNewCrdFiles(crd),
      name: "pages",
    });
    for (const path of created) assert.not.match(await readFile(join(folder.path, path), "utf8"), /__\w+__/, path);
  });

  test("names the operator after an existing, scoped package", async () => {
    await using folder = await createTemporaryFolder();
    await writeFile(join(folder.path, "package.json"), '{ "name": "@acme/page_operator" }');
    await initProject({ directory: folder.path, crdFiles: await readNewCrdFiles(crd), name: "other" });
    assert.match(await readFile(join(folder.path, "deploy/Chart.yaml"), "utf8"), /^name: page-operator$/m);
    assert.match(
      await readFile(join(folder.path, "README.md"), "utf8"),
      "docker build -t registry.example.com/page-operator:0.1.0 .",
    );
  });

  test("changes nothing in a second run", async () => {
    await using folder = await createTemporaryFolder();
    const { created } = await initProject({ directory: folder.path, crdFiles: await readNewCrdFiles(crd) });
    await writeFile(join(folder.path, "workflow.yaml"), "# mine\n");
    const second = await initProject({ directory: folder.path, crdFiles: await readNewCrdFiles(crd) });
    assert.equal(second.created, []);
    assert.equal(second.addedToPackage, []);
    assert.equal([second.kept, second.updated], [created, []]);
    assert.is(await readFile(join(folder.path, "workflow.yaml"), "utf8"), "# mine\n");
  });

  test("sets the namespace of dependents for a cluster-scoped kind", async () => {
    await using folder = await createTemporaryFolder();
    const file = join(folder.path, "cluster.yaml");
    await writeFile(file, (await readFile(crd, "utf8")).replace("scope: Namespaced", "scope: Cluster"));
    const directory = join(folder.path, "project");
    await initProject({ directory, crdFiles: await readNewCrdFiles(file) });
    assert.match(
      await readFile(join(directory, "workflow.yaml"), "utf8"),
      /resource: v1\/ConfigMap\n {6}namespace: default\n/,
    );
  });
});

suite("mergePackage", (test) => {
  test("adds missing fields and keeps existing ones", () => {
    const existing = JSON.stringify(
      { name: "mine", engines: {}, scripts: { build: "make" }, devDependencies: { a: "1" } },
      undefined,
      4,
    );
    const wanted = JSON.stringify({
      name: "x",
      type: "module",
      scripts: { build: "tsc", test: "node --test" },
      dependencies: { a: "2", b: "1" },
    });
    const { text, added, different } = mergePackage(existing, wanted);
    assert.equal(JSON.parse(text), {
      name: "mine",
      engines: {},
      scripts: { build: "make", test: "node --test" },
      devDependencies: { a: "1" },
      type: "module",
      dependencies: { b: "1" },
    });
    assert.equal(added, ["type", "scripts.test", "dependencies.b"]);
    assert.equal(different, ["scripts.build"]);
    assert.match(text, /^\{\n {4}"name"/);
  });

  test("adds nothing to a complete package", () => {
    const text = JSON.stringify({ type: "module", engines: {}, scripts: { a: "b" } });
    assert.equal(mergePackage(text, text).added, []);
  });
});
