// The check of the CustomResourceDefinitions before the start, while the API server is away or refuses.
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../support/suite.js";
import { createPage, createPageOperator, failureOf, startPageServer, untilText } from "./page-operator.js";

const CHECKED = { operator: { checksCrds: true } };
const DEFINITIONS = "/customresourcedefinitions";

suite("the check of the CustomResourceDefinitions", (test) => {
  for (const [title, answer] of [
    ["does not serve them yet", { status: 500, message: "etcd is not ready" }],
    ["is to be asked again in an hour", { status: 429, message: "etcd is not ready", retryAfterSeconds: 3_600 }],
  ] as const)
    test(`goes on while the API server ${title}, and says so`, async () => {
      await using server = await startPageServer();
      const fault = server.faults.add({ path: DEFINITIONS, answer });
      await using page = createPageOperator(server, CHECKED);
      const started = page.operator.start();
      await waitFor("it is tried again", () => fault.hits >= 2);
      const said = "warn cannot check the CustomResourceDefinitions: get CustomResourceDefinition";
      const line = page.logs.find((each) => each.startsWith(said));
      assert.match(line!, "etcd is not ready; trying again");
      fault.remove();
      await started;
      await createPage(page);
      await untilText(page, "first");
    });

  test("ends with the stop of an operator that waits for its API server", async () => {
    await using page = createPageOperator({ url: "http://127.0.0.1:1", token: "x" } as never, CHECKED);
    const started = failureOf(() => page.operator.start());
    assert.is(await page.operator.stop(), true);
    assert.match(await started, "the operator was stopped");
  });

  test("gives up at once without the permission to read them", async () => {
    await using server = await startPageServer();
    const fault = server.faults.add({ path: DEFINITIONS, forbid: true });
    await using page = createPageOperator(server, CHECKED);
    assert.match(await failureOf(() => page.operator.start()), "checksCrds needs the permission to get");
    assert.is(fault.hits, 1);
  });
});
