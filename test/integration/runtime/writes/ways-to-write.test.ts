// What every way to write promises, on an API server: JOSDK's ResourceOperationsIT, SecondaryResourceOperationsIT and the verbs of its
// ResourceOperationsTest; the names of the originals stand in brackets.
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { ResourceWrite } from "#runtime/apply/resource-operations.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap } from "../page-operator.js";
import {
  newName,
  primaryWays,
  refOf,
  server,
  startWith,
  ways,
  withVersionOf,
  type Operations,
} from "./ways-to-write.js";
import { knownIn, startWrittenKinds } from "./written-kinds.js";

suite("write operations", (test) => {
  for (const each of ways) {
    test(`${each.name} stores the change, returns it to the next read, and filters its event`, async () => {
      await using with_ = await startWith(each);
      const { operations, live, key, watched, metadata, type, foreign, writes, settle } = with_;
      const { kind, object } = (await each.write(operations, live(), "second")) as ResourceWrite;
      assert.is(kind, "updated");
      assert.is(each.textOf(object), "second");
      assert.ok(Object.isFrozen(object));
      assert.is(watched.view.get(key)?.object, object, "the next read sees the answer");
      assert.is(each.textOf((await foreign.get(type, metadata))!), "second");
      await settle();
      assert.equal(watched.changes, []);
      assert.is(writes.length, 1);
    });

    test(`${each.name} sends no request if nothing would change`, async () => {
      await using with_ = await startWith(each);
      const { operations, live, writes } = with_;
      const first = (await each.write(operations, live(), "second")) as ResourceWrite;
      const again = (await each.write(operations, live(), "second")) as ResourceWrite;
      assert.is(again.kind, "unchanged");
      assert.is(again.object, first.object);
      assert.is(writes.length, 1);
    });

    test(`${each.name} does not hide a concurrent change of another client`, async () => {
      await using with_ = await startWith(each);
      const { operations, live, watched, writeForeign, settle, metadata } = with_;
      const { faults } = await server();
      const slow = faults.add({ verb: each.verb, path: `/${metadata.name}`, times: 1, delayMs: 250 });
      const writing = each.write(operations, live(), "second").then(
        () => "",
        (error: unknown) => (error as Error).message,
      );
      await waitFor("the write is under way", () => slow.hits === 1);
      await writeForeign("x");
      const failure = await writing;
      if (each.isLocking) assert.match(failure, "409 Conflict");
      else assert.is(failure, "");
      await settle();
      assert.ok(watched.changes.some(({ object }) => object.metadata.annotations?.["theirs"] === "x"));
      assert.is(live().metadata.annotations?.["theirs"], "x");
      if (!each.isLocking) assert.is(each.textOf(live()), "second");
    });

    test(`${each.name} with mode cacheOnly updates the cache, and delivers its event`, async () => {
      await using with_ = await startWith(each);
      const { operations, live, watched, settle } = with_;
      await each.write(operations, live(), "second", { mode: "cacheOnly" });
      assert.is(each.textOf(live()), "second");
      await settle();
      assert.is(watched.changes.length, 1);
    });

    // A PUT replaces everything: it changes something unless it states a version, with which it fails.
    if (each.isLocking !== true)
      test(`${each.name} without effect does not hide a change that the watch has not delivered`, async () => {
        await using with_ = await startWith(each);
        const { operations, live, watched, writeForeign, settle, writes } = with_;
        await each.write(operations, live(), "second");
        await settle();
        watched.changes.length = 0;
        const before = live();
        const { faults } = await server();
        using late = faults.holdWatches();
        const { metadata } = await writeForeign("x");
        // Sent without comparing: its answer has the version of the other's change.
        const written = (await each.write(operations, before, "second", { mode: "forceFilter" })) as ResourceWrite;
        assert.is(written.object.metadata.resourceVersion, metadata.resourceVersion);
        assert.is(writes.length, 2);
        late.release();
        await settle();
        assert.ok(watched.changes.some(({ object }) => object.metadata.annotations?.["theirs"] === "x"));
      });

    test(`${each.name} with optimistic locking fails with 409 if the object has changed`, async () => {
      await using with_ = await startWith(each);
      const { operations, live, watched, writeForeign, settle, foreign, type, metadata } = with_;
      const stale = live();
      await writeForeign("x");
      await settle();
      watched.changes.length = 0;
      const object = each.name.startsWith("apply ") || each.name.startsWith("mergePatch");
      const stated = object ? withVersionOf(each, stale) : each;
      const writing = stated.write(operations, stale, "second", { mode: "filterWithOptimisticLocking" });
      assert.match(await failureOf(() => writing), "409 Conflict");
      assert.not.equal(each.textOf((await foreign.get(type, metadata))!), "second");
      const again = withVersionOf(each, live());
      await again.write(operations, live(), "second", { mode: "filterWithOptimisticLocking" });
      await settle();
      assert.is(each.textOf(live()), "second");
      assert.equal(watched.changes, []);
    });
  }

  for (const mode of ["forceFilter", "cacheOnly"] as const)
    test(`create with mode ${mode} caches the object (createDefaultForceFiltersAndCallsClientCreate, createCacheOnlyCachesAndCallsClientCreate)`, async () => {
      await using kinds = await startWrittenKinds(await server());
      const metadata = { name: newName(), namespace: "default" };
      const { kind, object } = await kinds.operations
        .of(ConfigMap)
        .create({ metadata, data: { text: "new" } }, mode === "forceFilter" ? {} : { mode });
      assert.is(kind, "created");
      assert.is(knownIn(kinds.configMaps, keyOf(metadata)), object);
      await kinds.settle();
      const told = kinds.configMaps.changes.filter(({ key }) => key === keyOf(metadata));
      assert.equal(
        told.map((change) => change.kind),
        mode === "forceFilter" ? [] : ["added"],
      );
      const again = kinds.operations.of(ConfigMap).create({ metadata });
      assert.match(await failureOf(() => again), `create ConfigMap "${keyOf(metadata)}" failed: 409 AlreadyExists`);
    });

  test("apply creates a missing object, and filters its event", async () => {
    await using kinds = await startWrittenKinds(await server());
    await kinds.forget();
    const metadata = { name: newName(), namespace: "default" };
    const { kind } = await kinds.operations.of(ConfigMap).apply({ metadata, data: { text: "new" } });
    assert.is(kind, "created");
    await kinds.settle();
    assert.equal(kinds.configMaps.changes, []);
  });

  test("mergePatch keeps unmentioned fields (ResourceOperationsIT)", async () => {
    await using with_ = await startWith(primaryWays[0]!);
    const { operations, metadata, foreign, type, live } = with_;
    await foreign.mergePatch(type, metadata, { spec: { more: "kept" } });
    await with_.settle();
    await (operations as unknown as Operations).mergePatch({ metadata: refOf(live()), spec: { text: "second" } });
    assert.equal(live().spec, { text: "second", more: "kept" });
    await (operations as unknown as Operations).mergePatch({ metadata: refOf(live()), spec: { more: null } });
    assert.equal(live().spec, { text: "second" });
  });
});
