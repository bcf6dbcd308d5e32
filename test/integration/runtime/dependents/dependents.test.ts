// Dependents as objects of Kubernetes, after JOSDK's integration tests.
import type { KubernetesObject, ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { genericMatcher } from "#runtime/apply/generic-matcher.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  COLLECTING,
  configOf,
  dependentController,
  outcomeOf,
  untilCollected,
  untilOutcome,
  writesOf,
} from "./sample-dependents.js";
import { ConfigMap, Sample, Secret, type DataObject } from "../sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "../space.js";

const openSpace = spacesOf({ simulate: true });
const sample = (spec: Sample["spec"] = { value: "first" }, name = "one") => ({ metadata: { name }, spec });

interface Deployment extends KubernetesObject {
  spec: { replicas: number };
}
const Deployment = classOf<Deployment>(builtinDefinition("apps/v1", "Deployment"));
const StatefulSet = classOf<Deployment>(builtinDefinition("apps/v1", "StatefulSet"));
const Service = classOf(builtinDefinition("v1", "Service"));
const ServiceAccount = classOf(builtinDefinition("v1", "ServiceAccount"));

const podTemplate = (resources = {}) => ({
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "web", image: "nginx", env: [{ name: "EMPTY", value: "" }], resources }] },
});
const workload = (name: string, replicas = 1, rest: object = {}) => ({
  metadata: { name },
  spec: { replicas, selector: { matchLabels: { app: "web" } }, template: podTemplate(), ...rest },
});

/** Waits until the value of a ConfigMap is as wanted. */
const untilValue = (space: Space, name: string, value: string) =>
  space.until(ConfigMap, name, ({ data }) => data?.["value"] === value);

/** Reconciles once more, by a change that concerns no dependent; returns what was written by that. */
async function writesOfAnotherPass(space: Space, running: TestOperator): Promise<string[]> {
  await running.quiet();
  const [writes, events] = [writesOf(running).length, running.events.length];
  await space.patch(Sample, "one", { spec: { other: `pass ${events}` } });
  await waitFor("it is reconciled", () => running.events.length > events);
  await running.quiet();
  return writesOf(running).slice(writes);
}

