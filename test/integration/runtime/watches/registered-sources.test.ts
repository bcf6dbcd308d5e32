// Event sources as users write them, after JOSDK's integration tests.
import type { KubernetesObject, ObjectKey } from "#runtime/base/kubernetes-object.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { EventSource, EventSourceContext } from "#runtime/sources/event-source.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { singleResource } from "#runtime/sources/external-cache.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { perPrimaryPollingSource } from "#runtime/sources/polling-sources.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, Sample, sampleController, Secret, type DataObject } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();

const bySample = byAnnotation(Sample, { name: "sample" });
const config = (name: string, value: string, metadata: object = { annotations: { sample: "one" } }) => ({
  metadata: { name, ...metadata },
  data: { value },
});
const sample = (name: string, spec: Sample["spec"] = {}) => ({ metadata: { name }, spec });

/** Writes what the only ConfigMap of the primary says into the status. */
function statusController(sources: () => readonly EventSource[]) {
  return sampleController(
    { reconcile: ({ context }) => updateStatus({ value: context.secondary(ConfigMap)?.data?.["value"] ?? "none" }) },
    { eventSources: sources },
  );
}

suite("dynamic event source", (test) => {
  test("registered in a reconcile is available beside the others, and triggers reconciles", async () => {
    await using space = await openSpace();
    const Untyped = untypedResource({ apiVersion: "v1", kind: "Secret", plural: "secrets", scope: "Namespaced" });
    const seen: string[] = [];
    const controller = sampleController(
      {
        reconcile: async ({ context }) => {
          const { eventSources } = context;
          await eventSources.register(informerSource({ name: "later", resource: Untyped, mapper: bySample }));
          const names = ["first", "later"].filter((name) => eventSources.get(name) !== undefined);
          const secrets = context.secondaries(Untyped).map(({ metadata }) => metadata.name);
          seen.push([...names, ...secrets].join(" "));
        },
      },
      { eventSources: () => [informerSource({ name: "first", resource: ConfigMap, mapper: bySample })] },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, sample("one"));
    await waitFor("it is reconciled", () => seen.length === 1);
    await space.create(Secret, { metadata: { name: "theirs", annotations: { sample: "one" } } });
    await waitFor("the secret is seen", () => seen.length === 2);
    await running.quiet();
    assert.equal(seen, ["first later", "first later theirs"]);
  });
});

suite("user-defined event source", (test) => {
  test("triggers reconciles on its own schedule until the operator stops", async () => {
    await using space = await openSpace();
    let calls = 0;
    const periodic = (): EventSource => {
      let cancel = () => {};
      const ring = (context: EventSourceContext) => {
        context.notify([...context.primaries.keys()]);
        cancel = context.clock.schedule(20, () => ring(context));
      };
      return {
        name: "periodic",
        health: { status: "healthy" },
        start: async (context) => ring(context),
        stop: async () => cancel(),
        secondariesOf: () => [],
      };
    };
    const controller = sampleController({ reconcile: () => void calls++ }, { eventSources: () => [periodic()] });
    await using running = await space.start([controller]);
    await space.create(Sample, sample("one"));
    await waitFor("it is reconciled again and again", () => calls >= 5);
    await running.operator.stop();
    const before = calls;
    await running.quiet(100);
    assert.is(calls, before, "nothing rings after the stop");
  });

  test("polls the resources of each primary until the primary is deleted", async () => {
    await using space = await openSpace();
    const values = new Map([
      ["one", "first"],
      ["two", "first"],
    ]);
    const polls: string[] = [];
    const source = () =>
      perPrimaryPollingSource<string, Sample>({
        name: "values",
        type: "value",
        idOf: singleResource,
        intervalMs: 20,
        fetch: ({ metadata }) => {
          polls.push(metadata.name);
          return [values.get(metadata.name) ?? ""];
        },
      });
    const controller = sampleController(
      { reconcile: ({ context }) => updateStatus({ value: context.secondary<string>("value") ?? "none" }) },
      { eventSources: () => [source()] },
    );
    await using _ = await space.start([controller]);
    for (const name of values.keys()) await space.create(Sample, sample(name));
    for (const name of values.keys()) await space.until(Sample, name, ({ status }) => status?.value === "first");
    values.set("one", "second");
    await space.until(Sample, "one", ({ status }) => status?.value === "second");
    assert.is((await space.get(Sample, "two"))?.status?.value, "first");
    await space.delete(Sample, "one");
    await waitFor("the deletion is known", () => polls.length > 4 && !polls.slice(-4).includes("one"));
    const since = polls.length;
    await waitFor("the other is polled on", () => polls.length > since + 4);
    assert.equal([...new Set(polls.slice(since))], ["two"]);
  });
});

