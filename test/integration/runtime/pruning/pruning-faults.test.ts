// What becomes of pruning when the operator may not do what it needs for it.
import type { ApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  Secret,
  startPageServer,
  untilText,
} from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };
const SECRET = { name: "one-secret", namespace: "default" };
const removed = { secret: { resource: Secret.definition, deletion: "ordered" } } as const;
const secret = (rest: Partial<KubernetesDependent> = {}) =>
  configMapOf("secret", {
    resource: Secret.definition,
    ...(rest as object),
    desired: () => ({ metadata: { name: "one-secret" } }),
  });
const closed = { verb: ["list", "watch"], path: "/secrets", forbid: true } as const;

function startVersion(
  server: ApiServer,
  dependents: KubernetesDependent[],
  workflow: Partial<WorkflowDefinition> = {},
) {
  return createPageOperator(server, { dependents, workflow });
}

/** Runs a version that has a Secret, until that is there. */
async function runFirst(server: ApiServer, rest: Partial<KubernetesDependent> = {}): Promise<void> {
  await using page = startVersion(server, [configMapOf("text"), secret(rest)]);
  await page.operator.start();
  await createPage(page);
  await waitFor("all is made", () => page.events.at(-1)?.workflow?.isReady === true);
  await page.quiet();
}

suite("pruning without permissions", (test) => {
  test("fails the reconcile until the removed kind can be listed", async () => {
    await using server = await startPageServer();
    await runFirst(server);
    const fault = server.faults.add(closed);
    {
      await using page = startVersion(server, [configMapOf("text")], { removed });
      await page.operator.start();
      const { workflow } = await waitFor("a failed reconcile", () =>
        page.events.find(({ error }) => error !== undefined),
      );
      assert.match(String(workflow?.errors.get("secret")), /removed dependent "secret": .*403/);
      assert.ok(await page.operator.client.get(Secret, SECRET));
      await untilText(page, "first");
    }
    fault.remove();
    await using page = startVersion(server, [configMapOf("text")], { removed });
    await page.operator.start();
    await waitFor("it is gone", async () => (await page.operator.client.get(Secret, SECRET)) === undefined);
  });

  test("keeps the finalizer until the removed kind can be listed, or its deletion is garbageCollected", async () => {
    await using server = await startPageServer();
    await runFirst(server, { deletion: "ordered" });
    server.faults.add(closed);
    {
      await using page = startVersion(server, [configMapOf("text")], { removed });
      await page.operator.start();
      await page.operator.client.delete(Page, ONE);
      await waitFor("a failed cleanup", () =>
        page.events.find(({ kind, error }) => kind === "cleanup" && error !== undefined),
      );
      assert.ok(await page.operator.client.get(Page, ONE));
    }
    const kept = { secret: { resource: Secret.definition, deletion: "garbageCollected" } } as const;
    await using page = startVersion(server, [configMapOf("text")], { removed: kept });
    await page.operator.start();
    await waitFor("the page is gone", async () => (await page.operator.client.get(Page, ONE)) === undefined);
    assert.ok(await page.operator.client.get(Secret, SECRET));
  });

  test("ignores a removed kind that is no longer served", async () => {
    await using server = await startPageServer();
    const resource = { ...Page.definition, group: "gone.example.com", apiVersion: "gone.example.com/v1" };
    const old = { resource: { ...resource, kind: "Old", plural: "olds" }, deletion: "ordered" } as const;
    await using page = startVersion(server, [configMapOf("text")], { removed: { old } });
    await createPage(page);
    await page.operator.start();
    await waitFor("it is reconciled", () => page.events.at(-1)?.workflow?.isReady === true);
    await page.quiet();
    assert.equal(Object.keys(page.operator.controller("page").health()), ["primary", "text"]);
    assert.is(page.events.at(-1)?.workflow?.removed, undefined);
    assert.equal(
      page.logs.filter((line) => line.includes("not served")),
      [],
    );
  });
});
