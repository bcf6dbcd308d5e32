import type { InformerModel, ProjectModel } from "#generator/model/project-model.js";
import { deriveForms } from "#generator/output/reads/derive-forms.js";
import { builtinResource, thingOf } from "../../../../support/resource-models.js";
import { assert, suite } from "../../../../support/suite.js";

const KEY = "example.com/thing";
const ONLY = `pods: watches only objects with the label ${KEY}, which its mapping asks for`;
const pod = builtinResource("", "v1", "Pod");
const node = builtinResource("", "v1", "Node");
const thing = thingOf({ type: "object", properties: { size: { type: "integer" } } });

const pods: InformerModel = {
  kind: "informer",
  name: "pods",
  resource: pod,
  mapping: { kind: "label", keys: { name: KEY, namespace: "example.com/namespace" } },
  filters: {},
  form: { kind: "full" },
};
const nodes: InformerModel = { ...pods, name: "nodes", resource: node };

/** Derives the selector of "pods" for the body of a reconcile, and tells what is reported beside the form. */
function derive(body: string, rest: Partial<InformerModel> = {}) {
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
  const derived = deriveForms(model, [{ path: "src/thing/reconciler.ts", text }], ({ position }) => position);
  const source = derived.model.controllers[0]?.eventSources[0];
  if (source?.kind !== "informer") throw new Error("there is no such source");
  const report = derived.report.filter((line) => /^pods: watches/.test(line));
  return { selector: source.labelSelector, report };
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

suite("derived selectors", (test) => {
  for (const body of SAFE)
    test(`the label is asked for with: ${body || "nothing"}`, () => {
      assert.equal(derive(body), { selector: KEY, report: [ONLY] });
    });

  for (const body of UNSAFE)
    test(`all are watched with: ${body}`, () => {
      const { selector, report } = derive(body);
      assert.is(selector, undefined);
      assert.match(
        report.join(),
        /^pods: watches .* too \(they may be looked up in src\/thing\/reconciler\.ts:2:\d+\)$/,
      );
    });

  test("the selector of the spec is kept, with the label or without", () => {
    assert.is(derive("", { labelSelector: "tier in (a, b)" }).selector, `tier in (a, b),${KEY}`);
    assert.is(derive("use(context);", { labelSelector: "app=web" }).selector, "app=web");
  });

  test("the label is asked for whatever the spec says about the cache", () => {
    const statedForm = { position: { file: "workflow.yaml", line: 9, column: 14 } };
    assert.equal(derive("", { statedForm }), { selector: KEY, report: [ONLY] });
  });

  test("no selector is derived where other objects may be wanted, and the report says why", () => {
    const isWanted = { kind: "function", name: "isWanted" } as const;
    const statedSelector = { position: { file: "workflow.yaml", line: 9, column: 17 } };
    const cases: readonly (readonly [rest: Partial<InformerModel>, reason: string])[] = [
      [{ statedSelector }, "stated in workflow.yaml:9:17"],
      [{ primaryToSecondary: { kind: "function", name: "podsOf" } }, "primaryToSecondary may name them"],
      [{ filters: { onAdd: isWanted } }, "the filter onAdd would see other changes"],
      [{ filters: { onDelete: isWanted } }, "the filter onDelete would see other changes"],
      [{ filters: { generic: isWanted } }, "the filter generic would see other changes"],
    ];
    for (const [rest, reason] of cases)
      assert.equal(derive("", rest), {
        selector: undefined,
        report: [`pods: watches objects without the label ${KEY}, too (${reason})`],
      });
    const keys = { name: "no key" };
    assert.is(derive("", { mapping: { kind: "label", keys } }).selector, undefined);
  });

  test("a filter for updates, and mappings that ask for no label, change nothing", () => {
    assert.is(derive("", { filters: { onUpdate: { kind: "function", name: "isMoved" } } }).selector, KEY);
    for (const mapping of [{ kind: "annotation", keys: { name: KEY } }, { kind: "ownerReference" }] as const)
      assert.equal(derive("", { mapping }), { selector: undefined, report: [] });
  });
});
