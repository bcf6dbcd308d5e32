import { formatDiagnostic } from "#generator/diagnostic.js";
import type { ConditionModel, ControllerModel, DependentModel, ProjectModel } from "#generator/model/project-model.js";
import { checkCode } from "#generator/code/check-code.js";
import { dependentOf } from "../../../../support/runtime/dependent-models.js";
import { builtinResource, thingOf } from "../../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../../support/suite.js";

const thing = thingOf({ type: "object", properties: { size: { type: "integer" } } });
const configMap = builtinResource("", "v1", "ConfigMap");
const secret = builtinResource("", "v1", "Secret");
const isFilled: ConditionModel = { kind: "function", name: "isFilled" };
const position = { file: "workflow.yaml", line: 7, column: 1 };

/** Checks files of the user's below src/thing; returns the rules with their lines. */
function check(
  files: { readonly [name: string]: string },
  dependents: readonly DependentModel[],
  rest: Partial<ControllerModel> = {},
): string[] {
  const model: ProjectModel = {
    packageName: "operator",
    resources: [thing, configMap, secret],
    controllers: [
      {
        ...{ name: "thing", primary: thing, dependents, settings: {}, filters: {}, specFile: "workflow.yaml" },
        eventSources: [],
        ...rest,
      },
    ],
  };
  const code = Object.entries(files).map(([name, text]) => ({ path: `src/thing/${name}`, text }));
  return checkCode(model, code, (expression) => expression.position).map((diagnostic) => {
    assert.match(formatDiagnostic(diagnostic), /^(src\/thing|workflow\.yaml)/);
    return `${diagnostic.severity} ${diagnostic.rule} ${diagnostic.position?.file}:${diagnostic.position?.line}`;
  });
}

suite("rule unordered-read", (test) => {
  const a = dependentOf("a", configMap);
  const b = dependentOf("b", configMap);
  const last = dependentOf("last", configMap, ["b"]);
  const warned = ["warning unordered-read src/thing/dependents/b.ts:1"];
  const bodies: readonly (readonly [body: string, expected: readonly string[]])[] = [
    ["({ secondary }) => ({ metadata: secondary.a })", warned],
    ["({ secondary: { a } }) => ({ metadata: a })", warned],
    ["(args) => args.secondary.a", warned],
    ["({ secondary: { ...others } }) => others", []],
    ["({ secondary }) => secondary.b", []],
    ["({ secondary }) => secondary.last", []],
    ["({ secondary }) => Object.keys(secondary)", []],
    ["({ primary }) => primary.a", []],
  ];
  for (const [body, expected] of bodies)
    test(`${expected.length > 0 ? "warns about" : "accepts"} ${body}`, () => {
      assert.equal(check({ "dependents/b.ts": `export const desired = ${body};` }, [a, b, last]), expected);
    });

  const byClass: readonly (readonly [
    call: string,
    dependents: readonly DependentModel[],
    expected: readonly string[],
  ])[] = [
    [
      "context.secondary(Secret)",
      [dependentOf("secret", secret), b],
      ["warning unordered-read src/thing/dependents/b.ts:2"],
    ],
    ["context.secondaries(Secret)", [dependentOf("secret", secret), dependentOf("b", configMap, ["secret"])], []],
    ["context.secondary(ConfigMap)", [a, b], []],
    ["context.secondary(Secret, { name: 'other' })", [dependentOf("secret", secret), b], []],
    ["context.secondary(Secret)", [b], []],
  ];
  for (const [call, dependents, expected] of byClass)
    test(`${expected.length > 0 ? "warns about" : "accepts"} ${call} beside ${dependents.map(({ name }) => name).join()}`, () => {
      const text = `import { ConfigMap, Secret } from "../../generated/index.js";\nexport const desired = ({ context }) => ${call};`;
      assert.equal(check({ "dependents/b.ts": text }, dependents), expected);
    });

  test("accepts reads of dependencies, including itemsDependOn", () => {
    const text = "export const desired = ({ secondary }) => secondary.a;";
    assert.equal(check({ "dependents/b.ts": text }, [a, dependentOf("b", configMap, ["a"])]), []);
    const items = { ...b, bulk: {}, itemsDependOn: ["a"], follows: ["a"] };
    assert.equal(check({ "dependents/b.ts": text }, [{ ...a, bulk: {} }, items]), []);
  });

  test("checks expressions, conditions, and functions of external dependents", () => {
    const when: ConditionModel = {
      kind: "when",
      expression: "secondary.a !== undefined",
      names: ["secondary"],
      position,
    };
    const source = { kind: "poll", intervalMs: 5 } as const;
    const external: DependentModel = {
      ...{ name: "c", dependsOn: [], waitsFor: [], follows: [], conditions: {} },
      external: { source, type: { kind: "declared" }, capabilities: ["create", "update", "delete"] },
    };
    const files = {
      "conditions.ts": "export function isFilled({ secondary }) { return secondary.b !== undefined; }",
      "dependents/c.ts": "export const external = { update: (desired, live, { secondary }) => secondary.b };",
    };
    const first = { ...a, conditions: { readyPostcondition: isFilled } };
    assert.equal(check(files, [first, { ...b, conditions: { reconcilePrecondition: when } }, external]), [
      "warning unordered-read src/thing/conditions.ts:1",
      "warning unordered-read workflow.yaml:7",
      "warning unordered-read src/thing/dependents/c.ts:1",
    ]);
  });
});

