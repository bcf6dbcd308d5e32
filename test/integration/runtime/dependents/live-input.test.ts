// No write replaces an existing object whose live state was not an input of `desired`.
import { randomUUID } from "node:crypto";
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../support/suite.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { configOf, dependentController, writesOf, type SampleArguments, type Stated } from "./sample-dependents.js";
import { ConfigMap, Sample, Secret, type DataObject } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const openSpace = spacesOf();
const LABEL = "gen-operator.dev/controller";
const sample = { metadata: { name: "one" }, spec: { value: "first" } };
const encoded = (text: string) => Buffer.from(text).toString("base64");

type Data = DataObject | undefined;

/** A Secret that keeps its password: generated for the first object, then copied from the live one. */
const passwordOf = (data: DataObject["data"], value = "first") => ({
  metadata: { name: "one-password" },
  data: { password: data?.["password"] ?? encoded(randomUUID()), value: encoded(value) },
});

const single: Stated = {
  resource: Secret.definition,
  desired: ({ primary, secondary }) => passwordOf((secondary["a"] as Data)?.data, primary.spec.value),
};

const ways: { readonly [way: string]: Stated } = {
  "by apply": single,
  "by PUT": { ...single, serverSideApply: false },
  "linked by annotations": { ...single, deletion: "ordered" },
  "through an update of its own": {
    ...single,
    operations: { update: ({ next }: { next(): Promise<void> }) => next() },
  },
  "as an item of a bulk dependent": {
    resource: Secret.definition,
    bulk: {},
    desired: ({ primary, secondary }) => ({
      k: passwordOf((secondary["a"] as { k?: DataObject } | undefined)?.k?.data, primary.spec.value),
    }),
  },
  "read through the context": {
    resource: Secret.definition,
    desired: ({ primary, context }: SampleArguments) =>
      passwordOf(context.secondary(Secret, { name: "one-password" })?.data, primary.spec.value),
  },
};

const start = (space: Space, stated: Stated, rest: object = {}) =>
  space.start([dependentController([configOf("a", stated)], rest)]);
const passwordIn = async (space: Space) => (await space.get(Secret, "one-password"))?.data?.["password"];

/** Waits until the Secret states a value of the primary, and carries the label of the controller. */
function untilWritten(space: Space, value: string, label = "sample") {
  return space.until(Secret, "one-password", ({ data, metadata }) => {
    return data?.["value"] === encoded(value) && metadata.labels?.[LABEL] === label;
  });
}

async function edit(space: Space, value: string): Promise<void> {
  await space.patch(Sample, "one", { spec: { value } });
  await untilWritten(space, value);
}

