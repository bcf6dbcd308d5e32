// What becomes of objects that a workflow no longer has, or wants under another name: over two versions of an operator.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { deleted } from "#runtime/workflow/conditions.js";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../../support/suite.js";
import {
  bulkOf,
  COLLECTING,
  configOf,
  dependentController,
  untilCollected,
  untilOutcome,
  writesOf,
} from "../dependents/sample-dependents.js";
import { ConfigMap, Sample, Secret } from "../sample-kind.js";
import { HOLD, openSpace, removedSecrets, runFirst, sample, secretOf, startSecond } from "./two-versions.js";

const isOf = (dependent: string) => (object: KubernetesObject) =>
  object.metadata.annotations?.["gen-operator.dev/dependent"] === dependent;

suite("pruning", (test) => {
  test("deletes the object of a removed dependent, whose kind is watched only while removed lists it", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), secretOf("b")]);
    {
      await using running = await startSecond(space, [configOf("a")], removedSecrets("b"));
      await space.untilGone(Secret, "one-b");
      await running.quiet();
      assert.equal(Object.keys(running.operator.controller("sample").health()), [
        "primary",
        "a",
        "removed b (secrets)",
      ]);
      assert.ok(await space.get(ConfigMap, "one-a"));
      const removed = running.events.map(({ workflow }) => workflow?.removed).filter((each) => each !== undefined);
      assert.equal(removed, [{ b: { kind: "deleted", isGone: true, because: "the workflow no longer has it" } }]);
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "second");
      await running.quiet();
      assert.is(running.events.at(-1)?.workflow?.removed, undefined, "nothing is left of it");
      assert.equal(
        running.events.flatMap(({ error }) => error ?? []),
        [],
      );
    }
    await using again = await startSecond(space, [configOf("a")]);
    await waitFor("it is reconciled", () => again.events.length > 0);
    await again.quiet();
    assert.equal(Object.keys(again.operator.controller("sample").health()), ["primary", "a"]);
    assert.equal(again.requests, [], "a pass with nothing to do makes no request");
  });

  test("deletes the object of an unlisted dependent if another dependent has its kind, with one log line", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), configOf("b"), bulkOf("many")]);
    const lines: string[] = [];
    const info = (fields: object, message: string) =>
      void ("dependent" in fields && lines.push(`${String(fields.dependent)}: ${message.replace(/"[^"]*\//, '"')}`));
    const nothing = () => {};
    const logger = { debug: nothing, info, warn: nothing, error: nothing };
    await using running = await space.start([dependentController([configOf("a")])], { logger });
    await space.untilGone(ConfigMap, "one-b");
    await running.quiet();
    assert.ok(await space.get(ConfigMap, "one-a"));
    assert.equal(lines, ['b: deleted ConfigMap "one-b"']);
  });

  test("deletes an object again if an older replica recreates it", async () => {
    await using space = await openSpace();
    const former = [configOf("a"), configOf("same"), secretOf("b")];
    await runFirst(space, former);
    await using running = await startSecond(space, [configOf("a")], removedSecrets("b"));
    await space.untilGone(Secret, "one-b");
    await space.untilGone(ConfigMap, "one-same");
    {
      await using _ = await space.start([dependentController(former)]);
      await waitFor("it was made anew", () =>
        running.requests.filter((request) => request.startsWith("DELETE")).length > 2 ? true : undefined,
      );
    }
    await space.untilGone(Secret, "one-b");
    await space.untilGone(ConfigMap, "one-same");
    await running.quiet();
    assert.is(await space.get(Secret, "one-b"), undefined);
  });

  test("deletes objects in reverse order of their dependencies", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("keep"), secretOf("first"), configOf("last", { dependsOn: ["first"] })]);
    await space.patch(ConfigMap, "one-last", { metadata: { finalizers: [HOLD] } });
    await using running = await startSecond(space, [configOf("keep")], removedSecrets("first"));
    await space.until(ConfigMap, "one-last", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await running.quiet();
    assert.ok(await space.get(Secret, "one-first"), "it waits until what was made after it is gone");
    const { removed } = running.events.at(-1)!.workflow!;
    assert.equal(removed, {
      last: { kind: "deleted", isGone: false, because: "the workflow no longer has it" },
      first: { kind: "waiting", for: ["last"] },
    });
    await space.patch(ConfigMap, "one-last", { metadata: { finalizers: null } });
    await space.untilGone(Secret, "one-first");
    await running.quiet();
    assert.equal(
      writesOf(running).filter((write) => write.startsWith("DELETE")),
      ["DELETE configmaps/one-last 200", "DELETE secrets/one-first 200"],
    );
  });

  test("deletes the object of the only dependent of the workflow", async () => {
    await using space = await openSpace();
    await runFirst(space, [secretOf("a", { deletion: "ordered" })]);
    await using _ = await startSecond(space, [], removedSecrets("a"));
    await space.untilGone(Secret, "one-a");
  });

  test("keeps an object that a dependent under another name claims", async () => {
    await using space = await openSpace();
    const named = (name: string) => configOf(name, { desired: () => ({ metadata: { name: "same" }, data: {} }) });
    await runFirst(space, [named("before")]);
    const before = await space.get(ConfigMap, "same");
    await using running = await startSecond(space, [named("after")]);
    await space.until(ConfigMap, "same", isOf("after"));
    await running.quiet();
    assert.is((await space.get(ConfigMap, "same"))?.metadata.uid, before?.metadata.uid);
  });

  test("waits until all dependents of the kind have claimed their objects", async () => {
    await using space = await openSpace();
    const named = (name: string, rest: Parameters<typeof configOf>[1] = {}) =>
      configOf(name, { desired: () => ({ metadata: { name: "same" }, data: {} }), ...rest });
    await runFirst(space, [named("before")]);
    const isOpen = ({ primary }: { primary: Sample }) => primary.spec.other === "open";
    const second = [secretOf("gate", { readyPostcondition: isOpen }), named("after", { dependsOn: ["gate"] })];
    await using running = await startSecond(space, second);
    await untilOutcome(running, "after", "waiting");
    await running.quiet();
    const before = await space.get(ConfigMap, "same");
    assert.ok(isOf("before")(before!));
    await space.patch(Sample, "one", { spec: { other: "open" } });
    await space.until(ConfigMap, "same", isOf("after"));
    await running.quiet();
    assert.is((await space.get(ConfigMap, "same"))?.metadata.uid, before?.metadata.uid);
  });
});

