// Primaries that hang, or that left objects behind, where no reconcile tells.
import { waitFor } from "#apiserver/wait-for.js";
import type { ApiServer } from "#apiserver/index.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { apiRequest, apiRequestOrThrow } from "../../../support/api/api-request.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  startPageServer,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

interface EventObject extends KubernetesObject {
  readonly reason?: string;
  readonly message?: string;
}
const EventKind = classOf<EventObject>(builtinDefinition("v1", "Event"));

const FINALIZER = "pages.example.com/finalizer";
const PAGE = "/apis/example.com/v1/namespaces/default/pages/one";
const CHILD = { name: "one-child", namespace: "kube-public" };
const selected = { labelSelector: "shard=a" };
const LIST = "GET /apis/example.com/v1/pages 200";
const TIMES = { timeoutMs: 30_000 };

const start = async (server: ApiServer, options: PageOperatorOptions = {}): Promise<PageOperator> => {
  const dependents = [configMapOf("child", { namespace: "kube-public", deletion: "ordered" })];
  const page = createPageOperator(server, { dependents, ...options });
  await page.operator.start();
  return page;
};
const edit = (server: ApiServer, body: object) =>
  apiRequestOrThrow(server, `PATCH ${PAGE}`, { body, contentType: "application/merge-patch+json" });
const childIn = ({ operator }: PageOperator) => operator.client.get(ConfigMap, CHILD);
const stuckIn = ({ operator }: PageOperator) => operator.health().controllers["page"]!.stuck;
const isGone = async (server: ApiServer) => (await apiRequest(server, `GET ${PAGE}`)).status === 404;
const move = (server: ApiServer, shard: string) => edit(server, { metadata: { labels: { shard } } });
const remove = (server: ApiServer) => apiRequestOrThrow(server, `DELETE ${PAGE}`);

async function createIn(page: PageOperator, labels: object = { shard: "a" }): Promise<void> {
  await createPage(page, "one", { labels });
  await waitFor("the object is there", async () => (await childIn(page)) !== undefined);
  await page.quiet();
}

async function untilReported(page: PageOperator, reason: string, text: RegExp): Promise<void> {
  const isLogged = () => page.logs.some((line) => line.startsWith("warn") && text.test(line));
  await waitFor("the log says so", isLogged, TIMES);
  const find = async () => (await page.operator.client.list(EventKind)).find((each) => each.reason === reason);
  const event = await waitFor(`there is an Event ${reason}`, find, TIMES);
  assert.match(event?.message ?? "", text);
  assert.equal([stuckIn(page).count, stuckIn(page).primaries[0]?.primary], [1, "default/one"]);
  assert.match(stuckIn(page).primaries[0]?.reason ?? "", text);
}

const NOT_SELECTED =
  /Page "default\/one" is being deleted and holds finalizer "pages.example.com\/finalizer", but is not selected \(shard=a\)/;
const LEFT =
  /Page "default\/one" was deleted without a cleanup, as its finalizer .* was removed by another client; delete what is left: ConfigMap "kube-public\/one-child"/;

