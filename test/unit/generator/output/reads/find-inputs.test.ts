import type { ConditionModel, ControllerModel, DependentModel, ProjectModel } from "#generator/model/project-model.js";
import { findInputs } from "#generator/code/check-code.js";
import { dependentOf, externalOf } from "../../../../support/runtime/dependent-models.js";
import { builtinResource, thingOf } from "../../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../../support/suite.js";

const thing = thingOf({ type: "object", properties: { size: { type: "integer" } } });
const configMap = builtinResource("", "v1", "ConfigMap");
const position = { file: "workflow.yaml", line: 7, column: 1 };
const a = dependentOf("a", configMap);
const ALL = ["metadata.annotations", "metadata.labels"];

type Files = { readonly [name: string]: string };

/** Returns what is found in files of the user's below src/thing. */
function find(files: Files, dependents: readonly DependentModel[] = [a], rest: Partial<ControllerModel> = {}) {
  const model: ProjectModel = {
    packageName: "operator",
    resources: [thing, configMap],
    controllers: [
      {
        ...{ name: "thing", primary: thing, dependents, settings: {}, filters: {}, specFile: "workflow.yaml" },
        eventSources: [],
        ...rest,
      },
    ],
  };
  const code = Object.entries(files).map(([name, text]) => ({ path: `src/thing/${name}`, text }));
  return findInputs(model, code, (expression) => expression.position)[0];
}

const inputsIn = (files: Files, dependents?: readonly DependentModel[], rest?: Partial<ControllerModel>) =>
  find(files, dependents, rest)?.inputs ?? [];