suite("removed dependent", (test) => {
  const resource = Secret.definition;

  test("deletion: ordered deletes the object even with pruning: false", async () => {
    await using space = await openSpace();
    {
      const controller = dependentController([secretOf("b")], { workflow: { pruning: false } });
      await using running = await space.start([controller]);
      await space.create(Sample, sample());
      await space.until(Secret, "one-b", () => true);
      await running.quiet();
    }
    {
      await using running = await startSecond(space, [configOf("a"), secretOf("c")], { pruning: false });
      await waitFor("it is reconciled", () => running.events.length > 0);
      await running.quiet();
      assert.ok(await space.get(Secret, "one-b"));
    }
    const removed = { b: { resource, deletion: "ordered" } } as const;
    await using running = await startSecond(space, [configOf("a")], { removed, pruning: false });
    await space.untilGone(Secret, "one-b");
    await running.quiet();
    assert.ok(await space.get(Secret, "one-c"), "nobody names it");
  });

  test("deletion: garbageCollected keeps the object unchanged", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), secretOf("b")]);
    const before = await space.get(Secret, "one-b");
    await using running = await startSecond(space, [configOf("a")], {
      removed: { b: { resource, deletion: "garbageCollected" } },
    });
    await waitFor("it is reconciled", () => running.events.length > 0);
    await running.quiet();
    assert.equal(await space.get(Secret, "one-b"), before);
    assert.equal(running.events.at(-1)?.workflow?.removed, { b: { kind: "left" } });
  });

  test("deletion: garbageCollected lets another controller take over the object", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), secretOf("b")]);
    const before = await space.get(Secret, "one-b");
    const removed = { b: { resource, deletion: "garbageCollected" } } as const;
    const first = dependentController([configOf("a")], { workflow: { removed } });
    await using running = await space.start([first, { ...dependentController([secretOf("b")]), name: "other" }]);
    const isTheirs = (object: KubernetesObject) => object.metadata.labels?.["gen-operator.dev/controller"] === "other";
    const after = await space.until(Secret, "one-b", isTheirs);
    assert.is(after.metadata.uid, before?.metadata.uid);
    await running.quiet();
    assert.ok(await space.get(Secret, "one-b"));
  });

  test(
    "deletion: orphan releases the object, which outlives its primary",
    async () => {
      await using space = await openSpace();
      await runFirst(space, [configOf("a"), secretOf("b")]);
      await using running = await startSecond(space, [configOf("a")], {
        removed: { b: { resource, deletion: "orphan" } },
      });
      const { metadata } = await space.until(
        Secret,
        "one-b",
        (object) => object.metadata.ownerReferences === undefined,
      );
      assert.equal([metadata.annotations, metadata.labels], [undefined, undefined]);
      await running.quiet();
      await space.delete(Sample, "one");
      await untilCollected(space, ConfigMap, "one-a");
      assert.ok(await space.get(Secret, "one-b"));
    },
    COLLECTING,
  );
});

