import { formatDiagnostic } from "#generator/diagnostic.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { hasCorpus, listCorpusProjects, readCorpusFiles } from "../../../support/kinds/corpus.js";
import { assert, suite } from "../../../support/suite.js";

const read = (text: string) => readCrds({ file: "crds/a.yaml", text });

function crdOf(kind: string, schema: object = { type: "object" }): string {
  const plural = `${kind.toLowerCase()}s`;
  return JSON.stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { kind, plural },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  });
}

suite("readCrds", (test) => {
  test("reads all documents and list items, and ignores other kinds", () => {
    const list = `{"apiVersion": "v1", "kind": "List", "items": [${crdOf("B")}, {"kind": "Secret"}]}`;
    const typed = `{"kind": "CustomResourceDefinitionList", "items": [${crdOf("C")}]}`;
    const { crds, diagnostics, hasDefinitions } = read(
      [crdOf("A"), list, "kind: Namespace", typed, ""].join("\n---\n"),
    );
    assert.equal(
      crds.map(({ kind }) => kind),
      ["A", "B", "C"],
    );
    assert.equal(diagnostics, []);
    assert.ok(hasDefinitions);
    assert.not(read("kind: Namespace").hasDefinitions);
  });

  test("reports errors with the number of the document", () => {
    const { diagnostics } = read(
      ["---", "# nothing", "---", crdOf("A"), "---", "kind: CustomResourceDefinition"].join("\n"),
    );
    assert.equal(
      diagnostics.map(({ position, path }) => [position?.line, path]),
      [[6, "document 3, apiVersion"]],
    );
  });

  test("defaults singular and listKind from the kind", () => {
    const [crd] = read(crdOf("WebPage")).crds;
    assert.equal([crd?.singular, crd?.listKind], ["webpage", "WebPageList"]);
  });

  test("reports an error in a list item at its position", () => {
    const list = `kind: List\nitems:\n  - ${crdOf("A")}\n  - ${crdOf("b_c")}\n`;
    const { crds, diagnostics } = read(list);
    assert.is(crds.length, 1);
    assert.match(
      diagnostics.map(formatDiagnostic).join(),
      /^crds\/a.yaml:4:\d+: error crd-name: .* found "b_c"\n  at items\[1\]/,
    );
  });

  test("accepts any property name, including schema keywords", () => {
    const names = [
      "$ref",
      "definitions",
      "items",
      "required",
      "type",
      "enum",
      "properties",
      "constructor",
      "*/",
      "\u2028",
    ];
    const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
    const { crds, diagnostics } = read(crdOf("A", { type: "object", properties }));
    assert.equal(diagnostics, []);
    assert.is(crds.length, 1);
    const [withPrototype] = read(
      crdOf("A", { type: "object" }).replace(
        '"object"',
        '"object", "properties": { "__proto__": { "type": "string" } }',
      ),
    ).crds;
    const schema = withPrototype?.versions[0]?.schema as { properties: object };
    assert.equal(Object.keys(schema.properties), ["__proto__"]);
  });

  test("rejects $ref at every place of a schema", () => {
    const bad = { $ref: "file:///etc/passwd" };
    const places = [
      { properties: { a: bad } },
      { items: bad },
      { additionalProperties: bad },
      { not: bad },
      { allOf: [bad] },
      { anyOf: [{ properties: { a: { oneOf: [bad] } } }] },
    ];
    for (const place of places) {
      const { diagnostics, crds } = read(crdOf("A", { type: "object", ...place }));
      assert.equal(crds, []);
      assert.match(diagnostics.map(({ message }) => message).join(), '"$ref" is not allowed');
    }
  });

  if (hasCorpus)
    test("accepts the CRDs of other projects, except one without a scope", () => {
      const rejected = listCorpusProjects().flatMap((project) =>
        readCorpusFiles(project).flatMap(({ name, text }) => (read(text).diagnostics.length > 0 ? [name] : [])),
      );
      assert.equal(rejected, ["drivers.crew.example.com~2.yaml"]);
    });
  else test.skip("accepts the CRDs of other projects", "there is no collection of them; see CRD_CORPUS");

  test("rejects preserveUnknownFields of v1beta1 and names the v1 equivalent", () => {
    const old = crdOf("A").replace('"scope"', '"preserveUnknownFields":true,"scope"');
    const { diagnostics, crds } = read(old);
    assert.equal(crds, []);
    assert.match(diagnostics[0]?.message ?? "", "preserveUnknownFields: true is forbidden");
    assert.is(diagnostics[0]?.hint, "set x-kubernetes-preserve-unknown-fields: true at the root of the schema");
  });

  test("rejects a schema that is nested too deeply", () => {
    let schema: object = { type: "string" };
    for (let depth = 0; depth < 150; depth++) schema = { type: "object", properties: { a: schema } };
    assert.match(read(crdOf("A", schema)).diagnostics[0]?.message ?? "", "nested too deeply");
  });
});