suite("dependent", (test) => {
  test("links an object with deletion: ordered by annotations, and reverts changes of other clients", async () => {
    await using space = await openSpace();
    await using _ = await space.start([dependentController([configOf("a", { deletion: "ordered" })])]);
    await space.create(Sample, sample());
    const { metadata } = await untilValue(space, "one-a", "first");
    assert.is(metadata.ownerReferences, undefined);
    assert.is(metadata.annotations?.["gen-operator.dev/primary-name"], "one");
    assert.is(metadata.annotations?.["gen-operator.dev/primary-namespace"], space.namespace);
    assert.is(metadata.annotations?.["gen-operator.dev/primary-type"], "Sample.josdk.example.com");
    await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
    await untilValue(space, "one-a", "first");
    await space.delete(Sample, "one");
    await space.untilGone(ConfigMap, "one-a");
    await space.untilGone(Sample, "one");
  });

  test("maps its object to the primary by user-defined annotations", async () => {
    await using space = await openSpace();
    const keys = { name: "example.com/name", namespace: "example.com/namespace" };
    const dependent = configOf("a", {
      deletion: "ordered",
      eventSource: "configs",
      desired: ({ primary: { metadata, spec } }) => ({
        metadata: {
          name: "a",
          annotations: { [keys.name]: metadata.name, [keys.namespace]: metadata.namespace },
        },
        data: { value: spec.value },
      }),
    });
    const controller = dependentController([dependent], {
      eventSources: () => [
        informerSource({ name: "configs", resource: ConfigMap, mapper: byAnnotation(Sample, keys) }),
      ],
    });
    await using _ = await space.start([controller]);
    await space.create(Sample, sample());
    const { metadata } = await untilValue(space, "a", "first");
    assert.is(metadata.annotations?.[keys.name], "one");
    await space.patch(ConfigMap, "a", { data: { value: "theirs" } });
    await untilValue(space, "a", "first");
    await space.delete(Sample, "one");
    await space.untilGone(ConfigMap, "a");
  });

  test("ignores updates that its onUpdate filter rejects", async () => {
    await using space = await openSpace();
    const onUpdate = ({ data }: DataObject) => data?.["value"] !== "ignored";
    await using running = await space.start([dependentController([configOf("a", { filters: { onUpdate } })])]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await running.quiet();
    const before = running.events.length;
    await space.patch(ConfigMap, "one-a", { data: { value: "ignored" } });
    await running.quiet();
    assert.is(running.events.length, before);
    await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
    await untilValue(space, "one-a", "first");
  });

  test("updates its object in a second operator after the first has stopped", async () => {
    await using space = await openSpace();
    const controller = dependentController([configOf("a")]);
    {
      await using _ = await space.start([controller]);
      await space.create(Sample, sample());
      await untilValue(space, "one-a", "first");
    }
    const { metadata } = (await space.get(ConfigMap, "one-a"))!;
    await using _ = await space.start([controller]);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValue(space, "one-a", "second");
    assert.is((await space.get(ConfigMap, "one-a"))?.metadata.uid, metadata.uid);
  });

  test("reads the object that a dependency created in the same reconcile, for 50 primaries at once", async () => {
    await using space = await openSpace();
    const secret = configOf("secret", {
      resource: Secret.definition,
      desired: ({ primary }) => ({
        metadata: { name: primary.metadata.name },
        stringData: { value: primary.metadata.name },
      }),
    });
    const map = configOf("map", {
      dependsOn: ["secret"],
      desired: ({ primary, secondary }) => ({
        metadata: { name: primary.metadata.name },
        data: { value: (secondary["secret"] as DataObject).data!["value"] },
      }),
    });
    await using running = await space.start([dependentController([secret, map])]);
    const names = Array.from({ length: 50 }, (_, index) => `one-${index}`);
    await Promise.all(names.map((name) => space.create(Sample, sample({}, name))));
    await waitFor("all are made", async () => (await space.list(ConfigMap)).length >= 50);
    await running.quiet();
    for (const { metadata, data } of await space.list(ConfigMap))
      if (names.includes(metadata.name)) assert.is(data?.["value"], Buffer.from(metadata.name).toString("base64"));
    assert.equal(
      running.events.flatMap(({ error }) => error ?? []),
      [],
    );
  });

  test("keeps fields of other managers, and is written only if its own fields change", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([configOf("a")])]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await space.patch(ConfigMap, "one-a", { data: { theirs: "x" } });
    assert.equal(await writesOfAnotherPass(space, running), []);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    const { data } = await untilValue(space, "one-a", "second");
    assert.is(data?.["theirs"], "x");
    await running.quiet();
    assert.is(writesOf(running).filter((write) => write.startsWith("PATCH configmaps/")).length, 2);
  });

  test("creates, updates and deletes an object of an untyped kind", async () => {
    await using space = await openSpace();
    const Untyped = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });
    const dependent = configOf("a", { resource: Untyped.definition, deletion: "ordered" });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValue(space, "one-a", "second");
    assert.equal(await writesOfAnotherPass(space, running), []);
    await space.delete(Sample, "one");
    await space.untilGone(ConfigMap, "one-a");
  });

  test(
    "is garbage-collected with its primary, and deleted at once if its reconcilePrecondition is false",
    async () => {
      await using space = await openSpace();
      const reconcilePrecondition = ({ primary }: { primary: Sample }) => primary.spec.other !== "off";
      await using running = await space.start([dependentController([configOf("a", { reconcilePrecondition })])]);
      await space.create(Sample, sample());
      const { metadata } = await untilValue(space, "one-a", "first");
      assert.is(metadata.ownerReferences?.[0]?.name, "one");
      await space.patch(Sample, "one", { spec: { other: "off" } });
      await space.untilGone(ConfigMap, "one-a");
      await untilOutcome(running, "a", "deleted");
      await space.patch(Sample, "one", { spec: { other: null } });
      await untilValue(space, "one-a", "first");
      await space.delete(Sample, "one");
      await untilCollected(space, ConfigMap, "one-a");
    },
    COLLECTING,
  );

  const parts = (name: string) => ({
    labelSelector: `part=${name}`,
    desired: ({ primary }: { primary: Sample }) => ({
      metadata: { name: `one-${name}`, labels: { part: name } },
      data: { value: primary.spec.value },
    }),
  });
  for (const [title, settingsOf] of [
    ["one watch", () => ({})],
    ["a watch each", parts],
  ] as const)
    test(`is distinguished from another dependent of its kind, with ${title}`, async () => {
      await using space = await openSpace();
      const dependents = ["a", "b"].map((name) => configOf(name, { ...settingsOf(name), deletion: "ordered" }));
      await using running = await space.start([dependentController(dependents)]);
      await space.create(Sample, sample());
      await Promise.all([untilValue(space, "one-a", "first"), untilValue(space, "one-b", "first")]);
      await space.delete(ConfigMap, "one-a");
      await untilValue(space, "one-a", "first");
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await Promise.all([untilValue(space, "one-a", "second"), untilValue(space, "one-b", "second")]);
      assert.equal(await writesOfAnotherPass(space, running), []);
      await space.delete(Sample, "one");
      await Promise.all([space.untilGone(ConfigMap, "one-a"), space.untilGone(ConfigMap, "one-b")]);
    });

  test("works with an index of primaries that maps an event of its kind to two of them", async () => {
    await using space = await openSpace();
    const byReference = ({ spec }: Sample) => spec.references ?? [];
    const dependent = configOf("a", {
      eventSource: "configs",
      desired: ({ primary }) => ({ metadata: { name: primary.metadata.name }, data: {} }),
    });
    const controller = dependentController([dependent], {
      indexes: { reference: byReference },
      eventSources: () => [
        informerSource({
          name: "configs",
          resource: ConfigMap,
          mapper: ({ metadata }, { primaries }) => [...primaries.keysByIndex("reference", metadata.name)],
        }),
      ],
    });
    await using running = await space.start([controller]);
    for (const name of ["one", "two"]) await space.create(Sample, sample({ references: ["shared"] }, name));
    await waitFor("both are reconciled", () => running.events.length >= 2);
    await running.quiet();
    const before = running.events.length;
    await space.create(ConfigMap, { metadata: { name: "shared" } });
    await waitFor("both are reconciled again", () => running.events.length === before + 2);
    const again = running.events.slice(before).map(({ primary }) => primary);
    assert.equal(
      again.sort(),
      ["one", "two"].map((name) => keyOf({ namespace: space.namespace, name })),
    );
  });

  test("waits for a read-only dependency that the primary references", async () => {
    await using space = await openSpace();
    const refersTo = ({ metadata, spec }: Sample) =>
      (spec.references ?? []).map((name) => keyOf({ namespace: metadata.namespace, name }));
    const config = configOf("config", { mode: "readOnly", eventSource: "configs" });
    const secret = configOf("secret", {
      resource: Secret.definition,
      dependsOn: ["config"],
      reconcilePrecondition: ({ secondary }: { secondary: { config: DataObject } }) =>
        secondary.config.data?.["open"] === "yes",
      desired: ({ primary }) => ({ metadata: { name: primary.metadata.name } }),
    });
    const controller = dependentController([config, secret], {
      eventSources: () => [informerSource({ name: "configs", resource: ConfigMap, primaryToSecondary: refersTo })],
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample({ references: ["door"] }));
    await untilOutcome(running, "secret", "waiting");
    await space.create(ConfigMap, { metadata: { name: "door" }, data: { open: "no" } });
    await untilOutcome(running, "secret", "deleted");
    await space.patch(ConfigMap, "door", { data: { open: "yes" } });
    await space.until(Secret, "one", () => true);
    await space.patch(ConfigMap, "door", { data: { open: "no" } });
    await space.untilGone(Secret, "one");
  });
});

