import {
  isKubernetes,
  type ControllerModel,
  type DependentModel,
  type ExpressionModel,
  type FiltersModel,
  type ProjectModel,
  type RawSchema,
  type ResourceModel,
} from "#generator/model/project-model.js";
import { emitProject } from "#generator/emit/emit-project.js";
import type { OutputFile } from "#generator/emit/output-file.js";
import { runtimeTypes, runtimeValues } from "#generator/emit/runtime-symbols.js";
import { compileTogether, fastCompiler, type ErrorsOf } from "../../../support/projects/compile.js";
import { builtinResource, thingOf } from "../../../support/runtime/resource-models.js";
import { dependentOf } from "../../../support/runtime/dependent-models.js";
import { assert, suite } from "../../../support/suite.js";

const spec: RawSchema = { type: "object", required: ["size"], properties: { size: { type: "integer", minimum: 1 } } };
const thing = thingOf(spec, {
  schema: { type: "object", required: ["spec"], properties: { spec } },
  crdFile: "crds/things.yaml",
});
const position = { file: "workflow.yaml", line: 1, column: 1 };

function controllerOf(
  primary: ResourceModel,
  dependents: readonly DependentModel[],
  rest: Partial<ControllerModel> = {},
): ProjectModel {
  const resources = [...new Set([primary, ...dependents.filter(isKubernetes).map(({ resource }) => resource)])];
  return {
    packageName: "operator",
    resources,
    controllers: [
      {
        name: "thing",
        primary,
        dependents,
        eventSources: [],
        filters: {},
        settings: {},
        specFile: "workflow.yaml",
        ...rest,
      },
    ],
  };
}

const emitted = new WeakMap<ProjectModel, Promise<OutputFile[]>>();

/** Emits a model, once. */
function filesOf(model: ProjectModel): Promise<OutputFile[]> {
  const files = emitted.get(model) ?? emitProject(model);
  emitted.set(model, files);
  return files;
}

async function contentOf(model: ProjectModel, path: string): Promise<string> {
  const file = (await filesOf(model)).find((candidate) => candidate.path === path);
  if (file === undefined) throw new Error(`${path} is not emitted`);
  return file.content;
}

/** A project that is compiled: a model, with these files in place of those that are emitted. */
interface Project {
  readonly model: ProjectModel;
  readonly written?: { readonly [path: string]: string };
}

type Projects = { [name: string]: Project };

/** Returns a function that returns the errors of a project. The first call compiles all of them, as one program. */
function compileOnce(projects: Projects): (name: string) => Promise<readonly string[]> {
  let compiled: Promise<ErrorsOf> | undefined;
  const compileAll = async () => {
    const entries = Object.entries(projects).map(async ([name, { model, written }]) => {
      const files = await filesOf(model);
      return [name, files.map(({ path, content }) => ({ path, content: written?.[path] ?? content }))] as const;
    });
    const [errorsOf] = await compileTogether(Object.fromEntries(await Promise.all(entries)), [fastCompiler]);
    return errorsOf!;
  };
  return async (name) => (await (compiled ??= compileAll()))(name);
}

