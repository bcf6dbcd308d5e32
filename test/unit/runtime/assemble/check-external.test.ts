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
  ["nothing to be", controllerOf({}, { desired: none }), /has no desired\(\)/],
  ["nothing that writes it", controllerOf({ create: none }), /neither create nor update/],
  ["items without ids", controllerOf({ idOf: none }, { bulk: {} }), /bulk dependent without idOf/],
  ["no interval", controllerOf({ source: { kind: "poll", intervalMs: 0 } }), /has 0 for source\.intervalMs/],
  [
    "a state that is kept nowhere",
    controllerOf({ stateOf: () => ({ id: "" }) }),
    /has stateOf but no state; set state to where the id is stored/,
  ],
  [
    "a state without ids",
    controllerOf({ idOf: none, state: { kind: "configMap" } }),
    /stores an id \(state\) but has no idOf; add idOf/,
  ],
  [
    "a state of what it does not create",
    controllerOf({ create: none, update: () => ({}), state: { kind: "configMap" } }),
    /has no create/,
  ],
  [
    "a ConfigMap in no namespace",
    controllerOf({ state: { kind: "configMap" } }, {}, { ...page, scope: "Cluster" }),
    /is in no namespace; keep them in its status/,
  ],
  [
    "no path in the status",
    controllerOf({ state: { kind: "status", path: [] } }),
    /stores ids in the status but has no path; set state\.path/,
  ],
  [
    "no status",
    controllerOf({ state: { kind: "status", path: ["id"] } }, {}, { ...page, hasStatusSubresource: false }),
    /lack a status subresource/,
  ],
];

suite("an external dependent that cannot work", (test) => {
  for (const [title, controller, message] of cases)
    test(`is refused: ${title}`, () => assert.throws(() => checkController(controller), message));
});

suite("two external dependents of one event source", (test) => {
  const shared = { source: { kind: "eventSource", name: "rows" } };
  const controllerWith = (...externals: readonly object[]) => {
    const dependents = externals.flatMap(
      (external, index) => controllerOf({ ...shared, ...external }, { name: `row${index}` }).workflow.dependents,
    );
    return { name: "pages", workflow: { primary: page, dependents } };
  };

  test("are refused if nothing assigns a resource to one of them", () => {
    assert.throws(
      () => checkController(controllerWith({}, { isOwn: () => true }, {})),
      /"row0" and "row2", which share event source "rows", and nothing assigns a resource to one of them/,
    );
  });

  test("are told apart by isOwn, or by the ids that are kept; what only reads may see all", () => {
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

suite("the finalizer for external dependents", (test) => {
  test("is needed where one can be deleted", () => {
    checkController(controllerOf({}));
    assert.is(typeof finalizerOf(controllerOf({})), "string");
    assert.is(finalizerOf(controllerOf({ delete: undefined })), undefined);
  });
});
