// What becomes of objects that a workflow no longer has, or wants under another name: over two versions of an operator.
import { deleted } from "#runtime/workflow/builtin-conditions.js";
import { waitFor } from "#runtime/base/wait-for.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../support/suite.js";
import {
  bulkOf,
  COLLECTING,
  configOf,
  dependentController,
  untilCollected,
  untilOutcome,
  writesOf,
} from "../josdk/sample-dependents.js";
import { ConfigMap, Sample, Secret } from "../josdk/sample-kind.js";
import { spacesOf, type Space } from "../josdk/space.js";

const openSpace = spacesOf({ simulate: true });
const ANNOTATION = "inventory.gen-operator.dev/sample";
const HOLD = "example.com/hold";
const sample = (value = "first") => ({ metadata: { name: "one" }, spec: { value } });

/** A Secret named after the primary and the dependent. */
function secretOf(name: string, rest: Partial<KubernetesDependent> = {}): KubernetesDependent {
  const desired = ({ primary }: { primary: Sample }) => ({
    metadata: { name: `${primary.metadata.name}-${name}` },
    data: { value: Buffer.from(primary.spec.value ?? "").toString("base64") },
  });
  return { ...configOf(name), resource: Secret.definition, desired: desired as never, ...rest };
}

async function notedIn(space: Space): Promise<string[]> {
  const text = (await space.get(Sample, "one"))?.metadata.annotations?.[ANNOTATION];
  return text === undefined ? [] : (JSON.parse(text) as { name: string }[]).map(({ name }) => name);
}

/** Runs a first version until it has made its dependents, and stops it. */
async function runFirst(space: Space, dependents: readonly KubernetesDependent[]): Promise<void> {
  await using running = await space.start([dependentController(dependents)]);
  await space.create(Sample, sample());
  await waitFor("all is made", () => running.events.at(-1)?.workflow?.isReady === true);
  await running.quiet();
}

/** Starts the version after it. */
function startSecond(
  space: Space,
  dependents: readonly KubernetesDependent[],
  workflow: Partial<WorkflowDefinition> = {},
) {
  return space.start([dependentController(dependents, { workflow })]);
}