suite("rule unread-detail", (test) => {
  const dependents = [{ ...dependentOf("a", configMap), conditions: { readyPostcondition: isFilled } }];
  const unread = ["warning unread-detail src/thing/conditions.ts:1"];
  const condition = "export const isFilled = () => ({ isMet: true, detail: 5 });";
  const reads: readonly (readonly [body: string, expected: readonly string[]])[] = [
    ["() => {}", unread],
    ["({ workflow }) => workflow.isReady", unread],
    ["({ workflow }) => workflow.dependents.a.kind", unread],
    ["({ workflow }) => workflow.dependents.a.conditions.readyPostcondition.isMet", unread],
    ["({ workflow }) => workflow.dependents.a.conditions?.readyPostcondition?.detail", []],
    ["({ workflow: { dependents: { a } } }) => a.conditions.readyPostcondition", []],
    ["({ workflow }) => workflow.dependents.a.items['x'].conditions.readyPostcondition.detail", []],
    ["({ primary, workflow }) => workflow.dependents.a.items[primary.name]?.conditions.readyPostcondition.detail", []],
    ["({ primary, workflow }) => workflow.dependents.a.items[primary.name].kind", unread],
    ["({ workflow }) => Object.values(workflow.dependents.a.items)", []],
    ["({ workflow }) => log(workflow)", []],
    ["({ workflow }) => workflow.detailOf('a', 'readyPostcondition')", []],
    ["({ workflow: { detailOf } }) => detailOf", []],
    ["({ workflow }) => workflow.detailOf('b', 'readyPostcondition')", unread],
    ["({ workflow }) => workflow.detailOf('a', 'deletePostcondition')", unread],
    ["({ workflow }) => workflow.detailOf('a', condition)", []],
    ["({ workflow }) => ['a'].map(workflow.detailOf)", []],
    ["({ workflow }) => Object.values(workflow.dependents)", []],
    [
      "async ({ context }) => (await context.workflow.reconcile()).dependents.a.conditions.readyPostcondition.detail",
      [],
    ],
    ["async ({ context }) => (await context.workflow.reconcile()).isReady", unread],
  ];
  for (const [body, expected] of reads)
    test(`${expected.length > 0 ? "warns about an unread detail with" : "accepts the read in"} ${body}`, () => {
      const files = {
        "conditions.ts": condition,
        "reconciler.ts": `export const reconciler = { reconcile: ${body} };`,
      };
      assert.equal(check(files, dependents), expected);
    });

  const conditions: readonly (readonly [body: string, expected: readonly string[]])[] = [
    ["() => true", []],
    ["() => ({ isMet: true, detail: undefined })", []],
    ["({ live }) => (live ? { isMet: true, detail: 1 } : false)", unread],
    ["async () => { const detail = 5; return { isMet: detail > 4, detail }; }", unread],
    ["() => { const inner = () => ({ detail: 5 }); return inner() !== undefined; }", []],
  ];
  for (const [body, expected] of conditions)
    test(`${expected.length > 0 ? "warns about the unread detail of" : "accepts a condition without detail:"} ${body}`, () => {
      const files = {
        "conditions.ts": `export const isFilled = ${body};`,
        "reconciler.ts": "export const reconciler = {};",
      };
      assert.equal(check(files, dependents), expected);
    });

  test("accepts all details with statusConditions: managed", () => {
    assert.equal(check({ "conditions.ts": condition }, dependents, { settings: { statusConditions: "managed" } }), []);
  });
});