suite("unselected primary", (test) => {
  for (const isRestarted of [false, true])
    test(`is reported while it is terminating with the finalizer${isRestarted ? ", after a restart" : ""}`, async () => {
      await using server = await startPageServer();
      {
        await using page = await start(server, selected);
        await createIn(page);
        await move(server, "b");
        await page.quiet();
        if (!isRestarted) {
          await remove(server);
          await untilReported(page, "NotSelected", NOT_SELECTED);
        }
      }
      if (isRestarted) await remove(server);
      await using page = await start(server, selected);
      await untilReported(page, "NotSelected", NOT_SELECTED);
      await move(server, "a");
      await waitFor("the page is gone", () => isGone(server));
      await waitFor("nothing is stuck", () => stuckIn(page).count === 0);
    });

  test("is reported if it is deleted after the start of an operator that never selected it", async () => {
    await using server = await startPageServer();
    {
      await using page = await start(server, selected);
      await createIn(page);
      await page.operator.stop();
      await move(server, "b");
    }
    await using page = await start(server, selected);
    await page.quiet();
    assert.is(stuckIn(page).count, 0);
    await remove(server);
    await untilReported(page, "NotSelected", NOT_SELECTED);
  });

  test("is searched with one list at startup, only with a labelSelector and a finalizer", async () => {
    await using server = await startPageServer();
    const lists = async (options: PageOperatorOptions) => {
      await using page = await start(server, options);
      await page.quiet();
      return page.requests.filter((each) => each === LIST).length;
    };
    const usual = (await lists({})) + 0;
    assert.is(await lists(selected), usual + 1);
    assert.is(await lists({ ...selected, dependents: [configMapOf("text")] }), usual);
    assert.is(await lists({ ...selected, cleanupPolicy: "sweep" }), usual);
  });

  test("is cleaned up with cleanUpUnselected once it is being deleted", async () => {
    await using server = await startPageServer();
    await using page = await start(server, { ...selected, cleanUpUnselected: true });
    await createIn(page);
    await move(server, "b");
    await page.quiet();
    assert.ok(await childIn(page));
    assert.equal((await apiRequestOrThrow(server, `GET ${PAGE}`)).metadata.finalizers, [FINALIZER]);
    await remove(server);
    await waitFor("the page is gone", () => isGone(server), TIMES);
    assert.is(await childIn(page), undefined);
  });

  test("is cleaned up with cleanUpUnselected after a restart, and is not reported", async () => {
    await using server = await startPageServer();
    {
      await using page = await start(server, selected);
      await createIn(page);
      await move(server, "b");
    }
    await remove(server);
    await using page = await start(server, { ...selected, cleanUpUnselected: true, statusConditions: "managed" });
    await waitFor("the page is gone", () => isGone(server), TIMES);
    assert.is(await childIn(page), undefined);
    assert.is(stuckIn(page).count, 0);
    assert.not(page.operator.controller("page").counts().states > 0);
  });
});

suite("primary without finalizer", (test) => {
  for (const isRestarted of [false, true])
    for (const settings of [{}, selected])
      test(`is reported with its remaining objects${isRestarted ? ", after a restart" : ""}${"labelSelector" in settings ? ", with a labelSelector" : ""}`, async () => {
        await using server = await startPageServer();
        const strip = async () => {
          await remove(server);
          await edit(server, { metadata: { finalizers: null } });
        };
        {
          await using page = await start(server, settings);
          await createIn(page);
          // Its cleanup has to wait.
          await edit(server, { metadata: { annotations: { "gen-operator.dev/paused": "true" } } });
          await page.quiet();
          if (!isRestarted) {
            await strip();
            await untilReported(page, "LeftBehind", LEFT);
          }
        }
        if (isRestarted) await strip();
        await using page = await start(server, settings);
        await untilReported(page, "LeftBehind", LEFT);
        await page.operator.client.delete(ConfigMap, CHILD);
        await waitFor("nothing is stuck", () => stuckIn(page).count === 0);
      });

  test("causes no requests after its cleanup has completed", async () => {
    await using server = await startPageServer();
    const held = configMapOf("child", {
      ...{ namespace: "kube-public", deletion: "ordered" },
      operations: { delete: () => {} },
    });
    await using page = await start(server, { dependents: [held], reconciler: { reconcile: () => {} }, ...selected });
    await createIn(page);
    page.requests.length = 0;
    await remove(server);
    await waitFor("the page is gone", () => isGone(server));
    await page.quiet(6_000);
    assert.equal(
      page.requests.filter((each) => /\/pages/.test(each)),
      [`PATCH ${PAGE} 200`],
    );
    assert.not(page.logs.some((line) => line.includes("without a cleanup")));
    assert.is(stuckIn(page).count, 0);
  });
});
