// Cleanup without a finalizer: after the primary is gone.
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  pageSpacesOf,
  startInSpace,
  startPageServer,
  type PageOperator,
  type PageOperatorOptions,
  type PageSpace,
} from "../page-operator.js";

const openSpace = pageSpacesOf();
const refOf = ({ namespace }: PageSpace) => ({ name: "one", namespace });
const pagesOf = ({ namespace }: PageSpace) => `/apis/example.com/v1/namespaces/${namespace}/pages`;
/** Where the faults of a server are needed. */
const DEFAULT = { namespace: "default", other: "kube-public" };
const elsewhere = ({ other }: PageSpace) => ({ namespace: other, deletion: "ordered" }) as const;

const startSweeping = (space: PageSpace, options: PageOperatorOptions = {}): Promise<PageOperator> =>
  startInSpace(space, { dependents: [configMapOf("child", elsewhere(space))], cleanupPolicy: "sweep", ...options });
const childIn = ({ operator }: PageOperator, { other }: PageSpace, name = "one-child") =>
  operator.client.get(ConfigMap, { name, namespace: other });
const untilChild = (page: PageOperator, space: PageSpace, isThere: boolean, name?: string) =>
  waitFor(
    `the object is ${isThere ? "there" : "gone"}`,
    async () => ((await childIn(page, space, name)) !== undefined) === isThere,
  );
const edit = (space: PageSpace, body: object) =>
  apiRequestOrThrow(space, `PATCH ${pagesOf(space)}/one`, { body, contentType: "application/merge-patch+json" });
const deletionsOf = ({ requests }: PageOperator) =>
  requests.filter((each) => each.startsWith("DELETE") && each.includes("configmaps"));

