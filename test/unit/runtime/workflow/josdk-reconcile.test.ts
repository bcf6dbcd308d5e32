// The scenarios of JOSDK's WorkflowReconcileExecutorTest, with its numbers. `a: {}` is a dependent; all of them exist before the run, so that
// a deletion can be seen.
import { assert, suite } from "../../../support/suite.js";
import { createWorkflow, fails, FakeCluster, holds, type FakeDependent } from "./fake-cluster.js";

type Nodes = { readonly [name: string]: Omit<FakeDependent, "name"> & { readonly throws?: boolean } };

interface Scenario {
  readonly number: number;
  readonly title: string;
  readonly nodes: Nodes;
  /** What is written, in any order. */
  readonly reconciled?: readonly string[];
  /** What is removed, in any order. */
  readonly deleted?: readonly string[];
  /** Pairs of which the first is done before the second begins. */
  readonly order?: readonly (readonly [before: string, after: string])[];
  readonly errors?: readonly string[];
  readonly notReady?: readonly string[];
}

const after = (...dependsOn: string[]) => ({ dependsOn });
const unmet = { reconcilePrecondition: fails };
const broken = { throws: true };

const SCENARIOS: readonly Scenario[] = [
  { number: 1, title: "reconciles two roots", nodes: { a: {}, b: {} }, reconciled: ["a", "b"] },
  {
    number: 2,
    title: "reconciles a dependent after its dependency",
    nodes: { a: {}, b: after("a") },
    reconciled: ["a", "b"],
    order: [["a", "b"]],
  },
  {
    number: 3,
    title: "reconciles two dependents after their common dependency",
    nodes: { a: {}, b: after("a"), c: after("a") },
    reconciled: ["a", "b", "c"],
    order: [
      ["a", "b"],
      ["a", "c"],
    ],
  },
  {
    number: 4,
    title: "reconciles the end of a diamond once, after both sides",
    nodes: { a: {}, b: after("a"), c: after("a"), d: after("b", "c") },
    reconciled: ["a", "b", "c", "d"],
    order: [
      ["a", "b"],
      ["a", "c"],
      ["b", "d"],
      ["c", "d"],
    ],
  },
  {
    number: 6,
    title: "does not reconcile dependents of a failed one",
    nodes: { a: {}, e: { ...after("a"), ...broken }, b: after("e") },
    reconciled: ["a"],
    errors: ["e"],
    notReady: ["e", "b"],
  },
  {
    number: 7,
    title: "completes a branch if another one fails",
    nodes: { a: {}, e: { ...after("a"), ...broken }, b: after("a"), c: after("b") },
    reconciled: ["a", "b", "c"],
    errors: ["e"],
    notReady: ["e"],
  },
  {
    number: 8,
    title: "does not reconcile a dependent if one of its two dependencies fails",
    nodes: { a: {}, e: broken, b: after("a", "e") },
    reconciled: ["a"],
    errors: ["e"],
    notReady: ["e", "b"],
  },
  {
    number: 10,
    title: "deletes a dependent with a false precondition and reconciles its sibling",
    nodes: { a: {}, b: after("a"), d: { ...after("a"), ...unmet } },
    reconciled: ["a", "b"],
    deleted: ["d"],
  },
  {
    number: 11,
    title: "deletes all dependents of one with a false precondition in reverse order",
    nodes: {
      a: {},
      b: { ...after("a"), ...unmet },
      d: after("b"),
      d2: { ...after("d"), reconcilePrecondition: holds },
    },
    reconciled: ["a"],
    deleted: ["b", "d", "d2"],
    order: [
      ["d2", "d"],
      ["d", "b"],
    ],
  },
  {
    number: 12,
    title: "deletes a dependent of a failed one and one with a false precondition",
    nodes: { e: broken, d: unmet, d2: after("e", "d") },
    deleted: ["d", "d2"],
    order: [["d2", "d"]],
    errors: ["e"],
    notReady: ["e"],
  },
  {
    number: 13,
    title: "deletes a dependent if one of its two dependencies has a false precondition",
    nodes: { a: {}, b: unmet, d: after("a", "b") },
    reconciled: ["a"],
    deleted: ["d", "b"],
    order: [["d", "b"]],
  },
  {
    number: 14,
    title: "deletes a triangle from its end to the one with the false precondition",
    nodes: { a: {}, d: { ...after("a"), ...unmet }, d2: after("a", "d") },
    reconciled: ["a"],
    deleted: ["d", "d2"],
    order: [["d2", "d"]],
  },
  {
    number: 15,
    title: "deletes in reverse order along all branches",
    nodes: { a: {}, d: { ...after("a"), ...unmet }, d2: after("d"), d3: after("d"), d4: after("d3") },
    reconciled: ["a"],
    deleted: ["d", "d2", "d3", "d4"],
    order: [
      ["d4", "d3"],
      ["d3", "d"],
      ["d2", "d"],
    ],
  },
  {
    number: 16,
    title: "keeps the start of a diamond while a deletePostcondition is false",
    nodes: {
      d: unmet,
      d2: after("d"),
      d3: { ...after("d"), deletePostcondition: fails },
      d4: after("d2", "d3"),
    },
    deleted: ["d4", "d2", "d3"],
    order: [
      ["d4", "d2"],
      ["d4", "d3"],
    ],
    notReady: ["d", "d3"],
  },
  {
    number: 17,
    title: "keeps the start of a diamond if a deletion fails",
    nodes: { d: unmet, d2: after("d"), e: { ...after("d"), ...broken }, d3: after("d2", "e") },
    deleted: ["d3", "d2", "e"],
    errors: ["e"],
    notReady: ["d", "e"],
  },
  {
    number: 18,
    title: "continues if a readyPostcondition is true",
    nodes: { a: { readyPostcondition: holds }, b: after("a") },
    reconciled: ["a", "b"],
    order: [["a", "b"]],
  },
  {
    number: 19,
    title: "blocks dependents while a readyPostcondition is false",
    nodes: { a: { readyPostcondition: fails }, b: after("a") },
    reconciled: ["a"],
    notReady: ["a", "b"],
  },
  {
    number: 20,
    title: "blocks a dependent if one of its two dependencies is not ready",
    nodes: { a: { readyPostcondition: fails }, b: {}, c: after("a", "b") },
    reconciled: ["a", "b"],
    notReady: ["a", "c"],
  },
  {
    number: 21,
    title: "blocks the end of a diamond if one side is not ready, and reconciles the other",
    nodes: { a: {}, b: { ...after("a"), readyPostcondition: fails }, c: after("a"), d: after("b", "c") },
    reconciled: ["a", "b", "c"],
    notReady: ["b", "d"],
  },
  {
    number: 22,
    title: "deletes a garbage-collected dependent with a false precondition",
    nodes: { a: { garbageCollected: true, ...unmet } },
    deleted: ["a"],
  },
  {
    number: 23,
    title: "deletes a garbage-collected dependent before its deleted dependency",
    nodes: { a: unmet, b: { garbageCollected: true, ...after("a") } },
    deleted: ["a", "b"],
    order: [["b", "a"]],
  },
  {
    number: 24,
    title: "does not reconcile an inactive dependent",
    nodes: { a: { activationCondition: fails }, b: {} },
    reconciled: ["b"],
  },
  {
    number: 25,
    title: "deletes a dependent of an inactive one instead of reconciling it",
    nodes: { a: { activationCondition: fails }, b: {}, c: after("a") },
    reconciled: ["b"],
    deleted: ["c"],
  },
  {
    number: 28,
    title: "deletes dependents of inactive ones, but not the inactive ones",
    nodes: {
      a: { activationCondition: fails },
      d: after("a"),
      b: { ...after("d"), activationCondition: fails },
      d3: after("b"),
    },
    deleted: ["d", "d3"],
    order: [["d3", "d"]],
  },
  {
    number: 32,
    title: "finishes with a single inactive dependent",
    nodes: { a: { activationCondition: fails } },
  },
];

