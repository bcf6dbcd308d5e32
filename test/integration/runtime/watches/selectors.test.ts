// Which primaries and which of their events a controller sees, after JOSDK's integration tests.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, Sample, sampleController } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();
const Namespace = classOf(builtinDefinition("v1", "Namespace"));

suite("filters and selectors", (test) => {
  test("reconcile only primaries that match the labelSelector, including those that start to match", async () => {
    await using space = await openSpace();
    const seen: string[] = [];
    const controller = sampleController(
      { reconcile: ({ primary }) => void seen.push(primary.metadata.name) },
      { labelSelector: "app=ours" },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "without" }, spec: {} });
    await space.create(Sample, { metadata: { name: "with", labels: { app: "ours" } }, spec: {} });
    await waitFor("the labelled one is reconciled", () => seen.includes("with"));
    await running.quiet();
    assert.equal(seen, ["with"]);
    await space.patch(Sample, "without", { metadata: { labels: { app: "ours" } } });
    await waitFor("the other one is reconciled when it is labelled", () => seen.includes("without"));
    await space.patch(Sample, "with", { metadata: { labels: { app: null } } });
    await space.patch(Sample, "with", { spec: { value: "changed" } });
    await running.quiet();
    assert.equal(seen, ["with", "without"]);
  });

  test("keep the finalizer of a primary that no longer matches, and log one warning", async () => {
    await using space = await openSpace();
    const controller = sampleController({ reconcile: () => {}, cleanup: () => {} }, { labelSelector: "app=ours" });
    await using running = await space.start([controller]);
    for (const name of ["leaves", "goes"])
      await space.create(Sample, { metadata: { name, labels: { app: "ours" } }, spec: {} });
    for (const name of ["leaves", "goes"])
      await space.until(Sample, name, ({ metadata: { finalizers = [] } }) => finalizers.length > 0);
    await space.delete(Sample, "goes");
    await space.untilGone(Sample, "goes");
    await space.patch(Sample, "leaves", { metadata: { labels: null } });
    const isWarning = (line: string) =>
      line.startsWith("warn") && line.includes("no longer matches the selector of the controller");
    await waitFor("the log says so", () => running.logs.some(isWarning));
    await space.delete(Sample, "leaves");
    await running.quiet();
    assert.ok(await space.get(Sample, "leaves"));
    await space.patch(Sample, "leaves", { metadata: { labels: { app: "ours" } } });
    await space.untilGone(Sample, "leaves");
    assert.is(running.logs.filter(isWarning).length, 1);
    assert.match(
      running.logs.find(isWarning)!,
      `Sample "${space.namespace}/leaves" no longer matches the selector of the controller but still has finalizer`,
    );
  });

  test("divide the primaries of a kind between two controllers by labelSelector", async () => {
    await using space = await openSpace();
    const controllers = ["a", "b"].map((name) =>
      sampleController(
        { reconcile: ({ primary }) => updateStatus({ value: `${primary.metadata.name} by ${name}` }) },
        { name, labelSelector: `by=${name}` },
      ),
    );
    await using running = await space.start(controllers);
    await space.create(Sample, { metadata: { name: "one", labels: { by: "a" } }, spec: {} });
    await space.create(Sample, { metadata: { name: "two", labels: { by: "b" } }, spec: {} });
    await space.until(Sample, "one", ({ status }) => status?.value === "one by a");
    await space.until(Sample, "two", ({ status }) => status?.value === "two by b");
    await running.quiet();
    assert.equal(running.events.map(({ controller, primary }) => `${controller} ${primary}`).sort(), [
      `a ${space.namespace}/one`,
      `b ${space.namespace}/two`,
    ]);
  });

  test("ignore updates of primaries and secondaries that onUpdate rejects", async () => {
    await using space = await openSpace();
    const isTold = ({ metadata }: KubernetesObject) => metadata.labels?.["silent"] === undefined;
    const controller = sampleController(
      { reconcile: () => {} },
      {
        filters: { onUpdate: isTold },
        eventSources: () => [
          informerSource({
            name: "configs",
            resource: ConfigMap,
            mapper: byAnnotation(Sample, { name: "sample" }),
            filters: { onUpdate: isTold },
          }),
        ],
      },
    );
    await using running = await space.start([controller]);
    const reconciles = async (count: number) => {
      await waitFor(`it is reconciled ${count} times`, () => running.events.length >= count);
      await running.quiet();
      assert.is(running.events.length, count);
    };
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await reconciles(1);
    await space.create(ConfigMap, { metadata: { name: "config", annotations: { sample: "one" } } });
    await reconciles(2);
    await space.patch(Sample, "one", { spec: { value: "x" }, metadata: { labels: { silent: "yes" } } });
    await space.patch(ConfigMap, "config", { data: { value: "x" }, metadata: { labels: { silent: "yes" } } });
    await reconciles(2);
    await space.patch(Sample, "one", { spec: { value: "y" }, metadata: { labels: { silent: null } } });
    await reconciles(3);
    await space.patch(ConfigMap, "config", { metadata: { labels: { silent: null } } });
    await reconciles(4);
  });

  test("use only the user-defined filter with defaultFilters: false", async () => {
    await using space = await openSpace();
    const triggerOf = ({ metadata }: Sample) => metadata.annotations?.["trigger"];
    const controller = sampleController(
      { reconcile: () => {} },
      {
        defaultFilters: false,
        filters: {
          onUpdate: (primary, old) =>
            primary.metadata.generation !== old.metadata.generation ||
            (triggerOf(primary) !== undefined && triggerOf(primary) !== triggerOf(old)),
        },
      },
    );
    await using running = await space.start([controller]);
    const reconciles = async (count: number) => {
      await waitFor(`it is reconciled ${count} times`, () => running.events.length >= count);
      await running.quiet();
      assert.is(running.events.length, count);
    };
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await reconciles(1);
    await space.patch(Sample, "one", { spec: { value: "x" } });
    await reconciles(2);
    await space.patch(Sample, "one", { metadata: { annotations: { trigger: "now" } } });
    await reconciles(3);
    await space.patch(Sample, "one", { metadata: { annotations: { trigger: null } } });
    await reconciles(3);
  });

  test("follow setNamespaces() for primaries and secondaries at runtime", async () => {
    await using space = await openSpace();
    const second = `${space.namespace}-more`;
    await space.client.create(Namespace, { metadata: { name: second } });
    const controller = sampleController(
      { reconcile: ({ context }) => updateStatus({ value: context.secondary(ConfigMap)?.data?.["value"] ?? "none" }) },
      {
        eventSources: () => [
          informerSource({ name: "configs", resource: ConfigMap, mapper: byAnnotation(Sample, { name: "sample" }) }),
        ],
      },
    );
    await using running = await space.start([controller]);
    const { client } = space;
    const registered = running.operator.controller("sample");
    const valueIn = async (namespace: string) => (await client.get(Sample, { name: "one", namespace }))?.status?.value;
    const until = (namespace: string, value: string) =>
      waitFor(`${namespace} says ${value}`, async () => (await valueIn(namespace)) === value);
    for (const namespace of [space.namespace, second]) {
      await client.create(Sample, { metadata: { name: "one", namespace }, spec: {} });
      const metadata = { name: "config", namespace, annotations: { sample: "one" } };
      await client.create(ConfigMap, { metadata, data: { value: "first" } });
    }
    await until(space.namespace, "first");
    await running.quiet();
    assert.is(await valueIn(second), undefined);

    await registered.setNamespaces([space.namespace, second]);
    assert.equal(registered.namespaces, [space.namespace, second]);
    await until(second, "first");

    await registered.setNamespaces([second]);
    for (const namespace of [space.namespace, second])
      await client.mergePatch(ConfigMap, { name: "config", namespace }, { data: { value: "second" } });
    await until(second, "second");
    await running.quiet();
    assert.is(await valueIn(space.namespace), "first");

    await registered.setNamespaces(undefined);
    await until(space.namespace, "second");

    await registered.setNamespaces([space.namespace]);
    for (const namespace of [space.namespace, second])
      await client.mergePatch(ConfigMap, { name: "config", namespace }, { data: { value: "third" } });
    await until(space.namespace, "third");
    await running.quiet();
    assert.is(await valueIn(second), "second");
    assert.is(registered.counts().states, 1);
  });
});
