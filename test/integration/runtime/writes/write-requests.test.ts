// The writes of the client: what they send, and what is made of answers that do not come.
import type { FaultAnswer, FaultRule } from "#apiserver/faults/fault-injection.js";
import { requesterOf, ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { assert, shared, suite } from "../../../support/suite.js";
import { ConfigMap, Page, startPageServer, type DataObject } from "../page-operator.js";

const server = shared(() => startPageServer());
let names = 0;

/** A client whose requests are recorded, and a ConfigMap that is there. */
async function startClient() {
  const { url, token, ca, faults } = await server();
  const requests: string[] = [];
  const client = new ApiClient(createConnection({ url, token, ca }), {
    observe: ({ method, path, status }) =>
      void requests.push(`${method} ${status ?? "lost"} ${path.split("/").at(-1)}`),
  });
  const metadata = { name: `config-${++names}`, namespace: "default" };
  const live = await client.create(ConfigMap, { metadata, data: { text: "first" } });
  requests.length = 0;
  const spoil = (rule: Omit<FaultRule, "times">) => faults.add({ path: "/configmaps", ...rule, times: 1 });
  return {
    client,
    metadata,
    live,
    requests,
    spoil,
    methods: () => requests.map((request) => request.split(" ").slice(0, 2).join(" ")),
    [Symbol.asyncDispose]: () => client.close(),
  };
}

type Client = Awaited<ReturnType<typeof startClient>>;

async function failureOf(promise: Promise<unknown>): Promise<Error | undefined> {
  return promise.then(
    () => undefined,
    (error: unknown) => error as Error,
  );
}

const fresh = (): { name: string; namespace: string } => ({ name: `config-${++names}`, namespace: "default" });
const put = (text: string) => [{ op: "replace", path: "/data/text", value: text }] as const;

suite("write with a lost response", (test) => {
  const once: [string, string, (client: Client) => Promise<unknown>][] = [
    ["create", "POST", ({ client }) => client.create(ConfigMap, { metadata: fresh() })],
    ["update with resourceVersion", "PUT", ({ client, live }) => client.update(ConfigMap, { ...live, data: {} })],
    [
      "mergePatch with resourceVersion",
      "PATCH",
      ({ client, live }) =>
        client.mergePatch(ConfigMap, live.metadata, {
          metadata: { resourceVersion: live.metadata.resourceVersion },
          data: { text: "x" },
        }),
    ],
    ["jsonPatch", "PATCH", ({ client, metadata }) => client.jsonPatch(ConfigMap, metadata, { operations: put("x") })],
  ];
  for (const [title, method, write] of once)
    test(`is not retried: ${title}`, async () => {
      await using client = await startClient();
      client.spoil({ loseAnswer: true });
      const failure = await failureOf(write(client));
      assert.is(failure?.name, "ConnectionError");
      assert.match(failure!.message, /ConfigMap "default\/config-\d+" failed: .* got no answer; not retried/);
      assert.equal(client.methods(), [`${method} lost`]);
    });

  const repeated: [string, (client: Client) => Promise<unknown>][] = [
    [
      "apply",
      ({ client, metadata }) => {
        const object = { metadata, data: { text: "x" } };
        return client.apply(ConfigMap, object, { fieldManager: "a" });
      },
    ],
    [
      "update without resourceVersion",
      ({ client, metadata }) => client.update(ConfigMap, { metadata, data: { text: "x" } }),
    ],
    [
      "mergePatch without resourceVersion",
      ({ client, metadata }) => client.mergePatch(ConfigMap, metadata, { data: { text: "x" } }),
    ],
    [
      "jsonPatch with repeatable: true",
      ({ client, metadata }) => client.jsonPatch(ConfigMap, metadata, { operations: put("x"), repeatable: true }),
    ],
  ];
  for (const [title, write] of repeated)
    test(`is retried: ${title}`, async () => {
      await using client = await startClient();
      client.spoil({ loseAnswer: true });
      await write(client);
      assert.is(client.requests.length, 2);
      assert.is((await client.client.get(ConfigMap, client.metadata))?.data?.["text"], "x");
    });
});

suite("create with an error response", (test) => {
  const answers: [string, FaultAnswer, boolean][] = [
    ["429", { status: 429, reason: "TooManyRequests" }, true],
    ["503 with Retry-After", { status: 503, reason: "ServiceUnavailable", retryAfterSeconds: 0 }, true],
    ["503 without Retry-After", { status: 503 }, false],
    ["504", { status: 504, reason: "Timeout" }, false],
  ];
  for (const [title, answer, isRepeated] of answers)
    test(`is ${isRepeated ? "" : "not "}retried after ${title}`, async () => {
      await using client = await startClient();
      client.spoil({ answer });
      const failure = await failureOf(client.client.create(ConfigMap, { metadata: fresh() }));
      assert.is(failure === undefined, isRepeated);
      assert.is(client.requests.length, isRepeated ? 2 : 1);
    });

  test("is retried while the API server refuses connections", async () => {
    await using client = await startClient();
    const { faults } = await server();
    const back = faults.restart({ downMs: 300 });
    await client.client.create(ConfigMap, { metadata: fresh() });
    await back;
    assert.ok(client.requests.length > 1);
    assert.is(client.methods().at(-1), "POST 201");
  });
});

suite("update", (test) => {
  test("replaces the object, and fails with 409 if it has changed", async () => {
    await using client = await startClient();
    const changed = await client.client.update(ConfigMap, { ...client.live, data: { more: "x" } });
    assert.equal(changed.data, { more: "x" });
    const failure = await failureOf(client.client.update(ConfigMap, client.live as DataObject));
    assert.match(failure!.message, /^update of ConfigMap "default\/config-\d+" failed: 409 Conflict: /);
  });

  test("of the status keeps all other fields, and names the subresource in its error", async () => {
    await using client = await startClient();
    const metadata = fresh();
    const page = await client.client.create(Page, { metadata, spec: { text: "first" } });
    const changed = { ...page, spec: { text: "other" }, status: { text: "done" } };
    const { spec, status } = await client.client.update(Page, changed, { subresource: "status" });
    assert.equal({ spec, status }, { spec: { text: "first" }, status: { text: "done" } });
    const failure = await failureOf(client.client.update(Page, page, { subresource: "status" }));
    assert.match(failure!.message, /^update of the status of Page "default\/config-\d+" failed: 409 Conflict: /);
  });
});

suite("any write", (test) => {
  const metadata = fresh();
  const writes: [string, (client: ApiClient, manager: string) => Promise<unknown>][] = [
    ["create", (client, fieldManager) => client.create(ConfigMap, { metadata, data: { a: "1" } }, { fieldManager })],
    ["update", (client, fieldManager) => client.update(ConfigMap, { metadata, data: { a: "2" } }, { fieldManager })],
    [
      "mergePatch",
      (client, fieldManager) => client.mergePatch(ConfigMap, { ...metadata, fieldManager }, { data: { b: "3" } }),
    ],
    [
      "jsonPatch",
      (client, fieldManager) =>
        client.jsonPatch(ConfigMap, metadata, {
          operations: [{ op: "add", path: "/data/c", value: "4" }],
          fieldManager,
        }),
    ],
    [
      "apply",
      (client, fieldManager) => {
        const object = { metadata, data: { d: "5" } };
        return client.apply(ConfigMap, object, { fieldManager });
      },
    ],
  ];
  test("is recorded under its fieldManager, and returns no managedFields", async () => {
    await using client = await startClient();
    for (const [name, write] of writes) {
      const answer = await write(client.client, `manager-of-${name}`);
      assert.not(JSON.stringify(answer).includes("managedFields"));
      const path = `/api/v1/namespaces/default/configmaps/${metadata.name}`;
      const { body } = await requesterOf(client.client).send({ method: "GET", path });
      assert.match(body.toString(), `"manager":"manager-of-${name}"`);
    }
  });
});
