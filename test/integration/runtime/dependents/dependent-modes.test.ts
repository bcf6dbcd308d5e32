// What the runtime does with the object of a dependent besides making it as desired.
import { waitFor } from "#apiserver/wait-for.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byAnnotation } from "#runtime/sources/mappers.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../../support/suite.js";
import { COLLECTING, configOf, dependentController, outcomeOf, untilOutcome, writesOf } from "./sample-dependents.js";
import { ConfigMap, Sample, type DataObject } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();
const openSimulated = spacesOf({ simulate: true });
const sample = (value = "first") => ({ metadata: { name: "one" }, spec: { value } });
const HOLD = "example.com/hold";

suite("mode createOnly", (test) => {
  test("keeps an existing object unchanged, recreates a deleted one, and deletes it on cleanup", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", { mode: "createOnly", deletion: "ordered" });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
    await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await waitFor("it is reconciled", () => running.events.some(({ reasons }) => reasons.length > 0));
    await running.quiet();
    assert.is((await space.get(ConfigMap, "one-a"))?.data?.["value"], "theirs");
    await space.delete(ConfigMap, "one-a");
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "second");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
  });

  for (const serverSideApply of [true, false])
    test(`keeps an object unchanged that its selector no longer matches, ${serverSideApply ? "with apply" : "without apply"}`, async () => {
      await using space = await openSpace();
      const dependent = configOf("a", {
        mode: "createOnly",
        labelSelector: "sample",
        serverSideApply,
        desired: ({ primary: { spec } }) => ({
          metadata: { name: "one-a", labels: { sample: "one" } },
          data: { value: spec.value ?? "none" },
        }),
      });
      await using running = await space.start([dependentController([dependent])]);
      await space.create(Sample, sample());
      const { metadata } = await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await running.quiet();
      // Without the label it is gone, as far as the watch tells.
      await space.patch(ConfigMap, "one-a", { metadata: { labels: { sample: null } } });
      await waitFor("it is to be created again", () => running.requests.some((each) => each.endsWith("409")));
      await running.quiet();
      const left = await space.get(ConfigMap, "one-a");
      assert.equal(left?.data, { value: "first" });
      assert.is(left?.metadata.uid, metadata.uid);
      assert.is(outcomeOf(running, "a")?.kind, "unchanged");
    });

  test("adopts an existing object by adding an owner reference, without changing its data", async () => {
    await using space = await openSpace();
    await space.create(ConfigMap, { metadata: { name: "one-a" }, data: { value: "theirs", more: "x" } });
    const dependent = configOf("a", { mode: "createOnly", existing: "adopt" });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    const { data } = await space.until(ConfigMap, "one-a", ({ metadata }) => metadata.ownerReferences?.length === 1);
    assert.equal(data, { value: "theirs", more: "x" });
    await running.quiet();
    assert.is(outcomeOf(running, "a")?.kind, "unchanged", "but for its owner");
  });
});

suite("mode readOnly", (test) => {
  const annotated = { annotations: { sample: "one" } };
  const bySample = byAnnotation(Sample, { name: "sample" });

  test("waits for the object, passes it to dependents, and never writes or deletes it", async () => {
    await using space = await openSpace();
    const theirs = configOf("theirs", { mode: "readOnly", eventSource: "configs" });
    const copy = configOf("copy", {
      dependsOn: ["theirs"],
      desired: ({ primary, secondary }) => ({
        metadata: { name: `${primary.metadata.name}-copy` },
        data: (secondary["theirs"] as DataObject).data,
      }),
    });
    const controller = dependentController([theirs, copy], {
      eventSources: () => [informerSource({ name: "configs", resource: ConfigMap, mapper: bySample })],
    });
    await using running = await space.start([controller]);
    await space.create(Sample, sample());
    await untilOutcome(running, "copy", "waiting");
    await space.create(ConfigMap, { metadata: { name: "theirs", ...annotated }, data: { value: "x" } });
    await space.until(ConfigMap, "one-copy", ({ data }) => data?.["value"] === "x");
    await space.patch(ConfigMap, "theirs", { data: { value: "y" } });
    await space.until(ConfigMap, "one-copy", ({ data }) => data?.["value"] === "y");
    await running.quiet();
    assert.equal(
      writesOf(running).filter((write) => write.includes("theirs")),
      [],
    );
    assert.is((await space.get(Sample, "one"))?.metadata.finalizers, undefined);
  });

  test("finds its object by owner reference without an event source, and fails if there are two", async () => {
    await using space = await openSpace();
    const controller = dependentController([configOf("theirs", { mode: "readOnly" }), configOf("ours")]);
    await using running = await space.start([controller]);
    const { metadata } = await space.create(Sample, sample());
    await waitFor("it waits", () => running.events.length > 0);
    const { name, uid = "" } = metadata;
    const ownerReferences = [{ apiVersion: Sample.definition.apiVersion, kind: "Sample", name, uid }];
    await space.create(ConfigMap, { metadata: { name: "theirs", ownerReferences }, data: { value: "x" } });
    await waitFor("all is there", () => running.events.at(-1)?.workflow?.isReady === true);
    await space.create(ConfigMap, { metadata: { name: "more", ownerReferences }, data: { value: "x" } });
    const failed = await untilOutcome(running, "theirs", "failed");
    assert.match(
      String((failed as { error: Error }).error.message),
      /dependent "theirs" must have one ConfigMap, but its primary has 2 \(.*more, .*theirs\); add a labelSelector/,
    );
  });
});