suite("a dependent that the workflow no longer has", (test) => {
  test("is deleted, and nothing is watched for it before and afterwards", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), secretOf("b")]);
    assert.equal(await notedIn(space), ["a", "b"]);
    {
      await using running = await startSecond(space, [configOf("a")]);
      await space.untilGone(Secret, "one-b");
      await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "a");
      await running.quiet();
      assert.equal(Object.keys(running.operator.controller("sample").health()), ["primary", "a"]);
      assert.ok(await space.get(ConfigMap, "one-a"));
      assert.equal(
        running.events.flatMap(({ error }) => error ?? []),
        [],
      );
    }
    await using again = await startSecond(space, [configOf("a")]);
    await waitFor("it is reconciled", () => again.events.length > 0);
    await again.quiet();
    assert.equal(again.requests, [], "a pass with nothing to do makes no request");
  });

  test("goes in the order opposite to that in which it was made", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("keep"), secretOf("first"), configOf("last", { dependsOn: ["first"] })]);
    await space.patch(ConfigMap, "one-last", { metadata: { finalizers: [HOLD] } });
    await using running = await startSecond(space, [configOf("keep")]);
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
    await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "keep");
    assert.equal(
      writesOf(running).filter((write) => write.startsWith("DELETE")),
      ["DELETE configmaps/one-last 200", "DELETE secrets/one-first 200"],
    );
  });

  test("is deleted with the last of the workflow's dependents, too", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a", { isGarbageCollected: false })]);
    await using _ = await startSecond(space, []);
    await space.untilGone(ConfigMap, "one-a");
    await waitFor("nothing is noted any more", async () => (await notedIn(space)).length === 0);
  });

  test("keeps its objects when it only got another name", async () => {
    await using space = await openSpace();
    const named = (name: string) => configOf(name, { desired: () => ({ metadata: { name: "same" }, data: {} }) });
    await runFirst(space, [named("before")]);
    const before = await space.get(ConfigMap, "same");
    await using running = await startSecond(space, [named("after")]);
    await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "after");
    await running.quiet();
    const after = await space.get(ConfigMap, "same");
    assert.is(after?.metadata.uid, before?.metadata.uid);
    assert.is(after?.metadata.annotations?.["gen-operator.dev/dependent"], "after");
  });

  test("is not deleted while one that has not said what it wants could claim it", async () => {
    await using space = await openSpace();
    const named = (name: string, rest: Parameters<typeof configOf>[1] = {}) =>
      configOf(name, { desired: () => ({ metadata: { name: "same" }, data: {} }), ...rest });
    await runFirst(space, [named("before")]);
    const isOpen = (({ primary }: { primary: Sample }) => primary.spec.other === "open") as never;
    const second = [secretOf("gate", { readyPostcondition: isOpen }), named("after", { dependsOn: ["gate"] })];
    await using running = await startSecond(space, second);
    await untilOutcome(running, "after", "waiting");
    await running.quiet();
    const before = await space.get(ConfigMap, "same");
    assert.is(before?.metadata.annotations?.["gen-operator.dev/dependent"], "before");
    await space.patch(Sample, "one", { spec: { other: "open" } });
    await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "gate,after");
    assert.is((await space.get(ConfigMap, "same"))?.metadata.uid, before?.metadata.uid);
  });

  test(
    "that was tied by annotations goes before its primary does, one with an owner is left to the collector",
    async () => {
      await using space = await openSpace();
      await runFirst(space, [secretOf("ordered", { isGarbageCollected: false }), configOf("owned"), configOf("stays")]);
      await space.patch(Secret, "one-ordered", { metadata: { finalizers: [HOLD] } });
      // Both are left when the primary is deleted, because the operator was away.
      await space.delete(Sample, "one");
      await using running = await startSecond(space, [configOf("stays")]);
      await space.until(Secret, "one-ordered", ({ metadata }) => metadata.deletionTimestamp !== undefined);
      await running.quiet();
      assert.ok(await space.get(Sample, "one"), "the finalizer stays until it is gone");
      await space.patch(Secret, "one-ordered", { metadata: { finalizers: null } });
      await space.untilGone(Sample, "one");
      await untilCollected(space, ConfigMap, "one-owned");
      assert.is(await space.get(Secret, "one-ordered"), undefined);
      assert.equal(
        writesOf(running).filter((write) => write.startsWith("DELETE")),
        ["DELETE secrets/one-ordered 200"],
      );
    },
    COLLECTING,
  );
});

suite("the policy for a removed dependent", (test) => {
  const resource = Secret.definition;

  test("delete is for what no inventory tells of", async () => {
    await using space = await openSpace();
    {
      const controller = dependentController([secretOf("b")], { workflow: { inventory: false } });
      await using running = await space.start([controller]);
      await space.create(Sample, sample());
      await space.until(Secret, "one-b", () => true);
      await running.quiet();
    }
    assert.equal(await notedIn(space), []);
    {
      await using running = await startSecond(space, [configOf("a")], { inventory: false });
      await waitFor("it is reconciled", () => running.events.length > 0);
      await running.quiet();
      assert.ok(await space.get(Secret, "one-b"));
    }
    await using _ = await startSecond(space, [configOf("a")], { removed: { b: { resource, policy: "delete" } } });
    await space.untilGone(Secret, "one-b");
  });

  test("keep leaves it as it is", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), secretOf("b")]);
    const before = await space.get(Secret, "one-b");
    await using running = await startSecond(space, [configOf("a")], { removed: { b: { resource, policy: "keep" } } });
    await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "a");
    await running.quiet();
    assert.equal(await space.get(Secret, "one-b"), before);
    assert.equal(running.events.at(-1)?.workflow?.removed, { b: { kind: "left" } });
  });

  test(
    "orphan unties it, and it outlives its primary",
    async () => {
      await using space = await openSpace();
      await runFirst(space, [configOf("a"), secretOf("b")]);
      await using running = await startSecond(space, [configOf("a")], {
        removed: { b: { resource, policy: "orphan" } },
      });
      const { metadata } = await space.until(
        Secret,
        "one-b",
        (object) => object.metadata.ownerReferences === undefined,
      );
      assert.is(metadata.annotations, undefined);
      await waitFor("the inventory is up to date", async () => (await notedIn(space)).join() === "a");
      await running.quiet();
      await space.delete(Sample, "one");
      await untilCollected(space, ConfigMap, "one-a");
      assert.ok(await space.get(Secret, "one-b"));
    },
    COLLECTING,
  );
});

