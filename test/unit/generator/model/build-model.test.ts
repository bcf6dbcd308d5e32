import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { readBuiltinKinds } from "#generator/read/kinds.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { loadSpecSchema, readWorkflows } from "#generator/read/workflows.js";
import { buildModel, type BuiltModel } from "#generator/check/build-model.js";
import { isKubernetes, type ControllerModel } from "#generator/model/project-model.js";
import { repositoryRoot } from "../../../support/repository.js";
import { assert, suite } from "../../../support/suite.js";

const crdFile = "fixtures/crds/ordinary/gateways.yaml";
const crds = readCrds({ file: crdFile, text: readFileSync(join(repositoryRoot, crdFile), "utf8") }).crds;
const builtin = await readBuiltinKinds();
const checkSpec = await loadSpecSchema();

/** Builds the model of a spec whose parts are given as YAML or JSON on one line. */
function build(spec: {
  primary?: string;
  controller?: string;
  dependents?: string;
  eventSources?: string;
  rest?: string;
}): Promise<BuiltModel> {
  const { primary = "apps/v1/Deployment", controller = "{}", dependents = "{}" } = spec;
  const { eventSources = "{}" } = spec;
  const text =
    "apiVersion: gen-operator.dev/v1alpha1\nkind: Workflow\nmetadata: { name: web }\nspec:\n" +
    `  primary: ${primary}\n  controller: ${controller}\n  dependents: ${dependents}\n  eventSources: ${eventSources}\n${spec.rest ?? ""}`;
  const { workflows, diagnostics } = readWorkflows({ file: "workflow.yaml", text }, checkSpec);
  assert.equal(diagnostics.map(formatDiagnostic), []);
  return buildModel({ crds, workflows, builtin });
}

async function controllerOf(spec: Parameters<typeof build>[0]): Promise<ControllerModel> {
  const { model, diagnostics } = await build(spec);
  assert.equal(diagnostics.map(formatDiagnostic), []);
  return model!.controllers[0]!;
}

