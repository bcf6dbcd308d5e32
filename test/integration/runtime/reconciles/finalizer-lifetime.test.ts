// How long primaries have the finalizer of their controller: from before the first object that needs it until after the last.
import { waitFor } from "#apiserver/wait-for.js";
import type { DependentDefinition } from "#runtime/workflow/definition/workflow-definition.js";
import { apiRequest, apiRequestOrThrow } from "../../../support/api/api-request.js";
import { assert, suite } from "../../../support/suite.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  startPageServer,
  type PageOperator,
} from "../page-operator.js";

const FINALIZER = "pages.example.com/finalizer";
const FORMER = "deletion.finalizers.example.com";
const REF = { name: "one", namespace: "default" };
const CHILD = { name: "one-child", namespace: "kube-public" };

interface Arguments {
  readonly primary: Page;
}
const isOn = ({ primary }: Arguments) => primary.spec.more !== undefined;

/** An object in another namespace, which exists while `spec.more` says so. */
const childOf = (stated: object = {}) =>
  configMapOf("child", { namespace: "kube-public", deletion: "ordered", reconcilePrecondition: isOn, ...stated });

const finalizersOf = async ({ operator }: PageOperator) =>
  (await operator.client.get(Page, REF))?.metadata.finalizers ?? [];
const turn = ({ operator }: PageOperator, more: string | null) =>
  operator.client.mergePatch(Page, REF, { spec: { more } });
const childIn = ({ operator }: PageOperator) => operator.client.get(ConfigMap, CHILD);
const until = (page: PageOperator, expected: readonly string[]) =>
  waitFor(`finalizers ${JSON.stringify(expected)}`, async () => String(await finalizersOf(page)) === String(expected));

async function createOn(page: PageOperator): Promise<void> {
  await createPage(page);
  await turn(page, "on");
  await until(page, [FINALIZER]);
  await page.quiet();
}

/** A service outside Kubernetes with one resource at most. */
function serviceOf(calls: string[]): DependentDefinition {
  const resources = new Map<string, { id: string }>();
  return {
    name: "account",
    dependsOn: [],
    source: { kind: "perPrimaryPoll", intervalMs: 20, fetch: () => [...resources.values()] },
    idOf: ({ id }: { id: string }) => id,
    reconcilePrecondition: isOn,
    desired: () => ({ id: "a" }),
    create(resource: { id: string }) {
      calls.push("create");
      resources.set(resource.id, resource);
      return resource;
    },
    delete({ id }: { id: string }) {
      calls.push("delete");
      resources.delete(id);
    },
  } as unknown as DependentDefinition;
}

