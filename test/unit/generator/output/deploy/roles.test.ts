import fc from "../../../../support/fast-check.js";
import { parseAllDocuments } from "yaml";
import {
  EVERYWHERE,
  type Grant,
  OWN_NAMESPACE,
  VERBS,
  type Verb,
  controllerGrants,
  rolesOf,
} from "#generator/emit/deploy/rights.js";
import { emitDeploy } from "#generator/emit/deploy/emit-deploy.js";
import type {
  ControllerModel,
  DependentModel,
  KubernetesDependentModel,
  ResourceModel,
} from "#generator/model/project-model.js";
import { dependentOf, externalOf } from "../../../../support/runtime/dependent-models.js";
import { builtinResource, thingOf } from "../../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../../support/suite.js";

const thing = thingOf({ type: "object" }, { hasStatusSubresource: true, crd: { kind: "CustomResourceDefinition" } });
const configMap = builtinResource("", "v1", "ConfigMap");
const clusterRole = builtinResource("rbac.authorization.k8s.io", "v1", "ClusterRole");

function controllerOf(
  dependents: readonly DependentModel[],
  rest: Partial<ControllerModel> = {},
  primary: ResourceModel = thing,
): ControllerModel {
  const nothing = { eventSources: [], filters: {}, settings: {} };
  return { name: "thing", primary, dependents, ...nothing, specFile: "workflow.yaml", ...rest };
}

/** Returns what is granted for ConfigMaps, by place. */
function verbsFor(controller: ControllerModel, resource = "configmaps"): { readonly [place: string]: string } {
  const verbs: { [place: string]: Set<Verb> } = {};
  for (const each of controllerGrants(controller))
    if (each.resource === resource) for (const verb of each.verbs) (verbs[each.place] ??= new Set()).add(verb);
  const inOrder = (granted: Set<Verb>) => VERBS.filter((verb) => granted.has(verb)).join(" ");
  return Object.fromEntries(Object.entries(verbs).map(([place, granted]) => [place, inOrder(granted)]));
}

const dependent = (rest: Partial<KubernetesDependentModel>) => ({ ...dependentOf("config", configMap), ...rest });

