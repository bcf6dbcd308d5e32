// openapi-typescript is another author's reading of the same schemas. Field by field its type and ours are assignable to each other, or
// a reason says why not.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import type { ResourceModel } from "#generator/model/project-model.js";
import { emitResources } from "#generator/emit/emit-project.js";
import { nameOrThrow, nameResources, specifierOf } from "#generator/emit/names.js";
import { fastCompiler, writeProject } from "../support/projects/compile.js";
import { hasCorpus, listCorpusProjects, readCorpusProject } from "../support/kinds/corpus.js";
import { repositoryRoot } from "../support/repository.js";
import { resourcesOfCrds, thingOf } from "../support/runtime/resource-models.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

type Schema = { readonly [key: string]: unknown };

/** A field of a kind, with the types of it in both forms. */
interface Field {
  readonly path: string;
  readonly schema: Schema;
  readonly ours: string;
  readonly theirs: string;
}

/** Why two types differ, in the order in which the reasons are asked. */
const REASONS: { readonly [reason: string]: (schema: Schema) => boolean } = {
  "it knows no x-kubernetes-preserve-unknown-fields": (schema) =>
    schema["x-kubernetes-preserve-unknown-fields"] === true,
};

function recordIn(schema: Schema, key: string): { readonly [name: string]: Schema } {
  const value = schema[key];
  return typeof value === "object" && value !== null ? (value as { readonly [name: string]: Schema }) : {};
}

/** Returns the fields of a schema that have no fields of their own. */
function leavesOf({ path, schema, ours, theirs }: Field): Field[] {
  const step = (name: string, child: Schema, index: string): Field[] => {
    const [own, other] = [`NonNullable<${ours}>[${index}]`, `NonNullable<${theirs}>[${index}]`];
    return leavesOf({ path: `${path}${name}`, schema: child, ours: own, theirs: other });
  };
  const isOpen = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const properties = Object.entries(recordIn(schema, "properties"));
  const [items, values] = [schema["items"], schema["additionalProperties"]];
  if (!isOpen && properties.length > 0)
    return properties.flatMap(([name, child]) => step(`.${name}`, child, JSON.stringify(name)));
  if (typeof items === "object" && items !== null) return step("[]", items as Schema, "number");
  if (typeof values === "object" && values !== null) return step("{}", values as Schema, "string");
  return [{ path, schema, ours, theirs }];
}

