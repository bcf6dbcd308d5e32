// Items of bulk dependents that need the item of their key in another one.
import { assert, suite } from "../../../support/suite.js";
import {
  before,
  bulkOf,
  createWorkflow,
  fails,
  FakeCluster,
  itemsOf,
  only,
  type Asked,
  type FakeDependent,
} from "./fake-cluster.js";

/** Two bulk dependents, of which items of `b` need those of `a`. */
function pair(a: readonly string[], b: readonly string[], rest: { a?: object; b?: object } = {}): FakeDependent[] {
  return [bulkOf("a", a, rest.a), bulkOf("b", b, { itemsDependOn: ["a"], ...rest.b })];
}

suite("itemsDependOn", (test) => {
  test("starts an item as soon as the item of its key is ready, regardless of other items", async () => {
    const cluster = new FakeCluster();
    let open = (): void => {};
    const slow = new Promise<void>((resolve) => (open = resolve));
    const readyPostcondition = async ({ item }: Asked) => (item === "slow" && (await slow), true);
    const { reconcile } = createWorkflow(
      pair(["slow", "fast"], ["fast", "slow"], { a: { readyPostcondition } }),
      cluster,
    );
    const run = reconcile();
    // A pause of a busy machine ends in a later round of the event loop.
    while (!cluster.history.includes("written b[fast]")) await new Promise(setImmediate);
    assert.not(cluster.writes.includes("b[slow]"));
    open();
    assert.ok((await run).isReady);
    before(cluster, "written a[slow]", "write b[slow]");
  });

  test("waits for an item that is not ready, failed or missing", async () => {
    const cluster = new FakeCluster();
    cluster.failures.set("a[broken]", new Error("no"));
    const keys = ["good", "unready", "broken"];
    const readyPostcondition = ({ item }: Asked) => item !== "unready";
    const result = await createWorkflow(
      pair(keys, [...keys, "missing"], { a: { readyPostcondition } }),
      cluster,
    ).reconcile();
    assert.equal(itemsOf(result, "b"), {
      good: "created",
      unready: "waiting for a[unready]",
      broken: "waiting for a[broken]",
      missing: "waiting for a[missing]",
    });
    assert.equal(result.dependents["b"]?.kind, "created");
    assert.equal(result.notReady, ["a", "b"]);
  });

  test("uses no slot of the workflow or the dependent while an item waits", async () => {
    const keys = [...Array(20).keys()].map(String);
    const cluster = new FakeCluster();
    const bulk = { maxConcurrency: 1 };
    const workflow = createWorkflow(pair([...keys].reverse(), keys, { a: { bulk }, b: { bulk } }), cluster, {
      maxConcurrency: 1,
    });
    assert.ok((await workflow.reconcile()).isReady);
    assert.is(cluster.ids.length, 40);
    assert.ok((await workflow.cleanup()).isReady);
    assert.equal(cluster.ids, []);
    for (const key of keys) before(cluster, `removed b[${key}]`, `remove a[${key}]`);
  });

  test("deletes an unwanted item last, after the items that depend on it", async () => {
    const cluster = new FakeCluster();
    let keys = ["x", "y"];
    const chain = ["a", "b", "c"].map((name, index, all) =>
      bulkOf(name, () => keys, index === 0 ? {} : { itemsDependOn: [all[index - 1]!] }),
    );
    const { reconcile } = createWorkflow(chain, cluster);
    await reconcile();
    cluster.history.length = 0;
    keys = ["x", "z"];
    const result = await reconcile();
    assert.ok(result.isReady);
    assert.equal(cluster.ids, ["a[x]", "a[z]", "b[x]", "b[z]", "c[x]", "c[z]"]);
    before(cluster, "removed c[y]", "remove b[y]");
    before(cluster, "removed b[y]", "remove a[y]");
    before(cluster, "written b[z]", "remove b[y]");
  });

  test("keeps an item until the items that depend on it are deleted", async () => {
    const cluster = new FakeCluster();
    for (const name of ["a", "b"]) cluster.put(name, { item: "x" });
    const kept = await createWorkflow(pair([], ["x"]), cluster).reconcile();
    assert.equal(itemsOf(kept, "a"), { x: "waiting for b[x]" });
    assert.equal(itemsOf(kept, "b"), { x: "waiting for a[x]" });
    assert.equal(cluster.ids, ["a[x]", "b[x]"]);
    const slow = await createWorkflow(pair([], [], { b: { deletePostcondition: fails } }), cluster).reconcile();
    assert.equal(itemsOf(slow, "a"), { x: "waiting for b[x]" });
    assert.ok((await createWorkflow(pair([], []), cluster).reconcile()).isReady);
    assert.equal(cluster.ids, []);
  });

  test("does not treat items of a dependent that was not reached as deleted", async () => {
    const cluster = new FakeCluster();
    for (const name of ["a", "b"]) cluster.put(name, { item: "x" });
    const nodes = [{ name: "first", readyPostcondition: fails }, ...pair([], [], { b: { dependsOn: ["first"] } })];
    const result = await createWorkflow(nodes, cluster).reconcile();
    assert.equal(cluster.ids, ["a[x]", "b[x]", "first"]);
    assert.equal(itemsOf(result, "a"), { x: "waiting for b[x]" });
    assert.equal(result.dependents["b"], { kind: "waiting", for: ["first"] });
  });

  test("deletes dependent items one by one before those of an excluded dependent", async () => {
    const cluster = new FakeCluster();
    for (const name of ["a", "b"]) for (const item of ["x", "y"]) cluster.put(name, { item });
    const deletePostcondition = only("x");
    const rest = { a: { reconcilePrecondition: fails }, b: { deletePostcondition } };
    const result = await createWorkflow(pair(["x"], ["x"], rest), cluster).reconcile();
    assert.equal(cluster.ids, ["a[y]"]);
    before(cluster, "removed b[x]", "remove a[x]");
    assert.equal(itemsOf(result, "a"), { x: "deleted", y: "waiting for b[y]" });
  });

  test("does not wait for items of an inactive dependent", async () => {
    const cluster = new FakeCluster();
    for (const name of ["a", "b"]) cluster.put(name, { item: "x" });
    const result = await createWorkflow(pair([], [], { b: { activationCondition: fails } }), cluster).reconcile();
    assert.equal(cluster.ids, ["b[x]"]);
    assert.ok(result.isReady);
  });

  test("blocks dependent items if desired() of their dependency fails", async () => {
    const desired = () => {
      throw new Error("no idea");
    };
    const result = await createWorkflow(pair([], ["x"], { a: { desired } })).reconcile();
    assert.equal(result.dependents["b"], { kind: "waiting", for: ["a"] });
    assert.equal([...result.errors.keys()], ["a"]);
  });

  test("rejects single dependents and cycles", () => {
    const needs = { itemsDependOn: ["a"] };
    assert.throws(
      () => createWorkflow([{ name: "a" }, bulkOf("b", [], needs)]),
      'dependent "b" has itemsDependOn (a), and "a" is no bulk dependent; use dependsOn',
    );
    assert.throws(() => createWorkflow([bulkOf("a", []), { name: "b", ...needs }]), '"b" is no bulk dependent');
    assert.throws(() => createWorkflow([bulkOf("b", [], { itemsDependOn: ["c"] })]), 'depends on "c"');
    assert.throws(
      () => createWorkflow([bulkOf("a", [], { dependsOn: ["b"] }), bulkOf("b", [], needs)]),
      "the workflow has a cycle: a → b → a",
    );
  });
});