suite("finalizer of a primary", (test) => {
  test("is absent while no dependent that needs it is enabled", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { dependents: [childOf(), configMapOf("text")] });
    await page.operator.start();
    await createPage(page);
    await waitFor("the page is reconciled", () => page.events.length > 0);
    await page.quiet();
    assert.equal(await finalizersOf(page), []);
    // No operator is needed to delete it.
    await page.operator.stop();
    const path = "/apis/example.com/v1/namespaces/default/pages/one";
    await apiRequestOrThrow(server, `DELETE ${path}`);
    assert.is((await apiRequest(server, `GET ${path}`)).status, 404);
  });

  for (const serverSideApply of [true, false])
    test(`is added before the first object that needs it and removed after the last, serverSideApply: ${serverSideApply}`, async () => {
      await using server = await startPageServer();
      await using page = createPageOperator(server, { dependents: [childOf({ serverSideApply })], serverSideApply });
      await page.operator.start();
      await createOn(page);
      const writes = () => page.requests.filter((each) => !each.startsWith("GET") && !each.includes("status"));
      const [create, edit, ...own] = writes();
      assert.match(`${create} ${edit}`, /^POST .*pages 201 PATCH .*pages\/one 200$/);
      assert.match(own[0] ?? "", "PATCH /apis/example.com/v1/namespaces/default/pages/one 200");
      assert.match(own[1] ?? "", "/namespaces/kube-public/configmaps");
      page.requests.length = 0;
      await turn(page, null);
      await until(page, []);
      assert.is(await childIn(page), undefined);
      await page.quiet();
      assert.equal(
        writes().map((each) => each.split(" ")[0]),
        ["PATCH", "DELETE", "PATCH"],
      );
      assert.equal(failuresOf(page.events), []);
      await page.operator.client.mergePatch(Page, REF, { spec: { text: "second" } });
      await page.quiet();
      assert.equal(await finalizersOf(page), []);
    });

  test("stays until an object of which another client took the label off is deleted", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { dependents: [childOf()] });
    await page.operator.start();
    await createOn(page);
    await page.operator.stop();
    const labels = { "gen-operator.dev/controller": null };
    const change = (path: string, body: object) =>
      apiRequestOrThrow(server, `PATCH ${path}`, { body, contentType: "application/merge-patch+json" });
    await change("/api/v1/namespaces/kube-public/configmaps/one-child", { metadata: { labels } });
    await change("/apis/example.com/v1/namespaces/default/pages/one", { spec: { more: null } });
    await using next = createPageOperator(server, { dependents: [childOf()] });
    await next.operator.start();
    await waitFor("the object is deleted", async () => (await childIn(next)) === undefined, { timeoutMs: 20_000 });
    await until(next, []);
  });

  test("stays while another finalizer holds the object", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { dependents: [childOf()] });
    await page.operator.start();
    await createOn(page);
    await page.operator.client.mergePatch(ConfigMap, CHILD, { metadata: { finalizers: ["example.com/hold"] } });
    await turn(page, null);
    await waitFor("it is being deleted", async () => (await childIn(page))?.metadata.deletionTimestamp !== undefined);
    await page.quiet();
    assert.equal(await finalizersOf(page), [FINALIZER]);
    await page.operator.client.mergePatch(ConfigMap, CHILD, { metadata: { finalizers: null } });
    await until(page, []);
  });

  test("is removed after the last item of a bulk dependent is deleted", async () => {
    await using server = await startPageServer();
    const desired = ({ primary }: Arguments) =>
      Object.fromEntries(
        (primary.spec.more ?? "").split(",").flatMap((name) => (name === "" ? [] : [[name, { metadata: { name } }]])),
      );
    const items = configMapOf("items", { namespace: "kube-public", deletion: "ordered", bulk: {}, desired });
    await using page = createPageOperator(server, { dependents: [items] });
    await page.operator.start();
    await createPage(page);
    await waitFor("the page is reconciled", () => page.events.length > 0);
    assert.equal(await finalizersOf(page), []);
    await turn(page, "a,b");
    await until(page, [FINALIZER]);
    await page.quiet();
    await turn(page, "a");
    await page.quiet();
    assert.equal(await finalizersOf(page), [FINALIZER]);
    await turn(page, null);
    await until(page, []);
    for (const name of ["a", "b"])
      assert.is(await page.operator.client.get(ConfigMap, { name, namespace: "kube-public" }), undefined);
  });

  test("is added before an external resource is created and removed after it is deleted", async () => {
    await using server = await startPageServer();
    const calls: string[] = [];
    await using page = createPageOperator(server, { dependents: [serviceOf(calls)] });
    await page.operator.start();
    await createPage(page);
    await waitFor("the page is reconciled", () => page.events.length > 0);
    assert.equal([await finalizersOf(page), calls], [[], []]);
    await turn(page, "on");
    await waitFor("the resource is created", () => calls.length === 1);
    assert.equal(await finalizersOf(page), [FINALIZER]);
    await page.quiet();
    await turn(page, null);
    await until(page, []);
    assert.equal(calls, ["create", "delete"]);
  });

  test("is removed after the dependent left the workflow, by an operator that needs none", async () => {
    await using server = await startPageServer();
    {
      await using before = createPageOperator(server, { dependents: [childOf()] });
      await before.operator.start();
      await createOn(before);
    }
    const removed = {
      child: { resource: ConfigMap.definition, deletion: "ordered", namespace: "kube-public" },
    } as const;
    await using page = createPageOperator(server, { workflow: { removed } });
    await page.operator.start();
    await until(page, []);
    assert.is(await childIn(page), undefined);
  });

  test("takes the place of former finalizers after a reconcile in which all is ready", async () => {
    await using server = await startPageServer();
    let isReady = false;
    const child = childOf({ reconcilePrecondition: undefined, readyPostcondition: () => isReady });
    const settings = { dependents: [child], formerFinalizers: [FORMER, "example.com/old"] };
    await using page = createPageOperator(server, settings);
    await page.operator.start();
    const others = "example.com/other";
    await createPage(page, "one", { finalizers: [FORMER, others, "example.com/old"] });
    await waitFor("the object is there", async () => (await childIn(page)) !== undefined);
    await page.quiet();
    assert.equal(new Set(await finalizersOf(page)), new Set([FORMER, others, "example.com/old", FINALIZER]));
    isReady = true;
    await turn(page, "on");
    await until(page, [others, FINALIZER]);
  });

  for (const finalizer of [undefined, "deletion"])
    test(`is cleaned up for while only a former one is there, finalizer: ${finalizer ?? "the default"}`, async () => {
      await using server = await startPageServer();
      const dependents = [childOf({ reconcilePrecondition: undefined })];
      {
        await using before = createPageOperator(server, { dependents, finalizer: FORMER });
        await before.operator.start();
        await createPage(before);
        await until(before, [FORMER]);
        await waitFor("the object is there", async () => (await childIn(before)) !== undefined);
        assert.ok(
          before.logs.some((line) => line.startsWith("warn") && line.includes(`finalizer "${FORMER}" has no domain`)),
        );
      }
      await apiRequestOrThrow(server, "DELETE /apis/example.com/v1/namespaces/default/pages/one");
      const settings = { dependents, formerFinalizers: [FORMER], ...(finalizer && { finalizer }) };
      await using page = createPageOperator(server, settings);
      await page.operator.start();
      await waitFor("the page is gone", async () => (await page.operator.client.get(Page, REF)) === undefined, {
        timeoutMs: 30_000,
      });
      assert.is(await childIn(page), undefined);
    });

  test("is restored while an object needs it", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { dependents: [childOf()] });
    await page.operator.start();
    await createOn(page);
    await page.operator.client.mergePatch(Page, REF, { metadata: { finalizers: null } });
    await until(page, [FINALIZER]);
    await page.operator.client.delete(Page, REF);
    await waitFor("the page is gone", async () => (await page.operator.client.get(Page, REF)) === undefined);
    assert.is(await childIn(page), undefined);
  });
});
