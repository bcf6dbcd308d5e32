// Failures that another client, or a person, mends: they are looked at again soon and cheaply, and a namespace that ends is no failure.
import { waitFor } from "#apiserver/wait-for.js";
import { OperatorMetrics } from "#runtime/operate/metrics.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { configOf, dependentController } from "../dependents/sample-dependents.js";
import { ConfigMap, Sample } from "../sample-kind.js";
import { spacesOf } from "../space.js";

// Without the controllers of a cluster, a namespace that is deleted ends and keeps what it has.
const openSpace = spacesOf();
const Namespace = classOf(builtinDefinition("v1", "Namespace"));
const SLOW = { timeoutMs: 60_000 };

const unobserved = {
  health: () => ({ status: "healthy" as const, controllers: {} }),
  controllers: () => [],
  informers: () => [],
};

suite("conflicting existing object", (test) => {
  test("is checked with one GET per retry, and the dependent is created after its deletion", async () => {
    await using space = await openSpace();
    await space.create(ConfigMap, { metadata: { name: "one-a" }, data: { value: "theirs" } });
    await using running = await space.start([
      dependentController([configOf("a")], { retry: { initialIntervalMs: 200, maxIntervalMs: 200, maxRetries: -1 } }),
    ]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "first" } });
    await waitFor("it was tried several times", () => running.events.length >= 4);
    const asked = running.requests.filter((request) => request.includes("/configmaps"));
    const path = `/api/v1/namespaces/${space.namespace}/configmaps/one-a`;
    assert.match(asked[0]!, /^(PATCH|POST) .* 409$/);
    assert.equal(new Set(asked.slice(1)), new Set([`GET ${path} 200`]));
    assert.is(asked.length, running.events.length + 1);
    await space.delete(ConfigMap, "one-a");
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
  });

  test("is updated once another client adds the owner reference", async () => {
    await using space = await openSpace();
    await space.create(ConfigMap, { metadata: { name: "one-a" }, data: { value: "theirs" } });
    await using running = await space.start([
      dependentController([configOf("a")], { retry: { initialIntervalMs: 200, maxIntervalMs: 200, maxRetries: -1 } }),
    ]);
    const { metadata, apiVersion, kind } = await space.create(Sample, {
      metadata: { name: "one" },
      spec: { value: "first" },
    });
    await waitFor("it was tried several times", () => running.events.length >= 2);
    const owner = { apiVersion, kind, name: "one", uid: metadata.uid, controller: true };
    await space.patch(ConfigMap, "one-a", { metadata: { ownerReferences: [owner] } });
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
  });
});

suite("terminating namespace", (test) => {
  test(
    "causes no warnings, error metrics or exhausted retries",
    async () => {
      await using space = await openSpace();
      const { client } = space;
      const home = `${space.namespace}-ending`;
      await client.create(Namespace, { metadata: { name: home } });
      const dependents = [configOf("a"), configOf("b", { dependsOn: ["a"] })];
      const metrics = new OperatorMetrics(unobserved, { eventLoop: { takeMaxDelayMs: () => 0 }, definitions: [] });
      const observer = (event: Parameters<OperatorMetrics["onReconcile"]>[0]) => {
        recorded.push(event);
        metrics.onReconcile(event);
      };
      const recorded: { readonly error?: unknown; readonly isNamespaceTerminating?: true }[] = [];
      let reconciles = 0;
      const initContext = ({ context }: { context: { events: { record(draft: object): void } } }) =>
        context.events.record({ reason: `Seen${++reconciles}`, note: "it was seen" });
      const controller = dependentController(dependents, { reconciler: { initContext, reconcile: () => {} } as never });
      await using running = await space.start([{ ...controller, namespaces: [home] }], { observer });
      await client.create(Sample, { metadata: { name: "one", namespace: home }, spec: { value: "first" } });
      await waitFor("it is made", () => client.get(ConfigMap, { name: "one-b", namespace: home }));
      await running.quiet();
      await client.delete(Namespace, { name: home });
      for (const name of ["one-a", "one-b"]) await client.delete(ConfigMap, { name, namespace: home });
      await waitFor("it fails", () => recorded.filter(({ error }) => error !== undefined).length >= 3);
      await running.quiet();
      assert.equal(
        running.logs.filter((line) => /^(warn|error)/.test(line)),
        [],
      );
      assert.not.match(metrics.render(), /^controller_runtime_reconcile_errors_total\{[^}]*\} [1-9]/m);
      assert.ok(recorded.some(({ isNamespaceTerminating }) => isNamespaceTerminating === true));
      assert.is(running.operator.health().controllers["sample"]!.givenUp.count, 0);
      const posts = running.requests.filter((request) => /^POST .*\/events 403/.test(request));
      assert.is(posts.length, 1);
    },
    SLOW,
  );

  test("of a dependent is no warning for a primary in another namespace, which is retried", async () => {
    await using space = await openSpace();
    const { client } = space;
    const other = `${space.namespace}-ending`;
    await client.create(Namespace, { metadata: { name: other } });
    await client.delete(Namespace, { name: other });
    const far = configOf("far", { deletion: "ordered", namespace: other });
    await using running = await space.start([dependentController([configOf("near"), far])]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "first" } });
    const failed = await waitFor("it fails", () => running.events.find(({ error }) => error !== undefined));
    assert.is(failed.isNamespaceTerminating, true);
    await space.until(ConfigMap, "one-near", () => true);
    await waitFor("it is looked at again", () => running.events.length >= 3);
    assert.equal(
      running.logs.filter((line) => /^(warn|error)/.test(line)),
      [],
    );
  });
});
