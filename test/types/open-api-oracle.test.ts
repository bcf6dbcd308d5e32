// openapi-typescript is another author's reading of the same schemas. Field by field its type and ours are assignable to each other, or
// a reason says why not.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import type { ResourceModel } from "#generator/model/project-model.js";
import { emitResources } from "#generator/emit/emit-project.js";
import { nameOrThrow, nameResources, specifierOf } from "#generator/emit/names.js";
import { compileTogether, fastCompiler } from "../support/projects/compile.js";
import { hasCorpus, listCorpusProjects, readCorpusProject } from "../support/kinds/corpus.js";
import { repositoryRoot } from "../support/repository.js";
import { resourcesOfCrds, thingOf } from "../support/runtime/resource-models.js";
import { assert, suite } from "../support/suite.js";

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

interface Kinds {
  readonly resources: readonly ResourceModel[];
  /** Returns the schema that openapi-typescript reads. */
  readonly theirSchemaOf?: (resource: ResourceModel) => Schema;
}

interface Comparison {
  /** The number of compared fields. */
  readonly fields: number;
  /** The numbers of fields that differ, by reason. */
  readonly reasons: { readonly [reason: string]: number };
  /** The fields that differ without a reason. */
  readonly unexplained: readonly string[];
  /** Errors in the code of either side. */
  readonly others: readonly string[];
}

/** Compares all fields of the kinds of projects, which are compiled as one program. */
async function compare(projects: { readonly [name: string]: Kinds }): Promise<{ [name: string]: Comparison }> {
  const emitted = await Promise.all(
    Object.entries(projects).map(async ([name, kinds]) => ({ name, ...(await emit(kinds)) })),
  );
  const [errorsOf] = await compileTogether(Object.fromEntries(emitted.map(({ name, files }) => [name, files])), [
    fastCompiler,
  ]);
  return Object.fromEntries(emitted.map(({ name, ...each }) => [name, explain(errorsOf!(name), each)]));
}

/** Emits the code of both sides, and `compare.ts` with one line for each field after the first `before` lines. */
async function emit({ resources, theirSchemaOf = ({ schema }) => schema as Schema }: Kinds) {
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
  const files = [
    ...(await emitResources(resources)),
    { path: "theirs.ts", content: theirs },
    { path: "compare.ts", content: `${head}${checks.join("\n")}\n` },
  ];
  return { files, fields, before: head.split("\n").length - 1 };
}

/** Returns which fields differ, based on the errors of a project. */
function explain(errors: readonly string[], { fields, before }: Awaited<ReturnType<typeof emit>>): Comparison {
  const lines = errors
    .flatMap((error) => /^compare\.ts\((\d+),/.exec(error)?.[1] ?? [])
    .map((line) => Number(line) - before - 1);
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
    others: errors.filter((error) => !error.startsWith("compare.ts(")),
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
      const { own } = await compare({ own: { resources: [...readOwnKinds(), apart] } });
      const { fields, reasons, unexplained, others } = own!;
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
      const theirSchemaOf = ({ schema }: ResourceModel) => changed(schema as Schema);
      const { other } = await compare({ other: { resources: [kind!], theirSchemaOf } });
      const { unexplained } = other!;
      assert.ok(unexplained.includes("WebPage v1 spec.replicas"), unexplained.join("\n"));
    },
    { timeoutMs: 60_000 },
  );

  const title = "are the same for kinds of other projects, except for known reasons";
  if (!hasCorpus) return test.skip(title, "no collection of CRDs is at hand; CRD_CORPUS names one");
  test.thorough(
    title,
    async () => {
      const projects = listCorpusProjects().map((name) => [name, { resources: readCorpusProject(name) }]);
      const compared = await compare(Object.fromEntries(projects) as { [name: string]: Kinds });
      for (const [project, { fields, reasons, unexplained, others }] of Object.entries(compared)) {
        assert.equal([...others, ...unexplained], [], project);
        console.log(`${project}: ${fields} fields ${JSON.stringify(reasons)}`);
      }
    },
    { timeoutMs: 280_000 },
  );
});
