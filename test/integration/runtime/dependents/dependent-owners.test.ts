// Whose an object is: of two dependents that want it, and when somebody took its link away.
import { waitFor } from "#apiserver/wait-for.js";
import { deleted } from "#runtime/workflow/conditions.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configOf,
  dependentController,
  outcomeOf,
  untilOutcome,
  type SampleArguments,
  type Stated,
} from "./sample-dependents.js";
import { ConfigMap, Sample, Secret, type DataObject } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();
const sample = (spec: Sample["spec"] = { value: "first" }) => ({ metadata: { name: "one" }, spec });

suite("two dependents with one object", (test) => {
  const turnOf = (name: string, rest: object = {}) =>
    configOf(name, {
      desired: () => ({ metadata: { name: "turn" }, data: { value: name } }),
      reconcilePrecondition: ({ primary }: { primary: Sample }) => primary.spec.value === name,
      ...rest,
    });

  for (const serverSideApply of [true, false])
    test(`write it alternately as their preconditions change, ${serverSideApply ? "with apply" : "with PUT"}`, async () => {
      await using space = await openSpace();
      const dependents = ["a", "b"].map((name) => turnOf(name, { serverSideApply, deletePostcondition: deleted }));
      await using running = await space.start([dependentController(dependents)]);
      await space.create(Sample, sample({ value: "a" }));
      await space.until(ConfigMap, "turn", ({ data }) => data?.["value"] === "a");
      for (const value of ["b", "a", "b", "a"]) {
        await space.patch(Sample, "one", { spec: { value } });
        await waitFor(`it is the turn of "${value}"`, () => {
          const { kind } = outcomeOf(running, value) ?? { kind: "deleted" };
          return kind === "created" || kind === "updated";
        });
        await running.quiet();
        assert.is((await space.get(ConfigMap, "turn"))?.data?.["value"], value);
        assert.ok(running.events.at(-1)?.workflow?.isReady);
      }
    });

  test("fail if both claim it in the same reconcile", async () => {
    await using space = await openSpace();
    const dependents = ["a", "b"].map((name) => turnOf(name, { reconcilePrecondition: undefined }));
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    const outcome = await untilOutcome(running, "b", "failed");
    assert.match(
      String(outcome.kind === "failed" && outcome.error),
      `desired() of dependent "b" returned ConfigMap "${space.namespace}/turn", which dependent "a" also returns`,
    );
    assert.is((await space.get(ConfigMap, "turn"))?.data?.["value"], "a");
  });

  test("succeed if their objects share a name but not a kind", async () => {
    await using space = await openSpace();
    const dependents = [configOf("a"), configOf("b", { resource: Secret.definition })].map((each) => ({
      ...each,
      desired: () => ({ metadata: { name: "same" } }),
    }));
    await using running = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    await untilOutcome(running, "b", "created");
    assert.is(outcomeOf(running, "a")?.kind, "created");
  });
});

suite("two primaries with one object name", (test) => {
  for (const [way, rest] of [
    ["with apply", {}],
    ["with PUT", { serverSideApply: false }],
    ["with existing: adopt", { existing: "adopt" }],
  ] as const)
    test(`never share the object: the second fails with the name of the owner, ${way}`, async () => {
      await using space = await openSpace();
      const dependents = ["x-web", "web"].map((name) => configOf(name, rest));
      await using running = await space.start([dependentController(dependents)]);
      await space.create(Sample, { metadata: { name: "a" }, spec: { value: "of a" } });
      await space.until(ConfigMap, "a-x-web", () => true);
      await running.quiet();
      await space.create(Sample, { metadata: { name: "a-x" }, spec: { value: "of a-x" } });
      await space.until(ConfigMap, "a-x-x-web", () => true);
      const failed = await waitFor("the second primary fails", () =>
        running.events
          .flatMap(({ primary, workflow }) => {
            const outcome = primary.endsWith("/a-x") ? workflow?.dependents["web"] : undefined;
            return outcome?.kind === "failed" ? [String(outcome.error)] : [];
          })
          .at(0),
      );
      assert.match(failed, `ConfigMap "${space.namespace}/a-x-web"`);
      assert.match(failed, /is owned by Sample "a"; delete it there, or change the name that desired\(\) returns$/);
      assert.is((await space.get(ConfigMap, "a-x-web"))?.data?.["value"], "of a");
    });
});

