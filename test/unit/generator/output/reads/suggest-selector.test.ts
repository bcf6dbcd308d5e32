import type { InformerModel, ProjectModel } from "#generator/model/project-model.js";
import { suggestCaches } from "#generator/suggest/cache-suggestions.js";
import { builtinResource, thingOf } from "../../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../../support/suite.js";

const KEY = "example.com/thing";
const ONLY = { kind: "selector", labelSelector: KEY };
const pod = builtinResource("", "v1", "Pod");
const node = builtinResource("", "v1", "Node");
const thing = thingOf({ type: "object", properties: { size: { type: "integer" } } });

const pods: InformerModel = {
  kind: "informer",
  name: "pods",
  resource: pod,
  mapping: { kind: "label", keys: { name: KEY, namespace: "example.com/namespace" } },
  filters: {},
  cache: { kind: "full" },
};
const nodes: InformerModel = { ...pods, name: "nodes", resource: node };

/** Suggests the selector of "pods" for the body of a reconcile. */
function suggest(body: string, rest: Partial<InformerModel> = {}) {
  const model: ProjectModel = {
    packageName: "operator",
    resources: [thing, pod, node],
    controllers: [
      {
        ...{ name: "thing", primary: thing, dependents: [], settings: {}, filters: {}, specFile: "workflow.yaml" },
        eventSources: [{ ...pods, ...rest }, nodes],
      },
    ],
  };
  const text =
    "import { Pod, Node } from '../generated/index.js';\n" +
    `export const reconciler = { async reconcile({ primary, secondary, context }) { ${body} } };\n`;
  const suggestions = suggestCaches(model, [{ path: "src/thing/reconciler.ts", text }], ({ position }) => position);
  return suggestions.find(({ source }) => source.name === "pods")?.selector;
}

/** Uses after which nobody can have looked for an object without the label. */
const SAFE = [
  "",
  "return secondary.pods.map((pod) => pod.status?.phase);",
  "return JSON.stringify(secondary.pods);",
  "use(secondary);",
  "return context.secondaries(Node);",
  "return context.secondary(Pod, { source: 'others', name: 'a' });",
  "return context.secondaries('prices');",
  "return context.eventSources.get('nodes');",
  "context.logger.info(context.retry.attempt); await context.client.get(Pod, { name: 'a' });",
];

/** Uses that may look for any. */
const UNSAFE = [
  "return context.secondary(Pod, { name: 'a' });",
  "return context.secondaries(Pod).length;",
  "return context.secondaries(Pod, { source: 'pods' }).map((pod) => pod.status?.phase);",
  "return context.secondaries(kinds[0]);",
  "return context.eventSources.get('pods');",
  "return context.eventSources.get(name);",
  "return context.resources.of(Pod).update(changed);",
  "use(context);",
  "use({ context });",
  "const { secondary: find } = context; return find(Pod);",
  "const { logger, ...others } = context;",
  "return (() => context)();",
];

suite("suggested selector", (test) => {
  for (const body of SAFE)
    test(`requires the label of the mapping for: ${body || "nothing"}`, () => {
      assert.equal(suggest(body), ONLY);
    });

  for (const body of UNSAFE)
    test(`is omitted with a reason for: ${body}`, () => {
      const found = suggest(body);
      const reason = found?.kind === "none" ? found.reason : undefined;
      assert.match(reason ?? "", /^objects without it may be looked up in src\/thing\/reconciler\.ts:2:\d+$/);
    });

  test("keeps the labelSelector of the spec, and extends it if it does not require the label", () => {
    const selectorFor = (labelSelector: string) => suggest("", { labelSelector });
    for (const stated of ["tier in (a, b)", "app=web", `!${KEY}-x`, `${KEY}!=a`, `${KEY} notin (a)`, `${KEY}-more`])
      assert.equal(selectorFor(stated), { kind: "selector", labelSelector: `${stated},${KEY}` });
    for (const stated of [KEY, `app=web,${KEY}`, `${KEY}=a`, `${KEY} == a`, `tier in (a, b),${KEY} in (x, y)`])
      assert.equal(selectorFor(stated), { kind: "stated" }, stated);
  });

  test("is omitted with a reason if other objects may be needed", () => {
    const isWanted = { kind: "function", name: "isWanted" } as const;
    const cases: readonly (readonly [rest: Partial<InformerModel>, reason: string])[] = [
      [{ primaryToSecondary: { kind: "function", name: "podsOf" } }, "primaryToSecondary may name objects without it"],
      [{ filters: { onAdd: isWanted } }, "the filter onAdd would see other changes"],
      [{ filters: { onDelete: isWanted } }, "the filter onDelete would see other changes"],
      [{ filters: { generic: isWanted } }, "the filter generic would see other changes"],
      [{ mapping: { kind: "label", keys: { name: "no key" } } }, "its label is not a valid label key"],
    ];
    for (const [rest, reason] of cases) assert.equal(suggest("", rest), { kind: "none", reason });
  });

  test("is not affected by update filters, and is undefined for mappings without labels", () => {
    assert.equal(suggest("", { filters: { onUpdate: { kind: "function", name: "isMoved" } } }), ONLY);
    for (const mapping of [{ kind: "annotation", keys: { name: KEY } }, { kind: "ownerReference" }] as const)
      assert.is(suggest("", { mapping }), undefined);
  });
});
