import fc from "../../../../support/fast-check.js";
import type { InformerModel, ProjectModel } from "#generator/model/project-model.js";
import { suggestCaches } from "#generator/suggest/cache-suggestions.js";
import { compileProjection } from "#runtime/cache/projection.js";
import { builtinResource, thingOf } from "../../../../support/runtime/resource-models.js";
import { runs } from "../../../../support/runs.js";
import { assert, suite } from "../../../../support/suite.js";
import { HELPERS, randomBody } from "./random-code.js";

const pod = builtinResource("", "v1", "Pod");
const thing = thingOf({ type: "object", properties: { size: { type: "integer" } } });
const source: InformerModel = {
  ...{ kind: "informer", name: "pods", resource: pod, mapping: { kind: "ownerReference" } },
  ...{ filters: {}, cache: { kind: "full" } },
};
const model: ProjectModel = {
  packageName: "operator",
  resources: [thing, pod],
  controllers: [
    {
      ...{ name: "thing", primary: thing, dependents: [], settings: {}, filters: {}, specFile: "workflow.yaml" },
      eventSources: [source],
    },
  ],
};

const POD = {
  ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "b", labels: { c: "d" } } },
  spec: { nodeName: "e", priority: 7, nodeSelector: { zone: "f" } },
  status: { phase: "Running", podIP: "10.0.0.1", conditions: [{ type: "Ready", status: "True" }] },
};

/** Runs the body of a reconcile with pods, and returns what it has read. */
function run(body: string, object: object): string {
  const program = new Function(
    "secondary",
    "context",
    "Pod",
    "library",
    `${HELPERS}\nconst out = [];\n${body}\nreturn out;`,
  ) as (...args: unknown[]) => unknown;
  const copy = () => structuredClone(object);
  try {
    const found = program({ pods: [copy(), copy()] }, { secondaries: () => [copy()] }, {}, (x: unknown) => x);
    return JSON.stringify(found, (_, value: unknown) => (value === undefined ? "(nothing)" : value));
  } catch (error) {
    return (error as Error).message;
  }
}

// What is inside of an object tells the text of a list that holds it.
const TEXTS_OF_LISTS = [
  "out.push(`${secondary.pods.map((p) => p.status)}`);",
  "out.push(`${secondary.pods.map((p) => [p]).flat().map((p) => p.status)}`);",
  "out.push('' + secondary.pods.map((p) => p.status));",
  "out.push(`${[secondary.pods[0].status]}`);",
];

suite("suggested cache for random code", (test) => {
  test(
    "contains everything that the code reads",
    () => {
      let reduced = 0;
      fc.assert(
        fc.property(randomBody, (body) => {
          const text =
            "import { Pod } from '../generated/index.js';\nimport { library } from 'library';\n" +
            `${HELPERS}\nexport const reconciler = { reconcile({ secondary, context }) {\nconst out = [];\n${body}\nreturn undefined;\n} };\n`;
          const [suggestion] = suggestCaches(
            model,
            [{ path: "src/thing/reconciler.ts", text }],
            ({ position }) => position,
          );
          const cache = suggestion?.cache;
          if (cache === undefined) return;
          reduced += 1;
          const kept = compileProjection(cache.kind === "metadata" ? [] : cache.paths)(POD);
          assert.is(run(body, kept), run(body, POD), JSON.stringify(cache));
        }),
        { numRuns: runs(2000), examples: TEXTS_OF_LISTS.map((body): [string] => [body]) },
      );
      // Otherwise it would be a law about nothing.
      assert.ok(reduced > runs(2000) / 20, `${reduced} were reduced`);
    },
    { timeoutMs: 240_000 },
  );
});
