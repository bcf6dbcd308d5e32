// The ways in which the objects of dependents are written.
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { configOf, dependentController, outcomeOf, untilOutcome, writesOf } from "./sample-dependents.js";
import { ConfigMap, Sample, Secret, type DataObject } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const openSpace = spacesOf();
const sample = (spec: Sample["spec"] = { value: "first" }) => ({ metadata: { name: "one" }, spec });

interface ManagedField {
  manager: string;
  operation: string;
}

async function managersOf({ server, namespace }: Space, name: string): Promise<string[]> {
  const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  const { metadata } = await apiRequestOrThrow<{ metadata: { managedFields: ManagedField[] } }>(server, `GET ${path}`);
  const { managedFields } = metadata;
  return managedFields.map(({ manager, operation }) => `${manager} ${operation}`).sort();
}

suite("serverSideApply: false", (test) => {
  const put = { serverSideApply: false } as const;

  test("creates by POST, updates by PUT, and writes nothing if the object matches", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([configOf("a", put)])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "second");
    await space.patch(Sample, "one", { spec: { other: "x" } });
    await waitFor("it is reconciled", () => outcomeOf(running, "a")?.kind === "unchanged");
    await running.quiet();
    assert.equal(
      writesOf(running).filter((write) => write.includes("configmaps")),
      [`POST ${space.namespace}/configmaps 201`, "PUT configmaps/one-a 200"],
    );
    assert.is(running.events.length, 3, "own writes are no events");
    assert.equal(await managersOf(space, "one-a"), ["sample Update"]);
  });

  test("keeps metadata of other managers, and replaces all other fields", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", {
      ...put,
      desired: ({ primary }) => ({
        metadata: { name: "a", labels: { ours: primary.spec.value } },
        data: { value: primary.spec.value },
      }),
    });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "a", () => true);
    await running.quiet();
    const theirs = {
      labels: { ours: "wrong", theirs: "x" },
      annotations: { theirs: "y" },
      finalizers: ["example.com/x"],
    };
    await space.patch(ConfigMap, "a", { metadata: theirs, data: { value: "wrong", more: "x" } });
    const { metadata, data } = await space.until(ConfigMap, "a", (object) => object.data?.["value"] === "first");
    assert.equal(metadata.labels, { ours: "first", theirs: "x", "gen-operator.dev/controller": "sample" });
    assert.is(metadata.annotations?.["theirs"], "y");
    assert.equal(metadata.finalizers, ["example.com/x"]);
    assert.equal(data, { value: "first" });
    await space.patch(ConfigMap, "a", { metadata: { finalizers: null } });
  });

  test("retries on conflict without failing the reconcile", async () => {
    await using space = await openSpace();
    const { url, token, ca } = space.server;
    const other = new ApiClient(createConnection({ url, token, ca }));
    let isRacing = false;
    const dependent = configOf("a", {
      ...put,
      desired: async ({ primary }) => {
        // What the cache does not know yet when the PUT is sent.
        if (isRacing)
          await other.mergePatch(
            ConfigMap,
            { name: "one-a", namespace: space.namespace },
            { metadata: { labels: { theirs: "x" } } },
          );
        isRacing = false;
        return { metadata: { name: "one-a" }, data: { value: primary.spec.value ?? "" } };
      },
      // Writes at once, before the watch brings the change.
      matcher: () => false,
    });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await running.quiet();
    for (let round = 0; round < 5; round++) {
      isRacing = true;
      await space.patch(Sample, "one", { spec: { value: `round ${round}` } });
      await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === `round ${round}`);
    }
    await running.quiet();
    assert.equal(
      running.events.flatMap(({ error }) => error ?? []),
      [],
    );
    assert.is((await space.get(ConfigMap, "one-a"))?.metadata.labels?.["theirs"], "x");
    await other.close();
  });

  test("accepts stringData of a Secret without repeated writes", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", {
      ...put,
      resource: Secret.definition,
      desired: ({ primary }) => ({ metadata: { name: "a" }, stringData: { key: primary.spec.value } }),
    });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(Secret, "a", ({ data }) => data?.["key"] === Buffer.from("first").toString("base64"));
    await space.patch(Sample, "one", { spec: { other: "x" } });
    await waitFor("it is as desired", () => outcomeOf(running, "a")?.kind === "unchanged");
  });

  test("migrates to server-side apply and back without errors", async () => {
    await using space = await openSpace();
    await space.create(Sample, sample());
    const versions: [boolean, string[]][] = [
      [false, ["sample Update"]],
      [true, ["sample Apply"]],
      [false, ["sample Apply", "sample Update"]],
    ];
    for (const [index, [serverSideApply, managers]] of versions.entries()) {
      await using running = await space.start([dependentController([configOf("a", { serverSideApply })])]);
      await space.patch(Sample, "one", { spec: { value: `version ${index}` } });
      await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === `version ${index}`);
      assert.equal(await managersOf(space, "one-a"), managers);
      await running.quiet();
      assert.equal(
        running.events.flatMap(({ error }) => error ?? []),
        [],
      );
    }
  });
});

