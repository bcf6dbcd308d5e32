// The page that compares the spec languages cannot rot: what it shows of ours is generated and compiled.
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { generate } from "#generator/generate.js";
import { fastCompiler, writeProject } from "../support/projects/compile.js";
import { fencesOf } from "../support/projects/fences.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

const PAGE = "generator/docs/compared.md";
const CRD = "fixtures/samples/webpage/crds/webpages.example.com.yaml";
const HEAD = `apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: webpage }
spec:
  primary: example.com/v1/WebPage
`;

const page = await readFile(join(repositoryRoot, PAGE), "utf8");
const fences = fencesOf(PAGE, page);
const examples = fences.filter(({ info }) => info === "yaml workflow");

suite("page that compares spec languages", (declareTest) => {
  declareTest("has one example for each of its 10 sections", () => {
    const sections = page.split(/^## /m).slice(1);
    assert.equal(
      sections.map((section) => section.split("```yaml workflow\n").length - 1),
      Array.from({ length: 10 }, () => 1),
    );
  });

  const thorough = (title: string, body: () => unknown) => declareTest.thorough(title, body, { timeoutMs: 120_000 });

  thorough("shows specs that generate without diagnostics and code that compiles", async () => {
    await using folder = await createTemporaryFolder();
    for (const [index, { code }] of examples.entries()) {
      const project = join(folder.path, `example-${index + 1}`);
      await mkdir(join(project, "crds"), { recursive: true });
      await cp(join(repositoryRoot, CRD), join(project, "crds/webpages.yaml"));
      const spec = HEAD + code.replace(/^(?=.)/gm, "  ");
      await writeFile(join(project, "workflow.yaml"), spec);
      for (const { path, text } of index === 0 ? ownFiles() : []) {
        await mkdir(dirname(join(project, path)), { recursive: true });
        await writeFile(join(project, path), text);
      }
      const { diagnostics, report } = await generate({ project });
      assert.equal(diagnostics.map(formatDiagnostic), [], `section ${index + 1}`);
      assert.ok(report !== undefined, `section ${index + 1} is generated`);
    }
    await writeProject(folder.path, []);
    assert.is(fastCompiler.compile(folder.path), "");
  });
});

/** Returns the files of the user's that the page shows; their first line names them. */
function ownFiles(): { readonly path: string; readonly text: string }[] {
  return fences.flatMap(({ info, code }) => {
    const path = /^\/\/ (src\/\S+\.ts)\n/.exec(code)?.[1];
    return info.startsWith("ts ignore:") && path !== undefined ? [{ path, text: code }] : [];
  });
}