/** Compares all fields of kinds; returns how many there are, and those that differ, by the reason. */
async function compare(
  resources: readonly ResourceModel[],
  theirSchemaOf = ({ schema }: ResourceModel): Schema => schema as Schema,
) {
  await using folder = await createTemporaryFolder();
  const names = nameResources({ resources });
  const fields: Field[] = [];
  const schemas: { [name: string]: object } = {};
  const imports: string[] = [];
  for (const [index, resource] of resources.entries()) {
    const parts = Object.entries(recordIn(resource.schema as Schema, "properties"));
    // Theirs are plain texts and an object.
    const own = parts.filter(([name]) => !["apiVersion", "kind", "metadata"].includes(name));
    const name = `Kind${index}`;
    const theirProperties = Object.entries(recordIn(theirSchemaOf(resource), "properties"));
    schemas[name] = { ...resource.schema, properties: Object.fromEntries(theirProperties), required: [] };
    const { className } = nameOrThrow(names, resource);
    imports.push(
      `import type { ${className} as ${name} } from "${specifierOf(nameOrThrow(names, resource), "./src/generated/")}";`,
    );
    for (const [part, schema] of own) {
      const theirs = `components["schemas"]["${name}"]["${part}"]`;
      const path = `${resource.kind} ${resource.version} ${part}`;
      fields.push(...leavesOf({ path, schema, ours: `${name}["${part}"]`, theirs }));
    }
  }
  const document = { openapi: "3.0.3", info: { title: "kinds", version: "1" }, paths: {}, components: { schemas } };
  const theirs = astToString(await openapiTS(JSON.stringify(document), { silent: true, immutable: true }));
  const head =
    `${imports.join("\n")}\nimport type { components } from "./theirs.js";\n` +
    "type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;\n";
  const checks = fields.map(
    ({ ours, theirs: other }, index) => `export const f${index}: Same<${ours}, ${other}> = true;`,
  );
  await writeProject(folder.path, [
    ...(await emitResources(resources)),
    { path: "theirs.ts", content: theirs },
    { path: "compare.ts", content: `${head}${checks.join("\n")}\n` },
  ]);
  const printed = fastCompiler.compile(folder.path);
  const before = head.split("\n").length - 1;
  const lines = [...printed.matchAll(/compare\.ts\((\d+),/g)].map(([, line]) => Number(line) - before - 1);
  const differing = [...new Set(lines)].flatMap((line) => fields[line] ?? []);
  const reasons: { [reason: string]: number } = {};
  const unexplained: string[] = [];
  for (const { path, schema } of differing) {
    const reason = Object.entries(REASONS).find(([, holds]) => holds(schema))?.[0];
    if (reason === undefined) unexplained.push(path);
    else reasons[reason] = (reasons[reason] ?? 0) + 1;
  }
  return {
    fields: fields.length,
    reasons,
    unexplained,
    others: printed.split("\n").filter((line) => !/compare\.ts\(|^ |^$/.test(line)),
  };
}

const crds = join(repositoryRoot, "fixtures/crds");
const samples = join(repositoryRoot, "fixtures/samples");
const folders = [
  ...[crds, join(crds, "ordinary"), join(crds, "hostile")],
  ...readdirSync(samples).map((name) => join(samples, name, "crds")),
];

function readOwnKinds(): ResourceModel[] {
  const byName = new Map<string, ResourceModel>();
  for (const folder of folders)
    for (const file of readdirSync(folder).filter((name) => name.endsWith(".yaml")))
      for (const resource of resourcesOfCrds(readFileSync(join(folder, file), "utf8")))
        byName.set(`${resource.group}/${resource.version}/${resource.kind}`, resource);
  return [...byName.values()];
}

suite("generated types beside openapi-typescript", (test) => {
  test.thorough(
    "are the same for our own kinds, except for known reasons",
    async () => {
      const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
      const apart = thingOf({ type: "object", properties: { open, empty: { type: "object" } } });
      const { fields, reasons, unexplained, others } = await compare([...readOwnKinds(), apart]);
      assert.equal(others, []);
      assert.equal(unexplained, []);
      assert.ok(fields > 100, `${fields} fields`);
      assert.equal(Object.values(reasons), [1]);
    },
    { timeoutMs: 60_000 },
  );

  test(
    "differ where the schema differs",
    async () => {
      const [kind] = resourcesOfCrds(readFileSync(join(samples, "webpage/crds/webpages.example.com.yaml"), "utf8"));
      const changed = (schema: Schema) =>
        JSON.parse(JSON.stringify(schema).replaceAll('"integer"', '"string"')) as Schema;
      const { unexplained } = await compare([kind!], ({ schema }) => changed(schema as Schema));
      assert.ok(unexplained.includes("WebPage v1 spec.replicas"), unexplained.join("\n"));
    },
    { timeoutMs: 60_000 },
  );

  const title = "are the same for kinds of other projects, except for known reasons";
  if (!hasCorpus) return test.skip(title, "no collection of CRDs is at hand; CRD_CORPUS names one");
  test.thorough(
    title,
    async () => {
      for (const project of listCorpusProjects()) {
        const { fields, reasons, unexplained, others } = await compare(readCorpusProject(project));
        assert.equal([...others, ...unexplained], [], project);
        console.log(`${project}: ${fields} fields ${JSON.stringify(reasons)}`);
      }
    },
    { timeoutMs: 280_000 },
  );
});