suite("existing object", (test) => {
  test("is rejected without existing: adopt, with a message that lists the options", async () => {
    await using space = await openSpace();
    await space.create(ConfigMap, { metadata: { name: "one-a" }, data: { value: "theirs" } });
    await using running = await space.start([dependentController([configOf("a")])]);
    await space.create(Sample, sample());
    const failed = await untilOutcome(running, "a", "failed");
    assert.is(
      (failed as { error: Error }).error.message,
      `dependent "a": ConfigMap "${space.namespace}/one-a" already exists and is not owned by this primary; delete it, ` +
        "set existing: adopt, or change the name that desired() returns",
    );
    assert.is((await space.get(ConfigMap, "one-a"))?.data?.["value"], "theirs");
  });

  for (const serverSideApply of [true, false])
    test(`is adopted with existing: adopt, and keeps its labels, ${serverSideApply ? "with apply" : "with PUT"}`, async () => {
      await using space = await openSpace();
      await space.create(ConfigMap, {
        metadata: { name: "one-a", labels: { theirs: "x" } },
        data: { value: "theirs" },
      });
      await using running = await space.start([
        dependentController([configOf("a", { existing: "adopt", serverSideApply })]),
      ]);
      await space.create(Sample, sample());
      const { metadata } = await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
      assert.equal(metadata.labels, { theirs: "x", "gen-operator.dev/controller": "sample" });
      assert.is(metadata.ownerReferences?.[0]?.kind, "Sample");
      await running.quiet();
      assert.is(outcomeOf(running, "a")?.kind, "updated");
      assert.is(running.events.length, 1);
    });

  test("is not adopted if another primary owns it", async () => {
    await using space = await openSpace();
    await using running = await space.start([
      dependentController([
        configOf("a", {
          existing: "adopt",
          deletion: "ordered",
          desired: ({ primary }) => ({ metadata: { name: "shared" }, data: { value: primary.metadata.name } }),
        }),
      ]),
    ]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "shared", ({ data }) => data?.["value"] === "one");
    await space.create(Sample, { metadata: { name: "two" }, spec: {} });
    const failed = await waitFor("two fails", () =>
      running.events.find(({ primary, error }) => primary.endsWith("/two") && error !== undefined),
    );
    assert.match(
      String([...failed.workflow!.errors.values()][0]),
      new RegExp(`cannot be adopted: it is owned by Sample.josdk.example.com "${space.namespace}/one"`),
    );
    assert.is((await space.get(ConfigMap, "shared"))?.data?.["value"], "one");
  });
});