suite("findInputs", (test) => {
  const bodies: readonly (readonly [body: string, expected: readonly string[]])[] = [
    // Nothing of it makes no new generation.
    ["({ primary }) => ({ metadata: { name: primary.metadata.name }, data: primary.spec })", []],
    ["({ primary: { metadata: { name, namespace } } }) => ({ name, namespace })", []],
    ["({ primary }) => primary.status", []],
    // One key
    ['({ primary }) => primary.metadata.labels["example.com/tier"]', ["metadata.labels['example.com/tier']"]],
    ["({ primary }) => primary.metadata.annotations?.tier", ["metadata.annotations['tier']"]],
    ["({ primary: { metadata: { labels } } }) => labels?.tier", ["metadata.labels['tier']"]],
    ["({ primary: { metadata: { labels: { tier, ['zone']: zone } = {} } } }) => tier", ["metadata.labels"]],
    ["({ primary: { metadata: { labels: { tier } } } }) => tier", ["metadata.labels['tier']"]],
    ["({ primary }) => { const { labels } = primary.metadata; return labels!.tier; }", ["metadata.labels['tier']"]],
    ["({ primary }) => (primary.metadata.labels ?? {}).tier", ["metadata.labels['tier']"]],
    ["(args) => args.primary.metadata.labels?.[TIER]", ["metadata.labels['example.com/tier']"]],
    ["({ primary }) => tierOf(primary)", ["metadata.labels['example.com/tier']"]],
    ["({ primary }) => tools.tierOf(primary)", ["metadata.annotations['tier']"]],
    [
      "({ primary }) => `${primary.metadata.labels?.a}${primary.metadata.labels?.b}`",
      ["metadata.labels['a']", "metadata.labels['b']"],
    ],
    // All labels
    ["({ primary }) => ({ labels: { ...primary.metadata.labels } })", ["metadata.labels"]],
    ["({ primary }) => Object.entries(primary.metadata.labels ?? {})", ["metadata.labels"]],
    ["({ primary }) => primary.metadata.labels?.[primary.spec.key]", ["metadata.labels"]],
    ["({ primary }) => primary.metadata.labels !== undefined && primary.metadata.labels.a", ["metadata.labels"]],
    ['({ primary }) => primary.metadata.annotations?.hasOwnProperty("a")', ["metadata.annotations"]],
    ["({ primary }) => primary.metadata.labels?.['not a key']", ["metadata.labels"]],
    ["({ primary }) => primary.metadata.ownerReferences?.[0]?.name", ["metadata.ownerReferences"]],
    // What cannot be followed
    ["({ primary }) => helper(primary)", ALL],
    ["({ primary }) => helper(primary.metadata)", ALL],
    ["(args) => helper(args)", ALL],
    ["({ primary }) => ({ ...primary })", ALL],
    ["({ primary: { metadata: { name, ...rest } } }) => rest", ALL],
    ["make()", ALL],
    ["({ context }) => context.expectations.check(() => true)", ALL],
    // What reads no more than a name
    ["({ primary }) => keyOf(primary.metadata)", []],
    ["({ primary, context }) => context.client.get(ConfigMap, primary.metadata)", []],
    ["({ context }) => context.logger.info({}, 'x')", []],
  ];
  const head =
    'import { keyOf } from "@gen-operator/runtime";\nimport { helper, make } from "library";\n' +
    'import { TIER, tierOf } from "../tools.js";\nimport * as all from "../tools.js";\nimport { tools } from "../tools.js";\n';
  const tools =
    'export const TIER = "example.com/tier";\nexport function tierOf({ metadata }) { return metadata.labels?.[TIER]; }\n' +
    "export const tools = { tierOf: (thing) => thing.metadata.annotations?.tier };";
  for (const [body, expected] of bodies)
    test(`returns ${expected.join(" and ") || "none"} for ${body}`, () => {
      assert.equal(
        inputsIn({ "dependents/a.ts": `${head}export const desired = ${body};`, "tools.ts": tools }),
        expected,
      );
    });

  test("returns a note with the position of code that cannot be followed", () => {
    const text = 'import { helper } from "library";\nexport const desired = ({ primary }) => helper(primary);';
    assert.is(
      find({ "dependents/a.ts": text })?.note,
      'controller "thing" reconciles on changes of any label or annotation of a Thing: src/thing/dependents/a.ts:2:48 passes on the whole primary ' +
        "or its metadata, and the reads of it cannot be determined; pass on only the fields that are needed",
    );
    assert.is(
      find({ "dependents/a.ts": "export const desired = ({ primary: { metadata } }) => metadata.labels;" })?.note,
      undefined,
    );
  });

  test("covers expressions, references, condition functions, and the reconciler", () => {
    const when = (expression: string, names: readonly "primary"[] = ["primary"]) =>
      ({ kind: "when", expression, names, position }) as const;
    const inWhen = { ...a, conditions: { reconcilePrecondition: when("primary.metadata.labels?.on === 'true'") } };
    assert.equal(inputsIn({}, [inWhen]), ["metadata.labels['on']"]);
    const referenced = {
      ...a,
      mode: "readOnly" as const,
      ref: { name: when("primary.metadata.annotations?.settings") },
    };
    assert.equal(inputsIn({}, [referenced]), ["metadata.annotations['settings']"]);
    const isOn: ConditionModel = { kind: "function", name: "isOn" };
    const conditional = { ...a, conditions: { readyPostcondition: isOn } };
    const conditions = "export const isOn = ({ primary }) => primary.metadata.labels?.on === 'true';";
    assert.equal(inputsIn({ "conditions.ts": conditions }, [conditional]), ["metadata.labels['on']"]);
    const reconciler = "export const reconciler = { cleanup: ({ primary }) => primary.metadata.labels?.on };";
    assert.equal(inputsIn({ "reconciler.ts": reconciler }, []), ["metadata.labels['on']"]);
    assert.equal(inputsIn({ "reconciler.ts": "export const reconciler = create();" }, []), ALL);
  });

  test("covers the again expression of a dependent with mode: once, also in bulk", () => {
    const again = {
      kind: "when",
      expression: 'primary.metadata.annotations?.["run"]',
      names: ["primary"],
      position,
    } as const;
    const once = { ...a, mode: "once" as const, again };
    assert.equal(inputsIn({}, [once]), ["metadata.annotations['run']"]);
    assert.equal(inputsIn({}, [{ ...once, bulk: {} }]), ["metadata.annotations['run']"]);
    assert.equal(inputsIn({}, [{ ...once, again: { ...again, expression: "primary.spec.version" } }]), []);
    assert.equal(inputsIn({}, [{ ...once, again: { ...again, expression: "String(primary.metadata)" } }]), ALL);
  });

  test("covers isOwn of an external dependent that shares its event source", () => {
    const record = externalOf("a", { kind: "eventSource", name: "records" });
    const shared = { ...record, external: { ...record.external, isSelected: true as const } };
    const file = (isOwn: string) => ({ "dependents/a.ts": `export const external = { isOwn: ${isOwn} };` });
    const own = file("(record, { metadata }) => record.zone === metadata.labels?.zone");
    assert.equal(inputsIn(own, [shared]), ["metadata.labels['zone']"]);
    assert.equal(inputsIn(own, [{ ...shared, bulk: {} }]), ["metadata.labels['zone']"]);
    assert.equal(inputsIn(file("(record) => record.labels?.zone === 'a'"), [shared]), []);
    assert.equal(inputsIn(file("create()"), [shared]), ALL);
    assert.equal(inputsIn(own, [record]), []);
  });

  test("covers primaryToSecondary of event sources", () => {
    const source = {
      kind: "informer" as const,
      name: "nodes",
      resource: configMap,
      mapping: { kind: "primaryToSecondary" as const },
      primaryToSecondary: { kind: "function" as const, name: "nodesOf" },
      filters: {},
      cache: { kind: "full" as const },
    };
    const text = "export const nodesOf = ({ metadata }) => [metadata.labels?.node];";
    assert.equal(inputsIn({ "event-sources/nodes.ts": text }, [], { eventSources: [source] }), [
      "metadata.labels['node']",
    ]);
  });

  test("returns none for a controller that reconciles on every change", () => {
    const files = { "dependents/a.ts": "export const desired = ({ primary }) => primary.metadata.labels;" };
    for (const settings of [{ generationAware: false }, { defaultFilters: false }] as const)
      assert.equal(inputsIn(files, [a], { settings }), []);
  });

  test("returns none for missing stubs and functions", () => {
    assert.equal(inputsIn({}), []);
    assert.equal(inputsIn({ "dependents/a.ts": "export const other = ({ primary }) => primary.metadata.labels;" }), []);
  });
});
