// Event sources that keep only a part of their objects, on an API server.
import { startApiServer, type ApiServer, type FaultRule, type RequestRecord } from "#apiserver/index.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { viewOf } from "#runtime/cache/resource-view.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { defineController } from "#runtime/api/define-controller.js";
import { defineWorkflow } from "#runtime/api/define-workflow.js";
import { informerSource, type InformerSourceOptions } from "#runtime/sources/informer-source.js";
import { createOperator } from "#runtime/api/operator.js";
import { Sender } from "#runtime/apply/sender.js";
import { Writer } from "#runtime/apply/writer.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, Page, pageCrd, startPageServer, type DataObject } from "../page-operator.js";

type Form = NonNullable<InformerSourceOptions<DataObject>["cache"]>;

const REF = { name: "one", namespace: "default" };
const owner = (uid: string) => ({ apiVersion: "example.com/v1", kind: "Page", name: "one", uid });

/** Runs an operator for Pages that watches their ConfigMaps in a form, and notes which texts each reconcile found. */
async function startOperator(server: ApiServer, form: Form) {
  const { url, token, ca } = server;
  const client = new ApiClient(createConnection({ url, token, ca }));
  const source = informerSource<DataObject>({ name: "configs", resource: ConfigMap, cache: form });
  const seen: KubernetesObject[][] = [];
  const operator = createOperator({
    controllers: [
      defineController({
        name: "page",
        workflow: defineWorkflow(Page),
        eventSources: () => [source],
        reconciler: { reconcile: ({ context }) => void seen.push([...context.secondaries(ConfigMap)]) },
      }),
    ],
    connection: { url, token, ca },
    logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  await operator.start();
  const { metadata } = await client.create(Page, { metadata: REF, spec: { text: "first" } });
  await waitFor("the page is reconciled", () => seen.length > 0);
  const create = (name: string) =>
    client.create(ConfigMap, {
      metadata: {
        ...{ ...REF, name, labels: { tier: "front" }, annotations: { note: "x" } },
        ownerReferences: [owner(metadata.uid!)],
      },
      data: { text: "first", other: "long" },
    });
  /** Waits for a reconcile that found what is wanted, and returns it. */
  const untilSeen = (holds: (objects: readonly DataObject[]) => boolean) =>
    waitFor("a reconcile finds what is wanted", () => (seen.at(-1) && holds(seen.at(-1)!) ? seen.at(-1)! : undefined));
  const stop = async () => {
    await operator.stop();
    await client.close();
  };
  return { client, source, seen, create, untilSeen, [Symbol.asyncDispose]: stop };
}

const isListOfConfigMaps = ({ verb, path }: RequestRecord) => verb === "list" && path.endsWith("/configmaps");
const versionsOf = (objects: readonly KubernetesObject[]) => objects.map(({ metadata }) => metadata.resourceVersion);

suite("partial caches", (test) => {
  test("emit additions, changes and deletions with cache: metadata", async () => {
    await using server = await startPageServer();
    await using operator = await startOperator(server, "metadata");
    const created = await operator.create("a");
    const [found] = await operator.untilSeen((objects) => objects.length === 1);
    const { apiVersion, kind, metadata } = created;
    assert.equal(found, { apiVersion, kind, metadata });
    const changed = await operator.client.mergePatch(ConfigMap, { ...REF, name: "a" }, { data: { text: "second" } });
    await operator.untilSeen((objects) => versionsOf(objects)[0] === changed.metadata.resourceVersion);
    await operator.client.delete(ConfigMap, { ...REF, name: "a" });
    await operator.untilSeen((objects) => objects.length === 0);
  });

  test("emit all changes, and store only the given paths and metadata", async () => {
    await using server = await startPageServer();
    await using operator = await startOperator(server, { paths: ["data.text"] });
    const created = await operator.create("a");
    const [found] = await operator.untilSeen((objects) => objects.length === 1);
    assert.equal(found, { ...created, data: { text: "first" } });
    await operator.client.mergePatch(ConfigMap, { ...REF, name: "a" }, { data: { text: "second" } });
    await operator.untilSeen((objects) => objects[0]?.data?.["text"] === "second");
    const changed = await operator.client.mergePatch(ConfigMap, { ...REF, name: "a" }, { data: { other: "x" } });
    await operator.untilSeen((objects) => versionsOf(objects)[0] === changed.metadata.resourceVersion);
    await operator.client.delete(ConfigMap, { ...REF, name: "a" });
    await operator.untilSeen((objects) => objects.length === 0);
  });

  test("store only identity, age, owners and the given paths of metadata", async () => {
    await using server = await startPageServer();
    await using operator = await startOperator(server, { paths: ["data.text", "metadata.labels.tier"] });
    const { metadata } = await operator.create("a");
    const [found] = await operator.untilSeen((objects) => objects.length === 1);
    const { annotations: _, ...kept } = metadata;
    assert.equal(found?.metadata, kept);
  });

  test("apply to initial lists and to servers without WatchList", async () => {
    const refusesWatchList: FaultRule = { verb: "watch", path: "/configmaps", times: 1, answer: { status: 400 } };
    for (const faults of [[], [refusesWatchList]]) {
      await using server = await startApiServer({ crds: [pageCrd], faults });
      const { url, token, ca } = server;
      const client = new ApiClient(createConnection({ url, token, ca }));
      await client.create(ConfigMap, { metadata: { ...REF, name: "before" }, data: { text: "first", other: "long" } });
      await client.close();
      await using operator = await startOperator(server, { paths: ["data.text"] });
      assert.equal(operator.source.get("default/before")?.data, { text: "first" });
      assert.is(server.requests.filter(isListOfConfigMaps).length, faults.length);
    }
  });

  test("reject writes of partially cached objects", async () => {
    await using server = await startPageServer();
    await using operator = await startOperator(server, { paths: ["data.text"] });
    await operator.create("a");
    await waitFor("it is known", () => operator.source.get("default/a"));
    const writer = new Writer(new Sender({ client: operator.client, fieldManager: "page" }));
    const target = { definition: ConfigMap.definition, cache: viewOf(operator.source)! };
    const desired = { metadata: { ...REF, name: "a" }, data: { text: "first" } };
    let message = "";
    await writer.apply(target, desired, { live: viewOf(operator.source)!.get("default/a") }).catch((error: Error) => {
      message = error.message;
    });
    assert.match(message, /ConfigMap "default\/a" cannot be written: .* give the source cache: full/);
  });
});
