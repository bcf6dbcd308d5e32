// The README of the generator shows every field that a workflow spec may have, and every spec that it shows is one.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

interface SchemaNode {
  readonly $ref?: string;
  readonly properties?: { readonly [name: string]: SchemaNode };
  readonly additionalProperties?: SchemaNode | false;
  readonly items?: SchemaNode;
  readonly allOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
  readonly then?: SchemaNode;
  readonly else?: SchemaNode;
  readonly definitions?: { readonly [name: string]: SchemaNode };
}

// What a condition, a filter and a schedule consist of is shown once, in the text.
const SHARED_NODES = /(Condition|Precondition|Postcondition|\.existing|filters\.\w+)$/;
/** Shown in a comment, because there is something else in its place. */
const SHOWN_ELSEWHERE = /\.filters\.|\.mapping\.(annotation|function)|^spec\.primary\.resource$/;

suite("spec reference of the generator", (test) => {
  const schema = JSON.parse(
    readFileSync(join(repositoryRoot, "generator/data/workflow.schema.json"), "utf8"),
  ) as SchemaNode;
  const readme = readFileSync(join(repositoryRoot, "generator/README.md"), "utf8");
  const specs = [...readme.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => parse(text!) as object);
  const known = new Set(pathsOfSchema(schema, schema));

  test("shows every field of the schema", () => {
    const shown = new Set(specs.flatMap((spec) => pathsOf(spec, known)));
    const missing = [...known].filter((path) => !shown.has(path) && !SHOWN_ELSEWHERE.test(path));
    assert.equal(missing, []);
  });

  test("shows no field that is missing from the schema", () => {
    assert.equal(
      specs.flatMap((spec) => pathsOf(spec, known)).filter((path) => !known.has(path)),
      [],
    );
  });
});

/** The fields of a schema; `*` stands for any name, and what conditions and filters consist of is left out. */
function pathsOfSchema(root: SchemaNode, node: SchemaNode, path = ""): string[] {
  if (SHARED_NODES.test(path)) return [];
  const { $ref, properties = {}, additionalProperties, items, allOf = [], oneOf = [] } = node;
  const below = Object.entries(properties).flatMap(([name, child]) => {
    const childPath = path === "" ? name : `${path}.${name}`;
    return [childPath, ...pathsOfSchema(root, child, childPath)];
  });
  const named = $ref === undefined ? undefined : root.definitions?.[$ref.replace("#/definitions/", "")];
  const branches = [node.then, node.else].flatMap((each) => each ?? []);
  const same = [
    ...branches,
    ...allOf,
    ...oneOf,
    ...(named === undefined ? [] : [named]),
    ...(items === undefined ? [] : [items]),
  ];
  const any = additionalProperties ? pathsOfSchema(root, additionalProperties, `${path}.*`) : [];
  return [...new Set([...below, ...same.flatMap((each) => pathsOfSchema(root, each, path)), ...any])];
}

/** The fields of a value, by the paths of the schema. */
function pathsOf(value: unknown, known: ReadonlySet<string>, path = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => pathsOf(each, known, path));
  if (typeof value !== "object" || value === null || SHARED_NODES.test(path)) return [];
  return Object.entries(value).flatMap(([name, child]) => {
    const own = path === "" ? name : `${path}.${name}`;
    const isNamed = known.has(own) || ![...known].some((each) => each.startsWith(`${path}.*`));
    if (isNamed) return [own, ...pathsOf(child, known, own)];
    return pathsOf(child, known, `${path}.*`);
  });
}
