// What is said about an external dependent that cannot work, and when its primary needs a finalizer.
import { checkController } from "#runtime/api/controller-validation.js";
import type { ExternalDependent } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../support/suite.js";
import { page } from "../workflow/graphs.js";
import { finalizerOf } from "#runtime/reconcile/controller-definition.js";

function controllerOf(external: object, rest: object = {}, primary = page) {
  const functions = { create: () => ({}), idOf: () => "", delete: () => {} };
  const dependent = {
    name: "row",
    dependsOn: [],
    desired: () => ({}),
    ...rest,
    source: { kind: "inbound" },
    ...functions,
    ...external,
  } as unknown as ExternalDependent;
  return { name: "pages", workflow: { primary, dependents: [dependent] } };
}

const none = undefined;
const cases: readonly [title: string, controller: ReturnType<typeof controllerOf>, message: RegExp][] = [
  ["without desired()", controllerOf({}, { desired: none }), /has no desired\(\)/],
  ["without create and update", controllerOf({ create: none }), /neither create nor update/],
  ["bulk without idOf", controllerOf({ idOf: none }, { bulk: {} }), /bulk dependent without idOf/],
  [
    "with a polling interval of 0",
    controllerOf({ source: { kind: "poll", intervalMs: 0 } }),
    /has 0 for source\.intervalMs/,
  ],
  [
    "with stateOf but no state",
    controllerOf({ stateOf: () => ({ id: "" }) }),
    /has stateOf but no state; set state to where the id is stored/,
  ],
  [
    "with state but no idOf",
    controllerOf({ idOf: none, state: { kind: "configMap" } }),
    /stores an id \(state\) but has no idOf; add idOf/,
  ],
  [
    "with state but no create",
    controllerOf({ create: none, update: () => ({}), state: { kind: "configMap" } }),
    /has no create/,
  ],
  [
    "with state in a ConfigMap for a cluster-scoped primary",
    controllerOf({ state: { kind: "configMap" } }, {}, { ...page, scope: "Cluster" }),
    /is in no namespace; keep them in its status/,
  ],
  [
    "with state in an empty status path",
    controllerOf({ state: { kind: "status", path: [] } }),
    /stores ids in the status but has no path; set state\.path/,
  ],
  [
    "with state in the status of a kind without the status subresource",
    controllerOf({ state: { kind: "status", path: ["id"] } }, {}, { ...page, hasStatusSubresource: false }),
    /lack a status subresource/,
  ],
];

suite("validation of external dependents", (test) => {
  for (const [title, controller, message] of cases)
    test(`rejects a dependent ${title}`, () => assert.throws(() => checkController(controller), message));
});

suite("external dependents with a shared event source", (test) => {
  const shared = { source: { kind: "eventSource", name: "rows" } };
  const controllerWith = (...externals: readonly object[]) => {
    const dependents = externals.flatMap(
      (external, index) => controllerOf({ ...shared, ...external }, { name: `row${index}` }).workflow.dependents,
    );
    return { name: "pages", workflow: { primary: page, dependents } };
  };

  test("are rejected if nothing assigns resources to more than one of them", () => {
    assert.throws(
      () => checkController(controllerWith({}, { isOwn: () => true }, {})),
      /"row0" and "row2", which share event source "rows", and nothing assigns a resource to one of them/,
    );
  });

  test("are accepted with isOwn or stored ids, or if they are read-only", () => {
    const state = { kind: "configMap" };
    const readOnly = { create: none, delete: none, update: none };
    const dependents = controllerWith({ isOwn: () => true }, { isOwn: () => true }, { state }, {}, readOnly);
    const [reader] = dependents.workflow.dependents.splice(-1);
    const { desired: _, ...seen } = reader!;
    checkController({
      ...dependents,
      workflow: { primary: page, dependents: [...dependents.workflow.dependents, seen] },
    });
  });
});

suite("finalizer for external dependents", (test) => {
  test("is needed only if the dependent has delete", () => {
    checkController(controllerOf({}));
    assert.is(typeof finalizerOf(controllerOf({})), "string");
    assert.is(finalizerOf(controllerOf({ delete: undefined })), undefined);
  });
});
