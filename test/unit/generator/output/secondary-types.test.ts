import type { InformerModel, KubernetesDependentModel, ProjectModel } from "#generator/model/project-model.js";
import { emitProject } from "#generator/emit/emit-project.js";
import { chosenCompilers, writeProject } from "../../../support/projects/compile.js";
import { dependentOf } from "../../../support/runtime/dependent-models.js";
import { builtinResource, thingOf } from "../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../support/suite.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";

const configMap = builtinResource("", "v1", "ConfigMap");
const primary = thingOf({ type: "object" }, { crdFile: "crds/things.yaml" });

/** By the number of each dependent, those that it depends on. */
type Graph = readonly (readonly number[])[];

function dependentsOf(graph: Graph, bulk: ReadonlySet<number> = new Set()): KubernetesDependentModel[] {
  const dependents: KubernetesDependentModel[] = [];
  graph.forEach((edges, index) => {
    const dependsOn = edges.map((edge) => `n${edge}`);
    const reached = edges.flatMap((edge) => [...(dependents[edge]?.waitsFor ?? []), `n${edge}`]);
    const waitsFor = [...new Set(reached)];
    const own = bulk.has(index) ? { bulk: {} } : {};
    dependents.push({ ...dependentOf(`n${index}`, configMap, dependsOn), waitsFor, ...own });
  });
  return dependents;
}

function projectOf(
  dependents: readonly KubernetesDependentModel[],
  eventSources: readonly InformerModel[] = [],
): ProjectModel {
  const settings = { eventSources, filters: {}, settings: {}, specFile: "workflow.yaml" };
  const controllers = [{ name: "thing", primary, dependents, ...settings }];
  return { packageName: "operator", resources: [primary, configMap], controllers };
}

/** Returns the types of a controller that keeps ConfigMaps of others so. */
async function typesWith(cache: InformerModel["cache"]): Promise<string[]> {
  const mapping = { kind: "ownerReference" } as const;
  const source: InformerModel = { kind: "informer", name: "maps", resource: configMap, mapping, filters: {}, cache };
  const files = await emitProject(projectOf(dependentsOf(layers(20)), [source]));
  return (files.find(({ path }) => path.endsWith("thing/types.ts"))?.content ?? "").split("\n");
}

/** Returns how much of the types there is for each node and edge. */
async function shareOf(graph: Graph): Promise<{ readonly lines: number; readonly characters: number }> {
  const files = await emitProject(projectOf(dependentsOf(graph)));
  const text = files.find(({ path }) => path.endsWith("thing/types.ts"))?.content ?? "";
  const size = graph.length + graph.flat().length;
  return { lines: text.split("\n").length / size, characters: text.length / size };
}

const chain = (length: number): Graph => Array.from({ length }, (_, index) => (index === 0 ? [] : [index - 1]));
/** Ten beside each other; each depends on two of those before. */
const layers = (length: number): Graph =>
  Array.from({ length }, (_, index) =>
    index < 10 ? [] : [index - 10, index - 10 - (index % 10) + ((index + 3) % 10)],
  );
/** Two chains, and as many dependents that join them. */
const joins = (length: number): Graph => {
  const [half, end] = [Math.floor(length / 4), Math.floor(length / 2)];
  return Array.from({ length }, (_, index) =>
    index >= end ? [half - 1, end - 1] : index === 0 || index === half ? [] : [index - 1],
  );
};

suite("type of secondaries", (test) => {
  for (const [name, graphOf, declare] of [
    ["chain", chain, test.thorough],
    ["layers", layers, test],
    ["joins", joins, test.thorough],
  ] as const)
    declare(`grows linearly with the nodes and edges of the graph: ${name}`, async () => {
      const [small, large] = await Promise.all([50, 200].map((count) => shareOf(graphOf(count))));
      if (small === undefined || large === undefined) throw new Error("nothing was measured");
      assert.ok(large.lines <= small.lines * 1.05, `lines: ${small.lines} for each of 50, ${large.lines} of 200`);
      assert.ok(large.characters <= small.characters * 1.1, `${small.characters} and ${large.characters} characters`);
    });

  test("is the same for dependents and the reconciler with a reduced cache", async () => {
    const [full, reduced] = await Promise.all([typesWith({ kind: "full" }), typesWith({ kind: "metadata" })]);
    const isOfMaps = (line: string) =>
      /^import type|^  [A-Z]\w+,$| MapsResource =|"maps"|ThingSources|KeepsLess|Kept/.test(line);
    assert.equal(
      full.filter((line) => !reduced.includes(line) && !isOfMaps(line)),
      [],
    );
    assert.ok(reduced.some((line) => line.includes("ThingSources extends KeepsLess<ThingLookups>")));
  });

  test(
    "includes all dependencies, and others as possibly undefined",
    async () => {
      await using folder = await createTemporaryFolder();
      const graph = [[], [0], [0], [1, 2], [], [3, 4], [2], [6, 5], [8], [4, 7]].map((edges, index) =>
        edges.filter((edge) => edge < index),
      );
      const bulk = new Set([2, 8]);
      const dependents = dependentsOf(graph, bulk);
      const checks = dependents.map(({ name, waitsFor }) => {
        const always = dependents.filter(({ bulk }) => bulk !== undefined).map((each) => each.name);
        const present = [...new Set([...waitsFor, ...always])].map((each) => JSON.stringify(each)).join(" | ");
        return `export type ${name} = Expect<Equal<Present<types.${name.toUpperCase()}Secondary>, ${present}>>;\n`;
      });
      const content = `import type * as types from "./src/generated/thing/types.js";
type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
type Expect<Holds extends true> = Holds;
type Present<T> = { [K in keyof T]-?: undefined extends T[K] ? never : K }[keyof T];
${checks.join("")}`;
      await writeProject(folder.path, [...(await emitProject(projectOf(dependents))), { path: "check.ts", content }]);
      for (const { compile } of chosenCompilers) assert.is(compile(folder.path), "");
    },
    { timeoutMs: 120_000 },
  );
});
