// Creations that land when the operator that made them has ended, and their primary was deleted meanwhile.
import type { ApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, configMapOf, createPage, createPageOperator, Page, startPageServer } from "../page-operator.js";
import type { PageOperator } from "../page-operator.js";
import { programOf, run } from "./programs.js";

const one = { name: "one", namespace: "default" };
const text = { name: "one-text", namespace: "default" };

/** Not deleted by the garbage collector: the runtime has to. */
const ordered = configMapOf("text", { deletion: "ordered" });

const IN_A_HURRY = { dependents: [ordered], operator: { stopTimeoutMs: 100 } };

async function withClient({ url, token }: ApiServer): Promise<ApiClient & AsyncDisposable> {
  const client = new ApiClient(createConnection({ url, token }));
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

/** Holds the creation of the ConfigMap, as a webhook or a proxy may; it is carried out although nobody waits for it any more. */
function holdCreation(server: ApiServer, delayMs: number) {
  return server.faults.add({ verb: "patch", path: "/configmaps/", times: 1, delayMs });
}

/** Stops an operator whose creation of the ConfigMap is held, and lands after `delayMs`. */
async function stopInCreation(page: PageOperator, server: ApiServer, delayMs: number): Promise<void> {
  await page.operator.start();
  const held = holdCreation(server, delayMs);
  await createPage(page);
  await waitFor("the creation is held", () => held.hits === 1);
  assert.is(await page.operator.stop(), false);
}

/** Waits until the ConfigMap was created, and the page is gone; tells whether the ConfigMap is there then. */
async function untilGone(server: ApiServer, client: ApiClient): Promise<boolean> {
  const landed = () =>
    server.requests.some(
      ({ method, path, status }) => method === "PATCH" && path.endsWith("/one-text") && status === 201,
    );
  await waitFor("the creation lands", landed);
  await waitFor("the page is gone", async () => (await client.get(Page, one)) === undefined);
  return (await client.get(ConfigMap, text)) !== undefined;
}

suite("in-flight creation at shutdown", (test) => {
  test.thorough("that lands before the next start is deleted before the finalizer is removed", async () => {
    await using server = await startPageServer();
    await using client = await withClient(server);
    await using page = createPageOperator(server, IN_A_HURRY);
    await stopInCreation(page, server, 1_000);
    await client.delete(Page, one);
    await waitFor("the creation lands", async () => (await client.get(ConfigMap, text)) !== undefined);
    await page.operator.start();
    assert.is(await untilGone(server, client), false);
  });

  test("that lands after the next start is deleted before the finalizer is removed", async () => {
    await using server = await startPageServer();
    await using client = await withClient(server);
    await using page = createPageOperator(server, IN_A_HURRY);
    await stopInCreation(page, server, 1_500);
    await client.delete(Page, one);
    await page.operator.start();
    assert.is(await untilGone(server, client), false);
  });

  test.thorough("is deleted by the next process before it removes the finalizer", async () => {
    await using server = await startPageServer();
    await using client = await withClient(server);
    const program = () =>
      run(programOf(server, { dependent: '"text", { deletion: "ordered" }', options: "stopTimeoutMs: 100" }));
    const first = program();
    await first.started();
    const held = holdCreation(server, 4_000);
    await client.create(Page, { metadata: one, spec: { text: "first" } });
    await waitFor("the creation is held", () => held.hits === 1);
    first.child.kill("SIGTERM");
    assert.is(await first.ended, 1, first.output());
    await client.delete(Page, one);
    const second = program();
    await second.started();
    assert.is(await untilGone(server, client), false, second.output());
    second.child.kill("SIGTERM");
    assert.is(await second.ended, 0, second.output());
  });
});
