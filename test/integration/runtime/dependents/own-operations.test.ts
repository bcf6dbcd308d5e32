// Functions of the user in the place of what the runtime does with the object of a dependent.
import type { ObjectMeta } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { Operations } from "#runtime/workflow/workflow-definition.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import { bulkOf, configOf, dependentController, outcomeOf, untilOutcome, writesOf } from "./sample-dependents.js";
import { ConfigMap, Sample, type DataObject } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();
const sample = (value = "first") => ({ metadata: { name: "one" }, spec: { value } });
type Own = Operations<Sample, object, DataObject, DataObject>;
const ownerOf = ({ metadata: { name, uid = "" } }: Sample) => [
  { apiVersion: Sample.definition.apiVersion, kind: Sample.definition.kind, name, uid, controller: true },
];
const own = (operations: Own) => ({ operations: operations as Operations });

suite("operations.delete", (test) => {
  test("passes a propagationPolicy to next()", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", {
      deletion: "ordered",
      ...own({ delete: ({ next }) => next({ propagationPolicy: "Orphan" }) }),
    });
    await using _running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    const { metadata } = await space.until(ConfigMap, "one-a", () => true);
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "one-a", uid: metadata.uid ?? "" }];
    await space.create(ConfigMap, { metadata: { name: "child", ownerReferences } });
    await space.delete(Sample, "one");
    // The finalizer is that of the garbage collector, which unties the child; the embedded server has none.
    await waitFor("the child is to be orphaned", async () => {
      const left = await space.get(ConfigMap, "one-a");
      return left === undefined || left.metadata.finalizers?.includes("orphan");
    });
    await space.patch(ConfigMap, "one-a", { metadata: { finalizers: null } }).catch(() => {});
    await space.untilGone(Sample, "one");
    assert.ok(await space.get(ConfigMap, "child"));
  });

  test("keeps the object if it does not call next(), and does not block the finalizer", async () => {
    await using space = await openSpace();
    const seen: string[] = [];
    const dependent = bulkOf("many", {
      deletion: "ordered",
      ...own({
        delete: async ({ primary, live, next }) => {
          seen.push(`${primary.metadata.name} ${live.metadata.name}`);
          if (live.metadata.labels?.["marked"] === "true") await next();
        },
      }),
    });
    // Its watch shows the objects of the other one, too.
    const foreign = configOf("foreign", own({ create: false }));
    await using running = await space.start([dependentController([dependent, foreign])]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { number: 2 } });
    await space.until(ConfigMap, "one-many-1", () => true);
    await running.quiet();
    await space.patch(ConfigMap, "one-many-0", { metadata: { labels: { marked: "true" } } });
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-many-0"), undefined);
    assert.ok(await space.get(ConfigMap, "one-many-1"));
    assert.equal([...new Set(seen)].sort(), ["one one-many-0", "one one-many-1"]);
  });

  test("keeps the object of a former name without logging a deletion", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", {
      deletion: "ordered",
      desired: ({ primary }) => ({ metadata: { name: `one-${primary.spec.value}` } }),
      ...own({ delete: () => {} }),
    });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-first", () => true);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(ConfigMap, "one-second", () => true);
    await running.quiet();
    assert.ok(await space.get(ConfigMap, "one-first"));
    assert.is(running.events.at(-1)?.workflow?.isReady, true);
    assert.equal(
      running.logs.filter((line) => line.includes("deleted")),
      [],
    );
  });

  test("set to false adds no finalizer, and keeps the object", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", { deletion: "ordered", ...own({ delete: false }) });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await running.quiet();
    assert.is((await space.get(Sample, "one"))?.metadata.finalizers, undefined);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await running.quiet();
    assert.ok(await space.get(ConfigMap, "one-a"));
  });
});

