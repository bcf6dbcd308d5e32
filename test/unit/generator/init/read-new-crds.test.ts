import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readNewCrds } from "#generator/init/new-crds.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const text = await readFile(join(repositoryRoot, "fixtures/samples/webpage/crds/webpages.example.com.yaml"), "utf8");
const kind = { name: "example.com/v1/WebPage", kind: "WebPage", scope: "Namespaced" };

async function read(project: string, files: Record<string, string>) {
  const given = Object.entries(files).map(([file, content]) => ({ file, text: content }));
  const { files: found, diagnostics } = await readNewCrds(project, { files: given, diagnostics: [] });
  return { found: found.map(({ path, kinds }) => ({ path, kinds })), rules: diagnostics.map(({ rule }) => rule) };
}

suite("readNewCrds", (test) => {
  test("returns the files that define a kind, with a warning for others", async () => {
    const { found, rules } = await read("nowhere", {
      "a/kustomization.yaml": "resources: [page.yaml]\n",
      "page.yaml": text,
    });
    assert.equal(found, [{ path: "crds/page.yaml", kinds: [kind] }]);
    assert.equal(rules, ["not-a-crd"]);
    assert.equal((await read("nowhere", { "a.yaml": "kind: ConfigMap\n" })).rules, ["not-a-crd", "no-crds"]);
  });

  test("assigns unique paths, also to names that differ only in case", async () => {
    const other = (name: string) => text.replaceAll("WebPage", name).replaceAll("webpage", name.toLowerCase());
    const { found } = await read("nowhere", {
      "a/page.yaml": text,
      "b/Page.yaml": other("Site"),
      "<stdin>": other("Shop"),
    });
    assert.equal(
      found.map(({ path }) => path),
      ["crds/page.yaml", "crds/Page-2.yaml", "crds/crds.yaml"],
    );
  });

  test("rejects a CRD without a served version", async () => {
    const { found, rules } = await read("nowhere", { "a.yaml": text.replace("served: true", "served: false") });
    assert.equal([found, rules], [[], ["no-crds"]]);
  });

  test("rejects a kind that is defined twice, also by the CRDs of the project", async () => {
    assert.equal((await read("nowhere", { "a.yaml": text, "b.yaml": text })).rules, ["duplicate-kind"]);
    await using folder = await createTemporaryFolder();
    await mkdir(join(folder.path, "crds"));
    await writeFile(join(folder.path, "crds/a.yaml"), text);
    assert.equal((await read(folder.path, { "b.yaml": text })).rules, ["duplicate-kind"]);
    assert.equal((await read(folder.path, { "elsewhere/a.yaml": text })).rules, []);
  });
});
