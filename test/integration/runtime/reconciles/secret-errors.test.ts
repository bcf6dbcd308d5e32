// What an error about a Secret says, and what it must not say.
import { waitFor } from "#apiserver/wait-for.js";
import type { ApiError } from "#runtime/base/errors.js";
import type { ApiClient } from "#runtime/client/api-client.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { errorOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { createClient } from "../watches/own-client.js";
import { configMapOf, createPage, createPageOperator, Page, Secret, startPageServer } from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };

suite("errors about Secrets", (test) => {
  const object = { metadata: ONE, data: { password: "aHVudGVyMg==" } };
  const quoting = "admission webhook denied the request: password hunter2 is too short";
  const body = JSON.stringify({
    kind: "Status",
    apiVersion: "v1",
    code: 422,
    reason: "Invalid",
    message: quoting,
    details: {
      causes: [{ reason: "FieldValueInvalid", message: 'Invalid value: "hunter2"', field: "data.password" }],
    },
  });
  const calls: { [verb: string]: (client: ApiClient) => Promise<unknown> } = {
    get: (client) => client.get(Secret, ONE),
    list: (client) => client.list(Secret),
    create: (client) => client.create(Secret, object),
    update: (client) => client.update(Secret, object),
    patch: (client) => client.apply(Secret, object, { fieldManager: "a" }),
    delete: (client) => client.delete(Secret, ONE),
    watch: async (client) => {
      for await (const _ of client.watch(Secret)) break;
    },
  };

  for (const [verb, call] of Object.entries(calls))
    test(`contain field and reason without the value: ${verb}`, async () => {
      await using server = await startPageServer();
      await using client = createClient(server);
      server.faults.add({ verb, answer: { status: 422, body, contentType: "application/json" } });
      const error = (await errorOf(call(client))) as ApiError;
      assert.match(error.message, /failed: 422 Invalid: data.password FieldValueInvalid$/);
      assert.equal(error.causes, [{ reason: "FieldValueInvalid", field: "data.password" }]);
      assert.is(error.code, 422);
      assert.is(error.reason, "Invalid");
    });

  for (const serverSideApply of [true, false])
    test(`of a dependent contain no value in log, status and Events: ${serverSideApply ? "apply" : "POST"}`, async () => {
      await using server = await startPageServer();
      const secret = configMapOf("secret", {
        ...{ resource: Secret.definition, serverSideApply },
        desired: () => ({ metadata: { name: "one-secret" }, data: object.data }),
      });
      await using page = createPageOperator(server, { dependents: [secret], statusConditions: "managed" });
      await page.operator.start();
      const answer = { status: 422, body, contentType: "application/json" };
      server.faults.add({ verb: ["create", "patch"], path: "/secrets", answer });
      await createPage(page);
      const conditions = await waitFor("the status says so", async () => {
        const found = (await page.operator.client.get(Page, ONE))?.status?.conditions ?? [];
        return found.some(({ reason }) => reason === "Failed") ? found : undefined;
      });
      assert.match(JSON.stringify(conditions), "data.password FieldValueInvalid");
      const isLogged = () => page.logs.some((line) => line.includes("data.password FieldValueInvalid"));
      await waitFor("the log says so", isLogged);
      const events = await waitFor("an Event says so", async () => {
        const { items } = await apiRequestOrThrow<{ items: object[] }>(server, "GET /api/v1/namespaces/default/events");
        return items.length > 0 ? items : undefined;
      });
      for (const said of [page.logs, conditions, events, page.events.map(({ error }) => String(error))])
        for (const value of ["hunter2", "aHVudGVyMg=="]) assert.not.match(JSON.stringify(said), value);
    });

  test("contain no value from a plain text response or a reason", async () => {
    await using server = await startPageServer();
    await using client = createClient(server);
    const plain = { status: 502, body: quoting, contentType: "text/plain" };
    const reason = { status: 403, reason: quoting, message: quoting };
    for (const answer of [plain, reason]) {
      const fault = server.faults.add({ verb: "create", answer });
      assert.not.match((await errorOf(client.create(Secret, object))).message, "hunter2");
      fault.remove();
    }
  });

  test("name the missing permission", async () => {
    await using server = await startPageServer();
    await using client = createClient(server);
    server.faults.add({ path: "/secrets", forbid: true });
    const { message } = await errorOf(client.get(Secret, ONE));
    assert.match(message, /403 Forbidden: secrets "one" is forbidden: User ".*" cannot get resource "secrets"/);
  });

  test("name the exceeded quota", async () => {
    await using server = await startPageServer();
    await using client = createClient(server);
    const quota = "requested: count/secrets=1, used: count/secrets=2, limited: count/secrets=2";
    const message = `secrets "one" is forbidden: exceeded quota: team-quota, ${quota}`;
    server.faults.add({ verb: "create", answer: { status: 403, reason: "Forbidden", message } });
    assert.match((await errorOf(client.create(Secret, object))).message, `403 Forbidden: ${message}`);
  });
});
