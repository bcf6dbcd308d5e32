// Where dependents live: other namespaces, no namespace, other clusters.
import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { defineController } from "#runtime/api/define-controller.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byDefaultAnnotations } from "#runtime/sources/mappers.js";
import { createOperator } from "#runtime/api/operator.js";
import { crdPresent } from "#runtime/workflow/conditions.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  COLLECTING,
  configOf,
  dependentController,
  untilCollected,
  untilOutcome,
  writesOf,
} from "./sample-dependents.js";
import { ClusterSample, clusterSampleCrd, ConfigMap, Sample } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf({ simulate: true });
const Namespace = classOf(builtinDefinition("v1", "Namespace"));
const ClusterRole = classOf(builtinDefinition("rbac.authorization.k8s.io/v1", "ClusterRole"));
const sample = (value = "first") => ({ metadata: { name: "one" }, spec: { value } });

suite("dependent in another namespace", (test) => {
  test("is created, updated, recreated and deleted", async () => {
    await using space = await openSpace();
    const { client } = space;
    const namespace = `${space.namespace}-other`;
    await client.create(Namespace, { metadata: { name: namespace } });
    const dependent = configOf("a", { deletion: "ordered", namespace });
    await using _ = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    const ref = { name: "one-a", namespace };
    const value = async () => (await client.get(ConfigMap, ref))?.data?.["value"];
    await waitFor("it is made", async () => (await value()) === "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await waitFor("it is changed", async () => (await value()) === "second");
    await client.delete(ConfigMap, ref);
    await waitFor("it is brought back", async () => (await value()) === "second");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await value(), undefined);
  });

  test("may be cluster-scoped, linked by annotations with a proof", async () => {
    await using space = await openSpace();
    const { client, namespace } = space;
    const name = `${namespace}-role`;
    const role = configOf("role", {
      resource: ClusterRole.definition,
      deletion: "ordered",
      desired: ({ primary }) => ({
        metadata: { name },
        rules: [{ apiGroups: [""], resources: [primary.spec.value], verbs: ["get"] }],
      }),
    });
    await using running = await space.start([dependentController([role])]);
    const { metadata: primary } = await space.create(Sample, sample("pods"));
    const { metadata } = await waitFor("it is made", () => client.get(ClusterRole, { name }));
    const { "gen-operator.dev/link-proof": proof, ...annotations } = metadata.annotations ?? {};
    assert.match(proof!, /^[\w-]{22}$/);
    assert.equal(annotations, {
      "gen-operator.dev/primary-uid": primary.uid,
      "gen-operator.dev/primary-name": "one",
      "gen-operator.dev/primary-namespace": namespace,
      "gen-operator.dev/primary-type": "Sample.josdk.example.com",
      "gen-operator.dev/dependent": "role",
      "gen-operator.dev/object": name,
    });
    assert.equal(metadata.labels, { "gen-operator.dev/controller": "sample" });
    await client.delete(ClusterRole, { name });
    const again = await waitFor("it is brought back", () => client.get(ClusterRole, { name }));
    assert.not.equal(again.metadata.uid, metadata.uid);
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await client.get(ClusterRole, { name }), undefined);
  });

  test(
    "is garbage-collected with a cluster-scoped primary that owns it",
    async () => {
      await using space = await openSpace();
      const { namespace } = space;
      const owned = configOf("owned", {
        desired: ({ primary }) => ({ metadata: { name: "owned", namespace }, data: { value: primary.spec.value } }),
      });
      const controller = defineController({
        name: "cluster-sample",
        labelSelector: `space=${namespace}`,
        workflow: { primary: ClusterSample.definition, dependents: [owned] },
        reconciler: { reconcile: () => {} },
      });
      await using _ = await space.start([controller]);
      const name = `${namespace}-one`;
      await space.client.create(ClusterSample, {
        metadata: { name, labels: { space: namespace } },
        spec: { value: "x" },
      });
      const { metadata } = await space.until(ConfigMap, "owned", ({ data }) => data?.["value"] === "x");
      assert.is(metadata.ownerReferences?.[0]?.name, name);
      await space.patch(ConfigMap, "owned", { data: { value: "theirs" } });
      await space.until(ConfigMap, "owned", ({ data }) => data?.["value"] === "x");
      await space.client.delete(ClusterSample, { name });
      await untilCollected(space, ConfigMap, "owned");
    },
    COLLECTING,
  );
});