suite("unlabelled existing object", (test) => {
  for (const [way, stated] of Object.entries(ways)) {
    test(`keeps its generated password when another client removes its label (${way})`, async () => {
      await using space = await openSpace();
      await using running = await start(space, stated);
      await space.create(Sample, sample);
      const before = (await untilWritten(space, "first")).data?.["password"];
      await running.quiet();
      await space.patch(Secret, "one-password", { metadata: { labels: { [LABEL]: null } } });
      await untilWritten(space, "first");
      assert.is(await passwordIn(space), before);
      await edit(space, "second");
      await running.quiet();
      assert.is(await passwordIn(space), before);
      assert.equal(failuresOf(running.events), []);
    });

    test(`keeps its generated password when its label is removed while the operator is stopped (${way})`, async () => {
      await using space = await openSpace();
      const first = await start(space, stated);
      await space.create(Sample, sample);
      const before = (await untilWritten(space, "first")).data?.["password"];
      await first.quiet();
      await first.operator.stop();
      await space.patch(Secret, "one-password", { metadata: { labels: { [LABEL]: null } } });
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await using running = await start(space, stated);
      await untilWritten(space, "second");
      await running.quiet();
      assert.is(await passwordIn(space), before);
      assert.equal(failuresOf(running.events), []);
    });

    test(`keeps its password when it is adopted (${way})`, async () => {
      await using space = await openSpace();
      await space.create(Secret, { metadata: { name: "one-password" }, data: { password: encoded("theirs") } });
      await space.create(Sample, sample);
      await using running = await start(space, { ...stated, existing: "adopt" });
      await untilWritten(space, "first");
      await edit(space, "second");
      assert.is(await passwordIn(space), encoded("theirs"));
      assert.equal(failuresOf(running.events), []);
    });
  }

  test("is adopted with one rejected create (409), two reads and one apply", async () => {
    await using space = await openSpace();
    await space.create(Secret, { metadata: { name: "one-password" }, data: { password: encoded("theirs") } });
    await space.create(Sample, sample);
    await using running = await start(space, { ...single, existing: "adopt" });
    await untilWritten(space, "first");
    await running.quiet();
    assert.equal(
      running.requests.filter((line) => line.includes("one-password")).map((line) => line.replace(/\/.*\//, "")),
      // The managed fields are read before the first apply of an object that others made.
      ["PATCH one-password 409", "GET one-password 200", "GET one-password 200", "PATCH one-password 200"],
    );
  });

  test("is rejected and not written without existing: adopt", async () => {
    await using space = await openSpace();
    await space.create(Secret, { metadata: { name: "one-password" }, data: { password: encoded("theirs") } });
    await space.create(Sample, sample);
    await using running = await start(space, single);
    await waitFor("it fails", () => failuresOf(running.events).length > 0);
    assert.match(
      failuresOf(running.events)[0]!,
      /Secret ".*\/one-password" already exists and is not owned by this primary/,
    );
    const { data, metadata } = (await space.get(Secret, "one-password"))!;
    assert.equal([data, metadata.labels], [{ password: encoded("theirs") }, undefined]);
  });

  test("is adopted if the function existing returns true for it", async () => {
    await using space = await openSpace();
    const annotations = { "example.com/adopt": "true" };
    await space.create(Secret, {
      metadata: { name: "one-password", annotations },
      data: { password: encoded("theirs") },
    });
    await space.create(Secret, { metadata: { name: "two-password" }, data: { password: encoded("theirs") } });
    const existing: NonNullable<KubernetesDependent["existing"]> = ({ live }: { live: object | undefined }) =>
      (live as Data)?.metadata.annotations?.["example.com/adopt"] === "true";
    const desired: Stated["desired"] = ({ primary, secondary }) => ({
      ...passwordOf((secondary["a"] as Data)?.data),
      metadata: { name: `${primary.metadata.name}-password` },
    });
    await space.create(Sample, sample);
    await space.create(Sample, { ...sample, metadata: { name: "two" } });
    await using running = await start(space, { ...single, desired, existing });
    await untilWritten(space, "first");
    await waitFor("the other one is refused", () => failuresOf(running.events).length > 0);
    assert.is(await passwordIn(space), encoded("theirs"));
    const other = await space.get(Secret, "two-password");
    assert.equal([other?.data, other?.metadata.labels], [{ password: encoded("theirs") }, undefined]);
  });

  test("is passed as live to reconcilePrecondition before it is adopted", async () => {
    await using space = await openSpace();
    await space.create(Secret, { metadata: { name: "one-password" }, data: { mode: encoded("off") } });
    await space.create(Sample, sample);
    const reconcilePrecondition = ({ live }: { live: object | undefined }) =>
      (live as Data)?.data?.["mode"] !== encoded("off");
    await using running = await start(space, { ...single, existing: "adopt", reconcilePrecondition });
    await waitFor("it was reconciled", () => running.events.at(-1)?.workflow?.dependents["a"]?.kind === "deleted");
    await running.quiet();
    assert.is(await passwordIn(space), undefined);
    assert.is((await space.get(Secret, "one-password"))?.data?.["mode"], encoded("off"));
    assert.equal(
      writesOf(running).filter((line) => line.endsWith("200")),
      [],
    );
  });
});

type Items = { readonly [key: string]: DataObject };

suite("bulk item with a new key", (test) => {
  const keyed: Stated = {
    resource: Secret.definition,
    bulk: {},
    desired: ({ primary: { spec }, secondary }) => {
      const { value = "" } = spec;
      const items = secondary["a"] as unknown as Items;
      return { [value]: passwordOf(items[value]?.data, value) };
    },
  };
  const keyedWays: { readonly [way: string]: Stated } = {
    "by apply": keyed,
    "by PUT": { ...keyed, serverSideApply: false },
    "linked by annotations": { ...keyed, deletion: "ordered" },
  };
  for (const [way, stated] of Object.entries(keyedWays))
    for (const isStopped of [false, true])
      test(`keeps the generated password of its object (${way}${isStopped ? ", after a restart" : ""})`, async () => {
        await using space = await openSpace();
        const first = await start(space, stated);
        await space.create(Sample, sample);
        const before = (await untilWritten(space, "first")).data?.["password"];
        await first.quiet();
        if (isStopped) await first.operator.stop();
        await space.patch(Sample, "one", { spec: { value: "second" } });
        await using running = isStopped ? await start(space, stated) : first;
        await untilWritten(space, "second");
        await running.quiet();
        assert.is(await passwordIn(space), before);
        assert.equal(failuresOf(running.events), []);
      });

  for (const [way, rest] of [
    ["by apply", {}],
    ["by PUT", { serverSideApply: false }],
  ] as const)
    test(`keeps its data when two items swap their objects (${way})`, async () => {
      await using space = await openSpace();
      const desired: Stated["desired"] = ({ primary: { spec }, secondary }) => {
        const items = secondary["a"] as unknown as Items;
        const names = spec.value === "first" ? ["x", "y"] : ["y", "x"];
        const item = (key: string, name: string) => [
          key,
          { metadata: { name }, data: { of: items[key]?.data?.["of"] ?? name, value: spec.value ?? "" } },
        ];
        return Object.fromEntries(["k", "l"].map((key, index) => item(key, names[index]!)));
      };
      await using running = await start(space, { ...rest, bulk: {}, desired });
      await space.create(Sample, sample);
      const untilAll = async (value: string) => {
        for (const name of ["x", "y"]) await space.until(ConfigMap, name, ({ data }) => data?.["value"] === value);
        await running.quiet();
      };
      await untilAll("first");
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await untilAll("second");
      for (const name of ["x", "y"]) assert.is((await space.get(ConfigMap, name))?.data?.["of"], name);
      assert.equal(failuresOf(running.events), []);
    });
});

suite("formerNames", (test) => {
  for (const [way, stated] of Object.entries(ways))
    test(`takes over objects of the former controller name, and keeps generated passwords (${way})`, async () => {
      await using space = await openSpace();
      const first = await start(space, stated);
      await space.create(Sample, sample);
      const before = (await untilWritten(space, "first")).data?.["password"];
      await first.quiet();
      await first.operator.stop();
      await using running = await start(space, stated, { name: "renamed", formerNames: ["sample"] });
      await untilWritten(space, "first", "renamed");
      await running.quiet();
      assert.is(await passwordIn(space), before);
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await untilWritten(space, "second", "renamed");
      assert.is(await passwordIn(space), before);
      assert.equal(failuresOf(running.events), []);
    });

  test("prunes unclaimed items of the former controller name", async () => {
    await using space = await openSpace();
    const bulkOf = (keys: readonly string[]): Stated => ({
      bulk: {},
      desired: () => Object.fromEntries(keys.map((key) => [key, { metadata: { name: `one-${key}` }, data: {} }])),
    });
    const first = await start(space, bulkOf(["k", "l"]));
    await space.create(Sample, sample);
    await space.until(ConfigMap, "one-l", () => true);
    await first.quiet();
    await first.operator.stop();
    await using _ = await start(space, bulkOf(["k"]), { name: "renamed", formerNames: ["sample"] });
    await space.untilGone(ConfigMap, "one-l");
    assert.ok(await space.get(ConfigMap, "one-k"));
  });
});

suite("cleanup of an unlabelled object", (test) => {
  const deletions: { readonly [way: string]: Stated } = {
    single: { deletion: "ordered" },
    "with PUT": { deletion: "ordered", serverSideApply: false },
    bulk: {
      deletion: "ordered",
      bulk: {},
      desired: ({ primary }) => ({ k: { metadata: { name: `${primary.metadata.name}-a` }, data: {} } }),
    },
  };
  for (const [way, stated] of Object.entries(deletions))
    for (const isStopped of [false, true])
      test(`deletes the object before the finalizer is removed (${way}${isStopped ? ", after a restart" : ""})`, async () => {
        await using space = await openSpace();
        const first = await start(space, stated);
        await space.create(Sample, sample);
        await space.until(ConfigMap, "one-a", () => true);
        await first.quiet();
        if (isStopped) await first.operator.stop();
        const paused = { metadata: { annotations: { "gen-operator.dev/paused": "true" } } };
        // Nothing puts the label back before the deletion.
        await space.patch(Sample, "one", paused);
        await space.patch(ConfigMap, "one-a", { metadata: { labels: { [LABEL]: null } } });
        await space.delete(Sample, "one");
        await space.patch(Sample, "one", { metadata: { annotations: { "gen-operator.dev/paused": null } } });
        if (isStopped) await start(space, stated);
        await space.untilGone(Sample, "one");
        assert.is(await space.get(ConfigMap, "one-a"), undefined);
      });

  test("keeps an object with the same name that is not linked to the primary", async () => {
    await using space = await openSpace();
    const isWanted = ({ primary }: { primary: Sample }) => primary.spec.value === "wanted";
    await using running = await start(space, { deletion: "ordered", reconcilePrecondition: isWanted });
    await space.create(ConfigMap, { metadata: { name: "one-a" }, data: { of: "others" } });
    const finalizers = ["samples.josdk.example.com/finalizer"];
    const annotations = { "gen-operator.dev/paused": "true" };
    await space.create(Sample, { ...sample, metadata: { name: "one", finalizers, annotations } });
    await running.quiet();
    await space.delete(Sample, "one");
    await space.patch(Sample, "one", { metadata: { annotations: { "gen-operator.dev/paused": null } } });
    await space.untilGone(Sample, "one");
    assert.equal((await space.get(ConfigMap, "one-a"))?.data, { of: "others" });
    // Nor is it deleted before the finalizer is removed from a primary that lives.
    await space.create(Sample, { ...sample, metadata: { name: "one", finalizers } });
    await space.until(Sample, "one", ({ metadata }) => metadata.finalizers === undefined);
    await running.quiet();
    assert.equal((await space.get(ConfigMap, "one-a"))?.data, { of: "others" });
  });
});

suite("change of the live object during desired()", (test) => {
  for (const [way, rest] of [
    ["by apply", {}],
    ["by PUT", { serverSideApply: false }],
  ] as const)
    test(`causes another read, so that the concurrent change is kept (${way})`, async () => {
      await using space = await openSpace();
      let meanwhile: (() => Promise<unknown>) | undefined;
      const desired: Stated["desired"] = async ({ primary, secondary }) => {
        const count = (secondary["a"] as Data)?.data?.["count"] ?? "0";
        const run = meanwhile;
        meanwhile = undefined;
        await run?.();
        return { metadata: { name: "one-a" }, data: { count, value: primary.spec.value ?? "" } };
      };
      await using running = await start(space, { ...rest, desired });
      await space.create(Sample, sample);
      await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
      await running.quiet();
      meanwhile = () => space.patch(ConfigMap, "one-a", { data: { count: "7" } });
      await space.patch(Sample, "one", { spec: { value: "second" } });
      const { data } = await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "second");
      assert.is(data?.["count"], "7");
      await running.quiet();
      assert.is((await space.get(ConfigMap, "one-a"))?.data?.["count"], "7");
      assert.equal(failuresOf(running.events), []);
    });

  test("fails the reconcile after 3 attempts, and the retry succeeds", async () => {
    await using space = await openSpace();
    let isHeld = false;
    let count = 0;
    const desired: Stated["desired"] = async ({ primary, secondary }) => {
      const known = (secondary["a"] as Data)?.data?.["count"] ?? "0";
      if (isHeld) await space.patch(ConfigMap, "one-a", { data: { count: `${++count}` } });
      return { metadata: { name: "one-a" }, data: { count: known, value: primary.spec.value ?? "" } };
    };
    await using running = await start(space, { desired });
    await space.create(Sample, sample);
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
    await running.quiet();
    isHeld = true;
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await waitFor("it has failed", () => failuresOf(running.events).length > 0);
    isHeld = false;
    assert.match(
      failuresOf(running.events)[0]!,
      /ConfigMap ".*\/one-a" changed 3 times while desired\(\) was computed/,
    );
    const { data } = await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "second");
    assert.is(data?.["count"], `${count}`);
  });
});
