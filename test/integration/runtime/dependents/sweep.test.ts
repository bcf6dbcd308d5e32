// Cleanup without a finalizer: after the primary is gone.
import { waitFor } from "#apiserver/wait-for.js";
import type { ApiServer } from "#apiserver/index.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  startPageServer,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

const REF = { name: "one", namespace: "default" };
const PAGES = "/apis/example.com/v1/namespaces/default/pages";
const elsewhere = { namespace: "kube-public", deletion: "ordered" } as const;

const startSweeping = async (server: ApiServer, options: PageOperatorOptions = {}): Promise<PageOperator> => {
  const dependents = [configMapOf("child", elsewhere)];
  const page = createPageOperator(server, { dependents, cleanupPolicy: "sweep", ...options });
  await page.operator.start();
  return page;
};
const childIn = ({ operator }: PageOperator, name = "one-child") =>
  operator.client.get(ConfigMap, { name, namespace: "kube-public" });
const untilChild = (page: PageOperator, isThere: boolean, name?: string) =>
  waitFor(
    `the object is ${isThere ? "there" : "gone"}`,
    async () => ((await childIn(page, name)) !== undefined) === isThere,
  );
const edit = (server: ApiServer, body: object) =>
  apiRequestOrThrow(server, `PATCH ${PAGES}/one`, { body, contentType: "application/merge-patch+json" });
const deletionsOf = ({ requests }: PageOperator) =>
  requests.filter((each) => each.startsWith("DELETE") && each.includes("configmaps"));

suite('cleanupPolicy "sweep"', (test) => {
  test("deletes objects when their primary is deleted, which has no finalizer", async () => {
    await using server = await startPageServer();
    await using page = await startSweeping(server);
    await createPage(page);
    await untilChild(page, true);
    await page.quiet();
    assert.is((await page.operator.client.get(Page, REF))?.metadata.finalizers, undefined);
    page.requests.length = 0;
    await apiRequestOrThrow(server, `DELETE ${PAGES}/one`);
    await untilChild(page, false);
    await page.quiet();
    const own = page.requests.filter((each) => !/^GET .*(configmaps|events)/.test(each));
    assert.equal(own.slice(0, 2), [
      `GET ${PAGES}/one 404`,
      "DELETE /api/v1/namespaces/kube-public/configmaps/one-child 200",
    ]);
  });

  test("deletes objects at the start whose primary was deleted meanwhile", async () => {
    await using server = await startPageServer();
    {
      await using page = await startSweeping(server);
      await createPage(page);
      await createPage(page, "two");
      await untilChild(page, true);
      await untilChild(page, true, "two-child");
    }
    await apiRequestOrThrow(server, `DELETE ${PAGES}/one`);
    await using page = await startSweeping(server);
    await untilChild(page, false);
    await page.quiet();
    assert.ok(await childIn(page, "two-child"));
    assert.is(deletionsOf(page).length, 1);
  });

  test("makes no request at the start if all primaries are there", async () => {
    await using server = await startPageServer();
    {
      await using page = await startSweeping(server);
      await createPage(page);
      await untilChild(page, true);
      await page.quiet();
    }
    await using page = await startSweeping(server);
    await waitFor("the page is reconciled", () => page.events.length > 0);
    await page.quiet();
    assert.equal(
      page.requests.filter((each) => /configmaps\/|pages\/one/.test(each)),
      [],
    );
  });

  test("keeps objects of a primary that no longer matches the selector", async () => {
    await using server = await startPageServer();
    const selected = { labelSelector: "shard=a" };
    {
      await using page = await startSweeping(server, selected);
      await createPage(page, "one", { labels: { shard: "a" } });
      await untilChild(page, true);
      await page.quiet();
      await edit(server, { metadata: { labels: { shard: "b" } } });
      await waitFor("the page is read", () => page.requests.includes(`GET ${PAGES}/one 200`));
      await page.quiet();
      assert.equal(deletionsOf(page), []);
    }
    await using page = await startSweeping(server, selected);
    await waitFor("the page is read", () => page.requests.includes(`GET ${PAGES}/one 200`));
    await page.quiet();
    assert.equal(deletionsOf(page), []);
    assert.ok(await childIn(page));
  });

  for (const status of [403, 500])
    test(`keeps objects while the GET of their primary fails with ${status}, and says so`, async () => {
      await using server = await startPageServer();
      {
        await using page = await startSweeping(server);
        await createPage(page);
        await untilChild(page, true);
      }
      await apiRequestOrThrow(server, `DELETE ${PAGES}/one`);
      const fault = server.faults.add({ verb: "get", path: "/pages/one", answer: { status } });
      await using page = await startSweeping(server);
      const note = 'objects of Page "default/one", which seems to be gone, were not deleted';
      await waitFor("it is said", () => page.logs.some((each) => each.includes(note)));
      assert.ok(await childIn(page));
      const { stuck } = page.operator.health().controllers["page"]!;
      assert.equal([stuck.count, stuck.primaries[0]?.primary], [1, "default/one"]);
      fault.remove();
      await untilChild(page, false);
      await waitFor("nothing is stuck", () => page.operator.health().controllers["page"]!.stuck.count === 0);
    });

  test("deletes the objects of a primary before those of one with the same name are created", async () => {
    await using server = await startPageServer();
    {
      await using page = await startSweeping(server);
      await createPage(page);
      await untilChild(page, true);
    }
    await apiRequestOrThrow(server, `DELETE ${PAGES}/one`);
    await using page = await startSweeping(server);
    const { metadata } = await createPage(page);
    const uidOfChild = async () => (await childIn(page))?.metadata.annotations?.["gen-operator.dev/primary-uid"];
    await waitFor("the object belongs to the second one", async () => (await uidOfChild()) === metadata.uid);
  });

  test("deletes items, and in the order of the graph", async () => {
    await using server = await startPageServer();
    const desired = ({ primary }: { primary: Page }) => ({
      a: { metadata: { name: `${primary.metadata.name}-a` } },
      b: { metadata: { name: `${primary.metadata.name}-b` } },
    });
    const dependents = [
      configMapOf("child", elsewhere),
      configMapOf("items", {
        ...elsewhere,
        bulk: {},
        desired,
        dependsOn: ["child"],
        // After a restart the spec of the primary is not known.
        deletePostcondition: ({ primary, live }: { primary: Page; live?: object }) =>
          live === undefined && primary.spec.text === "first",
      } as object),
    ];
    {
      await using page = await startSweeping(server, { dependents });
      await createPage(page);
      for (const name of ["one-child", "one-a", "one-b"]) await untilChild(page, true, name);
    }
    await apiRequestOrThrow(server, `DELETE ${PAGES}/one`);
    await using page = await startSweeping(server, { dependents });
    await untilChild(page, false);
    const names = deletionsOf(page).map((each) => /configmaps\/(\S+)/.exec(each)?.[1]);
    assert.equal([names.slice(0, 2).sort(), names[2]], [["one-a", "one-b"], "one-child"]);
  });

  test("removes a finalizer that the controller used before", async () => {
    await using server = await startPageServer();
    {
      const dependents = [configMapOf("child", elsewhere)];
      await using page = createPageOperator(server, { dependents });
      await page.operator.start();
      await createPage(page);
      await untilChild(page, true);
      await page.quiet();
      assert.ok((await page.operator.client.get(Page, REF))?.metadata.finalizers);
    }
    await using page = await startSweeping(server);
    const isFree = async () => (await page.operator.client.get(Page, REF))?.metadata.finalizers === undefined;
    await waitFor("the finalizer is removed", isFree);
    assert.ok(await childIn(page));
  });
});
