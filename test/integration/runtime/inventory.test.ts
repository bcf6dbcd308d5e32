// What a primary notes about its dependents, and when.
import { waitFor } from "#runtime/base/wait-for.js";
import { assert, suite } from "../../support/suite.js";
import { configOf, dependentController, writesOf } from "../josdk/sample-dependents.js";
import { ConfigMap, Sample } from "../josdk/sample-kind.js";
import { ANNOTATION, HOLD, notedIn, openSpace, runFirst, sample, secretOf, startSecond } from "./two-versions.js";

suite("an inventory", (test) => {
  test("is written before the first object, so that a crash in between loses nothing", async () => {
    await using space = await openSpace();
    const noted: string[][] = [];
    const dependent = secretOf("b", {
      desired: (async () => {
        noted.push(await notedIn(space));
        throw new Error("the operator dies here");
      }) as never,
    });
    {
      await using _ = await space.start([dependentController([dependent])]);
      await space.create(Sample, sample());
      await waitFor("it was called", () => noted.length > 0);
    }
    assert.equal(noted[0], ["b"]);
    await using running = await startSecond(space, [configOf("a")]);
    await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "a");
    assert.equal(
      writesOf(running).filter((write) => write.startsWith("DELETE")),
      [],
    );
  });

  for (const usesServerSideApply of [true, false])
    test(`costs no request where the primary gets a finalizer, ${usesServerSideApply ? "" : "not "}by apply`, async () => {
      await using space = await openSpace();
      const ordered = configOf("a", { isGarbageCollected: false });
      await using running = await space.start([dependentController([ordered], { usesServerSideApply })]);
      const of = (name: string, metadata: object) => ({ metadata: { name, ...metadata }, spec: { value: "first" } });
      await space.create(Sample, of("one", {}));
      await space.create(Sample, of("two", { finalizers: [HOLD], annotations: { "example.com/theirs": "theirs" } }));
      await space.create(Sample, of("three", { finalizers: [HOLD] }));
      for (const name of ["one", "two", "three"]) {
        await space.until(ConfigMap, `${name}-a`, () => true);
        await running.quiet();
        const writes = writesOf(running).filter((write) => write.includes(`/${name}`));
        assert.equal(writes, [`PATCH samples/${name} 200`, `PATCH configmaps/${name}-a 201`]);
        assert.equal(await notedIn(space, name), ["a"]);
      }
      const { finalizers, annotations } = (await space.get(Sample, "two"))!.metadata;
      assert.is(finalizers?.[0], HOLD);
      assert.is(finalizers?.length, 2);
      assert.is(annotations?.["example.com/theirs"], "theirs");
      assert.is(running.events.length, 3, "own writes are no events");
      for (const name of ["two", "three"]) await space.patch(Sample, name, { metadata: { finalizers: null } });
    });

  test("that says too much is put right, and what somebody took away comes back", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), secretOf("b")]);
    const text = (await space.get(Sample, "one"))?.metadata.annotations?.[ANNOTATION] ?? "";
    {
      await using _ = await startSecond(space, [configOf("a")]);
      await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "a");
    }
    // As after a crash between the deletion and the update of the inventory.
    await space.patch(Sample, "one", { metadata: { annotations: { [ANNOTATION]: text } } });
    {
      await using _ = await startSecond(space, [configOf("a")]);
      await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "a");
    }
    for (const wrong of [null, "nonsense", '[{"name":1}]']) {
      await space.patch(Sample, "one", { metadata: { annotations: { [ANNOTATION]: wrong } } });
      await using _ = await startSecond(space, [configOf("a")]);
      await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "a");
    }
  });

  test("survives what the reconciler and others apply to the primary", async () => {
    await using space = await openSpace();
    const reconciler = {
      reconcile: ({ primary }: { primary: Sample }) => ({
        resource: { metadata: { annotations: { ours: primary.spec.value ?? "" } } },
      }),
    };
    await using running = await space.start([dependentController([configOf("a")], { reconciler })]);
    await space.create(Sample, sample());
    await space.until(Sample, "one", ({ metadata }) => metadata.annotations?.["ours"] === "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(Sample, "one", ({ metadata }) => metadata.annotations?.["ours"] === "second");
    await running.quiet();
    assert.equal(await notedIn(space), ["a"]);
    assert.is(writesOf(running).filter((write) => write.includes("samples/one")).length, 3);
  });
});