suite("values with characters that YAML escapes", (test) => {
  const text = "a\u007f \u0085 \u009b \u2028\u2029 \ufeff\ufffe\uffff";
  for (const serverSideApply of [true, false])
    test(`are written unchanged and once, ${serverSideApply ? "by apply" : "by POST"}`, async () => {
      await using space = await openSpace();
      const desired = () => ({ metadata: { name: "a", annotations: { text } }, data: { value: text } });
      await using running = await space.start([dependentController([configOf("a", { serverSideApply, desired })])]);
      await space.create(Sample, sample());
      const { metadata, data } = await space.until(ConfigMap, "a", () => true);
      assert.equal([metadata.annotations?.["text"], data], [text, { value: text }]);
      await space.patch(Sample, "one", { spec: { other: "x" } });
      await waitFor("it is reconciled", () => outcomeOf(running, "a")?.kind === "unchanged");
      await running.quiet();
      assert.is(writesOf(running).filter((write) => write.includes("configmaps")).length, 1);
    });
});

suite("fieldManager of a dependent", (test) => {
  test("owns the fields of the object, and causes no write after a restart", async () => {
    await using space = await openSpace();
    const dependents = [configOf("a", { fieldManager: "apart" }), configOf("b")];
    const start = () => space.start([dependentController(dependents)]);
    {
      await using _ = await start();
      await space.create(Sample, sample());
      await space.until(ConfigMap, "one-b", () => true);
      await space.until(ConfigMap, "one-a", () => true);
    }
    assert.equal(await managersOf(space, "one-a"), ["apart Apply"]);
    assert.equal(await managersOf(space, "one-b"), ["sample Apply"]);
    await using running = await start();
    await waitFor("it is reconciled", () => running.events.length > 0);
    await running.quiet();
    assert.equal(writesOf(running), [], "a restart finds all as desired");
    await space.patch(ConfigMap, "one-a", { data: { theirs: "x" } });
    await space.patch(ConfigMap, "one-a", { data: { value: "wrong" } });
    const { data } = await space.until(ConfigMap, "one-a", (object) => object.data?.["value"] === "first");
    assert.equal(data, { value: "first", theirs: "x" });
  });
});

suite("user-defined matcher", (test) => {
  test("decides whether the object is written", async () => {
    await using space = await openSpace();
    const seen: string[] = [];
    const dependent = configOf("a", {
      matcher: async (desired: DataObject, live: DataObject) => {
        seen.push(`${desired.kind} ${desired.metadata.namespace === space.namespace} ${live.data?.["value"]}`);
        return Promise.resolve(live.data?.["value"] !== "wrong");
      },
    });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await running.quiet();
    await space.patch(ConfigMap, "one-a", { data: { value: "fine" } });
    await waitFor("it is compared", () => seen.length > 0);
    await running.quiet();
    assert.is((await space.get(ConfigMap, "one-a"))?.data?.["value"], "fine");
    await space.patch(ConfigMap, "one-a", { data: { value: "wrong" } });
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
    assert.is(seen[0], "ConfigMap true fine");
  });

  test("fails with the name of the dependent if it does not return a boolean", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([configOf("a", { matcher: () => "yes" as never })])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await space.patch(ConfigMap, "one-a", { data: { value: "x" } });
    const failed = await untilOutcome(running, "a", "failed");
    assert.match(
      (failed as { error: Error }).error.message,
      /the matcher of dependent "a" returned string instead of a boolean/,
    );
  });
});