suite("server-side mutation", (test) => {
  const kinds: [title: string, kind: { definition: ResourceDefinition }, desired: (replicas: number) => object][] = [
    [
      "a Deployment with quantities and empty values",
      Deployment,
      (replicas) => workload("web", replicas, { template: podTemplate({ limits: { cpu: "2000m" } }) }),
    ],
    [
      "a StatefulSet with volumeClaimTemplates",
      StatefulSet,
      (replicas) =>
        workload("web", replicas, {
          serviceName: "web",
          volumeClaimTemplates: [
            {
              metadata: { name: "data" },
              spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
            },
          ],
        }),
    ],
    [
      "a Service",
      Service,
      () => ({ metadata: { name: "web" }, spec: { selector: { app: "web" }, ports: [{ port: 80, name: "http" }] } }),
    ],
    ["a ServiceAccount, which has no spec", ServiceAccount, () => ({ metadata: { name: "web" } })],
  ];
  for (const [title, kind, desired] of kinds)
    for (const serverSideApply of [true, false])
      test(`causes no write for ${title}, ${serverSideApply ? "with server-side apply" : "with PUT"}`, async () => {
        await using space = await openSpace();
        const dependent = configOf("web", {
          serverSideApply,
          resource: kind.definition,
          desired: ({ primary }) => desired(primary.spec.number ?? 1),
        });
        await using running = await space.start([dependentController([dependent])]);
        await space.create(Sample, sample({ number: 1 }));
        await space.until(kind as typeof Deployment, "web", () => true);
        assert.equal(await writesOfAnotherPass(space, running), []);
        assert.is(outcomeOf(running, "web")?.kind, "unchanged");
        if (kind !== Deployment) return;
        await space.patch(Sample, "one", { spec: { number: 2 } });
        await space.until(Deployment, "web", ({ spec }) => spec.replicas === 2);
        assert.equal(await writesOfAnotherPass(space, running), []);
      });

  const matchers: [title: string, matcher: ReturnType<typeof genericMatcher>][] = [
    ["matches a subset", genericMatcher()],
    [
      "compares strictly except for ignoredPaths",
      genericMatcher({ ignoredPaths: ["/spec/clusterIP", "/spec/clusterIPs"] }),
    ],
  ];
  for (const [title, matches] of matchers)
    test(`causes no write with a matcher that ${title}`, async () => {
      await using space = await openSpace();
      const spec = {
        selector: { app: "web" },
        ports: [{ port: 80, name: "http", protocol: "TCP", targetPort: 80 }],
        type: "ClusterIP",
        sessionAffinity: "None",
        internalTrafficPolicy: "Cluster",
        ipFamilies: ["IPv4"],
        ipFamilyPolicy: "SingleStack",
      };
      const dependent = configOf("web", {
        resource: Service.definition,
        desired: () => ({ metadata: { name: "web" }, spec }),
        matcher: (desired: KubernetesObject, live: KubernetesObject) =>
          matches({ definition: Service.definition, verb: "apply", isStatus: false, desired, live }),
      });
      await using running = await space.start([dependentController([dependent])]);
      await space.create(Sample, sample());
      await space.until(Service, "web", () => true);
      assert.equal(await writesOfAnotherPass(space, running), []);
      assert.is(writesOf(running).filter((write) => write.includes("services/")).length, 1);
    });
});
