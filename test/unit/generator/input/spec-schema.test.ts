import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { loadSpecSchema, readWorkflows } from "#generator/read/workflows.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

const checkSpec = await loadSpecSchema();
const schema = JSON.parse(readFileSync(join(repositoryRoot, "generator/data/workflow.schema.json"), "utf8")) as Node;

interface Node {
  readonly [keyword: string]: unknown;
}

/** Returns all schemas of properties and items below a schema, with their paths. */
function partsOf(node: Node, path = ""): [path: string, part: Node][] {
  const children = [
    ...Object.entries((node["properties"] ?? {}) as Record<string, Node>),
    ...Object.entries((node["definitions"] ?? {}) as Record<string, Node>),
    ...(typeof node["items"] === "object" ? [["items", node["items"] as Node] as [string, Node]] : []),
  ];
  return children.flatMap(([name, child]) => [
    [`${path}/${name}`, child] as [string, Node],
    ...partsOf(child, `${path}/${name}`),
  ]);
}

function isChoice({ enum: values = [], oneOf = [] }: Node, text: string): boolean {
  return (values as unknown[]).includes(text) || (oneOf as Node[]).some(({ const: value }) => value === text);
}

suite("schema of a workflow spec", (test) => {
  test("has the default that a description mentions", () => {
    const stated = partsOf(schema).flatMap(([path, { description, default: value, ...part }]) => {
      const text = / Default: (\S+)\.$/.exec(String(description))?.[1];
      const isValue = text !== undefined && (/^(true|false|-?[0-9.]+(ms|s|m|h)?)$/.test(text) || isChoice(part, text));
      return isValue ? [{ path, text, value }] : [];
    });
    assert.ok(stated.length > 20);
    assert.equal(
      stated.filter(({ text, value }) => String(value) !== text),
      [],
    );
  });

  test("limits kind and plural to 63 characters", () => {
    const { definitions } = schema as { definitions: { untypedResource: { properties: Record<string, Node> } } };
    const { kind, plural } = definitions.untypedResource.properties;
    for (const [part, letter] of [
      [kind, "K"],
      [plural, "k"],
    ] as const) {
      const pattern = new RegExp(String(part?.["pattern"]));
      assert.equal([pattern.test(letter.repeat(63)), pattern.test(letter.repeat(64))], [true, false]);
    }
  });

  test("accepts every default of controller and workflow", () => {
    const [[, spec]] = partsOf(schema).filter(([path]) => path === "/spec") as [[string, Node]];
    const defaultsIn = (list: string) =>
      Object.fromEntries(
        Object.entries(
          ((spec["properties"] as Record<string, Node>)[list]!["properties"] ?? {}) as Record<string, Node>,
        )
          .filter(([, part]) => "default" in part)
          .map(([name, part]) => [name, part["default"]]),
      );
    const given = { controller: defaultsIn("controller"), workflow: defaultsIn("workflow") };
    const text =
      "apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: a }\n" +
      `spec: ${JSON.stringify({ primary: "v1/Pod", ...given })}\n`;
    assert.ok(Object.keys(given.controller).length > 5);
    assert.equal(readWorkflows({ file: "workflow.yaml", text }, checkSpec).diagnostics, []);
  });

  test("accepts the example in the README", () => {
    const readme = readFileSync(join(repositoryRoot, "generator/README.md"), "utf8");
    const [, text = ""] = /\n## The workflow spec\n[^]*?```yaml\n([^]*?)```/.exec(readme) ?? [];
    const { workflows, diagnostics } = readWorkflows({ file: "README.md", text }, checkSpec);
    assert.equal(diagnostics.map(formatDiagnostic), []);
    assert.is(workflows[0]?.dependents.size, 18);
  });

  test("describes every field", () => {
    const fields = partsOf(schema).filter(([path]) => !path.endsWith("/items") && !/^\/[a-z]+$/i.test(path));
    assert.ok(fields.length > 30);
    assert.equal(
      fields.filter(([, { description }]) => description === undefined).map(([path]) => path),
      [],
    );
  });

  test("has a title for every value that can be invalid", () => {
    const silent = partsOf(schema).filter(([, part]) => {
      return (
        part["title"] === undefined &&
        part["allOf"] === undefined &&
        part["$ref"] === undefined &&
        part["const"] === undefined
      );
    });
    assert.equal(
      silent.map(([path]) => path),
      [],
    );
  });

  test("reads several documents as workflows, and rejects a number as duration", () => {
    const head = "apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\n";
    const text =
      `${head}metadata: { name: a }\nspec: { primary: v1/Pod }\n---\n` +
      `${head}metadata: { name: b }\nspec: { primary: v1/Pod, controller: { maxReconciliationInterval: 10 } }\n`;
    const { workflows, diagnostics } = readWorkflows({ file: "workflow.yaml", text }, checkSpec);
    assert.equal(
      workflows.map(({ name }) => name),
      ["a"],
    );
    assert.equal(diagnostics.map(formatDiagnostic), [
      "workflow.yaml:9:67: error spec-type: expected a duration such as 2s, 500ms or 1h30m, found the number 10\n" +
        "  at document 2, spec.controller.maxReconciliationInterval",
    ]);
  });
});