/** A second cluster, and a client of it. */
async function startCluster() {
  const server = await startTestApiServer({ crds: [clusterSampleCrd] });
  const { url, token, ca } = server;
  const connection = { url, token, ca };
  const client = new ApiClient(createConnection(connection));
  const dispose = async () => {
    await client.close();
    await server.close();
  };
  return { server, connection, client, [Symbol.asyncDispose]: dispose };
}

/** Returns an address of this machine at which nothing listens. */
async function freeAddress(): Promise<{ readonly url: string; readonly port: number }> {
  await using server = await startApiServer({ tls: false });
  return { url: server.url, port: Number(new URL(server.url).port) };
}

function clientOf(connection: { readonly url: string; readonly token: string }) {
  const client = new ApiClient(createConnection(connection));
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

suite("dependent in another cluster", (test) => {
  const elsewhere = { cluster: "other", deletion: "ordered" } as const;
  const far = { ...elsewhere, namespace: "default" };
  const ref = { name: "one-a", namespace: "default" };

  for (const serverSideApply of [true, false])
    test(`is created, updated, recreated and deleted there, ${serverSideApply ? "with apply" : "with PUT"}`, async () => {
      await using space = await openSpace();
      await using other = await startCluster();
      const controller = dependentController([configOf("a", { ...far, serverSideApply }), configOf("near")]);
      await using running = await space.start([controller], { clusters: { other: other.connection } });
      const value = async () => (await other.client.get(ConfigMap, ref))?.data?.["value"];
      await space.create(Sample, sample());
      await waitFor("it is made", async () => (await value()) === "first");
      await space.until(ConfigMap, "one-near", () => true);
      assert.is(await space.client.get(ConfigMap, ref), undefined, "it is not in the own cluster");
      await running.quiet();
      const before = running.events.length;
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await waitFor("it is changed", async () => (await value()) === "second");
      await running.quiet();
      assert.is(running.events.length, before + 1, "an own write there causes no reconcile");
      await other.client.mergePatch(ConfigMap, ref, { data: { value: "theirs" } });
      await waitFor("it is put right", async () => (await value()) === "second");
      await other.client.delete(ConfigMap, ref);
      await waitFor("it is brought back", async () => (await value()) === "second");
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.is(await value(), undefined);
    });

  test("evaluates crdPresent in its own cluster", async () => {
    await using space = await openSpace();
    await using other = await startCluster();
    const Missing = { ...Sample.definition };
    const dependents = [
      configOf("missing", { ...far, resource: Missing, activationCondition: crdPresent }),
      configOf("present", {
        ...elsewhere,
        resource: ClusterSample.definition,
        activationCondition: crdPresent,
        desired: () => ({ metadata: { name: "present" }, spec: { value: "x" } }),
      }),
    ];
    await using running = await space.start([dependentController(dependents)], {
      clusters: { other: other.connection },
    });
    await space.create(Sample, sample());
    await untilOutcome(running, "present", "created");
    await untilOutcome(running, "missing", "inactive");
  });

  test("makes its primary wait while the cluster is unreachable, and is created once it recovers", async () => {
    await using space = await openSpace();
    const { url, port } = await freeAddress();
    const connection = { url, token: "of-the-other" };
    const clusters = { other: connection };
    await using running = space.operator([dependentController([configOf("a", far), configOf("near")])], { clusters });
    await running.operator.start();
    const { reason = "" } = await waitFor("the watch is unhealthy", () => {
      const { a, near } = running.operator.controller("sample").health();
      return a?.status === "unhealthy" && near?.status === "healthy" ? a : undefined;
    });
    assert.match(reason, /cannot watch ConfigMap.v1 in namespace "default" at http:/);
    assert.ok(reason.includes(url), reason);
    await space.create(Sample, sample());
    const { waiting } = await waitFor("the primary waits", () => {
      const health = running.operator.health().controllers["sample"];
      return health?.waiting.count === 1 ? health : undefined;
    });
    assert.ok(waiting.primaries[0]!.reason.includes(url), waiting.primaries[0]!.reason);
    assert.equal(running.events, []);
    await using _ = await startApiServer({ tls: false, port, token: connection.token });
    await using client = clientOf(connection);
    const value = async () => (await client.get(ConfigMap, ref))?.data?.["value"];
    await waitFor("it is made", async () => (await value()) === "first", { timeoutMs: 20_000 });
    await space.until(ConfigMap, "one-near", () => true);
    await waitFor("nothing waits, and all is healthy", () => {
      const { status, controllers } = running.operator.health();
      return status === "healthy" && controllers["sample"]?.waiting.count === 0;
    });
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await value(), undefined);
  });

  test("shares a user-defined event source that watches that cluster", async () => {
    await using space = await openSpace();
    await using other = await startCluster();
    const controller = dependentController(
      [configOf("a", { namespace: "default", deletion: "ordered", eventSource: "far" })],
      {
        eventSources: () => [
          informerSource({
            name: "far",
            resource: ConfigMap,
            mapper: byDefaultAnnotations(Sample),
            namespaces: ["default"],
            connection: other.connection,
          }),
        ],
      },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, sample());
    await waitFor("it is made", () => other.client.get(ConfigMap, ref));
    await running.quiet();
    assert.is(running.events.filter(({ kind }) => kind === "reconcile").length, 1);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await other.client.get(ConfigMap, ref), undefined);
    assert.equal(
      writesOf(running).filter((write) => write.includes("configmaps")),
      [],
      "nothing was asked of the own cluster",
    );
  });

  test("is pruned in the cluster of its event source when it is removed from the workflow", async () => {
    await using space = await openSpace();
    await using other = await startCluster();
    const far = informerSource({
      ...{ name: "far", resource: ConfigMap, mapper: byDefaultAnnotations(Sample) },
      ...{ namespaces: ["default"], connection: other.connection },
    });
    const controllerOf = (...names: readonly string[]) =>
      dependentController(
        names.map((name) => configOf(name, { namespace: "default", deletion: "ordered", eventSource: "far" })),
        { eventSources: () => [far] },
      );
    const former = { name: "one-b", namespace: "default" };
    {
      await using _ = await space.start([controllerOf("a", "b")]);
      await space.create(Sample, sample());
      await waitFor("both are made", async () => {
        return (await other.client.get(ConfigMap, ref)) && (await other.client.get(ConfigMap, former));
      });
    }
    await using running = await space.start([controllerOf("a")]);
    await waitFor("the former one is gone", async () => !(await other.client.get(ConfigMap, former)));
    await running.quiet();
    assert.ok(await other.client.get(ConfigMap, ref));
    assert.equal(
      writesOf(running).filter((write) => write.includes("configmaps")),
      [],
    );
  });

  test("is rejected if its cluster is not configured, also in a named workflow", () => {
    const own = dependentController([configOf("a", far)]);
    const named = { ...dependentController([]), workflows: { more: own.workflow } };
    const connection = { url: "http://127.0.0.1:1" };
    for (const controller of [own, named])
      assert.throws(
        () => createOperator({ controllers: [controller], connection, clusters: { west: connection } }),
        (error: Error) =>
          error.message ===
          'dependent "a" of controller "sample" lives in cluster "other", which is not configured; give it a connection in its ' +
            "option clusters, which has west",
      );
  });
});
