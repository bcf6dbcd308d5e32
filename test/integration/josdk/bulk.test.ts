// Bulk dependents of objects of Kubernetes, after JOSDK's integration tests.
import { waitFor } from "#runtime/base/wait-for.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../support/suite.js";
import {
  bulkOf,
  configOf,
  dependentController,
  outcomeOf,
  untilOutcome,
  untilValues,
  valuesIn,
  wantedOf,
  writesOf,
  type SampleArguments,
} from "./sample-dependents.js";
import { ConfigMap, Sample, type DataObject } from "./sample-kind.js";
import { spacesOf, type Space } from "./space.js";

const openSpace = spacesOf({ simulate: true });
const sample = (number: number, value = "first") => ({ metadata: { name: "one" }, spec: { number, value } });

/** Changes how many there should be and what they say, and deletes the primary. */
async function leadThroughLife(space: Space, name: string): Promise<void> {
  await space.create(Sample, sample(3));
  await untilValues(space, wantedOf(name, 3));
  for (const number of [1, 5]) {
    await space.patch(Sample, "one", { spec: { number } });
    await untilValues(space, wantedOf(name, number));
  }
  await space.patch(Sample, "one", { spec: { value: "second" } });
  await untilValues(space, wantedOf(name, 5, "second"));
  await space.delete(ConfigMap, `one-${name}-2`);
  await untilValues(space, wantedOf(name, 5, "second"));
  await space.delete(Sample, "one");
  await space.untilGone(Sample, "one");
}

suite("the items of a bulk dependent", (test) => {
  test("follow their number and data, and are gone before the finalizer is", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([bulkOf("a", { isGarbageCollected: false })])]);
    await leadThroughLife(space, "a");
    assert.equal(await valuesIn(space), {});
    await running.quiet();
    assert.equal(
      running.events.flatMap(({ error }) => error ?? []),
      [],
    );
  });

  test("follow their number and data, and are left to the garbage collector", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([bulkOf("a")])]);
    await leadThroughLife(space, "a");
    await untilValues(space, {});
    const deletions = writesOf(running).filter((write) => write.startsWith("DELETE"));
    assert.equal(deletions.sort(), ["DELETE configmaps/one-a-1 200", "DELETE configmaps/one-a-2 200"]);
  });

  test("follow their number and data where the reconciler runs the dependent by itself", async () => {
    await using space = await openSpace();
    const controller = dependentController([], {
      workflows: { bulk: { primary: Sample.definition, dependents: [bulkOf("a")] } },
      reconciler: {
        reconcile: async ({ context }) => {
          const result = await context.workflows.get("bulk").reconcile();
          return updateStatus({ count: Object.keys(result.dependents["a"]?.items ?? {}).length });
        },
      },
    });
    await using _ = await space.start([controller]);
    await space.create(Sample, sample(2));
    await space.until(Sample, "one", ({ status }) => status?.count === 2);
    await space.delete(Sample, "one");
    await untilValues(space, {});
    await leadThroughLife(space, "a");
    await untilValues(space, {});
  });

  test("cost one request each, and none when they are as desired", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([bulkOf("a")], { workflow: { inventory: false } })]);
    await space.create(Sample, sample(3));
    await untilValues(space, wantedOf("a", 3));
    await space.patch(Sample, "one", { spec: { other: "x" } });
    await waitFor("all is as desired", () => outcomeOf(running, "a")?.kind === "unchanged");
    await running.quiet();
    const writes = [0, 1, 2].map((index) => `PATCH configmaps/one-a-${index} 201`);
    assert.equal(writesOf(running).sort(), writes);
    assert.is(running.events.length, 2, "own writes are no events");
  });

  test("that are only created are left as they are once they exist", async () => {
    await using space = await openSpace();
    const dependents = [bulkOf("a", { mode: "createOnly", isGarbageCollected: false })];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample(2));
    await untilValues(space, wantedOf("a", 2));
    await space.patch(ConfigMap, "one-a-0", { data: { value: "theirs" } });
    await space.patch(Sample, "one", { spec: { number: 3, value: "second" } });
    await untilValues(space, { "one-a-0": "theirs", "one-a-1": "first", "one-a-2": "second" });
    await space.delete(ConfigMap, "one-a-1");
    await untilValues(space, { "one-a-0": "theirs", "one-a-1": "second", "one-a-2": "second" });
    await running.quiet();
    assert.is((await space.get(ConfigMap, "one-a-0"))?.data?.["value"], "theirs");
    await space.patch(Sample, "one", { spec: { number: 1 } });
    await untilValues(space, { "one-a-0": "theirs" });
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(await valuesIn(space), {});
  });

  test("are known again after a restart, by the functions of the user too", async () => {
    await using space = await openSpace();
    {
      await using running = await space.start([dependentController([bulkOf("a")])]);
      await space.create(Sample, sample(3));
      await untilValues(space, wantedOf("a", 3));
      await running.quiet();
    }
    await space.patch(Sample, "one", { spec: { number: 2 } });
    const seen: string[] = [];
    const reconciler = {
      reconcile: ({ secondary }: { secondary: object }) =>
        void seen.push(Object.keys((secondary as { a: object }).a).join()),
    };
    await using _ = await space.start([dependentController([bulkOf("a")], { reconciler })]);
    await untilValues(space, wantedOf("a", 2));
    await waitFor("the reconciler sees two", () => seen.at(-1) === "item-0,item-1");
  });
});

