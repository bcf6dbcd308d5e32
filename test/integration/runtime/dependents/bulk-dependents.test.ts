// What can become of the items of a bulk dependent besides being made as desired.
import { waitFor } from "#apiserver/wait-for.js";
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { byOwnerReference } from "#runtime/sources/mappers.js";
import { deleted } from "#runtime/workflow/conditions.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  bulkOf,
  configOf,
  dependentController,
  outcomeOf,
  untilValues,
  valuesIn,
  wantedOf,
  writesOf,
  type SampleArguments,
} from "./sample-dependents.js";
import { ConfigMap, Sample, Secret } from "../sample-kind.js";
import { isOfTests, spacesOf, type Space, type TestOperator } from "../space.js";

const openSpace = spacesOf({ simulate: true });
const HOLD = "example.com/hold";
const sample = (number: number, value = "first") => ({ metadata: { name: "one" }, spec: { number, value } });
const errorsOf = ({ events }: TestOperator) => events.flatMap(({ error }) => error ?? []);

/** As many Secrets as the primary says. */
function secretsOf(name: string, rest: Partial<KubernetesDependent> = {}): KubernetesDependent {
  const desired = ({ primary: { metadata, spec } }: SampleArguments) =>
    Object.fromEntries(
      Array.from({ length: spec.number ?? 0 }, (_, index) => [
        `item-${index}`,
        { metadata: { name: `${metadata.name}-${name}-${index}` } },
      ]),
    );
  return { ...bulkOf(name), resource: Secret.definition, desired, ...rest };
}

/** Runs a version of the operator until everything is ready, and stops it. */
async function runUntilReady(space: Space, dependents: readonly KubernetesDependent[]): Promise<void> {
  await using running = await space.start([dependentController(dependents)]);
  if ((await space.get(Sample, "one")) === undefined) await space.create(Sample, sample(2));
  await waitFor("all is ready", () => running.events.at(-1)?.workflow?.isReady === true);
  await running.quiet();
  assert.equal(errorsOf(running), []);
}