suite("renamed object", (test) => {
  const byValue = configOf("a", {
    desired: ({ primary }) => ({ metadata: { name: primary.spec.value }, data: { value: "x" } }),
  });

  test("is deleted after its successor is created and its dependents are updated", async () => {
    await using space = await openSpace();
    const user = secretOf("user", {
      dependsOn: ["a"],
      desired: ({ secondary }: { secondary: { a: { metadata: { name: string } } } }) => ({
        metadata: { name: "user" },
        data: { uses: Buffer.from(secondary.a.metadata.name).toString("base64") },
      }),
    });
    await using running = await space.start([dependentController([byValue, user])]);
    await space.create(Sample, sample("first"));
    await space.until(ConfigMap, "first", () => true);
    await running.quiet();
    const since = writesOf(running).length;
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.untilGone(ConfigMap, "first");
    await running.quiet();
    assert.equal(writesOf(running).slice(since), [
      "PATCH configmaps/second 201",
      "PATCH secrets/user 200",
      "DELETE configmaps/first 200",
    ]);
    assert.is(running.events.length, 2, "own deletions are no events");
  });

  test("is deleted by a cleanup after a restart, before the finalizer is removed", async () => {
    await using space = await openSpace();
    const ordered = { ...byValue, deletion: "ordered" as const };
    {
      await using running = await space.start([dependentController([ordered])]);
      await space.create(Sample, sample("first"));
      await space.until(ConfigMap, "first", () => true);
      await running.quiet();
      await space.patch(ConfigMap, "first", { metadata: { finalizers: [HOLD] } });
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await space.until(ConfigMap, "first", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    }
    await space.delete(Sample, "one");
    await using running = await space.start([dependentController([ordered])]);
    await space.untilGone(ConfigMap, "second");
    await running.quiet();
    assert.ok(await space.get(Sample, "one"), "the finalizer stays until both are gone");
    await space.patch(ConfigMap, "first", { metadata: { finalizers: null } });
    await space.untilGone(Sample, "one");
  });

  test("is kept with pruning: false", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([byValue], { workflow: { pruning: false } })]);
    await space.create(Sample, sample("first"));
    await space.until(ConfigMap, "first", () => true);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(ConfigMap, "second", () => true);
    await running.quiet();
    assert.ok(await space.get(ConfigMap, "first"));
  });
});

suite("object of another owner", (test) => {
  test("is not pruned if it belongs to the user, is a copy, or belongs to another controller", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), secretOf("b")]);
    const { metadata } = (await space.get(Sample, "one"))!;
    const original = (await space.get(Secret, "one-b"))!.metadata;
    const { apiVersion } = Sample.definition;
    const ownerReferences = [{ apiVersion, kind: "Sample", name: "one", uid: metadata.uid ?? "" }];
    await space.create(Secret, { metadata: { name: "users", ownerReferences } });
    const { annotations, labels, ownerReferences: owners } = original;
    await space.create(Secret, { metadata: { name: "copy", annotations, labels, ownerReferences: owners } });
    const other = dependentController([
      configOf("a", { desired: () => ({ metadata: { name: "others" } }) }),
      secretOf("b", { desired: () => ({ metadata: { name: "others" } }) }),
    ]);
    const second = dependentController([configOf("a")], { workflow: removedSecrets("b") });
    await using running = await space.start([{ ...other, name: "other" }, second]);
    await space.untilGone(Secret, "one-b");
    await space.until(Secret, "others", () => true);
    await running.quiet();
    assert.ok(await space.get(ConfigMap, "one-a"));
    assert.ok(await space.get(ConfigMap, "others"));
    for (const name of ["users", "copy", "others"]) assert.ok(await space.get(Secret, name), name);
    assert.equal(
      writesOf(running).filter((write) => write.startsWith("DELETE")),
      ["DELETE secrets/one-b 200"],
    );
  });

  for (const pruning of [true, false])
    test(`is not deleted instead of the dependent it was copied from, ${pruning ? "with" : "without"} pruning`, async () => {
      await using space = await openSpace();
      const ordered = { deletion: "ordered", deletePostcondition: deleted } as const;
      const dependents = [configOf("a", ordered), bulkOf("many", ordered)];
      await using running = await space.start([dependentController(dependents, { workflow: { pruning } })]);
      await space.create(Sample, { metadata: { name: "one" }, spec: { number: 1 } });
      const names = ["one-a", "one-many-0"];
      for (const name of names) {
        const { metadata } = await space.until(ConfigMap, name, () => true);
        const { annotations, labels } = metadata;
        await space.create(ConfigMap, { metadata: { name: `${name}-copy`, annotations, labels } });
      }
      await running.quiet();
      await space.patch(Sample, "one", { spec: { number: 0 } });
      await space.untilGone(ConfigMap, "one-many-0");
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.equal(
        (await space.list(ConfigMap)).map(({ metadata }) => metadata.name),
        names.map((name) => `${name}-copy`),
      );
    });
});
