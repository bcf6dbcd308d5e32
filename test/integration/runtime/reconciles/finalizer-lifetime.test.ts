// How long primaries have the finalizer of their controller: from before the first object that needs it until after the last.
import { waitFor } from "#apiserver/wait-for.js";
import type { DependentDefinition } from "#runtime/workflow/workflow-definition.js";
import { apiRequest, apiRequestOrThrow } from "../../../support/api/api-request.js";
import { assert, suite } from "../../../support/suite.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  pageSpacesOf,
  type PageOperator,
  type PageSpace,
} from "../page-operator.js";

const FINALIZER = "pages.example.com/finalizer";
const FORMER = "deletion.finalizers.example.com";
const openSpace = pageSpacesOf();
const one = ({ namespace = "" }: Pick<PageOperator, "namespace">) => ({ name: "one", namespace });
const refOfChild = ({ other }: PageSpace) => ({ name: "one-child", namespace: other });
const pathOf = ({ namespace }: PageSpace) => `/apis/example.com/v1/namespaces/${namespace}/pages/one`;

interface Arguments {
  readonly primary: Page;
}
const isOn = ({ primary }: Arguments) => primary.spec.more !== undefined;

/** An object in another namespace, which exists while `spec.more` says so. */
const childOf = ({ other }: PageSpace, stated: object = {}) =>
  configMapOf("child", { namespace: other, deletion: "ordered", reconcilePrecondition: isOn, ...stated });

const finalizersOf = async (page: PageOperator) =>
  (await page.operator.client.get(Page, one(page)))?.metadata.finalizers ?? [];
const turn = (page: PageOperator, more: string | null) =>
  page.operator.client.mergePatch(Page, one(page), { spec: { more } });
const childIn = ({ operator }: PageOperator, space: PageSpace) => operator.client.get(ConfigMap, refOfChild(space));
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