suite("dependent that lost its link", (test) => {
  const untied = { metadata: { ownerReferences: null } };
  const isTied = ({ metadata }: DataObject) => metadata.ownerReferences?.some(({ name }) => name === "one") === true;

  const ways: readonly [string, Stated][] = [
    ["with apply", {}],
    ["with PUT", { serverSideApply: false }],
  ];
  for (const [way, rest] of ways)
    test(`gets its owner reference back and is updated, ${way}`, async () => {
      await using space = await openSpace();
      await using running = await space.start([dependentController([configOf("a", rest)])]);
      await space.create(Sample, sample());
      const before = await space.until(ConfigMap, "one-a", () => true);
      await running.quiet();
      await space.patch(ConfigMap, "one-a", untied);
      await space.until(ConfigMap, "one-a", isTied);
      await space.patch(Sample, "one", { spec: { value: "second" } });
      const after = await space.until(ConfigMap, "one-a", ({ data }) => data?.["value"] === "second");
      assert.is(after.metadata.uid, before.metadata.uid);
      assert.equal(
        running.events.flatMap(({ error }) => error ?? []),
        [],
      );
    });

  for (const deletion of ["garbageCollected", "ordered"] as const)
    for (const mode of ["managed", "createOnly"] as const)
      test(`is found by its label and managed fields without annotations (${deletion}, ${mode})`, async () => {
        await using space = await openSpace();
        await using running = await space.start([dependentController([configOf("a", { deletion, mode })])]);
        await space.create(Sample, sample());
        const { metadata: before } = await space.until(ConfigMap, "one-a", () => true);
        await running.quiet();
        await space.patch(ConfigMap, "one-a", { metadata: { annotations: null, ownerReferences: null } });
        const names = Object.keys(before.annotations ?? {})
          .sort()
          .join();
        const isTiedAgain = ({ metadata }: DataObject) =>
          Object.keys(metadata.annotations ?? {})
            .sort()
            .join() === names;
        const { metadata: after } = await space.until(ConfigMap, "one-a", isTiedAgain);
        assert.equal([after.uid, after.ownerReferences], [before.uid, before.ownerReferences]);
        await running.quiet();
        assert.equal(failuresOf(running.events), []);
      });

  for (const name of ["primary-name", "primary-namespace", "primary-type"])
    test(`gets its annotation ${name} back without an error`, async () => {
      await using space = await openSpace();
      const ordered = configOf("a", { deletion: "ordered", desired: () => ({ metadata: { name: "a" } }) });
      await using running = await space.start([dependentController([ordered])]);
      await space.create(Sample, sample());
      const { metadata } = await space.until(ConfigMap, "a", () => true);
      await running.quiet();
      const annotation = `gen-operator.dev/${name}`;
      await space.patch(ConfigMap, "a", { metadata: { annotations: { [annotation]: null } } });
      const after = await space.until(ConfigMap, "a", (live) => live.metadata.annotations?.[annotation] !== undefined);
      assert.is(after.metadata.uid, metadata.uid);
      await running.quiet();
      assert.equal(failuresOf(running.events), []);
    });

  test("is rejected as not owned without annotations, owner reference and label", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([configOf("a")])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await running.quiet();
    await space.patch(ConfigMap, "one-a", { metadata: { annotations: null, ownerReferences: null, labels: null } });
    const outcome = await untilOutcome(running, "a", "failed");
    assert.match(String(outcome.kind === "failed" && outcome.error), "already exists and is not owned by this primary");
  });

  const left: readonly [string, Stated][] = [
    ["with mode: createOnly", { mode: "createOnly" }],
    ["with mode: createOnly and POST", { mode: "createOnly", serverSideApply: false }],
    ["with operations.update: false", { operations: { update: false } }],
  ];
  for (const [way, rest] of left)
    test(`gets its owner reference back and keeps its data, ${way}`, async () => {
      await using space = await openSpace();
      await using running = await space.start([dependentController([configOf("a", rest)])]);
      await space.create(Sample, sample());
      const before = await space.until(ConfigMap, "one-a", () => true);
      await running.quiet();
      const owner = { apiVersion: "v1", kind: "ConfigMap", name: "x", uid: "1" };
      await space.patch(ConfigMap, "one-a", { metadata: { ownerReferences: [owner] }, data: { value: "theirs" } });
      const after = await space.until(ConfigMap, "one-a", isTied);
      await running.quiet();
      assert.equal([after.metadata.uid, after.data], [before.metadata.uid, { value: "theirs" }]);
      assert.is(after.metadata.ownerReferences?.length, 2, "the other owner stays");
      assert.equal(
        running.events.flatMap(({ error }) => error ?? []),
        [],
      );
    });

  test("is deleted with its primary without its dependent annotation, with mode: createOnly", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", { mode: "createOnly", deletion: "ordered" });
    await using running = await space.start([dependentController([dependent])]);
    await space.create(Sample, sample());
    await space.until(ConfigMap, "one-a", () => true);
    await running.quiet();
    await space.patch(ConfigMap, "one-a", { metadata: { annotations: { "gen-operator.dev/dependent": null } } });
    await running.quiet();
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
  });

  test("fails if another controller or another dependent has taken it over", async () => {
    await using space = await openSpace();
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "Deployment", name: "x", uid: "1", controller: true }];
    const annotations = { "gen-operator.dev/dependent": "other" };
    const cases = [
      { name: "a", taken: { ownerReferences }, why: 'already exists and is owned by Deployment "x"' },
      {
        name: "b",
        taken: { annotations, ownerReferences: null },
        why: "already exists and is not owned by this primary",
      },
    ];
    for (const { name, taken, why } of cases) {
      await using running = await space.start([dependentController([configOf(name)])]);
      await space.create(Sample, { ...sample(), metadata: { name: name } });
      await space.until(ConfigMap, `${name}-${name}`, () => true);
      await running.quiet();
      await space.patch(ConfigMap, `${name}-${name}`, { metadata: taken });
      const outcome = await untilOutcome(running, name, "failed");
      assert.match(String(outcome.kind === "failed" && outcome.error), why);
      await space.delete(Sample, name);
    }
  });
});