suite("dependents that share an event source", (test) => {
  const bySample = byAnnotation(Sample, { name: "example.com/sample" });
  const shared = (name: string, rest: Parameters<typeof configOf>[1] = {}) =>
    configOf(name, {
      eventSource: "configs",
      desired: ({ primary }) => ({
        metadata: {
          name: `${primary.metadata.name}-${name}`,
          annotations: { "example.com/sample": primary.metadata.name },
        },
        data: { value: `${name} ${primary.spec.value}` },
      }),
      ...rest,
    });
  const sources = { eventSources: () => [informerSource({ name: "configs", resource: ConfigMap, mapper: bySample })] };

  test("are created, updated and deleted independently, and filter own writes", async () => {
    await using space = await openSpace();
    const off = ({ primary }: { primary: Sample }) => primary.spec.other !== "off";
    const dependents = [shared("a"), shared("b", { reconcilePrecondition: off })];
    await using running = await space.start([dependentController(dependents, sources)]);
    await space.create(Sample, sample());
    const valueOf = (name: string, value: string) =>
      space.until(ConfigMap, `one-${name}`, ({ data }) => data?.["value"] === value);
    await Promise.all([valueOf("a", "a first"), valueOf("b", "b first")]);
    await running.quiet();
    assert.is(running.events.length, 1);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await Promise.all([valueOf("a", "a second"), valueOf("b", "b second")]);
    await running.quiet();
    assert.is(running.events.length, 2);
    await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
    await valueOf("a", "a second");
    await space.patch(Sample, "one", { spec: { other: "off" } });
    await space.untilGone(ConfigMap, "one-b");
    await valueOf("a", "a second");
  });

  test("do not adopt or delete an object that the event source maps to the primary but no dependent owns", async () => {
    await using space = await openSpace();
    const dependent = shared("a", { deletion: "ordered" });
    const annotations = { "example.com/sample": "one" };
    await space.create(ConfigMap, { metadata: { name: "one-a", annotations }, data: { value: "theirs" } });
    await using running = await space.start([dependentController([dependent], sources)]);
    await space.create(Sample, sample());
    await untilOutcome(running, "a", "failed");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is((await space.get(ConfigMap, "one-a"))?.data?.["value"], "theirs");
  });

  const wrong: [string, Partial<Parameters<typeof configOf>[1]>, RegExp][] = [
    [
      "does not exist",
      { eventSource: "others" },
      /shares event source "others", which does not exist; there are configs/,
    ],
    [
      "watches another kind",
      { resource: Secret.definition },
      /cannot share event source "configs": that is of ConfigMap.v1/,
    ],
  ];
  for (const [title, rest, message] of wrong)
    test(`are rejected at startup if it ${title}`, async () => {
      await using space = await openSpace();
      const { operator } = space.operator([dependentController([shared("a", rest)], sources)]);
      const error = await operator.start().then(
        () => "",
        (reason: Error) => reason.message,
      );
      assert.match(error, message);
    });

  test("use the event source of another dependent by its name", async () => {
    await using space = await openSpace();
    const dependents = [
      configOf("a", { labelSelector: "app=x", desired: labelled("a") }),
      configOf("b", { eventSource: "a", desired: labelled("b") }),
    ];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-b", () => true);
    await running.quiet();
    assert.is(running.events.length, 1);
    assert.equal(Object.keys(running.operator.controller("sample").health()), ["primary", "a"]);
    await space.delete(ConfigMap, "one-b");
    await space.until(ConfigMap, "one-b", () => true);
  });
});

const labelled =
  (name: string) =>
  ({ primary }: { primary: Sample }) => ({
    metadata: { name: `${primary.metadata.name}-${name}`, labels: { app: "x" } },
  });

suite("dependent of a kind without schema", (test) => {
  interface Deployment extends KubernetesObject {
    spec: { replicas: number };
  }
  const Deployment = classOf<Deployment>(builtinDefinition("apps/v1", "Deployment"));

  for (const serverSideApply of [true, false])
    test(`is created, compared, updated and deleted, ${serverSideApply ? "with apply" : "with PUT"}`, async () => {
      await using space = await openSpace();
      const untyped = { ...Deployment.definition, schema: {} };
      const dependent = configOf("web", {
        serverSideApply,
        resource: untyped,
        deletion: "ordered",
        desired: ({ primary }) => ({
          metadata: { name: "web" },
          spec: {
            replicas: primary.spec.number,
            selector: { matchLabels: { app: "web" } },
            template: {
              metadata: { labels: { app: "web" } },
              spec: {
                containers: [
                  {
                    name: "web",
                    image: "nginx",
                    ports: [{ containerPort: 80 }, { containerPort: 81, protocol: "UDP" }],
                    resources: { limits: { cpu: "1000m" } },
                  },
                ],
              },
            },
          },
        }),
      });
      await using running = await space.start([dependentController([dependent])]);
      await space.create(Sample, sample({ number: 1 }));
      await space.until(Deployment, "web", ({ spec }) => spec.replicas === 1);
      await space.patch(Sample, "one", { spec: { number: 2 } });
      await space.until(Deployment, "web", ({ spec }) => spec.replicas === 2);
      await running.quiet();
      const before = writesOf(running).length;
      await space.patch(Sample, "one", { spec: { other: "x" } });
      await waitFor("it is as desired", () => outcomeOf(running, "web")?.kind === "unchanged");
      await running.quiet();
      assert.is(writesOf(running).length, before);
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.is(await space.get(Deployment, "web"), undefined);
    });
});