suite("emitProject", (declareTest) => {
  // Compilers take seconds, more so when other tests run beside them.
  const test = (title: string, body: () => unknown) => declareTest(title, body, { timeoutMs: 60_000 });
  const thorough = (title: string, body: () => unknown) => declareTest.thorough(title, body, { timeoutMs: 60_000 });

  const configMap = builtinResource("", "v1", "ConfigMap");
  const job = builtinResource("batch", "v1", "Job");
  const other = thingOf(spec, { kind: "Thing", group: "other.example.com" });

  // Each is one program; a thorough run has a second one.
  const [projects, more]: [Projects, Projects] = [{}, {}];
  const [errorsOf, errorsOfMore] = [compileOnce(projects), compileOnce(more)];

  const settings = controllerOf(
    thing,
    [
      { ...dependentOf("first", configMap), namespace: "x", labelSelector: "a=b", deletion: "ordered" },
      {
        ...dependentOf("second", configMap, ["first"]),
        conditions: {
          activationCondition: { kind: "builtin", name: "crdPresent" },
          reconcilePrecondition: {
            kind: "when",
            expression: 'secondary.first.data?.["a"] === "b" // yes',
            names: ["secondary"],
            position,
          },
          readyPostcondition: { kind: "function", name: "isSettled" },
          deletePostcondition: { kind: "builtin", name: "deleted" },
        },
      },
      {
        ...dependentOf("third", job),
        conditions: {
          readyPostcondition: { kind: "function", name: "isSettled" },
          reconcilePrecondition: { kind: "function", name: "isWanted" },
        },
      },
      {
        ...dependentOf("ready", other),
        conditions: {
          reconcilePrecondition: { kind: "when", expression: "true", names: [], position },
          readyPostcondition: { kind: "builtin", name: "ready" },
        },
      },
    ],
    {
      settings: {
        namespaces: ["home"],
        retry: { maxRetries: 3, multiplier: 1.5 },
        rateLimit: { maxReconciliations: 2, withinMs: 3000 },
        finalizer: "example.com/f",
      },
    },
  );
  projects["settings"] = { model: settings };

  test("emits every setting and every kind of condition, and compiles", async () => {
    const workflow = await contentOf(settings, "src/generated/thing/workflow.ts");
    for (const part of [
      'namespace: "x"',
      'labelSelector: "a=b"',
      'deletion: "ordered"',
      'dependsOn: ["first"]',
      "activationCondition: crdPresent",
      "deletePostcondition: deleted",
      "readyPostcondition: conditions.isSettled",
      "({ secondary }: SecondConditionArguments) =>",
      "reconcilePrecondition: () => true",
    ])
      assert.ok(workflow.includes(part), `${part}\n${workflow}`);
    const controller = await contentOf(settings, "src/generated/thing/controller.ts");
    assert.match(controller, /rateLimit: \{ maxReconciliations: 2, withinMs: 3000 \}/);
    assert.equal(await errorsOf("settings"), []);
  });

  const when = (expression: string, names: ExpressionModel["names"]): ExpressionModel => ({
    kind: "when",
    ...{ expression, names, position },
  });
  const informer = { kind: "informer", filters: {}, cache: { kind: "full" } } as const;
  const node = builtinResource("", "v1", "Node");
  const filters: FiltersModel = {
    onAdd: when("true", []),
    onUpdate: when("object.metadata.name !== old.metadata.name", ["object", "old"]),
    onDelete: when("!isFinalStateUnknown", ["isFinalStateUnknown"]),
    generic: { kind: "function", name: "isWanted" },
  };
  const ofSources = controllerOf(
    thing,
    [{ ...dependentOf("first", configMap), fieldSelector: "metadata.name=a", filters }],
    {
      settings: { namespaces: "current", onAllEvents: true, serverSideApply: false },
      filters: { onUpdate: when("old.spec?.size !== 1", ["old"]), generic: { kind: "function", name: "isWanted" } },
      eventSources: [
        { ...informer, name: "maps", resource: configMap, mapping: { kind: "ownerReference" }, filters },
        {
          ...{ ...informer, name: "nodes", resource: node, namespaces: ["a", "b"], labelSelector: "a=b" },
          mapping: { kind: "function", name: "toThings" },
          primaryToSecondary: { kind: "function", name: "nodesOf" },
          cache: { kind: "paths", paths: ["spec.unschedulable", "status.phase"] },
        },
        {
          ...{ ...informer, name: "things", resource: other, namespaces: "all", cache: { kind: "metadata" } },
          mapping: { kind: "annotation", keys: { name: "a/b", namespace: "a/c", type: "a/d" } },
        },
        { kind: "poll", name: "prices", intervalMs: 1000 },
        { kind: "perPrimaryPoll", name: "quotes", intervalMs: 1000 },
        { kind: "inbound", name: "hooks" },
      ],
    },
  );
  const sources = { ...ofSources, resources: [...ofSources.resources, node, other] };
  projects["sources"] = { model: sources };

  test("emits event sources, filters, and their functions, and compiles", async () => {
    const controller = await contentOf(sources, "src/generated/thing/controller.ts");
    for (const part of [
      'namespaces: "current"',
      "mapper: byOwnerReference(",
      'mapper: byAnnotation(Thing, { name: "a/b", namespace: "a/c", type: "a/d" })',
      "mapper: nodesFunctions.toThings",
      "primaryToSecondary: nodesFunctions.nodesOf",
      'cache: { paths: ["spec.unschedulable", "status.phase"] }',
      'cache: "metadata"',
      "onUpdate: (_object: Thing, old: Thing) => old.spec?.size !== 1",
      "onDelete: (_object: MapsResource, isFinalStateUnknown: boolean) => !isFinalStateUnknown",
      "onAdd: () => true",
      "export const hooksSource = cachingInboundSource<HooksResource>",
    ])
      assert.ok(controller.includes(part), `${part}\n${controller}`);
    const filterStubs = await contentOf(sources, "src/thing/filters.ts");
    assert.match(filterStubs, /ThingFilter & FirstFilter & MapsFilter/);
    assert.match(filterStubs, 'throw new Error("isWanted() is not implemented; edit src/thing/filters.ts");');
    const nodes = await contentOf(sources, "src/thing/event-sources/nodes.ts");
    for (const name of ["toThings", "nodesOf"])
      assert.match(nodes, `throw new Error("${name}() is not implemented; edit src/thing/event-sources/nodes.ts");`);
    assert.match(await contentOf(sources, "src/generated/thing/types.ts"), /Omit<\s*Reconciler/);
    // An expression is checked before it is emitted; here it may be anything.
    assert.equal(await errorsOf("sources"), []);
  });

  const single = controllerOf(thing, [dependentOf("configMap", configMap)]);
  const controllers = ["one", "two"].map((name) => ({ ...(single.controllers[0] as ControllerModel), name }));
  const double = { ...single, controllers };
  projects["double"] = { model: double };

  test("emits unique names for two controllers of one kind", async () => {
    assert.match(await contentOf(double, "src/generated/index.ts"), /\[oneController, twoController\]/);
    assert.equal(await errorsOf("double"), []);
  });

  const bare = thingOf({}, { schema: { type: "object" }, scope: "Cluster", kind: "ConfigMap" });
  more["bare"] = { model: controllerOf(bare, []) };

  thorough("compiles for a primary without dependents, status, and spec", async () => {
    assert.equal(await errorsOfMore("bare"), []);
  });

  const status = { type: "object", required: ["phase"], properties: { phase: { type: "string", default: "New" } } };
  const withDefault = thingOf(spec, {
    schema: { type: "object", properties: { status } },
    hasStatusSubresource: true,
  });
  const defaulted = controllerOf(withDefault, []);
  const reconciler = [
    'import { patchResourceAndStatus, updateStatus } from "@gen-operator/runtime";',
    'import type { ThingReconciler } from "../generated/thing/types.js";',
    "export const reconciler: ThingReconciler = {",
    '  reconcile: () => (Date.now() > 0 ? updateStatus({}) : patchResourceAndStatus({}, { phase: "Old" })),',
    '  updateErrorStatus: () => updateStatus({ phase: "Failed" }),',
    "};",
  ].join("\n");
  const written = { "src/thing/reconciler.ts": reconciler };
  projects["with"] = { model: defaulted, written };
  projects["without"] = { model: controllerOf({ ...withDefault, hasStatusSubresource: false }, []), written };
  projects["omit"] = { model: controllerOf({ ...withDefault, kind: "Omit" }, []) };

  test("accepts a status without defaulted fields, with and without a status subresource", async () => {
    const types = await contentOf(defaulted, "src/generated/thing/types.ts");
    assert.match(types, /import\("\.\.\/resources\/example\.com\/v1\/thing\.js"\)\.ThingStatusInput/);
    assert.match(
      await contentOf(defaulted, "src/generated/resources/example.com/v1/thing.ts"),
      / {2}readonly phase: string;/,
    );
    for (const name of ["with", "without", "omit"]) assert.equal(await errorsOf(name), [], name);
  });

  const javaScriptKinds = [
    "Record",
    "Event",
    "Map",
    "Object",
    "Promise",
    "Array",
    "postgresql",
    "class",
    "Partial",
    "Omit",
  ];
  const runtimeKinds = ["ResourceDefinition", "Condition", "ObjectMeta", "ConfigMapCondition"];
  const kinds = [...javaScriptKinds, ...runtimeKinds];
  for (const kind of kinds) {
    const primary = thingOf(spec, { kind, plural: "x" });
    more[`kind-${kind}`] = { model: controllerOf(primary, [dependentOf("configMap", configMap)]) };
  }

  thorough("compiles for kinds that are named like types of the runtime or of JavaScript", async () => {
    for (const kind of kinds) assert.equal(await errorsOfMore(`kind-${kind}`), [], kind);
  });

  const words = [
    "class",
    "delete",
    "new",
    "default",
    "await",
    "undefined",
    "test",
    "assert",
    "waitFor",
    "thingController",
  ];
  for (const word of words) more[`word-${word}`] = { model: controllerOf(thing, [dependentOf(word, configMap)]) };

  thorough("compiles for dependents that are named like keywords or names in the project's test", async () => {
    for (const word of words) assert.equal(await errorsOfMore(`word-${word}`), [], word);
  });

  const tree: RawSchema = {
    type: "object",
    required: ["child"],
    properties: { child: { $ref: "#/components/schemas/a.Tree" } },
  };
  const endless = thingOf(
    {},
    {
      kind: "Endless",
      isCustom: false,
      definitions: new Map([["a.Tree", tree]]),
      schema: { type: "object", required: ["spec"], properties: { spec: { $ref: "#/components/schemas/a.Tree" } } },
    },
  );
  const part = controllerOf(thing, [dependentOf("part", { ...thing, kind: "Part" })]);
  projects["part"] = { model: part };

  test("emits stubs with values for required fields, or with an error if there are none", async () => {
    assert.match(await contentOf(part, "src/thing/dependents/part.ts"), /spec: \{ size: 1 \},/);
    assert.equal(await errorsOf("part"), []);
    const without = controllerOf(thing, [dependentOf("endless", endless)]);
    assert.match(
      await contentOf(without, "src/thing/dependents/endless.ts"),
      /throw new Error\(.desired\(\) of the .* is not implemented/,
    );
  });

  thorough("emits distinct labels for workloads, and a Service that selects the workload it depends on", async () => {
    const deployment = builtinResource("apps", "v1", "Deployment");
    const model = controllerOf(thing, [
      dependentOf("web", deployment),
      dependentOf("other", deployment),
      dependentOf("store", builtinResource("apps", "v1", "StatefulSet")),
      dependentOf("front", builtinResource("", "v1", "Service"), ["web"]),
    ]);
    for (const [name, component] of Object.entries({ web: "web", other: "other", store: "store", front: "web" }))
      assert.match(
        await contentOf(model, `src/thing/dependents/${name}.ts`),
        new RegExp(
          `"app.kubernetes.io/name": "thing",\\s+"app.kubernetes.io/instance": primary.metadata.name,\\s+"app.kubernetes.io/component": "${component}"`,
        ),
      );
  });

  const templates = [
    ["apps", "v1", "Deployment"],
    ["apps", "v1", "StatefulSet"],
    ["apps", "v1", "DaemonSet"],
    ["batch", "v1", "Job"],
    ["", "v1", "ConfigMap"],
    ["", "v1", "Service"],
    ["networking.k8s.io", "v1", "Ingress"],
    ["", "v1", "Secret"],
    ["", "v1", "PersistentVolumeClaim"],
    ["rbac.authorization.k8s.io", "v1", "RoleBinding"],
    ["batch", "v1", "CronJob"],
    ["autoscaling", "v2", "HorizontalPodAutoscaler"],
  ] as const;
  const dependents = templates.map(([group, version, kind]) =>
    dependentOf(`my${kind}`, builtinResource(group, version, kind)),
  );
  more["templates"] = { model: controllerOf(thing, dependents) };

  thorough("compiles the stub template of every kind", async () => {
    assert.equal(await errorsOfMore("templates"), []);
  });

  test("imports only the names of the runtime that the contract lists", async () => {
    const files = await emitProject(controllerOf(thing, [dependentOf("configMap", configMap)]));
    const allowed = new Set<string>([...runtimeValues, ...runtimeTypes]);
    for (const { content, owner, path } of files.filter((file) => file.owner === "generator"))
      for (const [, names = ""] of content.matchAll(
        /import (?:type )?\{([^}]*)\} from "@gen-operator\/runtime\/codegen"/g,
      ))
        for (const name of names
          .split(",")
          .map((part) => part.trim())
          .filter((part) => part !== ""))
          assert.ok(allowed.has(name), `${owner} ${path}: ${name}`);
  });

  test("imports an existing reconciler, and emits one only if the controller does nothing without it", async () => {
    const path = "src/thing/reconciler.ts";
    const dependents = [dependentOf("configMap", configMap)];
    const reconcilerIn = async (model: ProjectModel, hasReconciler: boolean) => {
      const files = await emitProject(model, { hasReconciler: (each) => hasReconciler && each === path });
      const wiring = files.find((file) => file.path === "src/generated/thing/controller.ts")?.content ?? "";
      const isWired = /import \{ reconciler \}/.test(wiring);
      assert.is(/\breconciler,/.test(wiring), isWired);
      return [isWired, files.some((file) => file.path === path)];
    };
    assert.equal(await reconcilerIn(controllerOf(thing, dependents), false), [false, false]);
    assert.equal(await reconcilerIn(controllerOf(thing, dependents), true), [true, true]);
    const driven: readonly Partial<ControllerModel>[] = [
      { dependents: [] },
      { workflow: { invocation: "explicit" } },
      { settings: { onAllEvents: true } },
    ];
    for (const rest of driven)
      assert.equal(await reconcilerIn(controllerOf(thing, dependents, rest), false), [true, true]);
  });
});
