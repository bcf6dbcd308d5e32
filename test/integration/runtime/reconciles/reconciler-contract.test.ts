// When reconcile is called and with what, after JOSDK's integration tests.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { defineController } from "#runtime/api/define-controller.js";
import { defineWorkflow } from "#runtime/api/define-workflow.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { ClusterSample, ConfigMap, Sample, sampleController, type DataObject } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf({ simulate: true });

interface Deployment extends KubernetesObject {
  spec: { replicas?: number; selector: object; template: object };
  status?: { conditions?: { type: string; status: string }[] };
}
const Deployment = classOf<Deployment>(builtinDefinition("apps/v1", "Deployment"));

const withConfigMap = defineWorkflow(Sample).dependent("config", {
  resource: ConfigMap,
  desired: ({ primary }) => ({
    metadata: { name: primary.metadata.name },
    data: { value: primary.spec.value ?? "" },
  }),
});

suite("reconciler contract", (test) => {
  test(
    "converges after a burst of 50 creations, 20 updates and 30 deletions",
    async () => {
      await using space = await openSpace();
      const controller = sampleController({ reconcile: () => {} }, { workflow: withConfigMap });
      await using running = await space.start([controller]);
      const names = Array.from({ length: 50 }, (_, index) => `one-${index}`);
      await Promise.all(names.map((name) => space.create(Sample, { metadata: { name }, spec: { value: "first" } })));
      await Promise.all([
        ...names.slice(0, 20).map((name) => space.patch(Sample, name, { spec: { value: "second" } })),
        ...names.slice(20).map((name) => space.delete(Sample, name)),
      ]);
      // What was made for a primary that was deleted meanwhile is left to the garbage collector, which takes its time.
      const collected = { timeoutMs: 60_000 };
      const config = await waitFor(
        "exactly 20 remain",
        async () => {
          const all = (await space.list(ConfigMap)).filter(({ metadata }) => metadata.name.startsWith("one-"));
          return all.length === 20 && all.every(({ data }) => data?.["value"] === "second") ? all : undefined;
        },
        collected,
      );
      await running.quiet();
      assert.is((await space.list(Sample)).length, 20);
      assert.equal(config.map(({ metadata }) => metadata.name).sort(), names.slice(0, 20).sort());
    },
    { timeoutMs: 90_000 },
  );

  test("applies the defaults of all settings to a controller that only has a name", async () => {
    await using space = await openSpace();
    const bare = defineController({
      name: "bare",
      workflow: defineWorkflow(Sample),
      reconciler: { reconcile: () => updateStatus({ value: "seen" }), cleanup: () => {} },
    });
    await using running = await space.start([bare]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    const { metadata } = await space.until(Sample, "one", ({ status }) => status?.value === "seen");
    assert.equal(metadata.finalizers, ["samples.josdk.example.com/finalizer"]);
    await running.quiet();
    const before = running.events.length;
    await space.patch(Sample, "one", { metadata: { labels: { theirs: "x" } } });
    await running.quiet();
    assert.is(running.events.length, before, "only another generation is reconciled");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
  });

  test("triggers no reconcile for own creations and updates of a dependent", async () => {
    await using space = await openSpace();
    const controller = sampleController({ reconcile: () => {} }, { workflow: withConfigMap });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "first" } });
    await space.until(ConfigMap, "one", ({ data }) => data?.["value"] === "first");
    await running.quiet();
    assert.is(running.events.length, 1);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(ConfigMap, "one", ({ data }) => data?.["value"] === "second");
    await running.quiet();
    assert.is(running.events.length, 2);
  });

  test("adds a condition to the status of a Deployment that is the primary", async () => {
    await using space = await openSpace();
    const condition = { type: "Seen", status: "True", reason: "Reconciled", message: "seen" };
    const controller = defineController({
      name: "deployment",
      workflow: defineWorkflow(Deployment),
      labelSelector: "watched=yes",
      reconciler: { reconcile: () => updateStatus({ conditions: [condition] }) },
    });
    await using _ = await space.start([controller]);
    const labels = { watched: "yes" };
    const spec = {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } },
    };
    await space.create(Deployment, { metadata: { name: "web", labels }, spec });
    const typesOf = ({ status }: Deployment) => (status?.conditions ?? []).map(({ type }) => type);
    await space.until(Deployment, "web", (web) => typesOf(web).includes("Seen") && typesOf(web).includes("Available"));
  });

  test("keeps an observedGeneration written by the reconciler equal to the generation", async () => {
    await using space = await openSpace();
    const controller = sampleController({
      reconcile: ({ primary }) => updateStatus({ observedGeneration: primary.metadata.generation ?? 0 }),
    });
    await using _ = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "first" } });
    await space.until(Sample, "one", ({ status }) => status?.observedGeneration === 1);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(Sample, "one", ({ status }) => status?.observedGeneration === 2);
  });

  test("ignores metadata changes of the primary, and reconciles spec changes", async () => {
    await using space = await openSpace();
    const seen: (string | undefined)[] = [];
    const controller = sampleController(
      {
        reconcile: ({ primary }) => {
          seen.push(primary.spec.value);
          return updateStatus({ value: primary.spec.value ?? "" });
        },
        cleanup: () => void seen.push("cleanup"),
      },
      { workflow: withConfigMap },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "first" } });
    await space.until(Sample, "one", ({ status }) => status?.value === "first");
    await space.until(ConfigMap, "one", ({ data }) => data?.["value"] === "first");
    await running.quiet();
    await space.patch(Sample, "one", { metadata: { annotations: { note: "x" }, labels: { a: "b" } } });
    await running.quiet();
    assert.equal(seen, ["first"]);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(Sample, "one", ({ status }) => status?.value === "second");
    await running.quiet();
    assert.equal(seen, ["first", "second"]);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(seen, ["first", "second", "cleanup"]);
  });

  test("ignores status changes by the reconciler and by other field managers", async () => {
    await using space = await openSpace();
    let calls = 0;
    const controller = sampleController({
      reconcile: () => {
        calls++;
        return updateStatus({ count: calls });
      },
      cleanup: () => {},
    });
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "first" } });
    await space.until(Sample, "one", ({ status, metadata }) => status?.count === 1 && metadata.finalizers);
    await running.quiet();
    const theirs = { metadata: { name: "one", namespace: space.namespace }, status: { message: "theirs" } };
    await space.client.apply(Sample, theirs, { fieldManager: "somebody", subresource: "status" });
    await running.quiet();
    assert.is(calls, 1);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(Sample, "one", ({ status }) => status?.count === 2);
    await running.quiet();
    assert.is(calls, 2);
  });

  test("passes the live object to desired(), which can preserve its values", async () => {
    await using space = await openSpace();
    const workflow = defineWorkflow(Sample).dependent("config", {
      resource: ConfigMap,
      desired: ({ primary, secondary }) => {
        const live = (secondary as { config?: DataObject }).config;
        return {
          metadata: { name: primary.metadata.name },
          data: {
            first: live?.data?.["first"] ?? primary.spec.value ?? "",
            latest: primary.spec.value ?? "",
          },
        };
      },
    });
    await using _ = await space.start([sampleController({ reconcile: () => {} }, { workflow })]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "a" } });
    await space.until(ConfigMap, "one", ({ data }) => data?.["latest"] === "a");
    await space.patch(Sample, "one", { spec: { value: "b" } });
    const { data } = await space.until(ConfigMap, "one", (config) => config.data?.["latest"] === "b");
    assert.equal(data, { first: "a", latest: "b" });
  });

  // The garbage collector of a real control plane stops for up to 30 s when definitions come and go, as those of other tests do.
  const collection = { timeoutMs: 60_000 };
  const goesWithIt = async () => {
    await using space = await openSpace();
    const name = `cluster-${space.namespace}`;
    const workflow = defineWorkflow(ClusterSample).dependent("config", {
      resource: ConfigMap,
      namespace: space.namespace,
      desired: ({ primary }) => ({
        metadata: { name: primary.metadata.name },
        data: { value: primary.spec.value ?? "" },
      }),
    });
    await using _ = await space.start([sampleController({ reconcile: () => {} }, { workflow })]);
    await space.create(ClusterSample, { metadata: { name }, spec: { value: "first" } });
    await space.until(ConfigMap, name, ({ data }) => data?.["value"] === "first");
    await space.patch(ClusterSample, name, { spec: { value: "second" } });
    await space.until(ConfigMap, name, ({ data }) => data?.["value"] === "second");
    await space.delete(ClusterSample, name);
    await space.untilGone(ConfigMap, name, { timeoutMs: 45_000 });
  };
  test("garbage-collects a namespaced dependent of a cluster-scoped primary", goesWithIt, collection);
});
