import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv } from "ajv";
import { parseAllDocuments } from "yaml";
import { runCommand } from "../../support/command-line.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

const sample = join(repositoryRoot, "fixtures/samples/webpage");

async function checkOf(kind: string) {
  const { status, stdout, stderr } = await runCommand(sample, "schema", kind);
  assert.is(status, 0, stderr);
  return new Ajv({ strict: false, validateFormats: false }).compile(JSON.parse(stdout) as object);
}

suite("gen-operator schema", (test) => {
  test("prints the published schema of the spec", async () => {
    const { status, stdout } = await runCommand(sample, "schema");
    assert.is(status, 0);
    assert.is(stdout, await readFile(join(repositoryRoot, "generator/data/workflow.schema.json"), "utf8"));
  });

  test("prints the schema of a custom kind, which accepts the examples and rejects unknown fields", async () => {
    const check = await checkOf("WebPage");
    const names = await readdir(join(sample, "examples"));
    const texts = await Promise.all(names.map((name) => readFile(join(sample, "examples", name), "utf8")));
    const objects = texts.flatMap((text) => parseAllDocuments(text).map((each) => each.toJS() as { kind?: string }));
    const pages = objects.filter(({ kind }) => kind === "WebPage");
    assert.is(pages.length > 0, true);
    for (const page of pages) {
      assert.is(check(page), true, JSON.stringify(check.errors));
      assert.is(check({ ...page, spec: { html: "a", htm: "b" } }), false);
      assert.is(check({ ...page, spec: {} }), false);
    }
  });

  test("prints the schema of a built-in kind with its references", async () => {
    const check = await checkOf("Deployment");
    const metadata = { name: "web" };
    const containers = [{ name: "main", image: "nginx", ports: [{ containerPort: 80 }] }];
    const deployment = (template: object) => ({
      ...{ apiVersion: "apps/v1", kind: "Deployment", metadata },
      spec: { selector: { matchLabels: { a: "b" } }, template: { metadata: { labels: { a: "b" } }, spec: template } },
    });
    assert.is(check(deployment({ containers })), true, JSON.stringify(check.errors));
    assert.is(check(deployment({ containrs: containers })), false);
    const crd = await runCommand(sample, "schema", "apiextensions.k8s.io/v1/CustomResourceDefinition");
    assert.is(crd.status, 0, crd.stderr);
  });

  test("rejects an unknown kind and suggests the closest one", async () => {
    const { status, stdout, stderr } = await runCommand(sample, "schema", "WebPag");
    assert.equal([status, stdout], [1, ""]);
    assert.match(stderr, 'did you mean "WebPage"?');
  });
});
