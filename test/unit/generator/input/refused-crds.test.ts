import { readFileSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Diagnostic } from "#generator/diagnostic.js";
import { readCrdFiles, readCrds } from "#generator/read/crd/read-crds.js";
import { readProject } from "#generator/read/read-project.js";
import { StageCache } from "#generator/stage.js";
import { crdWith } from "../../../support/crds/crd-changes.js";
import { readRefusedCrds } from "../../../support/crds/refused-crds.js";
import { repositoryRoot } from "../../../support/repository.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { assert, suite } from "../../../support/suite.js";

suite("invalid CRD", (test) => {
  for (const { name, crd, says } of readRefusedCrds())
    test(`is reported at its position with the message of the API server: ${name}`, () => {
      const text = JSON.stringify(crd, undefined, 2);
      const { crds, diagnostics } = readCrds({ file: "things.json", text });
      const found = [...diagnostics, ...crds.flatMap((each) => each.findProblems())];
      const messages = found.map(({ message }) => message);
      const lines = found.map(({ message, path }) => `${path}: ${message}`).join("\n");
      const [start = "", ...rest] = says;
      const isSaid = messages.some((each) => each.includes(says) || each.includes(start.toLowerCase() + rest.join("")));
      assert.ok(isSaid, lines);
      for (const { severity, position, path } of found)
        assert.ok(severity === "error" && position !== undefined && (path ?? "").length > 0, lines);
    });
});

suite("rule crd-rule", (test) => {
  const createProject = async (primary: string) => {
    const folder = await createTemporaryFolder();
    await mkdir(join(folder.path, "crds"));
    await cp(join(repositoryRoot, "fixtures/rejected/crd-rule/crds"), join(folder.path, "crds"), { recursive: true });
    const spec = `apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: a }\nspec: { primary: ${primary} }\n`;
    await writeFile(join(folder.path, "workflow.yaml"), spec);
    return folder;
  };
  const severitiesOf = (diagnostics: readonly Diagnostic[]) => [
    ...new Set(diagnostics.filter(({ rule }) => rule === "crd-rule").map(({ severity }) => severity)),
  ];

  test("is an error for any version of the CRD of a primary", async () => {
    for (const primary of ["example.com/v1/Thing", "example.com/v2/Thing"]) {
      await using project = await createProject(primary);
      assert.equal(severitiesOf((await readProject(project.path)).diagnostics), ["error"]);
    }
  });

  test("is a warning for the CRD of another project", async () => {
    await using project = await createProject("apps/v1/Deployment");
    const { diagnostics, crds } = await readProject(project.path);
    assert.equal(severitiesOf(diagnostics), ["warning"]);
    assert.is(crds.length, 1);
  });

  test("is an error for a CRD file, and a warning for a CRD of a cluster", () => {
    const text = readFileSync(join(repositoryRoot, "fixtures/rejected/crd-rule/crds/things.yaml"), "utf8");
    const found = (file: string) => readCrdFiles({ files: [{ file, text }], diagnostics: [] }).diagnostics;
    assert.equal(severitiesOf(found("things.yaml")), ["error"]);
    assert.equal(severitiesOf(found("<cluster>/things.example.com.yaml")), ["warning"]);
  });

  test("reports the same diagnostics in a second run", async () => {
    await using project = await createProject("example.com/v1/Thing");
    const { stage } = new StageCache();
    const first = await readProject(project.path, { stage });
    const second = await readProject(project.path, { stage });
    assert.equal(second.diagnostics, first.diagnostics);
  });

  test("is skipped for the earlier state in a diff", async () => {
    await using before = await createProject("example.com/v1/Thing");
    const { diagnostics } = await readProject(before.path, { checksDefinitions: false });
    assert.equal(severitiesOf(diagnostics), []);
  });
});

suite("valid CRD", (test) => {
  test("has no diagnostics for any property names", () => {
    const schema = {
      type: "object",
      properties: {
        spec: {
          type: "object",
          properties: {
            "a.b": { type: "string", default: "x" },
            "a[0]": { type: "integer" },
            __proto__x: { type: "boolean" },
          },
        },
      },
    };
    const { crds, diagnostics } = readCrds({ file: "a.json", text: JSON.stringify(crdWith(schema)) });
    assert.equal([...diagnostics, ...crds.flatMap((crd) => crd.findProblems())], []);
  });

  test("accepts empty types and an index in a scale path", () => {
    const properties = {
      any: { type: "", "x-kubernetes-preserve-unknown-fields": true },
      port: { type: "", "x-kubernetes-int-or-string": true },
      type: { type: "string" },
      pools: { type: "array", items: { type: "object", properties: { replicas: { type: "integer" } } } },
    };
    const schema = { type: "object", properties: { spec: { type: "object", properties } } };
    const scale = { specReplicasPath: ".spec.pools[0].replicas", statusReplicasPath: ".status.replicas" };
    const text = JSON.stringify(crdWith(schema, { subresources: { scale } }));
    const { crds, diagnostics } = readCrds({ file: "a.json", text });
    const found = [...diagnostics, ...crds.flatMap((crd) => crd.findProblems())];
    // To the API server the index is a part of the name of a field.
    const useless = "which is not in the schema, so the scale subresource lacks that value";
    assert.equal(
      found.map(({ severity, message }) => [severity, message]),
      [
        ["warning", `specReplicasPath refers to ".spec.pools[0].replicas", ${useless}`],
        ["warning", `statusReplicasPath refers to ".status.replicas", ${useless}`],
      ],
    );
    const fields = (crds[0]?.versions[0]?.schema as { properties: { spec: { properties: typeof properties } } })
      .properties.spec;
    assert.equal(Object.keys(fields.properties.any), ["x-kubernetes-preserve-unknown-fields"]);
    assert.equal(Object.keys(fields.properties.port), ["x-kubernetes-int-or-string"]);
    assert.equal(fields.properties.type, { type: "string" });
  });

  test("quotes property names in the path of a problem", () => {
    const schema = {
      type: "object",
      properties: {
        spec: { type: "object", properties: { a: { type: "string" }, "a.b[0]": { type: "string", default: 1 } } },
      },
    };
    const { crds } = readCrds({ file: "a.json", text: JSON.stringify(crdWith(schema)) });
    const [problem] = crds.flatMap((crd) => crd.findProblems());
    assert.match(problem?.path ?? "", '.properties["a.b[0]"].default');
  });
});