suite("switch to deletion orphan", (test) => {
  const ways = {
    "with PUT": [{ serverSideApply: false }, { serverSideApply: false }],
    "with another field manager": [{}, { fieldManager: "other" }],
    "with mode: createOnly": [{}, { mode: "createOnly" }],
  } as const;
  for (const [way, [before, after]] of Object.entries(ways))
    test(`removes the owner reference ${way}, without further writes`, async () => {
      await using space = await openSpace();
      {
        await using running = await space.start([dependentController([configOf("a", before)])]);
        await space.create(Sample, sample());
        await space.until(ConfigMap, "one-a", ({ metadata }) => metadata.ownerReferences?.length === 1);
        await running.quiet();
      }
      await using running = await space.start([dependentController([configOf("a", { ...after, deletion: "orphan" })])]);
      await space.until(ConfigMap, "one-a", ({ metadata }) => metadata.ownerReferences === undefined);
      await running.quiet();
      assert.equal(failuresOf(running.events), []);
      const { length } = running.requests;
      await space.patch(Sample, "one", { spec: { number: 1 } });
      await running.quiet();
      assert.equal(running.requests.slice(length), []);
    });
});

suite("object with several owners", (test) => {
  for (const [what, rest] of [
    ["a dependent", {}],
    ["an item", { bulk: {} }],
  ] as const)
    test(`is ${what} of its controlling primary, and is not deleted by the other primaries`, async () => {
      await using space = await openSpace();
      const desired = ({ primary, context }: SampleArguments) => {
        const others = context.primaries.list().filter(({ metadata }) => metadata.name !== primary.metadata.name);
        const ownerReferences = others.map(({ apiVersion, kind, metadata: { name, uid = "" } }) => {
          return { apiVersion, kind, name, uid };
        });
        const name = `${primary.metadata.name}-a`;
        const object = { metadata: { name, ownerReferences }, data: { value: primary.spec.value ?? "" } };
        return "bulk" in rest ? { [name]: object } : object;
      };
      await using running = await space.start([dependentController([configOf("a", { ...rest, desired })])]);
      for (const name of ["one", "two"]) await space.create(Sample, { ...sample(), metadata: { name } });
      await running.quiet();
      for (const name of ["one", "two"]) await space.patch(Sample, name, { spec: { value: "second" } });
      for (const name of ["one", "two"])
        await space.until(ConfigMap, `${name}-a`, ({ metadata, data }) => {
          return data?.["value"] === "second" && metadata.ownerReferences?.length === 2;
        });
      await running.quiet();
      assert.equal(
        running.requests.filter((request) => request.startsWith("DELETE")),
        [],
      );
      assert.equal(failuresOf(running.events), []);
    });
});