suite("operations.create and operations.update", (test) => {
  test("write nothing if they do not call next(), and a missing object is waited for", async () => {
    await using space = await openSpace();
    const asked: string[] = [];
    const dependent = configOf("a", {
      ...own({
        create: ({ desired }) => void asked.push(`create ${desired.data?.["value"]}`),
        update: ({ desired, live }) => void asked.push(`update ${live.data?.["value"]} to ${desired.data?.["value"]}`),
      }),
    });
    await using running = await space.start([dependentController([dependent])]);
    const ownerReferences = ownerOf(await space.create(Sample, sample()));
    await untilOutcome(running, "a", "waiting");
    await space.create(ConfigMap, { metadata: { name: "one-a", ownerReferences }, data: { value: "theirs" } });
    await waitFor("update is called", () => asked.includes("update theirs to first"));
    assert.is(asked[0], "create first");
    await running.quiet();
    assert.equal(
      writesOf(running).filter((write) => write.includes("configmaps")),
      [],
    );
    assert.is(outcomeOf(running, "a")?.kind, "unchanged");
  });

  const notPassedOn = {
    create: { create: () => {}, update: false },
    update: { create: false, update: () => {} },
  } as const;
  for (const [name, operations] of Object.entries(notPassedOn))
    test(`keep an owner reference written by another client if ${name} does not call next()`, async () => {
      await using space = await openSpace();
      await using running = await space.start([
        dependentController([configOf("a", { deletion: "ordered", ...own(operations) })]),
      ]);
      const primary = await space.create(Sample, sample());
      await untilOutcome(running, "a", "waiting");
      await space.create(ConfigMap, { metadata: { name: "one-a", ownerReferences: ownerOf(primary) } });
      await untilOutcome(running, "a", "unchanged");
      await running.quiet();
      assert.equal((await space.get(ConfigMap, "one-a"))?.metadata.ownerReferences, ownerOf(primary));
      assert.is(outcomeOf(running, "a")?.kind, "unchanged");
    });

  const annotations = {
    "gen-operator.dev/primary-name": "one",
    "gen-operator.dev/primary-type": `Sample.${Sample.definition.group}`,
  };
  const ties: { [link: string]: (primary: Sample) => Partial<ObjectMeta> } = {
    "an owner reference": (primary) => ({ ownerReferences: ownerOf(primary) }),
    annotations: ({ metadata: { namespace = "", uid = "" } }) => ({
      annotations: {
        ...annotations,
        "gen-operator.dev/primary-namespace": namespace,
        "gen-operator.dev/primary-uid": uid,
      },
    }),
  };
  for (const [link, metadataOf] of Object.entries(ties))
    test(`do not prevent the deletion of an inactive object linked by ${link}`, async () => {
      await using space = await openSpace();
      const dependent = configOf("a", {
        deletion: "ordered",
        reconcilePrecondition: ({ primary }: { primary: Sample }) => primary.spec.value === "first",
        deletePostcondition: ({ live }: { live: unknown }) => live === undefined,
        ...own({ create: false, update: () => {} }),
      });
      await using running = await space.start([dependentController([dependent])]);
      const primary = await space.create(Sample, sample());
      const create = async (name: string) => {
        await untilOutcome(running, "a", "waiting");
        await space.create(ConfigMap, { metadata: { name, ...metadataOf(primary) } });
        await untilOutcome(running, "a", "unchanged");
      };
      await space.create(ConfigMap, { metadata: { name: "of-nobody", ...metadataOf(primary) } });
      await create("one-a");
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await space.untilGone(ConfigMap, "one-a");
      assert.ok(await space.get(ConfigMap, "of-nobody"), "what no dependent wants stays");
      await space.patch(Sample, "one", { spec: { value: "first" } });
      await create("one-a");
      await space.patch(ConfigMap, "one-a", { metadata: { finalizers: ["example.com/hold"] } });
      await running.quiet();
      await space.delete(Sample, "one");
      await space.until(ConfigMap, "one-a", ({ metadata }) => metadata.deletionTimestamp !== undefined);
      await running.quiet();
      assert.ok(await space.get(Sample, "one"), "the primary waits");
      await space.patch(ConfigMap, "one-a", { metadata: { finalizers: null } });
      await space.untilGone(Sample, "one");
    });

  test("write once per next(), although it is called twice", async () => {
    await using space = await openSpace();
    const twice: Own["create"] = async ({ next }) => {
      await next();
      await next();
    };
    const dependent = configOf("a", own({ create: twice, update: ({ next }) => next() }));
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "second");
    await running.quiet();
    assert.is(writesOf(running).filter((write) => write.includes("configmaps/one-a")).length, 2);
  });

  test("fail the reconcile for a next() that is not awaited, and warn if it is called too late", async () => {
    await using space = await openSpace();
    let late: (() => Promise<void>) | undefined;
    const update: Own["update"] = ({ next }) => void next();
    const create: Own["create"] = ({ next }) => void Promise.all([next(), (late = next)]);
    await using running = await space.start([dependentController([configOf("a", own({ create, update }))])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
    await running.quiet();
    await space.patch(ConfigMap, "one-a", { immutable: true });
    await space.patch(Sample, "one", { spec: { value: "second" } });
    const failure = await waitFor("the reconcile fails", () => failuresOf(running.events)[0]);
    assert.match(failure, "field is immutable");
    await assert.rejects(late!(), "next() was called after create() returned; await it there");
    assert.ok(running.logs.includes("warn next() was called after create() returned; await it there"));
  });

  test("delete an object with an immutable field, which is then recreated", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", {
      desired: ({ primary }) => ({
        metadata: { name: "one-a" },
        immutable: true,
        data: { value: primary.spec.value ?? "" },
      }),
      ...own({
        update: ({ live, context, next }) =>
          next().catch(async () => void (await context.client.delete(ConfigMap, live.metadata))),
      }),
    });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    const before = await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    const after = await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "second");
    assert.is.not(after.metadata.uid, before.metadata.uid);
    await running.quiet();
  });

  test("set to false leave creation or updates to another client", async () => {
    await using space = await openSpace();
    const created = configOf("a", own({ update: false }));
    const updated = configOf("b", own({ create: false }));
    await using running = await space.start([dependentController([created, updated])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await waitFor("it is reconciled", () => running.events.length > 1);
    await running.quiet();
    assert.is((await space.get(ConfigMap, "one-a"))?.data?.["value"], "first");
    assert.is(await space.get(ConfigMap, "one-b"), undefined);
    assert.is(outcomeOf(running, "b")?.kind, "waiting");
  });

  for (const serverSideApply of [true, false])
    test(`are not bypassed when the controller label is restored, ${serverSideApply ? "with apply" : "with PUT"}`, async () => {
      await using space = await openSpace();
      const seen: unknown[] = [];
      const update: Own["update"] = async ({ live, next }) => {
        seen.push(live.data?.["value"]);
        if (live.data?.["value"] !== "theirs") await next();
      };
      const dependents = [
        configOf("a", { serverSideApply, ...own({ update: false }) }),
        configOf("b", { serverSideApply, ...own({ update }) }),
      ];
      await using running = await space.start([dependentController(dependents)]);
      await space.create(Sample, sample());
      await space.until(ConfigMap, "one-b", () => true);
      for (const name of ["one-a", "one-b"]) {
        await running.quiet();
        seen.length = 0;
        const metadata = { labels: { "gen-operator.dev/controller": null } };
        await space.patch(ConfigMap, name, { metadata, data: { value: "theirs" } });
        const isBack = ({ metadata }: DataObject) => metadata.labels?.["gen-operator.dev/controller"] !== undefined;
        assert.is((await space.until(ConfigMap, name, isBack)).data?.["value"], "theirs");
        await running.quiet();
        assert.is((await space.get(ConfigMap, name))?.data?.["value"], "theirs");
      }
      assert.ok(seen.includes("theirs"), "update is asked about what is there");
    });
});
