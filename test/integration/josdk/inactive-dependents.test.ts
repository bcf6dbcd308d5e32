// Dependents that are not always there, after JOSDK's integration tests of workflows.
import { untypedResource } from "#runtime/codegen/define-resource.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import { crdPresent } from "#runtime/workflow/builtin-conditions.js";
import { assert, suite } from "../../support/suite.js";
import { configOf, dependentController, outcomeOf, untilOutcome, type SampleArguments } from "./sample-dependents.js";
import { ConfigMap, Sample, Secret } from "./sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "./space.js";

const openSpace = spacesOf();
const sample = (spec: Sample["spec"] = {}) => ({ metadata: { name: "one" }, spec: { value: "first", ...spec } });

const isNotOff = (({ primary }: SampleArguments) => primary.spec.other !== "off") as never;
const ordered = { isGarbageCollected: false } as const;

const errorsOf = ({ events }: TestOperator) => events.flatMap(({ error }) => error ?? []);
const untilValue = (space: Space, name: string, value: string) =>
  space.until(ConfigMap, name, ({ data }) => data?.["value"] === value);

suite("activation conditions", (test) => {
  const has = (letter: string) =>
    (({ primary }: SampleArguments) => primary.spec.other?.includes(letter) === true) as never;

  test("a workflow of one that is inactive does not hang, and its primary goes", async () => {
    await using space = await openSpace();
    const dependents = [configOf("a", { ...ordered, activationCondition: (() => false) as never })];
    const reconciler = { reconcile: () => updateStatus({ message: "done" }), cleanup: () => {} };
    await using running = await space.start([dependentController(dependents, { reconciler })]);
    await space.create(Sample, sample());
    await space.until(Sample, "one", ({ status }) => status?.message === "done");
    assert.is(outcomeOf(running, "a")?.kind, "inactive");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.equal(
      running.requests.filter((request) => request.includes("configmaps")),
      [],
    );
  });

  test("what is of the kind of an inactive one is read as absent, without an error", async () => {
    await using space = await openSpace();
    const reconciler: NonNullable<Parameters<typeof dependentController>[1]>["reconciler"] = {
      reconcile: ({ context }) => {
        const found = context.secondary(ConfigMap);
        return updateStatus({ message: found?.metadata.name ?? "none", count: context.secondaries(ConfigMap).length });
      },
    };
    const dependents = [configOf("a", { activationCondition: has("a") })];
    await using running = await space.start([dependentController(dependents, { reconciler })]);
    await space.create(Sample, sample());
    await space.until(Sample, "one", ({ status }) => status?.message === "none" && status.count === 0);
    await space.patch(Sample, "one", { spec: { other: "a" } });
    await space.until(Sample, "one", ({ status }) => status?.message === "one-a" && status.count === 1);
    assert.equal(errorsOf(running), []);
  });

  test("two of one kind are active each for itself", async () => {
    await using space = await openSpace();
    const dependents = ["a", "b"].map((name) => configOf(name, { activationCondition: has(name) }));
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    await untilOutcome(running, "b", "inactive");
    assert.equal(await space.list(ConfigMap), []);
    let round = 0;
    const set = async (other: string, exist: string[]) => {
      const value = `round ${++round}`;
      await space.patch(Sample, "one", { spec: { other, value } });
      for (const name of other) await untilValue(space, `one-${name}`, value);
      await running.quiet();
      for (const name of ["a", "b"])
        assert.is(outcomeOf(running, name)?.kind === "inactive", !other.includes(name), `${other}: ${name}`);
      assert.equal(
        (await space.list(ConfigMap)).map(({ metadata }) => metadata.name),
        exist.map((name) => `one-${name}`),
      );
    };
    await set("a", ["a"]);
    await set("ab", ["a", "b"]);
    await set("b", ["a", "b"]);
    await set("", ["a", "b"]);
    await set("ab", ["a", "b"]);
    assert.equal(errorsOf(running), []);
  });

  test("an inactive one below a precondition that does not hold is not made, and no error", async () => {
    await using space = await openSpace();
    const dependents = [
      configOf("a", { reconcilePrecondition: (() => false) as never }),
      configOf("b", { resource: Secret.definition, dependsOn: ["a"], activationCondition: (() => false) as never }),
    ];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    await untilOutcome(running, "a", "deleted");
    await running.quiet();
    assert.is(outcomeOf(running, "b")?.kind, "inactive");
    assert.ok(running.events.at(-1)?.workflow?.isReady);
    assert.equal(errorsOf(running), []);
    assert.equal([...(await space.list(ConfigMap)), ...(await space.list(Secret))], []);
  });

  test("an inactive one is left as it is and tells nothing, and is put right when it is active again", async () => {
    await using space = await openSpace();
    await using running = await space.start([
      dependentController([configOf("a", { ...ordered, activationCondition: isNotOff })]),
    ]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    for (const round of ["second", "third"]) {
      await space.patch(Sample, "one", { spec: { other: "off", value: round } });
      await untilOutcome(running, "a", "inactive");
      await running.quiet();
      const before = running.events.length;
      await space.patch(ConfigMap, "one-a", { data: { value: "theirs" } });
      await running.quiet();
      assert.is(running.events.length, before);
      assert.is((await space.get(ConfigMap, "one-a"))?.data?.["value"], "theirs");
      await space.patch(Sample, "one", { spec: { other: "on" } });
      await untilValue(space, "one-a", round);
    }
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
  });

  test("many primaries switch it on and off at the same time", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([configOf("a", { activationCondition: isNotOff })])]);
    const names = Array.from({ length: 20 }, (_, index) => `sample-${index}`);
    for (const name of names)
      await space.create(Sample, { metadata: { name }, spec: { value: "first", other: "off" } });
    for (const [other, value] of [
      ["on", "second"],
      ["off", "second"],
      ["on", "third"],
    ] as const) {
      // Half of them stay as they are, so that some need the watch all the time.
      const half = names.filter((_, index) => value === "third" || index % 2 === 0);
      await Promise.all(half.map((name) => space.patch(Sample, name, { spec: { other, value } })));
      if (other === "on") await Promise.all(half.map((name) => untilValue(space, `${name}-a`, value)));
    }
    await running.quiet();
    assert.equal(errorsOf(running), []);
    assert.is((await space.list(ConfigMap)).length, names.length);
  });

  test("a kind of another platform is inactive where it is not served, and the others are made", async () => {
    await using space = await openSpace();
    const { definition: route } = untypedResource({
      apiVersion: "route.openshift.io/v1",
      kind: "Route",
      plural: "routes",
      scope: "Namespaced",
    });
    const dependents = [
      configOf("a"),
      configOf("route", {
        resource: route,
        activationCondition: crdPresent as never,
        desired: () => ({ metadata: { name: "web" }, spec: { to: { kind: "Service", name: "web" } } }),
      }),
    ];
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await untilOutcome(running, "route", "inactive");
    await running.quiet();
    assert.ok(running.events.at(-1)?.workflow?.isReady);
    assert.equal(errorsOf(running), []);
  });
});