suite("rule same-object", (test) => {
  const named = (name: string, more = "") =>
    `export const desired = ({ primary }) => ({ metadata: { name: ${name}${more} } });`;
  const own = "primary.metadata.name";
  const a = dependentOf("a", configMap);
  const b = dependentOf("b", configMap);
  const found = ["error same-object src/thing/dependents/b.ts:1"];
  const names: readonly (readonly [first: string, second: string, expected: readonly string[]])[] = [
    [named(own), named(own), found],
    [named("`${primary.metadata.name}-x`"), named("`${primary.metadata.name}-x`"), found],
    [named('"x"'), named('"x"'), found],
    [named(own), named("`${primary.metadata.name}-x`"), []],
    [named("nameOf(primary)"), named("nameOf(primary)"), []],
    [named("'x'"), named("`x`"), found],
    [named(own), named("primary['metadata'].name"), found],
    [named('primary.metadata.name + "-x"'), named("`${primary.metadata.name}-x`"), found],
    [named("primary.spec.size + primary.spec.size"), named("primary.spec.size + primary.spec.size"), []],
    [named(own), named('"${primary.metadata.name}"'), []],
    [named(own), named("primary.metadata.uid"), []],
    [named(own), named(own, ", namespace: primary.metadata.namespace!"), found],
    [named(own), named(own, ", namespace: primary.spec.namespace"), []],
    [named(own), "export const desired = (args) => ({ metadata: { name: args.primary.metadata.name } });", found],
    [named(own), "export const desired = ({ primary: { metadata: { name } } }) => ({ metadata: { name } });", found],
    [named(own), "export const desired = ({ primary: { metadata: { name = 'x' } } }) => ({ metadata: { name } });", []],
    [named(own), "export const desired = ({ secondary }) => ({ metadata: { name: secondary.metadata.name } });", []],
    [named('"a-b"'), `const part = "b"; ${named("`a-${part}`")}`, found],
    [named('"a-b"'), `let part = "b"; ${named("`a-${part}`")}`, []],
    [named(own), `const nameOf = ({ metadata }) => metadata.name; ${named("nameOf(primary)")}`, found],
    [
      named('"one-x"'),
      `function add(to, what) { const all = to + what; return all; } ${named("add('one', '-x')")}`,
      found,
    ],
    [named('"x"'), `function pick() { if (now()) return "y"; return "x"; } ${named("pick()")}`, []],
    [named('"x"'), `const again = (text) => again(text); const self = self + "x"; ${named("again(self)")}`, []],
    [named(own), named(own, ', namespace: "other"'), ["error owner-namespace src/thing/dependents/b.ts:1"]],
    [named(own), named(own, ", ...rest"), []],
    [named(own), "export const desired = ({ other: primary }) => ({ metadata: { name: primary.metadata.name } });", []],
    [
      named(own),
      "export function desired({ primary }) { const name = primary.metadata.name; return { metadata: { name } }; }",
      found,
    ],
  ];
  for (const [first, second, expected] of names)
    test(`reports ${expected[0] ?? "nothing"} for ${second} beside ${first}`, () => {
      assert.equal(check({ "dependents/a.ts": first, "dependents/b.ts": second }, [a, b]), expected);
    });

  test("accepts two dependents with conditions, but not one beside an unconditional one", () => {
    const files = { "dependents/a.ts": named(own), "dependents/b.ts": named(own) };
    const turning = [a, b].map((each) => ({ ...each, conditions: { reconcilePrecondition: isFilled } }));
    assert.equal(check(files, turning), []);
    assert.equal(check(files, [a, turning[1]!]), found);
    assert.equal(check(files, [{ ...a, conditions: { readyPostcondition: isFilled } }, turning[1]!]), found);
  });

  test("accepts the same name in another kind, cluster, or namespace, and in bulk dependents", () => {
    const files = { "dependents/a.ts": named(own), "dependents/b.ts": named(own) };
    for (const other of [
      { ...b, resource: secret },
      { ...b, cluster: "other" },
      { ...b, namespace: "other" },
      { ...b, bulk: {} },
    ])
      assert.equal(check(files, [a, other]), []);
  });

  const stated = (more: string) => named('"x"', `, namespace: ${more}`);
  const owned = ["error owner-namespace src/thing/dependents/b.ts:1"];
  const unseen = ["error dependent-namespace src/thing/dependents/b.ts:1"];
  const apart = { ...b, deletion: "ordered" } as const;
  const namespaces: readonly (readonly [
    text: string,
    dependent: DependentModel,
    watched: readonly string[] | undefined,
    expected: readonly string[],
  ])[] = [
    [stated('"other"'), b, undefined, owned],
    [stated('"other"'), b, ["other", "home"], owned],
    [stated('"other"'), b, ["other"], []],
    [stated("primary.metadata.namespace"), b, ["home"], []],
    [stated("primary.spec.namespace"), b, undefined, []],
    [stated('"other"'), apart, undefined, []],
    [stated('"other"'), apart, ["home", "other"], []],
    [stated('"other"'), apart, ["home"], unseen],
    [stated('"other"'), { ...apart, eventSource: "all" }, ["home"], []],
  ];
  for (const [text, dependent, watched, expected] of namespaces)
    test(`reports ${expected.join() || "nothing"} for ${text} in ${dependent === b ? "an owned" : "an ordered"} dependent with ${watched?.join() ?? "all"} watched`, () => {
      const settings = watched === undefined ? {} : { namespaces: watched };
      assert.equal(check({ "dependents/b.ts": text }, [dependent], { settings }), expected);
    });
});