suite("conditions of a bulk dependent", (test) => {
  const isLabelled = ({ dependent: { live } }: { dependent: { live?: DataObject } }) =>
    live?.metadata.labels?.["ready"] === "yes";
  const label = (space: Space, name: string) =>
    space.patch(ConfigMap, name, { metadata: { labels: { ready: "yes" } } });

  test("it is ready when the ready postcondition holds for each item, and so is what waits for it", async () => {
    await using space = await openSpace();
    const reconciler = {
      reconcile: ({ workflow }: { workflow: { isReady: boolean } }) =>
        updateStatus({ message: workflow.isReady ? "ready" : "not ready" }),
    };
    const dependents = [
      bulkOf("a", { readyPostcondition: isLabelled as never }),
      configOf("after", { dependsOn: ["a"] }),
    ];
    await using running = await space.start([dependentController(dependents, { reconciler })]);
    await space.create(Sample, sample(2));
    await space.until(Sample, "one", ({ status }) => status?.message === "not ready");
    assert.equal(await valuesIn(space), wantedOf("a", 2));
    await label(space, "one-a-0");
    await waitFor("one is ready", () => {
      const item = outcomeOf(running, "a")?.items?.["item-0"];
      return item !== undefined && "isReady" in item && item.isReady;
    });
    assert.equal(outcomeOf(running, "after"), { kind: "waiting", for: ["a"] });
    await label(space, "one-a-1");
    await space.until(Sample, "one", ({ status }) => status?.message === "ready");
    assert.equal(await valuesIn(space), { ...wantedOf("a", 2), "one-after": "first" });
    await space.patch(Sample, "one", { spec: { number: 3 } });
    await space.until(Sample, "one", ({ status }) => status?.message === "not ready");
  });

  test("what is only read is ready when others have made as many as its condition says", async () => {
    await using space = await openSpace();
    const areTwo = ({ secondary }: SampleArguments) => Object.keys(secondary["theirs"] ?? {}).length >= 2;
    const dependents = [
      configOf("theirs", { bulk: {}, mode: "readOnly", readyPostcondition: areTwo as never }),
      configOf("after", { dependsOn: ["theirs"] }),
    ];
    await using running = await space.start([dependentController(dependents)]);
    const { metadata } = await space.create(Sample, sample(0));
    const { apiVersion, kind } = Sample.definition;
    const ownerReferences = [{ apiVersion, kind, name: "one", uid: metadata.uid ?? "" }];
    const make = (name: string) =>
      space.create(ConfigMap, { metadata: { name, ownerReferences }, data: { value: "x" } });
    await untilOutcome(running, "after", "waiting");
    await make("first");
    await waitFor("one is seen", () => Object.keys(outcomeOf(running, "theirs")?.items ?? {}).length === 1);
    assert.is(outcomeOf(running, "after")?.kind, "waiting");
    await make("second");
    await space.until(ConfigMap, "one-after", () => true);
    await running.quiet();
    assert.ok(running.events.at(-1)?.workflow?.isReady);
    assert.equal(await valuesIn(space), { first: "x", "one-after": "first", second: "x" });
  });

  test("one that must not exist is deleted before anything was watched for it, without an error", async () => {
    await using space = await openSpace();
    const calls: string[] = [];
    const noted = (name: string, holds: boolean) =>
      (() => {
        calls.push(name);
        return holds;
      }) as never;
    const conditions = { activationCondition: noted("active", true), reconcilePrecondition: noted("wanted", false) };
    const dependents = [bulkOf("a", { ...conditions, isGarbageCollected: false })];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample(2));
    await untilOutcome(running, "a", "deleted");
    assert.ok(running.events.at(-1)?.workflow?.isReady);
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    await running.quiet();
    assert.equal(
      running.events.flatMap(({ error }) => error ?? []),
      [],
    );
    assert.equal([...new Set(calls)].sort(), ["active", "wanted"]);
    assert.equal(await valuesIn(space), {});
  });

  test("one that is activated by a cleanup finds and deletes what an earlier process made", async () => {
    await using space = await openSpace();
    const dependents = [bulkOf("a", { activationCondition: (() => true) as never, isGarbageCollected: false })];
    {
      await using running = await space.start([dependentController(dependents)]);
      await space.create(Sample, sample(3));
      await untilValues(space, wantedOf("a", 3));
      await running.quiet();
    }
    await space.delete(Sample, "one");
    await using _ = await space.start([dependentController(dependents)]);
    await space.untilGone(Sample, "one");
    assert.equal(await valuesIn(space), {});
  });
});
