// A namespace, a kind or a cluster that cannot be watched holds up nobody else; what is not known of it is never taken for absent.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byLabel } from "#runtime/sources/mappers.js";
import { assert, suite } from "../../../support/suite.js";
import { startRecordingProxy } from "../../../support/api/recording-proxy.js";
import { failureOf } from "../../../support/runtime/failures.js";
import type { RecordedOperator } from "../../../support/runtime/recorded-operator.js";
import { configOf, dependentController, writesOf } from "../dependents/sample-dependents.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { ClusterSample, ConfigMap, Sample, sampleCrd, Secret } from "../sample-kind.js";
import { spacesOf } from "../space.js";
import { createTenants, HEALING } from "./tenants.js";

const openSpace = spacesOf();
const openSimulated = spacesOf({ crds: [sampleCrd], simulate: true });
const Namespace = classOf(builtinDefinition("v1", "Namespace"));
const rbac = (kind: string) => builtinDefinition("rbac.authorization.k8s.io/v1", kind);
const ClusterRole = classOf<KubernetesObject & { rules: object[] }>(rbac("ClusterRole"));
const ClusterRoleBinding = classOf<KubernetesObject & { roleRef: object; subjects: object[] }>(
  rbac("ClusterRoleBinding"),
);

const healthOf = ({ operator }: RecordedOperator) => operator.health().controllers["sample"]!;
const reconciledOf = ({ events }: RecordedOperator) => [...new Set(events.map(({ primary }) => primary))];
const SLOW = { timeoutMs: 60_000 };
const probes = { healthProbeBindAddress: "127.0.0.1:0" };

async function readyz({ logs }: RecordedOperator) {
  const [, port] = /at 127\.0\.0\.1:(\d+)$/.exec(logs.findLast((line) => line.includes("serves the probes"))!)!;
  const response = await fetch(`http://127.0.0.1:${port}/readyz?verbose`);
  return { status: response.status, text: await response.text() };
}