suite("role of an operator", (test) => {
  const cases: readonly [string, Partial<KubernetesDependentModel>, string][] = [
    ["is managed", {}, "get list watch create patch delete"],
    ["is readOnly", { mode: "readOnly" }, "list watch"],
    ["is createOnly", { mode: "createOnly" }, "get list watch create patch delete"],
    ["is orphaned", { deletion: "orphan" }, "get list watch create patch"],
    ["is never deleted", { operations: { delete: false } }, "get list watch create patch"],
    ["is never created", { operations: { create: false } }, "get list watch patch delete"],
    ["is neither created nor updated", { operations: { create: false, update: false } }, "get list watch delete"],
    ["is written with serverSideApply: false", { serverSideApply: false }, "get list watch create update patch delete"],
    ["uses an event source", { eventSource: "all" }, "get create patch delete"],
  ];
  for (const [what, rest, verbs] of cases)
    test(`grants ${verbs} for a dependent that ${what}`, () => {
      assert.equal(verbsFor(controllerOf([dependent(rest)])), { [EVERYWHERE]: verbs });
    });

  test("grants access per watched namespace, and cluster-wide for cluster-scoped kinds", () => {
    const dependents = [
      dependent({}),
      dependent({ name: "fixed", namespace: "home" }),
      dependentOf("role", clusterRole),
    ];
    const controller = controllerOf(dependents, { settings: { namespaces: ["a", "b"] } });
    assert.equal(Object.keys(verbsFor(controller)), ["a", "b", "home"]);
    assert.equal(Object.keys(verbsFor(controller, "clusterroles")), [EVERYWHERE]);
    assert.equal(Object.keys(verbsFor(controllerOf(dependents, { settings: { namespaces: "current" } }))), [
      "",
      "home",
    ]);
  });

  test("grants reading a referenced object where it may be, and by name if its name is constant", () => {
    const position = { file: "workflow.yaml", line: 1, column: 1 };
    const stated = { kind: "when", expression: "primary.spec.name", names: ["primary"], position } as const;
    const constant = { kind: "constant", text: "shared" } as const;
    const rightsOf = (ref: NonNullable<KubernetesDependentModel["ref"]>) =>
      controllerGrants(controllerOf([dependent({ mode: "readOnly", ref })], { settings: { namespaces: ["a"] } }))
        .filter(({ resource }) => resource === "configmaps")
        .map(({ verbs, place, names }) => [verbs.join(" "), place, ...(names ?? [])].join(", "));
    assert.equal(rightsOf({ name: stated }), ["list watch, a"]);
    assert.equal(rightsOf({ name: stated, namespace: stated }), ["list watch, *"]);
    assert.equal(rightsOf({ name: stated, namespace: constant }), ["list watch, shared"]);
    assert.equal(rightsOf({ name: constant, namespace: constant }), ["list watch, shared, shared"]);
  });

  test("grants writing the status and finalizers subresources only where needed", () => {
    const parts = (controller: ControllerModel) =>
      controllerGrants(controller).flatMap(({ resource }) => (resource.startsWith("things/") ? resource : []));
    assert.equal(parts(controllerOf([dependent({})])), ["things/status", "things/finalizers"]);
    assert.equal(parts(controllerOf([dependent({ deletion: "ordered" })])), ["things/status"]);
    assert.equal(parts(controllerOf([], {}, { ...thing, hasStatusSubresource: false })), []);
  });

  test("grants access to the objects that store external ids", () => {
    const external = externalOf("account", { kind: "poll", intervalMs: 1 });
    const keptIn = (state: NonNullable<typeof external.external.state>) =>
      controllerOf([{ ...external, external: { ...external.external, state } }]);
    const verbs = "get list watch create patch delete";
    assert.equal(verbsFor(keptIn({ kind: "configMap" })), { [EVERYWHERE]: verbs });
    assert.is(verbsFor(keptIn({ kind: "secret" }), "secrets")[EVERYWHERE], verbs);
    assert.equal(verbsFor(keptIn({ kind: "status", path: ["id"] })), {});
  });

  test("grants get and patch for heldForCleanup, also for readOnly dependents", () => {
    const constant = { kind: "constant", text: "shared" } as const;
    const held = (given: Partial<KubernetesDependentModel>) =>
      controllerGrants(controllerOf([dependent({ heldForCleanup: true, ...given })]))
        .filter(({ because }) => because.startsWith("heldForCleanup"))
        .map(({ resource, verbs, place, names = [] }) => [resource, verbs.join(" "), place, ...names].join(", "));
    assert.equal(held({ mode: "readOnly", eventSource: "maps" }), ["configmaps, get patch, *"]);
    assert.equal(held({ mode: "readOnly", ref: { name: constant, namespace: constant } }), [
      "configmaps, get patch, shared, shared",
    ]);
    assert.equal(held({ namespace: "home" }), ["configmaps, get patch, home"]);
  });

  test("grants access to the proof key of external ids in the operator's namespace only", () => {
    const external = externalOf("account", { kind: "poll", intervalMs: 1 });
    const grantsOf = (state: typeof external.external.state) =>
      controllerGrants(controllerOf([{ ...external, external: { ...external.external, ...(state && { state }) } }]))
        .filter(({ resource }) => resource === "secrets")
        .map(({ place, names, verbs }) => ({ place, names, verbs: verbs.join(" ") }));
    assert.equal(grantsOf(undefined), []);
    assert.equal(grantsOf({ kind: "status", path: ["id"] }), [
      { place: OWN_NAMESPACE, names: undefined, verbs: "create" },
      { place: OWN_NAMESPACE, names: ["gen-operator-proof-key"], verbs: "get patch" },
    ]);
  });

  test("grants access to the proof key of links only if desired() may choose the namespace", () => {
    const key = ["create, OWN", "get patch, OWN, gen-operator-proof-key"];
    const rightsOf = (controller: ControllerModel) =>
      controllerGrants(controller)
        .filter(({ resource, because }) => resource === "secrets" && because.startsWith("proofs of links"))
        .map(({ verbs, place, names = [] }) =>
          [verbs.join(" "), place === OWN_NAMESPACE ? "OWN" : place, ...names].join(", "),
        );
    for (const each of [
      dependent({ deletion: "ordered" }),
      dependent({ deletion: "orphan" }),
      dependent({ cluster: "other", deletion: "ordered" }),
    ])
      assert.equal(rightsOf(controllerOf([each])), key);
    const scoped = { ...thing, scope: "Cluster" } as const;
    assert.equal(rightsOf(controllerOf([dependent({})], {}, scoped)), key);
    for (const each of [
      dependent({}),
      dependent({ deletion: "ordered", namespace: "home" }),
      dependent({ mode: "readOnly", deletion: "ordered" }),
    ])
      assert.equal(rightsOf(controllerOf([each])), []);
    assert.equal(rightsOf(controllerOf([dependent({ namespace: "home" })], {}, scoped)), []);
  });

  test("is restricted to the name that a fieldSelector selects", () => {
    const source = {
      kind: "informer",
      name: "settings",
      resource: configMap,
      mapping: { kind: "ownerReference" },
    } as const;
    const informer = { ...source, filters: {}, cache: { kind: "full" } } as const;
    const namesOf = (fieldSelector: string) =>
      controllerGrants(controllerOf([], { eventSources: [{ ...informer, fieldSelector }] })).find(
        ({ resource }) => resource === "configmaps",
      )?.names;
    assert.equal(namesOf("metadata.name=main"), ["main"]);
    assert.equal(namesOf("data.a=b,metadata.name==main"), ["main"]);
    assert.equal(namesOf("metadata.name!=main"), undefined);
  });

  test("is in a separate file for another cluster", () => {
    const controller = controllerOf([dependent({ cluster: "other", deletion: "ordered" })]);
    const files = emitDeploy({ packageName: "operator", resources: [], controllers: [controller] });
    const textOf = (path: string) => files.find((file) => file.path === path)?.content ?? "";
    assert.not.match(textOf("deploy/generated/rbac.yaml"), "configmaps");
    const [role] = parseAllDocuments(textOf("deploy/generated/clusters/other.yaml"));
    assert.equal(role?.toJS().rules[0].resources, ["configmaps"]);
    assert.match(textOf("deploy/generated/clusters/other.yaml"), "resources: [configmaps, configmaps/*]");
    assert.not.match(textOf("deploy/generated/admission.yaml"), "configmaps");
  });

  const word = (...words: string[]) => fc.constantFrom(...words);
  const grants = fc.array(
    fc.record({
      ...{
        group: word("", "apps"),
        resource: word("a", "b"),
        place: word(EVERYWHERE, "", "home"),
        because: word("x", "y"),
      },
      verbs: fc.uniqueArray(fc.constantFrom<Verb>(...VERBS), { minLength: 1, maxLength: 3 }),
      names: fc.option(fc.constant(["one"] as readonly string[]), { nil: undefined }),
    }),
    { maxLength: 12 },
  );
  const requests = ["", "apps"].flatMap((group) =>
    ["a", "b"].flatMap((resource) =>
      VERBS.flatMap((verb) =>
        ["", "home", "other"].flatMap((place) =>
          ["one", "two"].map((name) => ({ group, resource, verb, place, name })),
        ),
      ),
    ),
  );
  type Request = (typeof requests)[number];

  test("allows exactly what was granted, without redundant rules", () => {
    const isGranted = (all: readonly Grant[], { group, resource, verb, place, name }: Request) =>
      all.some(
        (each) =>
          each.group === group &&
          each.resource === resource &&
          each.verbs.includes(verb) &&
          (each.place === EVERYWHERE || each.place === place) &&
          (each.names === undefined || each.names.includes(name)),
      );
    fc.assert(
      fc.property(grants, (stated) => {
        const all = stated.map(({ names, ...rest }): Grant => ({ ...rest, ...(names && { names }) }));
        const roles = rolesOf(all, []);
        for (const request of requests) {
          const { group, resource, verb, place, name } = request;
          const allowing = roles
            .filter((role) => role.place === EVERYWHERE || role.place === place)
            .flatMap(({ rules }) => rules)
            .filter(
              (rule) =>
                rule.apiGroups?.includes(group) === true &&
                rule.resources?.includes(resource) === true &&
                rule.verbs.includes(verb) &&
                rule.resourceNames?.includes(name) !== false,
            );
          assert.is(allowing.length > 0, isGranted(all, request), JSON.stringify(request));
          // One object everywhere and all of a namespace overlap, and neither covers the other.
          const needed = allowing.filter(
            ({ resourceNames }, _, all) => resourceNames === undefined || all.length === 1,
          );
          assert.ok(needed.length <= 1, `${JSON.stringify(request)} is stated ${needed.length} times`);
        }
      }),
    );
  });
});
