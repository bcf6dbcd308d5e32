// Dependents that are objects of Kubernetes, after JOSDK's integration tests.
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#runtime/base/wait-for.js";
import { informerSource } from "#runtime/events/informer-source.js";
import { byAnnotation } from "#runtime/events/mappers.js";
import { assert, suite } from "../../support/suite.js";
import { configOf, dependentController, type SampleArguments } from "./sample-dependents.js";
import { ConfigMap, Sample, Secret, type DataObject } from "./sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "./space.js";

const openSpace = spacesOf();
const sample = (spec: Sample["spec"] = { value: "first" }, name = "one") => ({ metadata: { name }, spec });
const base64 = (text: string) => Buffer.from(text).toString("base64");

const untilValue = (space: Space, name: string, value: string) =>
  space.until(ConfigMap, name, ({ data }) => data?.["value"] === value);
const errorsOf = ({ events }: TestOperator) => events.flatMap(({ error }) => error ?? []);

suite("what ties a dependent to its primary", (test) => {
  test("are annotations where Kubernetes is not to collect it, and a change of it is put right", async () => {
    await using space = await openSpace();
    await using _ = await space.start([dependentController([configOf("a", { isGarbageCollected: false })])]);
    await space.create(Sample, sample());
    const { metadata } = await untilValue(space, "one-a", "first");
    assert.is(metadata.ownerReferences, undefined);
    assert.is(metadata.annotations?.["gen-operator.dev/primary-name"], "one");
    assert.is(metadata.annotations?.["gen-operator.dev/primary-namespace"], space.namespace);
    await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
    await untilValue(space, "one-a", "first");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
  });

  test("may be annotations of the user's own, by which an event source finds the primary", async () => {
    await using space = await openSpace();
    const annotations = { "example.com/of": "one" };
    const dependent = configOf("a", {
      eventSource: "configs",
      isGarbageCollected: false,
      desired: ({ primary }) => ({
        metadata: { name: "a", annotations: { "example.com/of": primary.metadata.name } },
        data: { value: primary.spec.value },
      }),
    });
    const mapper = byAnnotation(Sample, { name: "example.com/of" });
    const controller = dependentController([dependent], {
      eventSources: () => [informerSource({ name: "configs", resource: ConfigMap, mapper })],
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample());
    await untilValue(space, "a", "first");
    await space.patch(ConfigMap, "a", { data: { value: "theirs" } });
    await untilValue(space, "a", "first");
    await running.quiet();
    const before = running.events.length;
    await space.create(ConfigMap, { metadata: { name: "theirs", annotations } });
    await waitFor("what carries the annotation causes a reconcile", () => running.events.length > before);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "a"), undefined);
    assert.ok(await space.get(ConfigMap, "theirs"));
  });
});