suite("unreadable namespace", (test) => {
  test(
    "does not block other namespaces at startup, and is reconciled once it is readable",
    async () => {
      await using space = await openSpace();
      const { a, b, forbid, allow, operator, sample, setValue, untilValue, valueOf } = await createTenants(space);
      const controllers = [dependentController([configOf("config")])];
      await using first = operator(controllers);
      await first.operator.start();
      await sample(a);
      await sample(b);
      for (const namespace of [a, b]) await untilValue("one-config", namespace, "first");
      await first.operator.stop();
      await forbid(b);
      await using second = operator(controllers, probes);
      await second.operator.start();
      await setValue(a, "second");
      await setValue(b, "second");
      await untilValue("one-config", a, "second");
      assert.equal([reconciledOf(second), await valueOf("one-config", b)], [[`${a}/one`], "first"]);
      const { primary } = healthOf(second).sources;
      assert.equal([primary?.status, primary?.namespaces?.[a]], ["unhealthy", { status: "synced" }]);
      assert.is(primary?.namespaces?.[b]?.status, "failing");
      assert.match(primary?.namespaces?.[b]?.reason ?? "", `in namespace "${b}"`);
      const { status, text } = await readyz(second);
      assert.is(status, 200);
      assert.match(text, "[+]controller/sample/primary ok: fails in part: not allowed to list and watch");
      await allow(b);
      await untilValue("one-config", b, "second");
      await waitFor("all is healthy", () => second.operator.health().status === "healthy", HEALING);
      await space.client.delete(Sample, { name: "one", namespace: a });
    },
    SLOW,
  );

  test(
    "does not block other namespaces when it is added, and is reconciled once it is readable",
    async () => {
      await using space = await openSpace();
      const { a, b, forbid, allow, operator, sample, setValue, untilValue } = await createTenants(space);
      await using running = operator([{ ...dependentController([configOf("config")]), namespaces: [a] }]);
      await running.operator.start();
      await forbid(b);
      await running.operator.controller("sample").setNamespaces([a, b]);
      await sample(a);
      await sample(b);
      await untilValue("one-config", a, "first");
      assert.equal(reconciledOf(running), [`${a}/one`]);
      await allow(b);
      await untilValue("one-config", b, "first");
      await setValue(a, "second");
      await untilValue("one-config", a, "second");
    },
    SLOW,
  );

  test(
    "that does not exist yet blocks no other, and is reconciled once it is created",
    async () => {
      await using space = await openSpace();
      const { a, allow, operator, sample, setValue, untilValue } = await createTenants(space);
      const later = `${a}-later`;
      const controller = { ...dependentController([configOf("config")]), namespaces: [a, later] };
      await using running = operator([controller], probes);
      await running.operator.start();
      await sample(a);
      await untilValue("one-config", a, "first");
      assert.is((await readyz(running)).status, 200);
      assert.is(healthOf(running).sources["primary"]?.namespaces?.[later]?.status, "failing");
      await space.client.create(Namespace, { metadata: { name: later } });
      await allow(later);
      await sample(later);
      await untilValue("one-config", later, "first");
      await setValue(a, "second");
      await untilValue("one-config", a, "second");
    },
    SLOW,
  );

  test(
    "that is deleted with its RBAC rules blocks no other, and is reconciled once it is recreated",
    async () => {
      await using space = await openSimulated();
      const { a, b, allow, operator, sample, setValue, untilValue } = await createTenants(space);
      const controllers = [dependentController([configOf("config")])];
      await using first = operator(controllers);
      await first.operator.start();
      for (const namespace of [a, b]) await sample(namespace);
      for (const namespace of [a, b]) await untilValue("one-config", namespace, "first");
      await space.client.delete(Namespace, { name: b });
      const isGone = async () => (await space.client.get(Namespace, { name: b })) === undefined;
      await waitFor("the namespace is gone", isGone, HEALING);
      await setValue(a, "second");
      await untilValue("one-config", a, "second");
      await first.operator.stop();
      await using second = operator(controllers);
      await second.operator.start();
      await setValue(a, "third");
      await untilValue("one-config", a, "third");
      assert.is(healthOf(second).sources["primary"]?.namespaces?.[b]?.status, "failing");
      await space.client.create(Namespace, { metadata: { name: b } });
      await allow(b);
      await sample(b, "again");
      await untilValue("one-config", b, "again");
    },
    SLOW,
  );

  test(
    "fails the start with watchFailurePolicy: block",
    async () => {
      await using space = await openSpace();
      const { a, b, forbid, operator, sample } = await createTenants(space);
      await forbid(b);
      await sample(a);
      const controller = { ...dependentController([configOf("config")]), watchFailurePolicy: "block" } as const;
      await using running = operator([controller], { startTimeoutMs: 2_000 });
      assert.match(await failureOf(() => running.operator.start()), `in namespace "${b}"`);
      assert.equal(running.events, []);
    },
    SLOW,
  );
});

