import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
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

const CHOICES = ["allOf", "anyOf", "oneOf", "then", "else"];

/** Returns the schemas below a keyword. */
function nodesAt(part: Node, keyword: string): readonly Node[] {
  const value = part[keyword];
  if (Array.isArray(value)) return value as Node[];
  return typeof value === "object" && value !== null ? [value as Node] : [];
}

/** Returns a schema and all others that hold for the same value. */
function alternativesOf(part: Node): Node[] {
  const name = /^#\/definitions\/(.*)$/.exec(String(part["$ref"]))?.[1];
  const others = [
    ...(name === undefined ? [] : [(schema["definitions"] as Record<string, Node>)[name]!]),
    ...CHOICES.flatMap((keyword) => nodesAt(part, keyword)),
  ];
  return [part, ...others.flatMap(alternativesOf)];
}

interface DefaultedField {
  readonly path: readonly string[];
  readonly part: Node;
}

/** Finds the fields of a value whose schema has a default that is no object. */
function defaultsIn(value: unknown, parts: readonly Node[], path: readonly string[] = []): DefaultedField[] {
  const all = parts.flatMap(alternativesOf);
  const own = all.filter(hasDefault).map((part) => ({ path, part }));
  if (typeof value !== "object" || value === null) return own;
  const below = Object.entries(value).flatMap(([step, child]) => {
    const children = all.flatMap((part) => {
      if (Array.isArray(value)) return nodesAt(part, "items");
      const named = ((part["properties"] ?? {}) as Record<string, Node>)[step];
      return named === undefined ? nodesAt(part, "additionalProperties") : [named];
    });
    return defaultsIn(child, children, [...path, step]);
  });
  return [...own, ...below];
}

function hasDefault(part: Node): boolean {
  const { default: value } = part;
  return value !== undefined && (typeof value !== "object" || Array.isArray(value));
}

/** Returns all schemas with a default, wherever they stand. */
function partsWithDefault(part: unknown): Node[] {
  if (typeof part !== "object" || part === null) return [];
  return [...(hasDefault(part as Node) ? [part as Node] : []), ...Object.values(part).flatMap(partsWithDefault)];
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

  test("accepts the default of every field where the documented spec has the field", () => {
    const readme = readFileSync(join(repositoryRoot, "generator/README.md"), "utf8");
    const documented = [...readme.matchAll(/```yaml\n(.*?)```/gs)]
      .map(([, text]) => parse(text!) as object)
      .find((spec) => JSON.stringify(spec).includes("pruning"))!;
    const fields = defaultsIn(documented, [schema]);
    const stated = new Set(fields.map(({ part }) => part));
    const missing = partsWithDefault(schema).filter((part) => !stated.has(part));
    assert.equal(missing, []);
    for (const { path, part } of fields) {
      const spec = structuredClone(documented);
      const parent = path.slice(0, -1).reduce((at, step) => (at as Record<string, object>)[step]!, spec as object);
      (parent as Record<string, unknown>)[path.at(-1)!] = part["default"];
      const { diagnostics } = readWorkflows({ file: "workflow.yaml", text: JSON.stringify(spec) }, checkSpec);
      assert.equal(diagnostics.map(formatDiagnostic), [], path.join("."));
    }
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
      "workflow.yaml:9:67: error spec-type: invalid value 10: must be a duration such as 2s, 500ms or 1h30m\n" +
        "  at document 2, spec.controller.maxReconciliationInterval",
    ]);
  });
});
