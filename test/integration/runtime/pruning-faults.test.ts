// What becomes of pruning when the operator may not do what it needs for it.
import type { ApiServer } from "#apiserver/index.js";
import { waitFor } from "#runtime/base/wait-for.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/definition/workflow-definition.js";
import { assert, suite } from "../../support/suite.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  Secret,
  startPageServer,
  untilQuiet,
  untilText,
} from "./page-operator.js";

const ONE = { name: "one", namespace: "default" };
const SECRET = { name: "one-secret", namespace: "default" };
const ANNOTATION = "inventory.gen-operator.dev/page";
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
  await untilQuiet(page);
}

suite("pruning without the rights for it", (test) => {
  test("says once what is missing, goes on without, and is done when the rights are there", async () => {
    await using server = await startPageServer();
    await runFirst(server);
    const fault = server.faults.add(closed);
    {
      await using page = startVersion(server, [configMapOf("text")]);
      await page.operator.start();
      await waitFor("it is reconciled", () => page.events.length > 0);
      await page.operator.client.mergePatch(Page, ONE, { spec: { text: "second" } });
      await untilText(page, "second");
      await untilQuiet(page);
      assert.equal(
        page.events.flatMap(({ error }) => error ?? []),
        [],
      );
      const warnings = page.logs.filter((line) => line.includes('removed dependent "secret"'));
      assert.is(warnings.length, 1);
      assert.match(warnings[0]!, /403 .*state what becomes of it as removed\.secret in the workflow/);
      assert.ok(await page.operator.client.get(Secret, SECRET));
      assert.is(page.operator.health().status, "healthy");
    }
    fault.remove();
    await using page = startVersion(server, [configMapOf("text")]);
    await page.operator.start();
    await waitFor("it is gone", async () => (await page.operator.client.get(Secret, SECRET)) === undefined);
  });

  test("fails the reconcile where the workflow says that it is removed", async () => {
    await using server = await startPageServer();
    await runFirst(server);
    server.faults.add(closed);
    const removed = { secret: { resource: Secret.definition, policy: "delete" } } as const;
    await using page = startVersion(server, [configMapOf("text")], { removed });
    await page.operator.start();
    const { workflow } = await waitFor("a failed reconcile", () =>
      page.events.find(({ error }) => error !== undefined),
    );
    assert.match(String(workflow?.errors.get("secret")), /removed dependent "secret": .*403/);
  });

  test("keeps the primary until it is known that nothing is left, or the workflow says to keep it", async () => {
    await using server = await startPageServer();
    await runFirst(server, { isGarbageCollected: false });
    server.faults.add(closed);
    {
      await using page = startVersion(server, [configMapOf("text")]);
      await page.operator.start();
      await page.operator.client.delete(Page, ONE);
      await waitFor("a failed cleanup", () =>
        page.events.find(({ kind, error }) => kind === "cleanup" && error !== undefined),
      );
      assert.ok(await page.operator.client.get(Page, ONE));
    }
    const removed = { secret: { resource: Secret.definition, policy: "keep" } } as const;
    await using page = startVersion(server, [configMapOf("text")], { removed });
    await page.operator.start();
    await waitFor("the page is gone", async () => (await page.operator.client.get(Page, ONE)) === undefined);
    assert.ok(await page.operator.client.get(Secret, SECRET));
  });

  test("is given up with a word if the inventory cannot be written", async () => {
    await using server = await startPageServer();
    server.faults.add({ verb: "patch", path: /\/pages\/one(\?|$)/, forbid: true });
    await using page = startVersion(server, [configMapOf("text")]);
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await page.operator.client.mergePatch(Page, { ...ONE }, {}).catch(() => {});
    await untilQuiet(page);
    assert.equal(
      page.events.flatMap(({ error }) => error ?? []),
      [],
    );
    const warnings = page.logs.filter((line) => line.includes("the inventory cannot be noted"));
    assert.is(warnings.length, 1);
    assert.match(warnings[0]!, /grant patch on pages, or state inventory: false in the workflow/);
  });

  test("loses nothing with the answer to the request that noted it with the finalizer", async () => {
    await using server = await startPageServer();
    await using page = startVersion(server, [secret({ isGarbageCollected: false })]);
    await page.operator.start();
    server.faults.add({ verb: "patch", path: /\/pages\/one(\?|$)/, times: 1, loseAnswer: true });
    await createPage(page);
    await waitFor("it is made", async () => (await page.operator.client.get(Secret, SECRET)) !== undefined);
    await untilQuiet(page);
    const { metadata } = (await page.operator.client.get(Page, ONE))!;
    assert.is(metadata.finalizers?.length, 1);
    assert.is(JSON.parse(metadata.annotations?.[ANNOTATION] ?? "[]")[0]?.name, "secret");
    assert.equal(
      page.events.flatMap(({ error }) => error ?? []),
      [],
    );
  });

  test("takes a kind that is not served any more for gone", async () => {
    await using server = await startPageServer();
    await using page = startVersion(server, [configMapOf("text")]);
    const old = { name: "old", apiVersion: "gone.example.com/v1", kind: "Old", plural: "olds" };
    await createPage(page, "one", { annotations: { [ANNOTATION]: JSON.stringify([old]) } });
    await page.operator.start();
    await waitFor("the inventory is up to date", async () => {
      const { metadata } = (await page.operator.client.get(Page, ONE))!;
      return JSON.parse(metadata.annotations?.[ANNOTATION] ?? "[]")[0]?.name === "text";
    });
    await untilQuiet(page);
    assert.equal(Object.keys(page.operator.controller("page").health()), ["primary", "text"]);
    assert.equal(
      page.logs.filter((line) => line.includes("not served")),
      [],
    );
  });
});