suite("rule uninvoked-workflow", (test) => {
  const explicit = { workflow: { invocation: "explicit" } } as const;
  const uninvoked = ["warning uninvoked-workflow src/thing/reconciler.ts:1"];
  const bodies: readonly (readonly [body: string, expected: readonly string[]])[] = [
    ["() => {}", uninvoked],
    ["({ primary, context }) => context.logger.info(primary.metadata)", uninvoked],
    ["({ context }) => context.workflow.cleanup()", uninvoked],
    ["({ context }) => context.workflow.reconcile()", []],
    ["async ({ context: { workflow } }) => { await workflow.reconcile(); }", []],
    ["({ context }) => { const { reconcile } = context.workflow; return reconcile(); }", []],
    ["({ context }) => helper(context)", []],
    ["({ context }) => imported.run(context)", []],
    ["(args) => imported.run(args)", []],
    ["({ ...rest }) => rest.context.workflow.reconcile()", []],
  ];
  const helper = "const helper = (context) => context.workflow.reconcile();";
  for (const [body, expected] of bodies)
    test(`${expected.length > 0 ? "warns about" : "accepts"} ${body}`, () => {
      const files = { "reconciler.ts": `export const reconciler = { reconcile: ${body} }; ${helper}` };
      assert.equal(check(files, [dependentOf("a", configMap)], explicit), expected);
      assert.equal(check(files, [dependentOf("a", configMap)]), []);
    });

  test("ignores a reconciler that is created elsewhere or missing", () => {
    const made = { "reconciler.ts": 'import { make } from "elsewhere"; export const reconciler = make();' };
    assert.equal(check(made, [dependentOf("a", configMap)], explicit), []);
    assert.equal(check({}, [dependentOf("a", configMap)], explicit), []);
  });
});