suite("bulk dependent item", (test) => {
  test("is created under a new name, and the object with the old name is deleted", async () => {
    await using space = await openSpace();
    const dependent = bulkOf("a", {
      desired: ({ primary: { spec } }) => ({
        x: { metadata: { name: `x-${spec.value}` }, data: { value: "x" } },
        y: { metadata: { name: "y" }, data: { value: spec.value } },
      }),
    });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample(0));
    await untilValues(space, { "x-first": "x", y: "first" });
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValues(space, { "x-second": "x", y: "second" });
    await running.quiet();
    assert.equal(errorsOf(running), []);
    assert.equal(writesOf(running).slice(-3).sort(), [
      "DELETE configmaps/x-first 200",
      "PATCH configmaps/x-second 201",
      "PATCH configmaps/y 200",
    ]);
  });

  test("is listed in the order of its key by secondary, context and event sources, also after a restart", async () => {
    await using space = await openSpace();
    const seen: (readonly string[])[] = [];
    const dependent = bulkOf("a", {
      desired: ({ primary: { spec } }) =>
        Object.fromEntries(
          (spec.value ?? "").split("").map((key) => [key, { metadata: { name: key }, data: { value: key } }]),
        ),
    });
    const controller = dependentController([dependent], {
      reconciler: {
        reconcile: ({ secondary, context }) => {
          const items = Object.keys(secondary["a"] as object).join("");
          const names = (objects: unknown) =>
            (objects as KubernetesObject[]).map(({ metadata }) => metadata.name).join("");
          seen.push([items, names(context.secondaries(ConfigMap, { deduplicated: true })), names(secondary["maps"])]);
        },
      },
      eventSources: () => [informerSource({ name: "maps", resource: ConfigMap, mapper: byOwnerReference(Sample) })],
    });
    const untilSeen = (last: string) => waitFor(`${last} is seen`, () => seen.some(([items]) => items === last));
    {
      await using running = await space.start([controller]);
      await space.create(Sample, sample(0, "dba"));
      await untilSeen("abd");
      await space.patch(Sample, "one", { spec: { value: "db" } });
      await untilSeen("bd");
      await space.patch(Sample, "one", { spec: { value: "dcba" } });
      await untilSeen("abcd");
      await running.quiet();
    }
    // An event source may learn of an object later than the dependent does.
    for (const list of seen.flat()) assert.is(list, [...list].sort().join(""));
    seen.length = 0;
    await using _ = await space.start([controller]);
    await waitFor("all are seen", () => seen.some((lists) => lists.join() === "abcd,abcd,abcd"));
  });

  for (const mode of ["managed", "createOnly"] as const)
    test(`keeps its object when keys shift, with mode: ${mode}`, async () => {
      await using space = await openSpace();
      // Keys that are positions in a list: the first name goes, and all others get another one.
      const dependent = bulkOf("a", {
        mode,
        desired: ({ primary: { spec } }) =>
          Object.fromEntries(
            ["x", "y", "z"].slice(spec.number).map((name, at) => [at, { metadata: { name }, data: { value: name } }]),
          ),
      });
      await using running = await space.start([dependentController([dependent])]);
      await space.create(Sample, sample(0));
      await untilValues(space, { x: "x", y: "y", z: "z" });
      await running.quiet();
      const { length } = writesOf(running);
      await space.patch(Sample, "one", { spec: { number: 1 } });
      await untilValues(space, { y: "y", z: "z" });
      await running.quiet();
      assert.equal(errorsOf(running), []);
      assert.equal(writesOf(running).slice(length).sort(), [
        "DELETE configmaps/x 200",
        "PATCH configmaps/y 200",
        "PATCH configmaps/z 200",
      ]);
      await space.patch(Sample, "one", { spec: { value: "second" } });
      await running.quiet();
      assert.is(writesOf(running).length, length + 3);
    });

  test("fails alone if the API server rejects it, and is created once it is valid", async () => {
    await using space = await openSpace();
    const dependent = bulkOf("a", {
      desired: ({ primary: { spec } }) => ({
        good: { metadata: { name: "good" }, data: { value: spec.value } },
        bad: { metadata: { name: spec.other ?? "Not A Name" }, data: { value: spec.value } },
      }),
    });
    await using running = await space.start([
      dependentController([dependent, configOf("after", { dependsOn: ["a"] })]),
    ]);
    await space.create(Sample, sample(0));
    await untilValues(space, { good: "first" });
    await waitFor("it failed", () => outcomeOf(running, "a")?.kind === "failed");
    const { items } = outcomeOf(running, "a")!;
    assert.is(items?.["bad"]?.kind, "failed");
    assert.not.equal(items?.["good"]?.kind, "failed");
    assert.equal(outcomeOf(running, "after"), { kind: "waiting", for: ["a"] });
    assert.match(String(errorsOf(running)[0]), 'dependent "a", item "bad"');
    await space.patch(Sample, "one", { spec: { other: "bad" } });
    await untilValues(space, { bad: "first", good: "first", "one-after": "first" });
  });

  test("keeps its dependent from being ready while a foreign finalizer delays its deletion, and is then recreated", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([bulkOf("a", { deletePostcondition: deleted })])]);
    await space.create(Sample, sample(2));
    await untilValues(space, wantedOf("a", 2));
    await space.patch(ConfigMap, "one-a-1", { metadata: { finalizers: [HOLD] } });
    await space.patch(Sample, "one", { spec: { number: 1 } });
    await space.until(ConfigMap, "one-a-1", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await running.quiet();
    assert.not(running.events.at(-1)?.workflow?.isReady);
    await space.patch(Sample, "one", { spec: { number: 2, value: "second" } });
    await running.quiet();
    assert.equal(await valuesIn(space), { "one-a-0": "second", "one-a-1": "first" });
    await space.patch(ConfigMap, "one-a-1", { metadata: { finalizers: null } });
    await untilValues(space, wantedOf("a", 2, "second"));
    await waitFor("all is ready", () => running.events.at(-1)?.workflow?.isReady === true);
  });

  test("gets its annotations and its owner back after another client removes them", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([bulkOf("a")])]);
    await space.create(Sample, sample(2));
    await untilValues(space, wantedOf("a", 2));
    await running.quiet();
    const { metadata } = (await space.get(ConfigMap, "one-a-0"))!;
    const annotations = Object.fromEntries(Object.keys(metadata.annotations ?? {}).map((name) => [name, null]));
    await space.patch(ConfigMap, "one-a-0", { metadata: { annotations } });
    const again = await space.until(ConfigMap, "one-a-0", (object) => object.metadata.annotations !== undefined);
    assert.equal(again.metadata.annotations, metadata.annotations);
    await running.quiet();
    await space.patch(ConfigMap, "one-a-1", { metadata: { ownerReferences: null } });
    const owned = await space.until(ConfigMap, "one-a-1", (object) => object.metadata.ownerReferences !== undefined);
    assert.equal(owned.metadata.ownerReferences, metadata.ownerReferences);
    await space.patch(Sample, "one", { spec: { number: 0 } });
    await untilValues(space, {});
    assert.equal(errorsOf(running), []);
  });
});