suite("events of a dependent", (test) => {
  test("cause no reconcile if its filter says so", async () => {
    await using space = await openSpace();
    const filters = { onUpdate: ({ data }: DataObject) => data?.["value"] !== "ignored" } as never;
    await using running = await space.start([dependentController([configOf("a", { filters })])]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await running.quiet();
    const before = running.events.length;
    await space.patch(ConfigMap, "one-a", { data: { value: "ignored" } });
    await running.quiet();
    assert.is(running.events.length, before);
    assert.is((await space.get(ConfigMap, "one-a"))?.data?.["value"], "ignored");
    await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
    await untilValue(space, "one-a", "first");
  });
});

suite("the definition of a dependent", (test) => {
  test("keeps nothing of an operator, and serves the next", async () => {
    await using space = await openSpace();
    const controllers = [dependentController([configOf("a")])];
    for (const value of ["first", "second"]) {
      await using running = await space.start(controllers);
      if (value === "first") await space.create(Sample, sample());
      else await space.patch(Sample, "one", { spec: { value } });
      await untilValue(space, "one-a", value);
      await space.delete(ConfigMap, "one-a");
      await untilValue(space, "one-a", value);
      await running.quiet();
      assert.equal(errorsOf(running), []);
    }
  });
});

suite("what desired reads", (test) => {
  test("is what was written just before, for fifty primaries at once, without an error", async () => {
    await using space = await openSpace();
    const secret = configOf("secret", {
      resource: Secret.definition,
      desired: ({ primary }) => ({
        metadata: { name: primary.metadata.name },
        data: { key: base64(primary.metadata.name) },
      }),
    });
    const config = configOf("config", {
      dependsOn: ["secret"],
      desired: ({ primary, secondary }) => ({
        metadata: { name: primary.metadata.name },
        data: { value: (secondary["secret"] as DataObject).data!["key"] },
      }),
    });
    await using running = await space.start([dependentController([secret, config], { retry: { maxAttempts: 0 } })]);
    const names = Array.from({ length: 50 }, (_, index) => `sample-${index}`);
    await Promise.all(names.map((name) => space.create(Sample, sample({}, name))));
    await Promise.all(names.map((name) => untilValue(space, name, base64(name))));
    await running.quiet();
    assert.equal(errorsOf(running), []);
    assert.is(running.events.length, names.length);
  });

  test("may be an object that others make, found through an index of the primaries", async () => {
    await using space = await openSpace();
    const theirs = configOf("theirs", { mode: "readOnly", eventSource: "configs" });
    const controller = dependentController(
      [
        theirs,
        configOf("copy", {
          dependsOn: ["theirs"],
          desired: ({ primary, secondary }) => ({
            metadata: { name: `${primary.metadata.name}-copy` },
            data: { value: (secondary["theirs"] as DataObject).data?.["value"] },
          }),
        }),
      ],
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
    for (const name of ["one", "two"]) await space.create(Sample, sample({ value: "shared" }, name));
    await waitFor("both wait", () => running.events.length >= 2);
    await space.create(ConfigMap, { metadata: { name: "shared" }, data: { value: "x" } });
    for (const name of ["one", "two"]) await untilValue(space, `${name}-copy`, "x");
    await space.patch(ConfigMap, "shared", { data: { value: "y" } });
    for (const name of ["one", "two"]) await untilValue(space, `${name}-copy`, "y");
  });

  test("and its conditions may be an object that the primary refers to", async () => {
    await using space = await openSpace();
    const isOn = (({ context }: SampleArguments & { context: { secondary(type: unknown): DataObject | undefined } }) =>
      context.secondary(ConfigMap)?.data?.["secret"] === "on") as never;
    const secret = configOf("secret", {
      resource: Secret.definition,
      reconcilePrecondition: isOn,
      desired: ({ primary }) => ({ metadata: { name: `${primary.metadata.name}-secret` } }),
    });
    const controller = dependentController([secret], {
      eventSources: () => [
        informerSource<DataObject, Sample>({
          name: "configs",
          resource: ConfigMap,
          primaryToSecondary: ({ metadata, spec }) =>
            (spec.references ?? []).map((name) => keyOf({ name, namespace: metadata.namespace })),
        }),
      ],
    });
    await using _ = await space.start([controller]);
    await space.create(ConfigMap, { metadata: { name: "settings" }, data: { secret: "on" } });
    await space.create(Sample, sample({ references: ["settings"] }));
    await space.until(Secret, "one-secret", () => true);
    await space.patch(ConfigMap, "settings", { data: { secret: "off" } });
    await space.untilGone(Secret, "one-secret");
    await space.patch(ConfigMap, "settings", { data: { secret: "on" } });
    await space.until(Secret, "one-secret", () => true);
  });
});

suite("several dependents of one kind", (test) => {
  const owned = (name: string) => `one-${name}`;

  async function checkLife(space: Space, running: TestOperator): Promise<void> {
    await space.create(Sample, sample());
    for (const name of ["a", "b"]) await untilValue(space, owned(name), "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    for (const name of ["a", "b"]) await untilValue(space, owned(name), "second");
    await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
    await space.delete(ConfigMap, "one-b");
    for (const name of ["a", "b"]) await untilValue(space, owned(name), "second");
    await running.quiet();
    assert.equal(errorsOf(running), []);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    for (const name of ["a", "b"]) assert.is(await space.get(ConfigMap, owned(name)), undefined);
  }
  const pair = ["a", "b"].map((name) => configOf(name, { isGarbageCollected: false }));

  test("are told apart by their names", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController(pair)]);
    await checkLife(space, running);
  });

  test("are told apart by their names where the reconciler runs each by itself", async () => {
    await using space = await openSpace();
    const names = ["a", "b"];
    const workflows = Object.fromEntries(
      pair.map((dependent) => [dependent.name, { primary: Sample.definition, dependents: [dependent] }]),
    );
    const reconciler: Parameters<typeof dependentController>[1] = {
      workflows,
      reconciler: {
        reconcile: async ({ context }) => {
          for (const name of names) await context.workflows.get(name).reconcile();
        },
        cleanup: async ({ context }) => {
          for (const name of names) await context.workflows.get(name).cleanup();
        },
      },
    };
    await using running = await space.start([dependentController([], reconciler)]);
    await checkLife(space, running);
  });

  test("may have a watch each, that knows its own objects only", async () => {
    await using space = await openSpace();
    const dependents = pair.map((dependent) => ({
      ...dependent,
      labelSelector: `app=${dependent.name}`,
      desired: (({ primary }: SampleArguments) => ({
        metadata: { name: owned(dependent.name), labels: { app: dependent.name } },
        data: { value: primary.spec.value },
      })) as never,
    }));
    await using running = await space.start([dependentController(dependents)]);
    assert.equal(Object.keys(running.operator.controller("sample").health()), ["primary", "a", "b"]);
    await checkLife(space, running);
  });
});
