// Two controllers that keep conditions in the status of one primary.
import { waitFor } from "#apiserver/wait-for.js";
import { checkControllers } from "#runtime/assemble/check-controller.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import { createRecordedOperator } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import { configMapOf, createPage, Page, startPageServer } from "../page-operator.js";

const ref = { name: "one", namespace: "default" };

/** A controller of Pages that keeps conditions. */
function controllerOf(name: string, rest: Partial<ControllerDefinition> = {}): ControllerDefinition {
  const workflow = { primary: Page.definition, dependents: [configMapOf(`${name}-text`)] };
  return { name, workflow, reconciler: { reconcile: () => {} }, statusConditions: "managed", ...rest };
}

suite("two controllers that keep conditions of one primary", (test) => {
  for (const serverSideApply of [true, false])
    test(`have conditions of their own, and are at rest, with a prefix ${serverSideApply ? "by apply" : "by patches"}`, async () => {
      await using server = await startPageServer();
      const controllers = [
        controllerOf("page", { serverSideApply }),
        controllerOf("backup", { serverSideApply, conditionPrefix: "Backup" }),
      ];
      await using running = createRecordedOperator({
        controllers,
        connection: { url: server.url, token: server.token },
      });
      await running.operator.start();
      await createPage(running);
      const conditions = async () =>
        ((await running.operator.client.get(Page, ref))?.status?.conditions ?? [])
          .map(({ type, status }) => `${type} ${status}`)
          .sort();
      await waitFor("both are ready", async () => (await conditions()).join() === "BackupReady True,Ready True");
      await running.quiet();
      running.requests.length = 0;
      await running.operator.client.mergePatch(Page, ref, {
        metadata: { annotations: { "gen-operator.dev/paused": "true" } },
      });
      const paused = "BackupPaused True,BackupReady True,Paused True,Ready True";
      await waitFor("both are paused", async () => (await conditions()).join() === paused);
      await running.quiet();
      assert.is(running.requests.filter((request) => /^(PATCH|PUT) .*\/status /.test(request)).length, 2);
    });

  test("are refused without a prefix, or if a dependent has the type of the other's prefix", () => {
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

  test("are not refused if their selectors or namespaces differ, as they may have no primary in common", () => {
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