function create(nodes: Nodes) {
  const cluster = new FakeCluster();
  const dependents = Object.entries(nodes).map(([name, { throws = false, ...rest }]) => {
    cluster.put(name);
    if (throws) cluster.failures.set(name, new Error(`${name} is broken`));
    return { name, ...rest };
  });
  return createWorkflow(dependents, cluster);
}

/** A condition that counts how often it is asked. */
function counted(isMet: boolean) {
  const condition = Object.assign(() => (condition.calls++, isMet), { calls: 0 });
  return condition;
}

suite("workflow reconcile", (test) => {
  for (const { number, title, nodes, order = [], ...want } of SCENARIOS)
    test(`${title} [WorkflowReconcileExecutorTest ${number}]`, async () => {
      const { cluster, reconcile } = create(nodes);
      const result = await reconcile();
      const { history } = cluster;
      const broken = new Set(cluster.failures.keys());
      assert.equal(cluster.writes.filter((name) => !broken.has(name)).sort(), [...(want.reconciled ?? [])].sort());
      assert.equal(cluster.removals.sort(), [...(want.deleted ?? [])].sort());
      for (const [before, next] of order) {
        const isDeleted = cluster.removals.includes(next);
        const end = history.indexOf(`${isDeleted ? "removed" : "written"} ${before}`);
        const begin = history.indexOf(`${isDeleted ? "remove" : "write"} ${next}`);
        assert.ok(end !== -1 && end < begin, `${before} is done before ${next} begins: ${history.join(", ")}`);
      }
      assert.equal([...result.errors.keys()], want.errors ?? []);
      assert.equal(result.notReady, want.notReady ?? []);
      assert.is(result.isReady, (want.notReady ?? []).length === 0);
      assert.equal(
        result.reconciled.filter((name) => cluster.writes.includes(name)).sort(),
        [...(want.reconciled ?? [])].sort(),
      );
    });

  test("returns a WorkflowError with the error of each failed dependent [WorkflowReconcileExecutorTest 5]", async () => {
    const { reconcile } = create({ a: {}, e: broken, f: broken });
    const result = await reconcile();
    assert.equal([...result.errors.keys()], ["e", "f"]);
    assert.is(result.error?.name, "WorkflowError");
    assert.is(result.error?.message, 'the workflow failed: dependent "e": e is broken; dependent "f": f is broken');
    assert.equal(
      [...result.error!.byName].map(([name, error]) => [name, ((error as Error).cause as Error).message]),
      [
        ["e", "e is broken"],
        ["f", "f is broken"],
      ],
    );
  });

  test("returns the detail of a precondition [WorkflowReconcileExecutorTest 9]", async () => {
    const { cluster, reconcile } = create({
      a: { reconcilePrecondition: () => ({ isMet: false, detail: "too early" }) },
      b: { reconcilePrecondition: () => ({ isMet: true, detail: 1 }) },
      d: unmet,
    });
    const result = await reconcile();
    assert.equal(cluster.writes, ["b"]);
    assert.equal(cluster.removals.sort(), ["a", "d"]);
    assert.is(result.detailOf<string>("a", "reconcilePrecondition", { type: "string" }), "too early");
  });

  test("evaluates no other condition of an inactive dependent [WorkflowReconcileExecutorTest 26, 27]", async () => {
    const [precondition, postcondition] = [counted(true), counted(false)];
    const { reconcile } = create({
      a: { activationCondition: fails, reconcilePrecondition: precondition, readyPostcondition: postcondition },
    });
    const result = await reconcile();
    assert.equal(result.notReady, []);
    assert.is(precondition.calls + postcondition.calls, 0);
  });

  test("evaluates the activationCondition of a deleted dependent once [WorkflowReconcileExecutorTest 29]", async () => {
    const activation = counted(true);
    const { cluster, reconcile } = create({ a: { activationCondition: activation, ...unmet }, b: after("a") });
    await reconcile();
    assert.equal(cluster.removals, ["b", "a"]);
    assert.is(activation.calls, 1);
  });

  test("deactivates an inactive dependent of one with a false precondition [WorkflowReconcileExecutorTest 30]", async () => {
    const { cluster, reconcile } = create({ a: unmet, b: { ...after("a"), activationCondition: fails } });
    await reconcile();
    assert.equal(cluster.history, ["deactivate b for home/one", "remove a", "removed a"]);
  });

  test("deactivates an inactive dependent of an active one [WorkflowReconcileExecutorTest 31]", async () => {
    const { cluster, reconcile } = create({ a: {}, b: { ...after("a"), activationCondition: fails } });
    await reconcile();
    assert.equal(cluster.history, ["write a", "written a", "deactivate b for home/one"]);
  });

  test("returns the detail of a readyPostcondition [WorkflowReconcileExecutorTest 33]", async () => {
    const { reconcile } = create({ a: { readyPostcondition: () => ({ isMet: false, detail: 42 }) } });
    const result = await reconcile();
    assert.is(result.detailOf<number>("a", "readyPostcondition", { type: "number" }), 42);
  });

  test("throws an error for a detail of an unexpected type [WorkflowReconcileExecutorTest 34]", async () => {
    const { reconcile } = create({ a: { readyPostcondition: () => ({ isMet: false, detail: 42 }) } });
    const result = await reconcile();
    assert.throws(
      () => result.detailOf<string>("a", "readyPostcondition", { type: "string" }),
      'the detail of the readyPostcondition of dependent "a" is not of type string: number 42',
    );
  });

  test("returns undefined for a condition without a detail [WorkflowReconcileExecutorTest 35]", async () => {
    const { reconcile } = create({ a: { readyPostcondition: holds } });
    assert.is((await reconcile()).detailOf("a", "readyPostcondition"), undefined);
  });
});