suite("buildModel", (test) => {
  test("accepts any CRD version or a built-in kind as primary", async () => {
    assert.is((await controllerOf({ primary: "net.example.com/v1/Gateway" })).primary.version, "v1");
    const old = await controllerOf({ primary: "net.example.com/v1beta2/Gateway" });
    assert.is(old.primary.deprecationWarning, "net.example.com/v1beta2 Gateway is deprecated");
    assert.is(old.primary.hasStatusSubresource, false);
    assert.is((await controllerOf({})).primary.plural, "deployments");
  });

  test("contains every CRD version, and the built-in kinds in use", async () => {
    const { model } = await build({ dependents: "{ a: { resource: v1/ConfigMap } }" });
    assert.equal(
      model?.resources.map(({ group, version, kind }) => `${group}/${version}/${kind}`),
      [
        "/v1/ConfigMap",
        "apps/v1/Deployment",
        "net.example.com/v1/Gateway",
        "net.example.com/v1/GatewayClass",
        "net.example.com/v1alpha1/Gateway",
        "net.example.com/v1alpha1/GatewayClass",
        "net.example.com/v1beta1/Gateway",
        "net.example.com/v1beta2/Gateway",
      ],
    );
    assert.is(model?.controllers[0]?.primary, model?.resources[1]);
  });

  test("sorts dependents by dependencies and resolves transitive ones", async () => {
    const { dependents } = await controllerOf({
      dependents:
        "{ c: { resource: v1/Service, dependsOn: [b, a] }, a: { resource: v1/ConfigMap }, b: { resource: v1/Service, dependsOn: [a] }, " +
        "d: { resource: v1/Pod, dependsOn: [c] } }",
    });
    assert.equal(
      dependents.map(({ name, dependsOn, waitsFor }) => [name, dependsOn, waitsFor]),
      [
        ["a", [], []],
        ["b", ["a"], ["a"]],
        ["c", ["b", "a"], ["a", "b"]],
        ["d", ["c"], ["a", "b", "c"]],
      ],
    );
  });

  test("treats false flags as absent", async () => {
    const dependentsOf = async (flag: string) => {
      const { dependents } = await controllerOf({
        dependents:
          `{ a: { resource: v1/ConfigMap${flag && ", bulk: false"} }, ` +
          `b: { resource: v1/Service, dependsOn: [${flag ? "{ name: a, optional: false }" : "a"}] }, ` +
          `c: { external: { inbound: {${flag && " fetch: false "}}, state: { in: configMap${flag && ", perItem: false"} } } } }`,
      });
      return dependents;
    };
    assert.equal(await dependentsOf("false"), await dependentsOf(""));
  });

  test("contains only the given settings, with durations in milliseconds", async () => {
    assert.equal((await controllerOf({})).settings, {});
    assert.equal((await controllerOf({ controller: "{ namespaces: all }" })).settings, {});
    const controller =
      "{ namespaces: [a, b], labelSelector: app!=skip, retry: { maxRetries: -1, initialInterval: 500ms, multiplier: 1.5, maxInterval: 1h30m }, " +
      "rateLimit: { maxReconciliations: 2, within: 1.5s }, maxReconciliationInterval: 0, reconcileTimeout: 10m, cleanupPolicy: sweep, cleanUpUnselected: true, cleanupTimeout: 1h, stalledAfter: 2h, fieldManager: me, formerFieldManagers: [them], finalizer: example.com/mine, formerFinalizers: [example.com/theirs] }";
    assert.equal((await controllerOf({ controller: controller.replace("Interval: 0", 'Interval: "0"') })).settings, {
      namespaces: ["a", "b"],
      labelSelector: "app!=skip",
      retry: { maxRetries: -1, initialIntervalMs: 500, multiplier: 1.5, maxIntervalMs: 5_400_000 },
      rateLimit: { maxReconciliations: 2, withinMs: 1500 },
      maxReconciliationIntervalMs: 0,
      reconcileTimeoutMs: 600_000,
      cleanupPolicy: "sweep",
      cleanUpUnselected: true,
      cleanupTimeoutMs: 3_600_000,
      stalledAfterMs: 7_200_000,
      fieldManager: "me",
      formerFieldManagers: ["them"],
      finalizer: "example.com/mine",
      formerFinalizers: ["example.com/theirs"],
    });
  });

  test("omits settings equal to their default", async () => {
    const stated =
      "{ namespaces: current, fieldSelector: metadata.name=a, onAllEvents: true, generationAware: false, defaultFilters: false, " +
      "serverSideApply: false, maxConcurrentReconciles: 3 }";
    assert.equal((await controllerOf({ controller: stated })).settings, {
      namespaces: "current",
      fieldSelector: "metadata.name=a",
      onAllEvents: true,
      generationAware: false,
      defaultFilters: false,
      serverSideApply: false,
      maxConcurrentReconciles: 3,
    });
    const usual = "{ onAllEvents: false, generationAware: true, defaultFilters: true, serverSideApply: true }";
    assert.equal((await controllerOf({ controller: usual })).settings, {});
  });

  test("keeps the order of event sources and determines their kind", async () => {
    const { eventSources } = await controllerOf({
      eventSources:
        "{ pods: { resource: v1/Pod, mapping: { label: { name: a/b } }, cache: { paths: [status.phase, metadata.labels] } }, " +
        "node: { resource: v1/Node, primaryToSecondary: { function: nodesOf }, namespaces: all, cache: metadata }, " +
        "maps: { resource: v1/ConfigMap, namespaces: sameAsController, filters: { onUpdate: { when: object !== old } } }, " +
        "prices: { poll: { every: 1m30s } }, quotes: { perPrimaryPoll: { every: 500ms, fetchTimeout: 2s } }, hooks: { inbound: {} } }",
    });
    const summaries = eventSources.map((source) =>
      source.kind === "informer"
        ? [
            source.name,
            source.resource.kind,
            source.mapping,
            source.namespaces,
            source.cache,
            Object.keys(source.filters),
          ]
        : source,
    );
    assert.equal(summaries, [
      [
        "pods",
        "Pod",
        { kind: "label", keys: { name: "a/b" } },
        undefined,
        { kind: "paths", paths: ["status.phase"] },
        [],
      ],
      ["node", "Node", { kind: "primaryToSecondary" }, "all", { kind: "metadata" }, []],
      ["maps", "ConfigMap", { kind: "ownerReference" }, undefined, { kind: "full" }, ["onUpdate"]],
      { kind: "poll", name: "prices", intervalMs: 90_000 },
      { kind: "perPrimaryPoll", name: "quotes", intervalMs: 500, fetchTimeoutMs: 2000 },
      { kind: "inbound", name: "hooks" },
    ]);
  });

  test("determines the names that a filter uses", async () => {
    const controller = "{ filters: { onUpdate: { when: object !== old }, generic: { function: isWanted } } }";
    const { filters } = await controllerOf({ controller });
    const { onUpdate } = filters;
    assert.equal(onUpdate?.kind === "when" ? onUpdate.names : [], ["object", "old"]);
    assert.equal(filters.generic, { kind: "function", name: "isWanted" });
  });

  test("determines the kind of a condition, and the position of an expression", async () => {
    const { dependents } = await controllerOf({
      dependents:
        "{ a: { resource: net.example.com/v1/Gateway, deletion: ordered, activationCondition: crdPresent, " +
        'reconcilePrecondition: { when: "primary.spec !== undefined" }, readyPostcondition: { function: isReady } } }',
    });
    const [dependent] = dependents;
    const conditions = dependent!.conditions;
    assert.is(dependent !== undefined && isKubernetes(dependent) && dependent.deletion, "ordered");
    assert.equal(conditions.activationCondition, { kind: "builtin", name: "crdPresent" });
    assert.equal(conditions.readyPostcondition, { kind: "function", name: "isReady" });
    const when = conditions.reconcilePrecondition;
    assert.is(when?.kind, "when");
    assert.equal(when?.kind === "when" ? [when.names, when.position.line] : [], [["primary"], 7]);
  });

  test("passes arguments to built-in conditions", async () => {
    const { dependents } = await controllerOf({
      dependents:
        "{ a: { resource: v1/Pod, readyPostcondition: { condition: { type: Ready } } }, " +
        "b: { resource: v1/Pod, readyPostcondition: { fieldEquals: { path: status.phase, value: Running } } } }",
    });
    assert.equal(
      dependents.map(({ conditions }) => conditions.readyPostcondition),
      [
        { kind: "builtin", name: "condition", arguments: [{ type: "Ready", status: "True" }] },
        { kind: "builtin", name: "fieldEquals", arguments: ["status.phase", "Running"] },
      ],
    );
  });

  test("sorts bulk dependents by itemsDependOn without a dependency on all items", async () => {
    const { dependents } = await controllerOf({
      dependents:
        "{ b: { resource: v1/Service, bulk: { maxConcurrency: 2 }, itemsDependOn: [a] }, a: { resource: v1/ConfigMap, bulk: true } }",
    });
    assert.equal(
      dependents.map(({ name, bulk, itemsDependOn, waitsFor }) => [name, bulk, itemsDependOn, waitsFor]),
      [
        ["a", {}, undefined, []],
        ["b", { maxConcurrency: 2 }, ["a"], []],
      ],
    );
  });

  test("omits options equal to their default, with durations in milliseconds", async () => {
    const { dependents } = await controllerOf({
      dependents:
        "{ a: { resource: v1/Service, mode: managed, existing: refuse, serverSideApply: true, deletion: garbageCollected }, " +
        "b: { resource: v1/Service, mode: createOnly, deletion: orphan, existing: adopt, serverSideApply: false, cluster: other, timeout: 1m, " +
        "retry: { maxRetries: 2, maxInterval: 5s } } }",
    });
    const [usual, stated] = dependents.map(({ name: _name, conditions: _conditions, ...rest }) => {
      const { resource: _resource, ...own } = rest as typeof rest & { resource: unknown };
      return own;
    });
    assert.equal(usual, { dependsOn: [], waitsFor: [], follows: [], filters: {}, deletion: "garbageCollected" });
    assert.equal(stated, {
      ...{ dependsOn: [], waitsFor: [], follows: [], filters: {}, cluster: "other" },
      ...{ mode: "createOnly", deletion: "orphan", existing: "adopt", serverSideApply: false },
      ...{ timeoutMs: 60_000, retry: { maxRetries: 2, maxIntervalMs: 5000 } },
    });
  });

  test("determines the source, state, and capabilities of external dependents", async () => {
    const { dependents } = await controllerOf({
      primary: "v1/PersistentVolumeClaim",
      dependents:
        "{ a: { external: { poll: { every: 5s, fetchTimeout: 3s } } }, b: { external: { inbound: { fetch: true, fetchTimeout: 1m }, capabilities: [] } }, " +
        "c: { external: { eventSource: prices, capabilities: [delete, create], state: { status: modifyVolumeStatus.status } } } }",
      eventSources: "{ prices: { perPrimaryPoll: { every: 1s } } }",
    });
    const type = { kind: "declared" } as const;
    assert.equal(
      dependents.map((dependent) => !isKubernetes(dependent) && dependent.external),
      [
        {
          source: { kind: "poll", intervalMs: 5000, fetchTimeoutMs: 3000 },
          type,
          capabilities: ["create", "update", "delete"],
        },
        { source: { kind: "inbound", isFetched: true, fetchTimeoutMs: 60_000 }, type, capabilities: [] },
        {
          source: { kind: "eventSource", name: "prices" },
          type,
          state: { kind: "status", path: ["modifyVolumeStatus", "status"] },
          capabilities: ["create", "delete"],
        },
      ],
    );
  });

  test("contains the workflow settings and removed dependents, and no untyped kinds in resources", async () => {
    const widget = "{ apiVersion: x.example.com/v1, kind: Widget, plural: widgets, scope: Namespaced }";
    const { model, diagnostics } = await build({
      dependents: `{ a: { resource: ${widget} }, b: { resource: ${widget}, mode: createOnly } }`,
      rest:
        "  workflow: { invocation: explicit, exceptions: result, maxConcurrency: 3, pruning: false }\n" +
        `  removed: { old: { resource: v1/Service, deletion: garbageCollected }, older: { resource: ${widget}, deletion: orphan } }\n`,
    });
    assert.equal(diagnostics.map(formatDiagnostic), []);
    const [controller] = model!.controllers;
    assert.equal(controller!.workflow, {
      invocation: "explicit",
      exceptions: "result",
      maxConcurrency: 3,
      pruning: false,
    });
    assert.equal(
      controller!.removed?.map(({ name, deletion, resource }) => [name, deletion, resource.kind]),
      [
        ["old", "garbageCollected", "Service"],
        ["older", "orphan", "Widget"],
      ],
    );
    const kinds = model!.resources.map(({ kind }) => kind);
    assert.ok(kinds.includes("Service") && !kinds.includes("Widget"));
    const [first, second] = controller!.dependents.filter(isKubernetes);
    assert.is(first!.resource, second!.resource);
    assert.equal(
      (await controllerOf({ rest: "  workflow: { invocation: implicit, exceptions: throw, pruning: true }\n" }))
        .workflow,
      {},
    );
  });

  test("accepts a dependent in another namespace only if it is the single namespace of the controller", async () => {
    const dependents = "{ a: { resource: v1/ConfigMap, namespace: home } }";
    const rules = async (controller: string) =>
      (await build({ dependents, controller })).diagnostics.map(({ rule }) => rule);
    assert.equal(await rules("{ namespaces: [home] }"), []);
    assert.equal(await rules("{ namespaces: [home, other] }"), ["owner-namespace"]);
    assert.equal(await rules("{}"), ["owner-namespace"]);
  });
});
