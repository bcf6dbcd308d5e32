// Secondaries on another API server than that of the primaries: what a reconcile writes there, what it reads after that, and how often it is
// reconciled because of it.
import type { ApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import type { Context } from "#runtime/workflow/context.js";
import type { KindOperations } from "#runtime/apply/resource-operations.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageServer,
  type DataObject,
  type PageOperator,
} from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };
const KEYS = { name: "example.com/page" };
const EDGE = { source: "edge", ...ONE };

interface Written {
  readonly page: Page;
  readonly live: DataObject | undefined;
  readonly configs: KindOperations<DataObject>;
}

const draftOf = (page: Page, more: object = {}) => ({
  metadata: { ...ONE, annotations: { [KEYS.name]: page.metadata.name } },
  data: { text: page.spec.text, ...more },
});

/** The ways to bring the ConfigMap on the other server to the text of the page. */
const ways: { readonly [way: string]: (written: Written) => Promise<unknown> } = {
  apply: ({ page, configs }) => configs.apply(draftOf(page)),
  update: ({ page, live, configs }) =>
    configs.update(live === undefined ? draftOf(page) : { ...live, ...dataOf(page) }),
  mergePatch: ({ page, configs }) => configs.mergePatch(draftOf(page)),
  jsonPatch: ({ page, live, configs }) => configs.jsonPatch(live!, (draft) => void Object.assign(draft, dataOf(page))),
};

const dataOf = (page: Page) => ({ data: { text: page.spec.text } });

function connectionOf({ url, token }: ApiServer) {
  return { url, token };
}

/** An operator whose pages are on one server and whose ConfigMaps are on another. */
function createTwoClusters(
  home: ApiServer,
  edge: ApiServer,
  reconcile: (page: Page, context: Context<Page>) => unknown,
) {
  const client = new ApiClient(createConnection(connectionOf(edge)));
  const source = () =>
    informerSource({
      name: "edge",
      resource: ConfigMap,
      connection: connectionOf(edge),
      mapper: byAnnotation(Page, KEYS),
    });
  const reconciler = {
    reconcile: async ({ primary, context }: { primary: Page; context: Context<Page> }) => {
      await reconcile(primary, context);
      return updateStatus({ text: primary.spec.text });
    },
  };
  const page = createPageOperator(home, { reconciler, dependents: [], eventSources: () => [source()] });
  return { page, client, [Symbol.asyncDispose]: () => client.close() };
}

/** Waits until the status says a text, and then until nothing happens any more; returns how many reconciles there were. */
async function reconcilesUntil(page: PageOperator, text: string): Promise<number> {
  await waitFor(
    `the status says ${text}`,
    async () => (await page.operator.client.get(Page, ONE))?.status?.text === text,
  );
  await page.quiet();
  return page.events.length;
}

suite("event source of another cluster", (test) => {
  for (const [way, write] of Object.entries(ways))
    test(`returns a write by ${way} to the next read, and filters its event`, async () => {
      await using home = await startPageServer();
      await using edge = await startPageServer();
      const read: unknown[] = [];
      await using clusters = createTwoClusters(home, edge, async (page, context) => {
        const configs = context.resources.of(ConfigMap, { source: "edge" });
        const live = context.secondary(ConfigMap, EDGE);
        if (live === undefined && way !== "apply") await configs.create(draftOf(page));
        else if (live?.data?.["text"] !== page.spec.text) await write({ page, live, configs });
        read.push(context.secondary(ConfigMap, EDGE)?.data?.["text"]);
      });
      const { page, client } = clusters;
      await using _stopped = page;
      await page.operator.start();
      await createPage(page);
      assert.is(await reconcilesUntil(page, "first"), 1);
      await setText(page, "second");
      assert.is(await reconcilesUntil(page, "second"), 2);
      assert.equal(read, ["first", "second"]);
      assert.is((await client.get(ConfigMap, ONE))?.data?.["text"], "second");
      assert.is(await page.operator.client.get(ConfigMap, ONE), undefined, "the other server was not written");
      await client.mergePatch(ConfigMap, ONE, { data: { text: "theirs" } });
      await waitFor("it is put right", async () => (await client.get(ConfigMap, ONE))?.data?.["text"] === "second");
      await client.delete(ConfigMap, ONE);
      await waitFor("it is made anew", async () => (await client.get(ConfigMap, ONE))?.data?.["text"] === "second");
      assert.is(await reconcilesUntil(page, "second"), 4);
    });

  test("delivers a change that another client makes during a write", async () => {
    await using home = await startPageServer();
    await using edge = await startPageServer();
    let isDisturbed = false;
    await using clusters = createTwoClusters(home, edge, async (page, context) => {
      if (isDisturbed) await clusters.client.mergePatch(ConfigMap, ONE, { data: { more: "theirs" } });
      isDisturbed = false;
      await context.resources.of(ConfigMap, { source: "edge" }).apply(draftOf(page));
    });
    const { page } = clusters;
    await using _stopped = page;
    await page.operator.start();
    await createPage(page);
    assert.is(await reconcilesUntil(page, "first"), 1);
    isDisturbed = true;
    await setText(page, "second");
    assert.is(await reconcilesUntil(page, "second"), 3);
  });

  test("distinguishes objects with the same name in both clusters", async () => {
    await using home = await startPageServer();
    await using edge = await startPageServer();
    const seen: unknown[] = [];
    const source = (name: string, rest: object = {}) =>
      informerSource({ name, resource: ConfigMap, mapper: byAnnotation(Page, KEYS), ...rest });
    const reconcile = async ({ primary, context }: { primary: Page; context: Context<Page> }) => {
      for (const where of ["edge", "home"])
        await context.resources.of(ConfigMap, { source: where }).apply(draftOf(primary, { where }));
      seen.push(["edge", "home"].map((where) => context.secondary(ConfigMap, { source: where })?.data?.["where"]));
      return updateStatus({ text: primary.spec.text });
    };
    await using page = createPageOperator(home, {
      reconciler: { reconcile },
      dependents: [],
      eventSources: () => [source("home"), source("edge", { connection: connectionOf(edge) })],
    });
    await page.operator.start();
    await createPage(page);
    assert.is(await reconcilesUntil(page, "first"), 1);
    await setText(page, "second");
    assert.is(await reconcilesUntil(page, "second"), 2);
    assert.equal(seen, [
      ["edge", "home"],
      ["edge", "home"],
    ]);
  });

  test("makes the operator unhealthy while the cluster is unreachable, and recovers", async () => {
    await using home = await startPageServer();
    await using edge = await startPageServer();
    const away = edge.faults.add({ disconnect: true });
    await using clusters = createTwoClusters(home, edge, (page, context) =>
      context.resources.of(ConfigMap, { source: "edge" }).apply(draftOf(page)),
    );
    const { page } = clusters;
    await using _stopped = page;
    const started = page.operator.start();
    await waitFor("it is unhealthy", () => page.operator.health().status === "unhealthy");
    away.remove();
    await started;
    await createPage(page);
    assert.is(await reconcilesUntil(page, "first"), 1);
    const restarted = edge.faults.restart({ downMs: 500 });
    await setText(page, "second");
    await restarted;
    await reconcilesUntil(page, "second");
    await waitFor("it is healthy", () => page.operator.health().status === "healthy", { timeoutMs: 15_000 });
  });
});