suite("rule foreign-namespace", (test) => {
  const copy = { ...dependentOf("a", configMap), deletion: "ordered" as const };
  const warned = (line: number) => [`warning foreign-namespace src/thing/dependents/a.ts:${line}`];
  const head =
    'import { slug } from "library";\nimport { first, itemOf, metadataOf } from "../tools.js";\nconst TEAMS = { a: "team-a" };\n';
  const tools =
    'export const first = (text) => text.split("/")[0];\n' +
    "export function itemOf(target, primary) { return { metadata: { name: primary.metadata.name, namespace: target.namespace } }; }\n" +
    "export const metadataOf = ({ spec, metadata: { name } }) => ({ name, namespace: spec.team.trim() });";
  const single = (namespace: string) => `({ primary }) => ({ metadata: { name: "x", namespace: ${namespace} } })`;
  const bodies: readonly (readonly [body: string, isWarned: boolean])[] = [
    [single("primary.spec.html"), true],
    [single('primary.spec.html.split("/")[0]'), true],
    [single("primary.spec.html ?? primary.metadata.namespace"), true],
    [single("first(primary.spec.html)"), true],
    [single("slug(primary.spec)"), true],
    [single("slug(primary)"), true],
    [single("primary.metadata.labels?.team?.toLowerCase()"), true],
    [single("primary.spec.targets[0].namespace"), true],
    ["({ primary: { spec: { team = 'a' } } }) => ({ metadata: { name: 'x', namespace: team.trim() } })", true],
    ["({ primary: { metadata, spec } }) => ({ metadata: { ...metadata, namespace: `${slug(spec.a)}` } })", true],
    ["({ primary }) => { const namespace = slug(primary.spec.a); return { metadata: { namespace } }; }", true],
    ["({ primary }) => (primary.spec.a ? { metadata: {} } : { metadata: { namespace: primary.spec.b } })", true],
    ["({ primary }) => ({ metadata: metadataOf(primary) })", true],
    // A choice of the operator's, or the namespace of the primary
    [single("primary.metadata.namespace"), false],
    [single("primary.metadata.namespace.toLowerCase()"), false],
    [single("slug(primary.metadata.namespace)"), false],
    [single('primary.spec.isShared ? "shared" : primary.metadata.namespace'), false],
    [single('primary.spec.team === "a" ? "team-a" : "team-b"'), false],
    [single("TEAMS[primary.spec.team]"), false],
    [single("first(primary.metadata.namespace)"), false],
    ["({ primary: { metadata: { namespace = 'default' } } }) => ({ metadata: { namespace } })", false],
    ["({ secondary }) => ({ metadata: { namespace: secondary.b.metadata.name } })", false],
    ["({ primary }) => ({ metadata: {}, spec: { template: { metadata: { namespace: primary.spec.a } } } })", false],
    ["({ primary }) => ({ metadata: {}, subjects: [{ namespace: primary.spec.a }] })", false],
  ];
  const bulk: readonly (readonly [body: string, isWarned: boolean])[] = [
    ["Object.fromEntries(primary.spec.targets.map((t) => [t.name, { metadata: { namespace: t.namespace } }]))", true],
    [
      "Object.fromEntries(primary.spec.targets.map(({ name, namespace }) => [name, { metadata: { namespace } }]))",
      true,
    ],
    ["Object.fromEntries(primary.spec.targets.map((target) => [target.name, itemOf(target, primary)]))", true],
    [
      "Object.fromEntries(Object.entries(primary.spec.by).map(([key, t]) => [key, { metadata: { namespace: t.ns } }]))",
      true,
    ],
    ["({ [primary.spec.key]: { metadata: { namespace: primary.spec.html } } })", true],
    ["primary.spec.targets.reduce((all, t) => ({ ...all, [t.name]: { metadata: { namespace: t.ns } } }), {})", true],
    [
      "{ const all = {}; for (const t of primary.spec.targets) all[t.name] = { metadata: { namespace: t.ns } }; return all; }",
      true,
    ],
    [
      "Object.fromEntries(primary.spec.names.map((name) => [name, { metadata: { name, namespace: primary.metadata.namespace } }]))",
      false,
    ],
    ['Object.fromEntries(["a", "b"].map((namespace) => [namespace, { metadata: { namespace } }]))', false],
  ];
  for (const [body, isWarned] of bodies)
    test(`${isWarned ? "warns about" : "accepts"} ${body}`, () => {
      const files = { "dependents/a.ts": `${head}export const desired = ${body};`, "tools.ts": tools };
      const found = check(files, [copy]);
      assert.equal(
        found,
        isWarned ? (body.includes("metadataOf") ? ["warning foreign-namespace src/thing/tools.ts:3"] : warned(4)) : [],
      );
    });
  for (const [body, isWarned] of bulk)
    test(`${isWarned ? "warns about" : "accepts"} items ${body}`, () => {
      const files = { "dependents/a.ts": `${head}export const desired = ({ primary }) => ${body};`, "tools.ts": tools };
      const place = body.includes("itemOf") ? ["warning foreign-namespace src/thing/tools.ts:2"] : warned(4);
      assert.equal(check(files, [{ ...copy, bulk: {} }]), isWarned ? place : []);
    });

  test("accepts an owned object, which is in the namespace of the primary", () => {
    const files = { "dependents/a.ts": `export const desired = ${single("primary.spec.html.trim()")};` };
    assert.equal(check(files, [dependentOf("a", configMap)]), []);
  });
});
