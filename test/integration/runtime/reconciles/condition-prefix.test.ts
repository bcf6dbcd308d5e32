// Two controllers that keep conditions in the status of one primary.
import { waitFor } from "#apiserver/wait-for.js";
import { checkControllers } from "#runtime/api/controller-validation.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { createRecordedOperator } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import { configMapOf, createPage, Page, pageSpacesOf } from "../page-operator.js";

const openSpace = pageSpacesOf();

/** A controller of Pages that keeps conditions. */
function controllerOf(name: string, rest: Partial<ControllerDefinition> = {}): ControllerDefinition {
  const workflow = { primary: Page.definition, dependents: [configMapOf(`${name}-text`)] };
  return { name, workflow, reconciler: { reconcile: () => {} }, statusConditions: "managed", ...rest };
}

suite("conditionPrefix", (test) => {
  for (const [how, serverSideApply, isApart] of [
    ["by apply", true, false],
    ["by patches", false, false],
    ["by apply, in two operators", true, true],
    ["by patches, in two operators", false, true],
  ] as const)
    test(`keeps the conditions of two controllers apart, with one status write each, ${how}`, async () => {
      const { namespace, other: _, ...connection } = await openSpace();
      const ref = { name: "one", namespace };
      const settings = { serverSideApply, namespaces: [namespace] };
      const page = controllerOf("page", settings);
      const backup = controllerOf("backup", { ...settings, conditionPrefix: "Backup" });
      await using first = createRecordedOperator({ controllers: isApart ? [page] : [page, backup], connection });
      await using second = createRecordedOperator({ controllers: [backup], connection });
      const running = isApart ? [first, second] : [first];
      for (const { operator } of running) await operator.start();
      const quiet = async () => {
        for (const each of running) await each.quiet();
      };
      const { client } = first.operator;
      await createPage({ ...first, namespace });
      const conditions = async () =>
        ((await client.get(Page, ref))?.status?.conditions ?? []).map(({ type, status }) => `${type} ${status}`).sort();
      await waitFor("both are ready", async () => (await conditions()).join() === "BackupReady True,Ready True");
      await quiet();
      for (const { requests } of running) requests.length = 0;
      await client.mergePatch(Page, ref, { metadata: { annotations: { "gen-operator.dev/paused": "true" } } });
      const paused = "BackupPaused True,BackupReady True,Paused True,Ready True";
      await waitFor("both are paused", async () => (await conditions()).join() === paused);
      await quiet();
      const requests = running.flatMap((each) => each.requests);
      assert.is(requests.filter((request) => /^(PATCH|PUT) .*\/status /.test(request)).length, 2);
    });

  test("is required for two controllers, and must not match a dependent of the other", () => {
    const shared = (one: ControllerDefinition, other: ControllerDefinition) => () => checkControllers([one, other]);
    assert.throws(
      shared(controllerOf("page"), controllerOf("audit")),
      /^controllers "page" and "audit" both keep the condition Ready in the status of pages; give "audit" a conditionPrefix$/,
    );
    const workflow = { primary: Page.definition, dependents: [configMapOf("backup")] };
    assert.throws(
      shared(controllerOf("page", { workflow }), controllerOf("audit", { conditionPrefix: "Backup" })),
      /both keep the condition BackupReady/,
    );
    shared(controllerOf("page"), controllerOf("audit", { conditionPrefix: "Audit" }))();
    shared(controllerOf("page"), controllerOf("audit", { statusConditions: undefined }))();
  });

  test("is not required if selectors or namespaces of the controllers differ", () => {
    for (const [mine, theirs] of [
      [{ labelSelector: "shard=a" }, { labelSelector: "shard=b" }],
      [{ namespaces: ["a"] }, { namespaces: ["b"] }],
    ] as const)
      checkControllers([controllerOf("page", mine), controllerOf("audit", theirs)]);
    assert.throws(
      () => checkControllers([controllerOf("page"), controllerOf("audit", { labelSelector: "shard=b" })]),
      /both keep the condition Ready/,
    );
  });
});