suite("finalizer", (test) => {
  test("is absent while no dependent needs it", async () => {
    const space = await openSpace();
    await using page = createPageOperator(space, { dependents: [childOf(space), configMapOf("text")] });
    await page.operator.start();
    await createPage(page);
    await waitFor("the page is reconciled", () => page.events.length > 0);
    await page.quiet();
    assert.equal(await finalizersOf(page), []);
    // No operator is needed to delete it.
    await page.operator.stop();
    await apiRequestOrThrow(space, `DELETE ${pathOf(space)}`);
    assert.is((await apiRequest(space, `GET ${pathOf(space)}`)).status, 404);
  });

  for (const serverSideApply of [true, false])
    test(`is added before the first object that needs it and removed after the last, serverSideApply: ${serverSideApply}`, async () => {
      const space = await openSpace();
      await using page = createPageOperator(space, {
        dependents: [childOf(space, { serverSideApply })],
        serverSideApply,
      });
      await page.operator.start();
      await createOn(page);
      const writes = () => page.requests.filter((each) => !each.startsWith("GET") && !each.includes("status"));
      const [create, edit, ...own] = writes();
      assert.match(`${create} ${edit}`, /^POST .*pages 201 PATCH .*pages\/one 200$/);
      assert.match(own[0] ?? "", `PATCH ${pathOf(space)} 200`);
      assert.match(own[1] ?? "", `/namespaces/${space.other}/configmaps`);
      page.requests.length = 0;
      await turn(page, null);
      await until(page, []);
      assert.is(await childIn(page, space), undefined);
      await page.quiet();
      assert.equal(
        writes().map((each) => each.split(" ")[0]),
        ["PATCH", "DELETE", "PATCH"],
      );
      assert.equal(failuresOf(page.events), []);
      await page.operator.client.mergePatch(Page, one(space), { spec: { text: "second" } });
      await page.quiet();
      assert.equal(await finalizersOf(page), []);
    });

  test("is kept until an object that lost its label is deleted", async () => {
    const space = await openSpace();
    await using page = createPageOperator(space, { dependents: [childOf(space)] });
    await page.operator.start();
    await createOn(page);
    await page.operator.stop();
    const labels = { "gen-operator.dev/controller": null };
    const change = (path: string, body: object) =>
      apiRequestOrThrow(space, `PATCH ${path}`, { body, contentType: "application/merge-patch+json" });
    await change(`/api/v1/namespaces/${space.other}/configmaps/one-child`, { metadata: { labels } });
    await change(pathOf(space), { spec: { more: null } });
    await using next = createPageOperator(space, { dependents: [childOf(space)] });
    await next.operator.start();
    await waitFor("the object is deleted", async () => (await childIn(next, space)) === undefined, {
      timeoutMs: 20_000,
    });
    await until(next, []);
  });

  test("is kept while a foreign finalizer delays the deletion of the object", async () => {
    const space = await openSpace();
    await using page = createPageOperator(space, { dependents: [childOf(space)] });
    await page.operator.start();
    await createOn(page);
    await page.operator.client.mergePatch(ConfigMap, refOfChild(space), {
      metadata: { finalizers: ["example.com/hold"] },
    });
    await turn(page, null);
    await waitFor(
      "it is being deleted",
      async () => (await childIn(page, space))?.metadata.deletionTimestamp !== undefined,
    );
    await page.quiet();
    assert.equal(await finalizersOf(page), [FINALIZER]);
    await page.operator.client.mergePatch(ConfigMap, refOfChild(space), { metadata: { finalizers: null } });
    await until(page, []);
  });

  test("is removed after the last item of a bulk dependent is deleted", async () => {
    const space = await openSpace();
    const desired = ({ primary }: Arguments) =>
      Object.fromEntries(
        (primary.spec.more ?? "").split(",").flatMap((name) => (name === "" ? [] : [[name, { metadata: { name } }]])),
      );
    const items = configMapOf("items", { namespace: space.other, deletion: "ordered", bulk: {}, desired });
    await using page = createPageOperator(space, { dependents: [items] });
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
      assert.is(await page.operator.client.get(ConfigMap, { name, namespace: space.other }), undefined);
  });

  test("is added before an external resource is created and removed after it is deleted", async () => {
    const space = await openSpace();
    const calls: string[] = [];
    await using page = createPageOperator(space, { dependents: [serviceOf(calls)] });
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

  test("is removed after the object of a removed dependent is deleted", async () => {
    const space = await openSpace();
    {
      await using before = createPageOperator(space, { dependents: [childOf(space)] });
      await before.operator.start();
      await createOn(before);
    }
    const removed = {
      child: { resource: ConfigMap.definition, deletion: "ordered", namespace: space.other },
    } as const;
    await using page = createPageOperator(space, { workflow: { removed } });
    await page.operator.start();
    await until(page, []);
    assert.is(await childIn(page, space), undefined);
  });

  test("replaces formerFinalizers after a reconcile in which all dependents are ready", async () => {
    const space = await openSpace();
    let isReady = false;
    const child = childOf(space, { reconcilePrecondition: undefined, readyPostcondition: () => isReady });
    const settings = { dependents: [child], formerFinalizers: [FORMER, "example.com/old"] };
    await using page = createPageOperator(space, settings);
    await page.operator.start();
    const others = "example.com/other";
    await createPage(page, "one", { finalizers: [FORMER, others, "example.com/old"] });
    await waitFor("the object is there", async () => (await childIn(page, space)) !== undefined);
    await page.quiet();
    assert.equal(new Set(await finalizersOf(page)), new Set([FORMER, others, "example.com/old", FINALIZER]));
    isReady = true;
    await turn(page, "on");
    await until(page, [others, FINALIZER]);
  });

  for (const finalizer of [undefined, "deletion"])
    test(`is cleaned up by a former finalizer, finalizer: ${finalizer ?? "the default"}`, async () => {
      const space = await openSpace();
      const dependents = [childOf(space, { reconcilePrecondition: undefined })];
      {
        await using before = createPageOperator(space, { dependents, finalizer: FORMER });
        await before.operator.start();
        await createPage(before);
        await until(before, [FORMER]);
        await waitFor("the object is there", async () => (await childIn(before, space)) !== undefined);
        assert.ok(
          before.logs.some((line) => line.startsWith("warn") && line.includes(`finalizer "${FORMER}" has no domain`)),
        );
      }
      await apiRequestOrThrow(space, `DELETE ${pathOf(space)}`);
      const settings = { dependents, formerFinalizers: [FORMER], ...(finalizer && { finalizer }) };
      await using page = createPageOperator(space, settings);
      await page.operator.start();
      await waitFor("the page is gone", async () => (await page.operator.client.get(Page, one(space))) === undefined, {
        timeoutMs: 30_000,
      });
      assert.is(await childIn(page, space), undefined);
    });

  test("is restored while an object needs it", async () => {
    const space = await openSpace();
    await using page = createPageOperator(space, { dependents: [childOf(space)] });
    await page.operator.start();
    await createOn(page);
    await page.operator.client.mergePatch(Page, one(space), { metadata: { finalizers: null } });
    await until(page, [FINALIZER]);
    await page.operator.client.delete(Page, one(space));
    await waitFor("the page is gone", async () => (await page.operator.client.get(Page, one(space))) === undefined);
    assert.is(await childIn(page, space), undefined);
  });
});
