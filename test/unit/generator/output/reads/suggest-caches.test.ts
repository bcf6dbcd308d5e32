import type { ControllerModel, ExpressionModel, InformerModel, ProjectModel } from "#generator/model/project-model.js";
import { suggestCaches, type CacheSuggestion } from "#generator/suggest/cache-suggestions.js";
import { dependentOf, externalOf } from "../../../../support/runtime/dependent-models.js";
import { builtinResource, thingOf } from "../../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../../support/suite.js";

const pod = builtinResource("", "v1", "Pod");
const configMap = builtinResource("", "v1", "ConfigMap");
const thing = thingOf({ type: "object", properties: { size: { type: "integer" } } });

const pods: InformerModel = {
  kind: "informer",
  name: "pods",
  resource: pod,
  mapping: { kind: "ownerReference" },
  filters: {},
  cache: { kind: "full" },
};

function expressionOf(expression: string, names: ExpressionModel["names"]): ExpressionModel {
  return { kind: "when", expression, names, position: { file: "workflow.yaml", line: 7, column: 1 } };
}

/** Suggests what "pods" keeps, with these files of the user's below src. */
function suggest(files: { readonly [name: string]: string }, rest: Partial<ControllerModel> = {}): CacheSuggestion {
  const model: ProjectModel = {
    packageName: "operator",
    resources: [thing, pod, configMap],
    controllers: [
      {
        ...{ name: "thing", primary: thing, dependents: [], settings: {}, filters: {}, specFile: "workflow.yaml" },
        eventSources: [pods],
        ...rest,
      },
    ],
  };
  const code = Object.entries(files).map(([name, text]) => ({ path: `src/${name}`, text }));
  const [suggestion] = suggestCaches(model, code, ({ position }) => position);
  if (suggestion === undefined) throw new Error("there is no such source");
  return suggestion;
}

/** Describes what is kept for the body of a reconcile: `full`, `metadata` or the paths. */
function keptFor(body: string, more = ""): string {
  const text = `${more}\nexport const reconciler = { async reconcile({ primary, secondary, context }) { ${body} } };\n`;
  return describe(suggest({ "thing/reconciler.ts": text }));
}

function describe({ cache }: CacheSuggestion): string {
  return cache?.kind === "paths" ? cache.paths.join(" ") : (cache?.kind ?? "full");
}

const PHASE = "status.phase";