suite("unreadable kind in one namespace", (test) => {
  test(
    "blocks reconcile and cleanup only of primaries in that namespace, with an Event",
    async () => {
      await using space = await openSpace();
      const tenants = await createTenants(space);
      const { a, b, allow, operator, sample, setValue, untilValue, valueOf, notesOf } = tenants;
      const controllers = [dependentController([configOf("config", { deletion: "ordered" })])];
      await using first = operator(controllers);
      await first.operator.start();
      for (const namespace of [a, b]) await sample(namespace);
      for (const namespace of [a, b]) await untilValue("one-config", namespace, "first");
      await first.operator.stop();
      await allow(b, ["samples", "samples/status", "events"]);
      await using second = operator(controllers);
      await second.operator.start();
      for (const namespace of [a, b]) await setValue(namespace, "second");
      await untilValue("one-config", a, "second");
      await waitFor("it says what the primary waits for", async () => (await notesOf(b, "WaitingForWatch")).length > 0);
      const reason = healthOf(second).waiting.primaries[0]?.reason ?? "";
      assert.match(reason, `ConfigMap.v1 in namespace "${b}"`);
      assert.equal(second.operator.controller("sample").details().waiting.first, [{ primary: `${b}/one`, reason }]);
      assert.is(second.logs.filter((line) => line.startsWith("info not reconciled yet")).length, 1);
      // A cleanup would not find the object.
      await space.client.delete(Sample, { name: "one", namespace: b });
      await space.client.delete(Sample, { name: "one", namespace: a });
      await waitFor("the other one is cleaned up", async () => (await valueOf("one-config", a)) === undefined);
      await second.quiet();
      assert.equal([reconciledOf(second), await valueOf("one-config", b)], [[`${a}/one`], "first"]);
      await allow(b);
      await waitFor("it is cleaned up", async () => (await valueOf("one-config", b)) === undefined, HEALING);
      assert.is(healthOf(second).waiting.count, 0);
    },
    SLOW,
  );

  test(
    "delays pruning only in that namespace",
    async () => {
      await using space = await openSpace();
      const { a, b, allow, operator, sample, untilValue, valueOf } = await createTenants(space);
      await using first = operator([dependentController([configOf("config"), configOf("old")])]);
      await first.operator.start();
      for (const namespace of [a, b]) await sample(namespace);
      for (const namespace of [a, b]) await untilValue("one-old", namespace, "first");
      await first.operator.stop();
      await allow(b, ["samples", "samples/status", "secrets", "events"]);
      const removed = { old: { resource: ConfigMap.definition, deletion: "ordered" as const } };
      const secret = configOf("secret", {
        resource: Secret.definition,
        desired: ({ primary }) => ({
          metadata: { name: `${primary.metadata.name}-secret` },
        }),
      });
      await using second = operator([dependentController([secret], { workflow: { removed } })]);
      await second.operator.start();
      await waitFor("the one is pruned", async () => (await valueOf("one-old", a)) === undefined);
      assert.is(await valueOf("one-old", b), "first");
      await allow(b);
      await waitFor("so is the other", async () => (await valueOf("one-old", b)) === undefined, HEALING);
    },
    SLOW,
  );

  test(
    "blocks a primary in another namespace whose dependent is there, including its deletion",
    async () => {
      await using space = await openSpace();
      const { a, b, allow, operator, sample, setValue, untilValue, valueOf } = await createTenants(space);
      const elsewhere = configOf("config", {
        deletion: "ordered",
        desired: ({ primary: { metadata, spec } }) => ({
          metadata: { name: `${metadata.name}-config`, namespace: metadata.name === "far" ? b : a },
          data: { value: spec.value ?? "" },
        }),
      });
      const controllers = [dependentController([elsewhere])];
      await using first = operator(controllers);
      await first.operator.start();
      await sample(a, "first", "far");
      await sample(a);
      await untilValue("far-config", b, "first");
      await untilValue("one-config", a, "first");
      await first.operator.stop();
      await allow(b, ["samples", "events"]);
      await using second = operator(controllers);
      await second.operator.start();
      await setValue(a, "second");
      await untilValue("one-config", a, "second");
      const far = { name: "far", namespace: a };
      await waitFor(
        "it waits",
        () =>
          second.events.findLast(({ primary }) => primary === `${a}/far`)?.workflow?.dependents["config"]?.kind ===
          "waiting",
      );
      await space.client.delete(Sample, far);
      await space.client.delete(Sample, { name: "one", namespace: a });
      await waitFor("one is cleaned up", async () => (await valueOf("one-config", a)) === undefined);
      await second.quiet();
      assert.ok((await space.client.get(Sample, far)) !== undefined, "its dependent would be left");
      await allow(b);
      await waitFor("far is cleaned up", async () => (await valueOf("far-config", b)) === undefined, HEALING);
      await waitFor("and gone", async () => (await space.client.get(Sample, far)) === undefined);
    },
    SLOW,
  );

  for (const [how, mapper] of [
    ["a function", ({ metadata }: KubernetesObject) => [`${metadata.namespace}/one`]],
    ["labels", byLabel(Sample, { name: "example.com/sample" })],
  ] as const)
    test(
      `of an event source that maps within its namespace by ${how} blocks only primaries there`,
      async () => {
        await using space = await openSpace();
        const { a, b, allow, operator, sample, untilValue, notesOf } = await createTenants(space);
        const eventSources = () => [informerSource({ name: "secrets", resource: Secret, mapper })];
        await allow(b, ["samples", "samples/status", "configmaps", "events"]);
        await using running = operator([dependentController([configOf("config")], { eventSources })]);
        await running.operator.start();
        for (const namespace of [a, b]) await sample(namespace);
        await untilValue("one-config", a, "first");
        await waitFor("the other waits", async () => (await notesOf(b, "WaitingForWatch")).length > 0);
        assert.equal(reconciledOf(running), [`${a}/one`]);
        await allow(b);
        await untilValue("one-config", b, "first");
      },
      SLOW,
    );

  test(
    "of an event source that maps to other namespaces blocks primaries there, too",
    async () => {
      await using space = await openSpace();
      const { a, b, allow, operator, sample, untilValue } = await createTenants(space);
      // The secret says whose it is.
      const mapper = ({ metadata }: KubernetesObject) =>
        metadata.labels?.["samples"]?.split("_").map((name) => `${a}/${name}`) ?? [];
      const eventSources = () => [informerSource({ name: "secrets", resource: Secret, mapper })];
      await space.client.create(Secret, { metadata: { name: "shared", namespace: b, labels: { samples: "one" } } });
      await allow(b, ["samples", "samples/status", "configmaps", "events"]);
      const seen: number[] = [];
      const reconcile = ({ context }: { context: { secondaries(type: typeof Secret): readonly object[] } }) =>
        void seen.push(context.secondaries(Secret).length);
      const controller = dependentController([configOf("config")], {
        eventSources,
        reconciler: { reconcile } as never,
      });
      await using running = operator([controller]);
      await running.operator.start();
      await sample(a);
      await waitFor("it waits", () => healthOf(running).waiting.count === 1);
      await running.quiet();
      assert.equal(running.events, []);
      await allow(b);
      await untilValue("one-config", a, "first");
      assert.equal([...new Set(seen)], [1]);
    },
    SLOW,
  );
});