suite("cleanupPolicy sweep", (test) => {
  test("deletes objects after their primary, which has no finalizer", async () => {
    const space = await openSpace();
    await using page = await startSweeping(space);
    await createPage(page);
    await untilChild(page, space, true);
    await page.quiet();
    assert.is((await page.operator.client.get(Page, refOf(space)))?.metadata.finalizers, undefined);
    page.requests.length = 0;
    await apiRequestOrThrow(space, `DELETE ${pagesOf(space)}/one`);
    await untilChild(page, space, false);
    await page.quiet();
    const own = page.requests.filter((each) => !/^GET .*(configmaps|events)/.test(each));
    assert.equal(own.slice(0, 2), [
      `GET ${pagesOf(space)}/one 404`,
      `DELETE /api/v1/namespaces/${space.other}/configmaps/one-child 200`,
    ]);
  });

  test("deletes objects at startup whose primary was deleted while the operator was stopped", async () => {
    const space = await openSpace();
    {
      await using page = await startSweeping(space);
      await createPage(page);
      await createPage(page, "two");
      await untilChild(page, space, true);
      await untilChild(page, space, true, "two-child");
    }
    await apiRequestOrThrow(space, `DELETE ${pagesOf(space)}/one`);
    await using page = await startSweeping(space);
    await untilChild(page, space, false);
    await page.quiet();
    assert.ok(await childIn(page, space, "two-child"));
    assert.is(deletionsOf(page).length, 1);
  });

  test("sends no requests at startup if all primaries exist", async () => {
    const space = await openSpace();
    {
      await using page = await startSweeping(space);
      await createPage(page);
      await untilChild(page, space, true);
      await page.quiet();
    }
    await using page = await startSweeping(space);
    await waitFor("the page is reconciled", () => page.events.length > 0);
    await page.quiet();
    assert.equal(
      page.requests.filter((each) => /configmaps\/|pages\/one/.test(each)),
      [],
    );
  });

  test("keeps objects of a primary that no longer matches the labelSelector", async () => {
    const space = await openSpace();
    const selected = { labelSelector: "shard=a" };
    {
      await using page = await startSweeping(space, selected);
      await createPage(page, "one", { labels: { shard: "a" } });
      await untilChild(page, space, true);
      await page.quiet();
      await edit(space, { metadata: { labels: { shard: "b" } } });
      await waitFor("the page is read", () => page.requests.includes(`GET ${pagesOf(space)}/one 200`));
      await page.quiet();
      assert.equal(deletionsOf(page), []);
    }
    await using page = await startSweeping(space, selected);
    await waitFor("the page is read", () => page.requests.includes(`GET ${pagesOf(space)}/one 200`));
    await page.quiet();
    assert.equal(deletionsOf(page), []);
    assert.ok(await childIn(page, space));
  });

  for (const status of [403, 500])
    test(`keeps objects while GET of their primary fails with ${status}, and reports it as stuck`, async () => {
      await using server = await startPageServer();
      const space = { url: server.url, token: server.token, ...DEFAULT };
      {
        await using page = await startSweeping(space);
        await createPage(page);
        await untilChild(page, space, true);
      }
      await apiRequestOrThrow(space, `DELETE ${pagesOf(space)}/one`);
      const fault = server.faults.add({ verb: "get", path: "/pages/one", answer: { status } });
      await using page = await startSweeping(space);
      const note = 'cleanup of deleted primary Page "default/one" failed';
      await waitFor("it is said", () => page.logs.some((each) => each.includes(note)));
      assert.ok(await childIn(page, space));
      const { stuck } = page.operator.health().controllers["page"]!;
      assert.equal([stuck.count, stuck.primaries[0]?.primary], [1, "default/one"]);
      fault.remove();
      await untilChild(page, space, false);
      await waitFor("nothing is stuck", () => page.operator.health().controllers["page"]!.stuck.count === 0);
    });

  test("deletes objects of a deleted primary before those of one with the same name are created", async () => {
    const space = await openSpace();
    {
      await using page = await startSweeping(space);
      await createPage(page);
      await untilChild(page, space, true);
    }
    await apiRequestOrThrow(space, `DELETE ${pagesOf(space)}/one`);
    await using page = await startSweeping(space);
    const { metadata } = await createPage(page);
    const uidOfChild = async () => (await childIn(page, space))?.metadata.annotations?.["gen-operator.dev/primary-uid"];
    await waitFor("the object belongs to the second one", async () => (await uidOfChild()) === metadata.uid);
    assert.equal(
      page.requests.filter((each) => /^(DELETE|PATCH) .*configmaps.* 20/.test(each)),
      [
        `DELETE /api/v1/namespaces/${space.other}/configmaps/one-child 200`,
        `PATCH /api/v1/namespaces/${space.other}/configmaps/one-child 201`,
      ],
    );
  });

  test("deletes bulk items before the dependent they depend on", async () => {
    const space = await openSpace();
    const desired = ({ primary }: { primary: Page }) => ({
      a: { metadata: { name: `${primary.metadata.name}-a` } },
      b: { metadata: { name: `${primary.metadata.name}-b` } },
    });
    const dependents = [
      configMapOf("child", elsewhere(space)),
      configMapOf("items", {
        ...elsewhere(space),
        bulk: {},
        desired,
        dependsOn: ["child"],
        // After a restart the spec of the primary is not known.
        deletePostcondition: ({ primary, live }: { primary: Page; live?: object }) =>
          live === undefined && primary.spec.text === "first",
      } as object),
    ];
    {
      await using page = await startSweeping(space, { dependents });
      await createPage(page);
      for (const name of ["one-child", "one-a", "one-b"]) await untilChild(page, space, true, name);
    }
    await apiRequestOrThrow(space, `DELETE ${pagesOf(space)}/one`);
    await using page = await startSweeping(space, { dependents });
    await untilChild(page, space, false);
    const names = deletionsOf(page).map((each) => /configmaps\/(\S+)/.exec(each)?.[1]);
    assert.equal([names.slice(0, 2).sort(), names[2]], [["one-a", "one-b"], "one-child"]);
  });

  test("removes the finalizer of an earlier configuration, and keeps the objects", async () => {
    const space = await openSpace();
    {
      const dependents = [configMapOf("child", elsewhere(space))];
      await using page = createPageOperator(space, { dependents });
      await page.operator.start();
      await createPage(page);
      await untilChild(page, space, true);
      await page.quiet();
      assert.ok((await page.operator.client.get(Page, refOf(space)))?.metadata.finalizers);
    }
    await using page = await startSweeping(space);
    const isFree = async () => (await page.operator.client.get(Page, refOf(space)))?.metadata.finalizers === undefined;
    await waitFor("the finalizer is removed", isFree);
    assert.ok(await childIn(page, space));
  });
});