/** Pieces of code, and what has to be kept for each. */
const BODIES: readonly (readonly [body: string, kept: string])[] = [
  // Nothing of the object.
  ["", "metadata"],
  ["return secondary.pods.length;", "metadata"],
  ["return secondary.pods.map((pod) => pod.metadata.name);", "metadata"],
  ["if (secondary.pods[0] === undefined) return;", "metadata"],
  ["return secondary.configMap;", "metadata"],
  ["for (const { metadata: { labels } } of secondary.pods) use(labels);", "metadata"],
  ["return !secondary.pods.find(({ kind }) => kind === 'Pod');", "metadata"],
  // Paths.
  ["return secondary.pods.some((pod) => pod.status?.phase === 'Running');", PHASE],
  ["return secondary.pods.every(({ status }) => status?.phase === 'Running');", PHASE],
  ["return secondary.pods.filter((pod) => pod.status!.phase).length;", PHASE],
  ["return secondary.pods.find((pod) => pod.metadata.name === 'a')?.status?.phase;", PHASE],
  ["return secondary.pods[0]?.status?.['phase'];", PHASE],
  ["return secondary['pods'].at(-1)?.status?.phase;", PHASE],
  ["for (const pod of secondary.pods) use(pod.status?.phase);", PHASE],
  ["for (const { status: { phase } } of secondary.pods) use(phase);", PHASE],
  ["const { pods } = secondary; return pods.map(({ status }) => status?.phase);", PHASE],
  ["const { pods: [first, ...others] } = secondary; use(first.status.phase, others.length);", PHASE],
  ["const all = secondary.pods; const [one] = all; const status = one.status; return status.phase;", PHASE],
  ["return secondary.pods.map((pod) => pod.status).filter((status) => status !== undefined)", "status"],
  ["return secondary.pods.map((pod) => pod.status?.phase).join();", PHASE],
  ["return secondary.pods.flatMap((pod) => [pod.status]).map((status) => status?.phase);", PHASE],
  ["return secondary.pods.reduce((sum, pod) => sum + (pod.status?.phase === 'Running' ? 1 : 0), 0);", PHASE],
  ["secondary.pods.forEach((pod, index, all) => use(all[index + 1].status.phase));", PHASE],
  ["return [...secondary.pods].sort((a, b) => a.spec.priority - b.spec.priority).length;", "spec.priority"],
  ["const pod = secondary.pods[0] ?? secondary.pods[1]; return pod?.status?.phase;", PHASE],
  ["const pod = primary.x ? secondary.pods[0] : undefined; return `${pod?.status?.phase}`;", PHASE],
  ["return secondary.pods.filter(() => true).slice(1).toReversed().map((pod) => pod.status.phase);", PHASE],
  ["return () => secondary.pods.map((pod) => pod.status.phase);", PHASE],
  ["use({ phase: secondary.pods[0].status.phase, count: secondary.pods.length });", PHASE],
  ["const later = () => pods.some((pod) => pod.status.phase); const pods = secondary.pods; return later();", PHASE],
  ["return secondary.pods.map((pod) => pod.status.phase + pod.spec.nodeName);", `spec.nodeName ${PHASE}`],
  // Lists, maps and what is inside of an object is kept as a whole.
  ["return secondary.pods.map((pod) => pod.status.conditions.map(({ type }) => type));", "status.conditions"],
  ["return secondary.pods.map((pod) => pod.spec.nodeSelector['zone']);", "spec.nodeSelector"],
  ["return secondary.pods.map((pod) => ({ status: pod.status }));", "status"],
  ["return secondary.pods.map((pod) => pod.status && pod.status.phase);", "status"],
  ["return JSON.stringify(secondary.pods[0].status);", "status"],
  ["const { status: { phase, ...others } } = secondary.pods[0];", "status"],
  ["let status = secondary.pods[0].status; return status.phase;", "status"],
  ["const status: PodStatus = secondary.pods[0].status; return status.phase;", "status"],
  ["return secondary.pods.map((pod) => pod.status as PodStatus);", "status"],
  // Anything may be read.
  ["return JSON.stringify(secondary.pods);", "full"],
  ["return secondary.pods;", "full"],
  ["return { ...secondary.pods[0] };", "full"],
  ["return Object.keys(secondary);", "full"],
  ["use(secondary.pods.map((pod) => [pod]));", "full"],
  ["kept.pods = secondary.pods;", "full"],
  ["for (const name of names) use(secondary[name]);", "full"],
  ["for (const pod of secondary.pods) use(pod[primary.name]);", "full"],
  ["const { metadata, ...others } = secondary.pods[0];", "full"],
  ["const pod: Pod = secondary.pods[0]; return pod.status.phase;", "full"],
  ["const pod = secondary.pods[0] as Pod; return pod.status.phase;", "full"],
  ["return secondary.pods.map((pod: Pod) => pod.status.phase);", "full"],
  ["let pod = secondary.pods[0]; pod = other; return pod.status.phase;", "full"],
  ["return secondary.pods.map(describePod);", "full"],
  ["return secondary.pods.entries();", "full"],
  ["return secondary.pods[0].stauts;", "full"],
  ["return new Set(secondary.pods);", "full"],
  ["return secondary.pods.reduce((last, pod) => pod, undefined);", "full"],
  ["use(secondary);", "full"],
  ["use(context);", "full"],
  ["secondary.pods[0].status.phase = 'Running';", PHASE],
  // What a tag, `arguments` or a parameter after `this` gets.
  ["return sql`${secondary.pods[0]}`;", "full"],
  ["return sql`${secondary.pods[0].status}`;", "status"],
  ["return secondary.pods.map(function () { return arguments[0].spec; });", "full"],
  ["return read(secondary.pods[0]); function read() { return arguments[0].spec; }", "full"],
  ["return read(secondary.pods[0]); function read(this: void, pod) { return pod.status.phase; }", PHASE],
  ["return secondary.pods.map(function (this: void, pod) { return pod.status.phase; });", PHASE],
  // The generated type of what is kept follows it.
  ["const pod: PodsResource | undefined = secondary.pods[0]; return pod?.status?.phase;", PHASE],
  ["return secondary.pods.map((pod: PodsResource) => pod.status?.phase);", PHASE],
];