suite("deletion orphan", (test) => {
  test("links the object by annotations instead of an owner reference", async () => {
    await using space = await openSpace();
    await using _ = await space.start([dependentController([configOf("a", { deletion: "orphan" })])]);
    await space.create(Sample, sample());
    const { metadata } = await space.until(ConfigMap, "one-a", () => true);
    assert.is(metadata.ownerReferences, undefined);
    assert.is(metadata.annotations?.["gen-operator.dev/primary-name"], "one");
  });

  test(
    "keeps the object when its primary is deleted in the foreground",
    async () => {
      await using space = await openSimulated();
      const dependents = [configOf("a", { deletion: "orphan" }), configOf("b")];
      await using _ = await space.start([dependentController(dependents)]);
      await space.create(Sample, sample());
      const { metadata } = await space.until(ConfigMap, "one-a", () => true);
      await space.until(ConfigMap, "one-b", () => true);
      const ref = { name: "one", namespace: space.namespace };
      await space.client.delete(Sample, ref, { propagationPolicy: "Foreground" });
      await space.untilGone(Sample, "one", COLLECTING);
      // The garbage collector has been here: it deletes what has an owner reference before the primary.
      assert.is(await space.get(ConfigMap, "one-b"), undefined);
      assert.is((await space.get(ConfigMap, "one-a"))?.metadata.uid, metadata.uid);
    },
    COLLECTING,
  );

  for (const earlier of ["garbageCollected", "ordered", "orphan"] as const)
    test(`releases the object before its primary is deleted, after an earlier version with deletion: ${earlier}`, async () => {
      await using space = await openSpace();
      {
        await using _ = await space.start([dependentController([configOf("a", { deletion: earlier })])]);
        await space.create(Sample, sample());
        await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
      }
      await using running = await space.start([dependentController([configOf("a", { deletion: "orphan" })])]);
      await space.until(ConfigMap, "one-a", (object) => object.metadata.ownerReferences === undefined);
      await running.quiet();
      await space.patch(ConfigMap, "one-a", {
        metadata: { labels: { theirs: "x" }, annotations: { theirs: "y" } },
      });
      await space.delete(Sample, "one");
      await space.untilGone(Sample, "one");
      const { metadata, data } = (await space.get(ConfigMap, "one-a"))!;
      assert.is(metadata.ownerReferences, undefined);
      assert.equal(metadata.annotations, { theirs: "y" });
      assert.equal(metadata.labels, { theirs: "x" });
      assert.equal(data, { value: "first" });
      await running.quiet();
      assert.equal(
        writesOf(running).filter((write) => write.startsWith("DELETE")),
        [],
      );
    });

  test("releases the object when its precondition becomes false, and fails when it becomes true again", async () => {
    await using space = await openSpace();
    const reconcilePrecondition = ({ primary }: { primary: Sample }) => primary.spec.other !== "off";
    const dependent = configOf("a", { deletion: "orphan", reconcilePrecondition });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await space.patch(Sample, "one", { spec: { other: "off" } });
    await space.until(ConfigMap, "one-a", ({ metadata }) => metadata.labels === undefined);
    await space.patch(Sample, "one", { spec: { other: null } });
    await untilOutcome(running, "a", "failed");
  });
});

suite("terminating object", (test) => {
  const held = { metadata: { finalizers: [HOLD] } };

  for (const serverSideApply of [true, false])
    test(`delays its dependents, and is recreated once it is deleted, ${serverSideApply ? "by apply" : "by POST"}`, async () => {
      await using space = await openSpace();
      const dependents = [configOf("a", { serverSideApply }), configOf("after", { dependsOn: ["a"] })];
      await using running = await space.start([dependentController(dependents)]);
      await space.create(Sample, sample());
      await space.until(ConfigMap, "one-after", () => true);
      const before = await space.patch(ConfigMap, "one-a", held);
      await running.quiet();
      await space.delete(ConfigMap, "one-a");
      const waiting = await untilOutcome(running, "a", "waiting");
      assert.equal(waiting, { kind: "waiting", for: [], because: "the object is being deleted", isHeld: true });
      assert.equal(outcomeOf(running, "after"), { kind: "waiting", for: ["a"] });
      const writes = writesOf(running).length;
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await running.quiet();
      assert.is(writesOf(running).length, writes, "nothing is written to what is on its way out");
      await space.patch(ConfigMap, "one-a", { metadata: { finalizers: null } });
      const after = await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "second");
      assert.not.equal(after.metadata.uid, before.metadata.uid);
      await space.until(ConfigMap, "one-after", ({ data }) => data?.["value"] === "second");
    });

  test("is deleted with one request, although its primary is reconciled several times", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", { deletion: "ordered" });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await space.patch(ConfigMap, "one-a", held);
    await space.delete(Sample, "one");
    await space.until(ConfigMap, "one-a", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await space.patch(ConfigMap, "one-a", { metadata: { labels: { a: "b" } } });
    await running.quiet();
    await space.patch(ConfigMap, "one-a", { metadata: { finalizers: null } });
    await space.untilGone(ConfigMap, "one-a");
    await running.quiet();
    const deletions = writesOf(running).filter((write) => write.startsWith("DELETE"));
    assert.equal(deletions, ["DELETE configmaps/one-a 200"]);
  });

  test("is not deleted if another client recreated it under the same name", async () => {
    await using space = await openSpace();
    const reconciler = {
      reconcile: ({ primary }: { primary: Sample }) => updateStatus({ value: primary.spec.value ?? "" }),
    };
    await using running = await space.start([
      dependentController([configOf("a", { deletion: "ordered" })], { reconciler }),
    ]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await running.quiet();
    // Both happen while the operator is away.
    await running.operator.stop();
    await space.delete(ConfigMap, "one-a");
    await space.create(ConfigMap, { metadata: { name: "one-a" }, data: { value: "theirs" } });
    await space.delete(Sample, "one");
    await running.operator.start();
    await space.untilGone(Sample, "one");
    assert.is((await space.get(ConfigMap, "one-a"))?.data?.["value"], "theirs");
  });
});