suite("an object under a former name", (test) => {
  const byValue = configOf("a", {
    desired: ({ primary }) => ({ metadata: { name: primary.spec.value }, data: { value: "x" } }),
  });

  test("is deleted when its successor is made, after what depends on it was changed", async () => {
    await using space = await openSpace();
    const user = secretOf("user", {
      dependsOn: ["a"],
      desired: (({ secondary }: { secondary: { a: { metadata: { name: string } } } }) => ({
        metadata: { name: "user" },
        data: { uses: Buffer.from(secondary.a.metadata.name).toString("base64") },
      })) as never,
    });
    await using running = await space.start([dependentController([byValue, user])]);
    await space.create(Sample, sample("first"));
    await space.until(ConfigMap, "first", () => true);
    await running.quiet();
    const since = writesOf(running).length;
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.untilGone(ConfigMap, "first");
    assert.equal(writesOf(running).slice(since), [
      "PATCH configmaps/second 201",
      "PATCH secrets/user 200",
      "DELETE configmaps/first 200",
    ]);
    await running.quiet();
    assert.is(running.events.length, 2, "own deletions are no events");
  });

  test("is deleted with its successor in a cleanup, and found after a restart", async () => {
    await using space = await openSpace();
    const ordered = { ...byValue, isGarbageCollected: false };
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

  test("is not looked for without an inventory", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([byValue], { workflow: { inventory: false } })]);
    await space.create(Sample, sample("first"));
    await space.until(ConfigMap, "first", () => true);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(ConfigMap, "second", () => true);
    await running.quiet();
    assert.ok(await space.get(ConfigMap, "first"));
  });
});

suite("what is not a dependent of this controller", (test) => {
  test("is never touched: objects of the user, copies, and dependents of other controllers", async () => {
    await using space = await openSpace();
    await runFirst(space, [configOf("a"), secretOf("b")]);
    const { metadata } = (await space.get(Sample, "one"))!;
    const original = (await space.get(Secret, "one-b"))!.metadata;
    const { apiVersion } = Sample.definition;
    const ownerReferences = [{ apiVersion, kind: "Sample", name: "one", uid: metadata.uid ?? "" }];
    await space.create(Secret, { metadata: { name: "users", ownerReferences } });
    const { annotations, ownerReferences: owners } = original;
    await space.create(Secret, { metadata: { name: "copy", annotations, ownerReferences: owners } });
    const other = dependentController([
      configOf("a", { desired: () => ({ metadata: { name: "others" } }) }),
      secretOf("b", { desired: (() => ({ metadata: { name: "others" } })) as never }),
    ]);
    await using running = await space.start([{ ...other, name: "other" }, dependentController([configOf("a")])]);
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

  for (const inventory of [true, false])
    test(`is not deleted in place of what is, ${inventory ? "with" : "without"} an inventory`, async () => {
      await using space = await openSpace();
      const ordered = { isGarbageCollected: false, deletePostcondition: deleted };
      const dependents = [configOf("a", ordered), bulkOf("many", ordered)];
      await using running = await space.start([dependentController(dependents, { workflow: { inventory } })]);
      await space.create(Sample, { metadata: { name: "one" }, spec: { number: 1 } });
      const names = ["one-a", "one-many-0"];
      for (const name of names) {
        const { metadata } = await space.until(ConfigMap, name, () => true);
        await space.create(ConfigMap, { metadata: { name: `${name}-copy`, annotations: metadata.annotations ?? {} } });
      }
      await running.quiet();
      await space.patch(Sample, "one", { spec: { number: 0 } });
      await space.untilGone(ConfigMap, "one-many-0");
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      assert.equal(
        (await space.list(ConfigMap))
          .map(({ metadata }) => metadata.name)
          .filter((name) => name !== "kube-root-ca.crt"),
        names.map((name) => `${name}-copy`),
      );
    });
});

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
    await using running = await space.start([
      dependentController([configOf("a")], { reconciler: reconciler as never }),
    ]);
    await space.create(Sample, sample());
    await space.until(Sample, "one", ({ metadata }) => metadata.annotations?.["ours"] === "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(Sample, "one", ({ metadata }) => metadata.annotations?.["ours"] === "second");
    await running.quiet();
    assert.equal(await notedIn(space), ["a"]);
    assert.is(writesOf(running).filter((write) => write.includes("samples/one")).length, 3);
  });
});