suite("bulk dependent upgrade", (test) => {
  test("prunes all items of a bulk dependent removed from the workflow", async () => {
    await using space = await openSpace();
    await runUntilReady(space, [configOf("b"), bulkOf("a")]);
    assert.equal(await valuesIn(space), { ...wantedOf("a", 2), "one-b": "first" });
    await using _ = await space.start([dependentController([configOf("b")])]);
    await untilValues(space, { "one-b": "first" });
  });

  test("replaces one object by many items, and many items by one object", async () => {
    await using space = await openSpace();
    await runUntilReady(space, [configOf("a")]);
    await runUntilReady(space, [bulkOf("a")]);
    await untilValues(space, wantedOf("a", 2));
    await runUntilReady(space, [configOf("a")]);
    await untilValues(space, { "one-a": "first" });
  });
});

suite("itemsDependOn", (test) => {
  const chain = [
    bulkOf("a", { deletion: "ordered" }),
    secretsOf("b", { itemsDependOn: ["a"], deletion: "ordered", deletePostcondition: deleted }),
  ];
  const secretsIn = async (space: Space) => (await space.list(Secret)).map(({ metadata }) => metadata.name);

  test("deletes each item before the item it depends on, in a reconcile and in a cleanup", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController(chain)]);
    await space.create(Sample, sample(3));
    await waitFor("all is there", async () => (await secretsIn(space)).length === 3);
    await space.patch(Secret, "one-b-2", { metadata: { finalizers: [HOLD] } });
    await running.quiet();
    await space.patch(Sample, "one", { spec: { number: 1 } });
    await untilValues(space, { "one-a-0": "first", "one-a-2": "first" });
    await running.quiet();
    assert.equal(await secretsIn(space), ["one-b-0", "one-b-2"], "what is needed stays until it is let go of");
    const deletions = writesOf(running).filter((write) => write.startsWith("DELETE"));
    assert.equal(deletions.slice(0, 2).sort(), ["DELETE secrets/one-b-1 200", "DELETE secrets/one-b-2 200"]);
    await space.patch(Secret, "one-b-2", { metadata: { finalizers: null } });
    await untilValues(space, wantedOf("a", 1));
    await running.quiet();
    await space.patch(Secret, "one-b-0", { metadata: { finalizers: [HOLD] } });
    // The deletion would end a reconcile that is under way, with an error.
    await running.quiet();
    await space.delete(Sample, "one");
    await space.until(Secret, "one-b-0", ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await running.quiet();
    assert.equal(await valuesIn(space), wantedOf("a", 1));
    await space.patch(Secret, "one-b-0", { metadata: { finalizers: null } });
    await space.untilGone(Sample, "one");
    assert.equal(await valuesIn(space), {});
    assert.equal(errorsOf(running).map(String), []);
  });
});

suite("bulk dependent in another namespace", (test) => {
  const Namespace = classOf(builtinDefinition("v1", "Namespace"));

  test("keeps the items of two primaries apart", async () => {
    await using space = await openSpace();
    const namespace = `${space.namespace}-other`;
    await space.client.create(Namespace, { metadata: { name: namespace } });
    await using running = await space.start([dependentController([bulkOf("a", { deletion: "ordered", namespace })])]);
    const names = async () =>
      (await space.client.list(ConfigMap, { namespace }))
        .filter(isOfTests)
        .map(({ metadata }) => metadata.name)
        .join();
    await space.create(Sample, sample(2));
    await space.create(Sample, { metadata: { name: "two" }, spec: { number: 1 } });
    await waitFor("all is there", async () => (await names()) === "one-a-0,one-a-1,two-a-0");
    await space.patch(Sample, "one", { spec: { number: 1 } });
    await waitFor("one has less", async () => (await names()) === "one-a-0,two-a-0");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await names(), "two-a-0");
    assert.equal(errorsOf(running), []);
  });
});