suite("informer source", (test) => {
  test("reconciles the primary once for each creation and deletion of a secondary", async () => {
    await using space = await openSpace();
    const controller = statusController(() => [
      informerSource({ name: "configs", resource: ConfigMap, mapper: bySample }),
    ]);
    await using running = await space.start([controller]);
    await space.create(Sample, sample("one"));
    await space.until(Sample, "one", ({ status }) => status?.value === "none");
    await space.create(ConfigMap, config("a", "first"));
    await space.until(Sample, "one", ({ status }) => status?.value === "first");
    await space.delete(ConfigMap, "a");
    await space.until(Sample, "one", ({ status }) => status?.value === "none");
    await running.quiet();
    assert.is(running.events.length, 3);
  });

  test("delivers creations, updates and deletions of an untyped kind", async () => {
    await using space = await openSpace();
    const Untyped = untypedResource({ apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", scope: "Namespaced" });
    const valueOf = (object: KubernetesObject | undefined) =>
      (object as DataObject | undefined)?.data?.["value"] ?? "none";
    const controller = sampleController(
      { reconcile: ({ context }) => updateStatus({ value: valueOf(context.secondary(Untyped)) }) },
      { eventSources: () => [informerSource({ name: "configs", resource: Untyped, mapper: bySample })] },
    );
    await using _ = await space.start([controller]);
    await space.create(Sample, sample("one"));
    await space.create(ConfigMap, config("a", "first"));
    await space.until(Sample, "one", ({ status }) => status?.value === "first");
    await space.patch(ConfigMap, "a", { data: { value: "second" } });
    await space.until(Sample, "one", ({ status }) => status?.value === "second");
    await space.delete(ConfigMap, "a");
    await space.until(Sample, "one", ({ status }) => status?.value === "none");
  });

  test("maps secondaries of another cluster by annotations", async () => {
    await using space = await openSpace();
    await using remote = await startTestApiServer();
    const { url, token, ca } = remote;
    const connection = { url, token, ca };
    const client = new ApiClient(createConnection(connection));
    const mapper = byAnnotation(Sample, { name: "sample", namespace: "sample-namespace" });
    const controller = statusController(() => [
      informerSource({ name: "remote", resource: ConfigMap, mapper, namespaces: "all", connection }),
    ]);
    await using _ = await space.start([controller]);
    await space.create(Sample, sample("one"));
    await space.until(Sample, "one", ({ status }) => status?.value === "none");
    const annotations = { sample: "one", "sample-namespace": space.namespace };
    await client.create(ConfigMap, config("far", "away", { namespace: "default", annotations }));
    await space.until(Sample, "one", ({ status }) => status?.value === "away");
    await client.close();
  });

  test("deduplicates an object that two sources cache, and coalesces its events", async () => {
    await using space = await openSpace();
    const seen: [all: number, distinct: number, latest: string | undefined][] = [];
    const controller = sampleController(
      {
        reconcile: ({ context }) => {
          const distinct = context.secondaries(ConfigMap, { deduplicated: true });
          seen.push([context.secondaries(ConfigMap).length, distinct.length, distinct[0]?.data?.["value"]]);
        },
      },
      {
        eventSources: () => [
          informerSource({ name: "all", resource: ConfigMap, mapper: bySample }),
          informerSource({ name: "labelled", resource: ConfigMap, mapper: bySample, labelSelector: "app=ours" }),
        ],
      },
    );
    const metadata = { annotations: { sample: "one" }, labels: { app: "ours" } };
    await space.create(Sample, sample("one"));
    await space.create(ConfigMap, config("a", "first", metadata));
    await using running = await space.start([controller]);
    await waitFor("it is reconciled", () => seen.length > 0);
    await space.patch(ConfigMap, "a", { data: { value: "second" } });
    await waitFor("the change is seen", () => seen.at(-1)?.[2] === "second");
    await running.quiet();
    assert.equal(seen[0], [2, 1, "first"]);
    assert.equal(seen.at(-1), [2, 1, "second"]);
    assert.ok(seen.length <= 3, `${seen.length} reconciles`);
  });

  test("delivers events of its own label selector only, beside another source of the kind", async () => {
    await using space = await openSpace();
    const sources: string[] = [];
    const source = (name: string) =>
      informerSource({ name, resource: ConfigMap, mapper: bySample, labelSelector: `of=${name}` });
    const controller = sampleController(
      {
        reconcile: ({ context }) => {
          sources.push(...context.reasons.flatMap((reason) => (reason.kind === "secondary" ? [reason.source] : [])));
        },
      },
      { eventSources: () => [source("left"), source("right")] },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, sample("one"));
    await waitFor("it is reconciled", () => running.events.length === 1);
    for (const name of ["right", "left"]) {
      await space.create(ConfigMap, config(name, "x", { annotations: { sample: "one" }, labels: { of: name } }));
      await waitFor("its creation is seen", () => sources.at(-1) === name);
    }
    await running.quiet();
    assert.equal(sources, ["right", "left"]);
  });

  test("filters secondaries and primaries by fieldSelector on the server", async () => {
    await using space = await openSpace();
    const seen: string[] = [];
    const controller = sampleController(
      {
        reconcile: ({ primary, context }) => {
          const secrets = context.secondaries(Secret).map(({ metadata }) => metadata.name);
          seen.push([primary.metadata.name, ...secrets].join(" "));
        },
      },
      {
        fieldSelector: "spec.value=ours",
        eventSources: () => [
          informerSource({ name: "secrets", resource: Secret, mapper: bySample, fieldSelector: "type=josdk.dev/ours" }),
        ],
      },
    );
    await using running = await space.start([controller]);
    const secret = (name: string, type: string) => ({ metadata: { name, annotations: { sample: "one" } }, type });
    await space.create(Sample, sample("other", { value: "theirs" }));
    await space.create(Sample, sample("one", { value: "ours" }));
    await waitFor("ours is reconciled", () => seen.length === 1);
    await space.create(Secret, secret("wrong", "Opaque"));
    await space.create(Secret, secret("right", "josdk.dev/ours"));
    await waitFor("the secret is seen", () => seen.length === 2);
    await running.quiet();
    assert.equal(seen, ["one", "one right"]);
  });
});

suite("mapper", (test) => {
  const namesOf = ({ data }: DataObject) => (data?.["samples"] ?? "").split(",").filter((name) => name !== "");

  test("enqueues all primaries that an index returns for a secondary", async () => {
    await using space = await openSpace();
    const seen: string[] = [];
    const controller = sampleController(
      { reconcile: ({ primary }) => void seen.push(primary.metadata.name) },
      {
        indexes: { config: ({ spec }) => (spec.value === undefined ? [] : [spec.value]) },
        eventSources: () => [
          informerSource({
            name: "configs",
            resource: ConfigMap,
            mapper: ({ metadata }, { primaries }) => [...primaries.keysByIndex("config", metadata.name)],
          }),
        ],
      },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, sample("one", { value: "shared" }));
    await space.create(Sample, sample("two", { value: "shared" }));
    await space.create(Sample, sample("three", { value: "another" }));
    await waitFor("all are reconciled", () => seen.length === 3);
    seen.length = 0;
    await space.create(ConfigMap, config("shared", "x", {}));
    await waitFor("both are reconciled", () => seen.length === 2);
    await running.quiet();
    assert.equal(seen.sort(), ["one", "two"]);
  });

  test("with primaryToSecondary provides references in the first reconcile, and enqueues their changes", async () => {
    await using space = await openSpace();
    const controller = statusController(() => [
      informerSource<DataObject, Sample>({
        name: "configs",
        resource: ConfigMap,
        primaryToSecondary: ({ metadata, spec }) =>
          (spec.references ?? []).map((name) => keyOf({ name, namespace: metadata.namespace })),
      }),
    ]);
    await using running = await space.start([controller]);
    await space.create(ConfigMap, config("shared", "first", {}));
    for (const name of ["one", "two"]) await space.create(Sample, sample(name, { references: ["shared"] }));
    for (const name of ["one", "two"]) await space.until(Sample, name, ({ status }) => status?.value === "first");
    await running.quiet();
    await space.patch(ConfigMap, "shared", { data: { value: "second" } });
    for (const name of ["one", "two"]) await space.until(Sample, name, ({ status }) => status?.value === "second");
    await running.quiet();
    assert.is(running.events.length, 4);
  });

  test("maps a cached secondary to a primary created later, and enqueues the deletion", async () => {
    await using space = await openSpace();
    const seen: [related: string | undefined, named: string | undefined][] = [];
    const controller = sampleController(
      {
        reconcile: ({ context }) => {
          const related = context.secondary(ConfigMap)?.metadata.name;
          seen.push([related, context.secondary(ConfigMap, { name: "shared" })?.metadata.name]);
        },
      },
      {
        indexes: { config: ({ spec }) => spec.references ?? [] },
        eventSources: () => [
          informerSource({
            name: "configs",
            resource: ConfigMap,
            mapper: ({ metadata }, { primaries }) => [...primaries.keysByIndex("config", metadata.name)],
          }),
        ],
      },
    );
    await space.create(ConfigMap, config("shared", "first", {}));
    await using running = await space.start([controller]);
    await space.create(Sample, sample("one", { references: ["shared"] }));
    await waitFor("it is reconciled", () => seen.length === 1);
    await running.quiet();
    assert.equal(seen, [["shared", "shared"]]);
    await space.delete(ConfigMap, "shared");
    await waitFor("it is reconciled again", () => seen.length === 2);
    assert.equal(seen[1], [undefined, undefined]);
  });

  test("enqueues kept, added and removed primaries when the references of a secondary change", async () => {
    await using space = await openSpace();
    const mapper = (object: DataObject): ObjectKey[] =>
      namesOf(object).map((name) => keyOf({ name, namespace: object.metadata.namespace }));
    const controller = statusController(() => [informerSource({ name: "configs", resource: ConfigMap, mapper })]);
    await using _ = await space.start([controller]);
    for (const name of ["one", "two", "three"]) await space.create(Sample, sample(name));
    for (const name of ["one", "two", "three"])
      await space.until(Sample, name, ({ status }) => status?.value === "none");
    await space.create(ConfigMap, { metadata: { name: "shared" }, data: { value: "first", samples: "one,two" } });
    for (const name of ["one", "two"]) await space.until(Sample, name, ({ status }) => status?.value === "first");
    assert.is((await space.get(Sample, "three"))?.status?.value, "none");
    await space.patch(ConfigMap, "shared", { data: { value: "second", samples: "two,three" } });
    for (const name of ["two", "three"]) await space.until(Sample, name, ({ status }) => status?.value === "second");
    await space.until(Sample, "one", ({ status }) => status?.value === "none");
  });
});
