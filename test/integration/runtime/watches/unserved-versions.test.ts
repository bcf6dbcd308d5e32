// A definition that stops to serve the version that the operator knows, while there are objects that it serves in another one.
import { waitFor } from "#apiserver/wait-for.js";
import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { requesterOf } from "#runtime/client/api-client.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { classOf, customDefinition } from "../../../support/kinds/kind-definitions.js";
import { crdPresent } from "#runtime/workflow/conditions.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  pageCrd,
  startPageServer,
  type PageOperator,
} from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const [version] = pageCrd.spec.versions;
const bookCrd = {
  ...pageCrd,
  metadata: { name: "books.example.com" },
  spec: {
    ...pageCrd.spec,
    names: { kind: "Book", plural: "books", singular: "book", listKind: "BookList" },
    versions: [
      { ...version, storage: false },
      { ...version, name: "v2" },
    ],
  },
} as const;
const Book = classOf(customDefinition(bookCrd));
const { definition } = Book;
const LaterBook = { definition: { ...definition, version: "v2", apiVersion: "example.com/v2" } };

const OTHER_VERSIONS =
  "Book.v1.example.com is served in other versions only (v2): serve v1 again, or use a version that is served";

const book = configMapOf("book", {
  resource: definition,
  deletion: "ordered",
  desired: ({ primary }) => ({ metadata: { name: primary.metadata.name }, spec: { text: primary.spec.text } }),
});

async function installBooks({ operator: { client } }: PageOperator): Promise<void> {
  await requesterOf(client).send({ method: "POST", path: CRDS, body: JSON.stringify(bookCrd) });
  await waitFor("books are served", () => client.isServed(definition));
}

/** Starts a server with books, and creates a page with its book. */
async function withBook(page: PageOperator): Promise<void> {
  await installBooks(page);
  await page.operator.start();
  await createPage(page);
  await waitFor("all is made", () => page.events.at(-1)?.workflow?.isReady === true);
  await page.quiet();
}

/** Serves books, or pages, in these versions only; the operator, if it watches them, notices. */
async function serve(
  page: PageOperator,
  names: readonly string[],
  kind: ResourceDefinition = definition,
): Promise<void> {
  const versions = bookCrd.spec.versions.map((each) => ({ ...each, served: names.includes(each.name) }));
  await requesterOf(page.operator.client).send({
    method: "PATCH",
    path: `${CRDS}/${kind.plural}.example.com`,
    contentType: "application/merge-patch+json",
    body: JSON.stringify({ spec: { versions } }),
  });
  await waitFor("discovery has it", async () => (await page.operator.client.isServed(kind)) === names.includes("v1"));
}

const healthOf = (page: PageOperator) => page.operator.controller("page").health()["book"]?.status;

suite("version that is no longer served", (test) => {
  for (const [how, more, problem] of [
    ["always active", {}, 'delete of Book "default/one" failed: 404: 404 page not found'],
    ["crdPresent", { activationCondition: crdPresent }, OTHER_VERSIONS],
  ] as const)
    test(`keeps the finalizer until the objects can be deleted: ${how}`, async () => {
      await using server = await startTestApiServer({ crds: [pageCrd] });
      await using page = createPageOperator(server, { dependents: [{ ...book, ...more }] });
      const { client } = page.operator;
      await withBook(page);
      await serve(page, ["v2"]);
      await waitFor("the watch has failed", () => healthOf(page) === "unhealthy");
      await client.delete(Page, ONE);
      const cleanup = await waitFor("a failed cleanup", () =>
        page.events.find(({ kind, error }) => kind === "cleanup" && error !== undefined),
      );
      assert.match(String(cleanup.error), problem);
      assert.ok(await client.get(Page, ONE));
      assert.ok(await client.get(LaterBook, ONE));
      await serve(page, ["v1", "v2"]);
      await waitFor("the page is gone", async () => (await client.get(Page, ONE)) === undefined);
      assert.is(await client.get(LaterBook, ONE), undefined);
    });

  test("is not treated as a missing CRD by crdPresent, which falls back to discovery", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { dependents: [{ ...book, activationCondition: crdPresent }] });
    await installBooks(page);
    await serve(page, ["v2"]);
    server.faults.add({ verb: ["list", "watch"], path: "/customresourcedefinitions", forbid: true });
    await page.operator.start();
    await createPage(page);
    const { error } = await waitFor("a failed reconcile", () => page.events.find((each) => each.error !== undefined));
    assert.match(String(error), OTHER_VERSIONS);
  });

  test("does not block deletion if no version is served", async () => {
    await using server = await startTestApiServer({ crds: [pageCrd] });
    await using page = createPageOperator(server, { dependents: [book] });
    const { client } = page.operator;
    await withBook(page);
    await requesterOf(client).send({ method: "DELETE", path: `${CRDS}/${bookCrd.metadata.name}` });
    await waitFor("the watch has failed", () => healthOf(page) === "unhealthy");
    await client.delete(Page, ONE);
    await waitFor("the page is gone", async () => (await client.get(Page, ONE)) === undefined);
  });

  test("fails the pruning of a removed dependent", async () => {
    await using server = await startTestApiServer({ crds: [pageCrd] });
    {
      await using page = createPageOperator(server, { dependents: [book] });
      await withBook(page);
      await serve(page, ["v2"]);
    }
    const removed = { book: { resource: definition, deletion: "ordered" } } as const;
    await using page = createPageOperator(server, { dependents: [], workflow: { removed } });
    await page.operator.start();
    const { error } = await waitFor("a failed reconcile", () => page.events.find((each) => each.error !== undefined));
    assert.match(String(error), OTHER_VERSIONS);
  });

  for (const [how, serverSideApply] of [
    ["server-side apply", true],
    ["JSON patch", false],
  ] as const)
    test(`fails status writes until it is served again: ${how}`, async () => {
      const crd = { ...pageCrd, spec: { ...pageCrd.spec, versions: bookCrd.spec.versions } };
      await using server = await startTestApiServer({ crds: [crd] });
      let isServed = true;
      const reconcile = async () => {
        if (isServed) await serve(page, ["v2"], Page.definition);
        isServed = false;
        return updateStatus({ text: "seen" });
      };
      await using page = createPageOperator(server, { dependents: [], reconciler: { reconcile }, serverSideApply });
      await page.operator.start();
      await createPage(page);
      const { error } = await waitFor("a failure", () => page.events[0]);
      assert.match(
        String(error),
        /failed: 404: 404 page not found: the API server does not serve the kind, .* version, or the kind has another scope in the cluster$/,
      );
      await serve(page, ["v1", "v2"], Page.definition);
      await waitFor("the status is there", async () => (await page.operator.client.get(Page, ONE))?.status?.text);
    });

  test("fails get and delete instead of reporting a missing object", async () => {
    await using server = await startTestApiServer({ crds: [pageCrd] });
    await using page = createPageOperator(server);
    const { client } = page.operator;
    const problem =
      "404: 404 page not found: the API server does not serve the kind, or the subresource, in this version, or the kind has another scope in the cluster";
    assert.match(await failureOf(() => client.get(LaterBook, ONE)), `get Book "default/one" failed: ${problem}`);
    assert.match(await failureOf(() => client.delete(Book, ONE)), `delete of Book "default/one" failed: ${problem}`);
    assert.equal([await client.isServed(definition), await client.servedVersions(definition)], [false, []]);
    assert.is(await client.get(Page, ONE), undefined);
  });
});