suite("unreadable kind in all namespaces", (test) => {
  test(
    "blocks neither the start nor other controllers, and readyz returns 503",
    async () => {
      await using space = await openSpace();
      const { a, b, allow, operator, sample, untilValue } = await createTenants(space);
      for (const namespace of [a, b]) await allow(namespace, ["samples", "samples/status", "configmaps"]);
      const secret = configOf("secret", {
        resource: Secret.definition,
        desired: ({ primary }) => ({ metadata: { name: `${primary.metadata.name}-secret` } }),
      });
      const other = {
        ...dependentController([secret, configOf("lost")]),
        name: "other",
        finalizer: "example.com/other",
      };
      await using running = operator([dependentController([configOf("config")]), other], probes);
      await running.operator.start();
      await sample(a);
      await untilValue("one-config", a, "first");
      await waitFor(
        "the other controller waits",
        () => running.operator.health().controllers["other"]!.waiting.count === 1,
      );
      assert.is(await space.client.get(ConfigMap, { name: "one-lost", namespace: a }), undefined);
      const { status, text } = await readyz(running);
      assert.is(status, 503);
      assert.match(
        text,
        "[-]controller/other failed: no namespace can be served: not allowed to list and watch Secret.v1",
      );
      assert.match(text, "[+]controller/sample ok");
      await allow(a);
      await untilValue("one-lost", a, "first");
      const healed = await readyz(running);
      assert.is(healed.status, 200);
      assert.match(
        healed.text,
        `[+]controller/other/secret ok: fails in part: not allowed to list and watch Secret.v1 in namespace "${b}"`,
      );
    },
    SLOW,
  );

  test(
    "does not keep a standby from taking over and reconciling readable namespaces",
    async () => {
      await using space = await openSpace();
      const { a, b, allow, forbid, operator, sample, untilValue } = await createTenants(space);
      await allow(a, ["samples", "samples/status", "configmaps", "events", "leases"]);
      await forbid(b);
      const controllers = [dependentController([configOf("config")])];
      const leaderElection = { namespace: a, leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 500 };
      await using first = operator(controllers, { leaderElection });
      await first.operator.start();
      await waitFor("it leads", () => first.operator.health().leadership?.isLeading);
      await using second = operator(controllers, { leaderElection });
      await second.operator.start();
      assert.is(second.operator.health().leadership?.isLeading, false);
      await first.operator.stop();
      await sample(a);
      await sample(b);
      await untilValue("one-config", a, "first");
      await waitFor("the end of its reconcile", () => reconciledOf(second).length > 0);
      assert.equal(reconciledOf(second), [`${a}/one`]);
      await allow(b);
      await untilValue("one-config", b, "first");
    },
    SLOW,
  );

  test(
    "blocks cluster-scoped primaries that may have dependents there",
    async () => {
      await using space = await openSpace();
      const { a, b, allow, operator, untilValue } = await createTenants(space);
      const name = `${a}-cluster`;
      const user = `operator-of-${a}`;
      const metadata = { name: user };
      const rules = [{ apiGroups: ["josdk.example.com"], resources: ["clustersamples"], verbs: ["*"] }];
      await space.client.create(ClusterRole, { metadata, rules });
      const subjects = [{ kind: "User", name: user, apiGroup: "rbac.authorization.k8s.io" }];
      const roleRef = { kind: "ClusterRole", name: user, apiGroup: "rbac.authorization.k8s.io" };
      await space.client.create(ClusterRoleBinding, { metadata, roleRef, subjects });
      await allow(b, ["samples"]);
      const dependent = configOf("config", {
        deletion: "ordered",
        desired: ({ primary }) => ({
          metadata: { name: `${primary.metadata.name}-config`, namespace: a },
          data: { value: primary.spec.value ?? "" },
        }),
      });
      const controller = { ...dependentController([dependent]), namespaces: [a, b] };
      const workflow = { ...controller.workflow, primary: ClusterSample.definition };
      await using running = operator([{ ...controller, fieldSelector: `metadata.name=${name}`, workflow }]);
      await running.operator.start();
      await space.client.create(ClusterSample, { metadata: { name }, spec: { value: "first" } });
      await waitFor("it waits", () => healthOf(running).waiting.count === 1);
      await running.quiet();
      assert.equal(running.events, []);
      await allow(b);
      await untilValue(`${name}-config`, a, "first");
    },
    SLOW,
  );
});