suite("suggested cache", (test) => {
  test("is full for an event source that a dependent uses", () => {
    const dependent = { ...dependentOf("own", pod), eventSource: "pods" };
    const { cache, reason } = suggest({}, { dependents: [dependent] });
    assert.is(cache, undefined);
    assert.is(reason, 'dependent "own" takes its objects from it');
  });

  for (const [body, kept] of BODIES)
    test(`is ${kept} for: ${body || "nothing"}`, () => {
      assert.is(keptFor(body), kept);
    });

  test("follows functions of the project, also in other files and recursive ones", () => {
    const helper = "function phaseOf(pod, depth) { return depth > 0 ? phaseOf(pod, depth - 1) : pod.status.phase; }";
    assert.is(keptFor("return secondary.pods.map((pod) => phaseOf(pod, 3));", helper), PHASE);
    assert.is(keptFor("return secondary.pods.map(phaseOf);", "const phaseOf = (pod) => pod.status.phase;"), PHASE);
    const typed = "function phaseOf(pod: Pod) { return pod.status.phase; }";
    assert.is(keptFor("return secondary.pods.map(phaseOf);", typed), "full");
    const files = {
      "thing/reconciler.ts":
        "import { summarise } from '../lib/summary.js';\nexport const reconciler: R = { reconcile: (args) => summarise(args) };",
      "lib/summary.ts": "export function summarise({ secondary }: Args) { return secondary.pods[0].status.phase; }",
    };
    assert.is(describe(suggest(files)), PHASE);
    const { "lib/summary.ts": _summary, ...alone } = files;
    assert.is(describe(suggest(alone)), "full");
  });

  test("takes the parameter after this as the first argument", () => {
    const text =
      "export const reconciler = { reconcile(this: R, { secondary }) { return secondary.pods[0].status.phase; } };";
    assert.is(describe(suggest({ "thing/reconciler.ts": text })), PHASE);
  });

  test("covers every function of the reconciler, and is full for one that cannot be followed", () => {
    const cleanup =
      "export const reconciler = { reconcile() {}, cleanup: ({ secondary: { pods } }) => pods[0].spec.nodeName };";
    assert.is(describe(suggest({ "thing/reconciler.ts": cleanup })), "spec.nodeName");
    for (const text of [
      "export const reconciler = create();",
      "export const reconciler = { reconcile: withLog(run) };",
      "export const reconciler = { ...base };",
      "export class Reconciler {}",
      "export const reconciler = { reconcile(args) { return this.run(args); } };",
      "export const reconciler = { reconcile() { return arguments[0].secondary.pods[0].spec; } };",
    ])
      assert.is(describe(suggest({ "thing/reconciler.ts": text })), "full", text);
  });

  test("covers lookups by class, unless they name another source", () => {
    const importing =
      "import { Pod } from '@gen-operator/kinds/core/v1'; import { ConfigMap } from '../generated/index.js';";
    const cases = [
      ["return context.secondaries(Pod).map((pod) => pod.status.phase);", PHASE],
      ["return context.secondary(Pod, { source: 'pods', name: 'a' })?.status?.phase;", PHASE],
      ["return context.secondary(Pod, { source: 'others' }).spec;", "metadata"],
      ["return context.secondary(ConfigMap).data;", "metadata"],
      ["return context.secondaries('prices');", "metadata"],
      ["return context.secondaries(kinds[0]);", "full"],
      ["return context.eventSources.get('pods');", "full"],
      ["return context.eventSources.get('prices');", "metadata"],
      ["return context.resources.of(Pod).update(changed);", "full"],
      ["return context.resources.of(kinds[0], { source: name });", "full"],
      ["return context.resources.of(ConfigMap).apply(wanted);", "metadata"],
      ["return context.resources.addFinalizer(primary);", "metadata"],
      ["context.logger.info(context.retry.attempt); await context.client.get(Pod, { name: 'a' });", "metadata"],
    ] as const;
    for (const [body, kept] of cases) assert.is(keptFor(body, importing), kept, body);
    // A class that another file has renamed may be any.
    const renamed = "import { Workload } from '../lib/kinds.js';";
    assert.is(keptFor("return context.secondaries(Workload).map((pod) => pod.spec);", renamed), "full");
  });

  test("covers the functions of an external dependent, including fetch", () => {
    const keptOf = (kind: "poll" | "perPrimaryPoll" | "inbound", functions: { readonly [name: string]: string }) => {
      const all = { desired: "() => ({})", create: "(desired) => desired", fetch: "() => []", ...functions };
      const members = Object.entries(all).map(([name, body]) => `${name}: ${body}`);
      const source = kind === "inbound" ? ({ kind, isFetched: true } as const) : { kind, intervalMs: 1000 };
      const dependents = [externalOf("account", source)];
      return describe(
        suggest(
          { "thing/dependents/account.ts": `export const external = { ${members.join(", ")} };` },
          { dependents },
        ),
      );
    };
    const phase = "use(secondary.pods[0]?.status?.phase)";
    assert.is(keptOf("perPrimaryPoll", { fetch: `(primary, { secondary }) => ${phase}` }), PHASE);
    assert.is(keptOf("perPrimaryPoll", { fetch: "async (primary, context) => list(context.secondary)" }), "full");
    assert.is(keptOf("perPrimaryPoll", { fetch: "(primary, { signal, state }) => list(signal, state)" }), "metadata");
    assert.is(keptOf("perPrimaryPoll", { create: `(desired, { secondary }) => ${phase}` }), PHASE);
    assert.is(keptOf("inbound", { fetch: `(primary, { secondary }) => ${phase}` }), PHASE);
    assert.is(keptOf("inbound", { fetch: "(primary, context) => list(context)" }), "full");
    assert.is(keptOf("poll", { fetch: "(context) => list(context)" }), "metadata");
  });

  test("covers conditions, desired, filters, and mappings, in the spec and in functions", () => {
    const conditions = {
      reconcilePrecondition: expressionOf("secondary.pods.some((p) => p.spec?.nodeName)", ["secondary"]),
    };
    const dependents = [{ ...dependentOf("configMap", configMap), conditions }];
    assert.is(describe(suggest({}, { dependents })), "spec.nodeName");
    const desired = {
      "thing/dependents/config-map.ts":
        "export function desired({ secondary }) { return { data: secondary.pods[0].status.phase }; }",
    };
    assert.is(describe(suggest(desired, { dependents: [dependentOf("configMap", configMap)] })), PHASE);
    const filters: InformerModel["filters"] = {
      onUpdate: expressionOf("object.status?.phase !== old.spec?.nodeName", ["object", "old"]),
      onDelete: { kind: "function", name: "isWanted" },
    };
    const eventSources: InformerModel[] = [{ ...pods, filters, mapping: { kind: "function", name: "toThings" } }];
    const files = {
      "thing/filters.ts": "export const isWanted = (pod, isUnknown) => use(isUnknown, pod.spec.priority);",
      "thing/event-sources/pods.ts": "export function toThings({ spec }) { return [spec.hostname]; }",
    };
    assert.is(describe(suggest(files, { eventSources })), `spec.hostname spec.nodeName spec.priority ${PHASE}`);
  });

  test("has a reason with the position of the reads", () => {
    const text =
      "export const reconciler = {\n  reconcile: ({ secondary }) => use(\n    secondary.pods[0].status.phase),\n};\n";
    assert.is(suggest({ "thing/reconciler.ts": text }).reason, "read in src/thing/reconciler.ts:3");
    assert.is(suggest({}).reason, "nothing else is read");
    const whole = text.replace(".status.phase", "");
    assert.is(suggest({ "thing/reconciler.ts": whole }).reason, "used as a whole in src/thing/reconciler.ts:3:5");
  });

  test("covers primaryToSecondary of another event source", () => {
    const users: InformerModel = {
      ...{ kind: "informer", name: "users", resource: configMap, mapping: { kind: "primaryToSecondary" } },
      ...{ filters: {}, cache: { kind: "full" }, primaryToSecondary: { kind: "function", name: "usersOf" } },
    };
    const text = "export const usersOf = (_, { secondary }) => secondary.pods.map(({ status }) => status?.phase);";
    const files = { "thing/event-sources/users.ts": text };
    assert.is(describe(suggest(files, { eventSources: [pods, users] })), PHASE);
  });
});
