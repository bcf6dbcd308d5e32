// What an error about a Secret says, and what it must not say.
import type { ApiError } from "#runtime/base/errors.js";
import type { ApiClient } from "#runtime/client/api-client.js";
import { assert, suite } from "../../../support/suite.js";
import { createClient, errorOf } from "../watches/own-client.js";
import { Secret, startPageServer } from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };

suite("an error about a Secret", (test) => {
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
    patch: (client) => client.apply(Secret, object as never, { fieldManager: "a" }),
    delete: (client) => client.delete(Secret, ONE),
    watch: async (client) => {
      for await (const _ of client.watch(Secret)) break;
    },
  };

  for (const [verb, call] of Object.entries(calls))
    test(`keeps the field and the reason, and no value: ${verb}`, async () => {
      await using server = await startPageServer();
      await using client = createClient(server);
      server.faults.add({ verb, answer: { status: 422, body, contentType: "application/json" } });
      const error = (await errorOf(call(client))) as ApiError;
      assert.match(error.message, /failed: 422 Invalid: data.password FieldValueInvalid$/);
      assert.equal(error.causes, [{ reason: "FieldValueInvalid", field: "data.password" }]);
      assert.is(error.code, 422);
      assert.is(error.reason, "Invalid");
    });

  test("reaches neither log nor status with the value, also as plain text or as a reason", async () => {
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

  test("still says who lacks which permission", async () => {
    await using server = await startPageServer();
    await using client = createClient(server);
    server.faults.add({ path: "/secrets", forbid: true });
    const { message } = await errorOf(client.get(Secret, ONE));
    assert.match(message, /403 Forbidden: secrets "one" is forbidden: User ".*" cannot get resource "secrets"/);
  });
});