suite("restart with readable namespaces", (test) => {
  test("reconciles all primaries with one watch for each kind and namespace, and no other requests", async () => {
    await using space = await openSpace();
    const { a, b, operator, sample, untilValue } = await createTenants(space);
    const controllers = [dependentController([configOf("config")])];
    await using first = operator(controllers);
    await first.operator.start();
    for (const namespace of [a, b]) await sample(namespace);
    for (const namespace of [a, b]) await untilValue("one-config", namespace, "first");
    await first.operator.stop();
    await using proxy = await startRecordingProxy(space.server);
    const connection = { url: proxy.url, token: space.server.token, impersonation: { user: `operator-of-${a}` } };
    await using second = operator(controllers, { connection });
    await second.operator.start();
    await waitFor("both are reconciled", () => reconciledOf(second).length === 2);
    await second.quiet();
    assert.equal([second.requests, writesOf(second)], [[], []]);
    const collections = [a, b].flatMap((each) => [
      `GET /api/v1/namespaces/${each}/configmaps`,
      `GET /apis/${Sample.definition.apiVersion}/namespaces/${each}/samples`,
    ]);
    assert.equal(
      proxy.requests.map(({ method, path }) => `${method} ${path.replace(/\?.*/, "")}`).sort(),
      collections.sort(),
    );
    assert.ok(proxy.requests.every(({ path }) => path.includes("watch=")));
    assert.equal(
      [healthOf(second).waiting, healthOf(second).sources["primary"]],
      [{ count: 0, primaries: [] }, { status: "healthy" }],
    );
  });
});
