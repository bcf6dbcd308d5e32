// The scenarios of JOSDK's WorkflowCleanupExecutorTest, with its numbers, and those of the tests beside it.
import { buildPlan, endsOf, type PlanNode } from "#runtime/workflow/plan.js";
import { assert, suite } from "../../../support/suite.js";
import { createWorkflow, fails, FakeCluster, holds, type FakeDependent } from "./fake-cluster.js";
import { dependentOf, workflowOf } from "./graphs.js";

type Nodes = { readonly [name: string]: Omit<FakeDependent, "name"> };

const after = (...dependsOn: string[]) => ({ dependsOn });
const diamond = (b: Omit<FakeDependent, "name"> = {}): Nodes => ({
  d1: {},
  d2: after("d1"),
  d3: { ...after("d1"), ...b },
  d4: after("d2", "d3"),
});

/** Creates the dependents, which all exist, and cleans up. */
async function cleanUp(nodes: Nodes, failing: readonly string[] = []) {
  const cluster = new FakeCluster();
  for (const name of Object.keys(nodes)) cluster.put(name);
  for (const name of failing) cluster.failures.set(name, new Error(`${name} is broken`));
  const workflow = createWorkflow(
    Object.entries(nodes).map(([name, rest]) => ({ name, ...rest })),
    cluster,
  );
  const result = await workflow.cleanup();
  return { cluster, result };
}

function checkOrder({ history }: FakeCluster, ...names: string[]): void {
  names.slice(1).forEach((name, index) => {
    const [end, begin] = [history.indexOf(`removed ${names[index]}`), history.indexOf(`remove ${name}`)];
    assert.ok(end !== -1 && end < begin, `${names[index]} is gone before ${name}: ${history.join(", ")}`);
  });
}

suite("workflow cleanup", (test) => {
  test("deletes a diamond from its end and skips what it cannot delete [WorkflowCleanupExecutorTest 1]", async () => {
    const { cluster, result } = await cleanUp({
      d1: {},
      r1: { ...after("d1"), canRemove: false },
      d2: after("d1"),
      d3: after("r1", "d2"),
    });
    assert.equal(cluster.removals, ["d3", "d2", "d1"]);
    checkOrder(cluster, "d3", "d2", "d1");
    assert.is(result.dependents["r1"]?.kind, "left");
    assert.equal(result.deleted, ["d1", "d2", "d3"]);
    assert.ok(result.isReady);
  });

  test("keeps the dependencies of a failed deletion [WorkflowCleanupExecutorTest 2]", async () => {
    const { cluster, result } = await cleanUp({ d1: {}, d2: after("d1"), d3: after("d2"), e: after("d2") }, ["e"]);
    assert.equal(cluster.removals.sort(), ["d3", "e"]);
    assert.equal([...result.errors.keys()], ["e"]);
    assert.equal(result.notReady, ["d1", "d2", "e"]);
    assert.not(result.isReady, "what failed and what was not reached is not gone");
  });

  test("keeps the dependencies while a deletePostcondition is false [WorkflowCleanupExecutorTest 3]", async () => {
    const { cluster, result } = await cleanUp({ d1: {}, d2: { ...after("d1"), deletePostcondition: fails } });
    assert.equal(cluster.removals, ["d2"]);
    assert.equal(result.remaining, ["d2"]);
    assert.equal(result.waiting, ["d1"]);
    assert.not(result.isReady);
  });

  test("continues if a deletePostcondition is true [WorkflowCleanupExecutorTest 4]", async () => {
    const { cluster, result } = await cleanUp({ d1: {}, d2: { ...after("d1"), deletePostcondition: holds } });
    assert.equal(cluster.removals, ["d2", "d1"]);
    assert.equal(result.remaining, []);
    assert.ok(result.isReady);
  });

  test("keeps the start of a diamond while a deletePostcondition is false [WorkflowCleanupExecutorTest 5]", async () => {
    const { cluster, result } = await cleanUp(diamond({ deletePostcondition: fails }));
    assert.equal(cluster.removals, ["d4", "d2", "d3"]);
    assert.equal(result.remaining, ["d3"]);
  });

  test("does not delete garbage-collected dependents [WorkflowCleanupExecutorTest 6]", async () => {
    const { cluster, result } = await cleanUp({ d1: { garbageCollected: true, activationCondition: holds } });
    assert.equal(cluster.history, []);
    assert.equal(result.dependents["d1"], { kind: "left" });
    assert.ok(result.isReady);
  });

  test("deletes dependents with a true activationCondition [WorkflowCleanupExecutorTest 7]", async () => {
    const { cluster } = await cleanUp(diamond({ activationCondition: holds }));
    assert.equal(cluster.removals.sort(), ["d1", "d2", "d3", "d4"]);
    checkOrder(cluster, "d4", "d3", "d1");
    checkOrder(cluster, "d4", "d2", "d1");
  });

  test("evaluates the deletePostcondition of active dependents [WorkflowCleanupExecutorTest 8]", async () => {
    const { cluster } = await cleanUp(diamond({ activationCondition: holds, deletePostcondition: fails }));
    assert.equal(cluster.removals, ["d4", "d2", "d3"]);
  });

  test("deletes inactive dependents, which may have been active before [WorkflowCleanupExecutorTest 9]", async () => {
    const { cluster, result } = await cleanUp(diamond({ activationCondition: fails }));
    assert.equal(cluster.removals, ["d4", "d2", "d3", "d1"]);
    assert.is(result.dependents["d3"]?.kind, "deleted");
    assert.ok(result.isReady);
  });

  test("evaluates the deletePostcondition of inactive dependents [WorkflowCleanupExecutorTest 10]", async () => {
    let calls = 0;
    const deletePostcondition = () => (calls++, false);
    const { cluster } = await cleanUp(diamond({ activationCondition: fails, deletePostcondition }));
    assert.is(calls, 1);
    assert.not(cluster.removals.includes("d1"));
  });

  test("deletes a single inactive dependent without its activationCondition [WorkflowCleanupExecutorTest 11]", async () => {
    let calls = 0;
    const { cluster, result } = await cleanUp({ d1: { activationCondition: () => (calls++, false) } });
    assert.equal([cluster.removals, calls], [["d1"], 0]);
    assert.ok(result.isReady);
  });
});

suite("workflow result and plan", (test) => {
  test("names all failed dependents in the error message [BaseWorkflowResultTest]", async () => {
    const { result } = await cleanUp({ a: {}, b: {}, c: {} }, ["a", "c"]);
    assert.is(result.error?.message, 'the workflow failed: dependent "a": a is broken; dependent "c": c is broken');
    assert.equal([...(result.error?.byName.keys() ?? [])], ["a", "c"]);
    assert.is(result.error?.errors.length, 2);
  });

  test("records any thrown value as the cause of the error of its dependent [NodeExecutorTest]", async () => {
    const cluster = new FakeCluster();
    const thrown = ["a string", undefined, new RangeError("out of range")];
    const desired = (index: number) => () => {
      throw thrown[index];
    };
    const workflow = createWorkflow(
      thrown.map((_, index) => ({ name: `n${index}`, desired: desired(index) })),
      cluster,
    );
    const result = await workflow.reconcile();
    assert.equal([...result.errors.keys()], ["n0", "n1", "n2"]);
    for (const [index, error] of [...result.errors.values()].entries()) {
      assert.ok(Object.hasOwn(error as Error, "cause"), "also undefined is a cause");
      assert.is((error as Error).cause, thrown[index]);
    }
    assert.equal([cluster.writes, result.reconciled], [[], []]);
  });

  const shapes = {
    "one node": { a: [] },
    "a diamond": { a: [], b: ["a"], c: ["a"], d: ["b", "c"] },
    "several roots": { a: [], b: [], c: ["a"], d: ["b"] },
  } as const;
  for (const [shape, graph] of Object.entries(shapes))
    test(`contains the nodes of ${shape} with their neighbors [ManagedWorkflowSupportTest, WorkflowTest]`, () => {
      const entries: [string, readonly string[]][] = Object.entries(graph);
      const workflow = workflowOf(entries.map(([name, dependsOn]) => dependentOf(name, { dependsOn })));
      const nameOf = ({ definition }: PlanNode) => definition.name;
      for (const { definition, needs, neededBy } of buildPlan(workflow, () => ({}) as never)) {
        assert.equal(endsOf(needs, "required").map(nameOf), definition.dependsOn);
        const wanted = entries.filter(([, needed]) => needed.includes(definition.name)).map(([name]) => name);
        assert.equal(endsOf(neededBy, "required").map(nameOf), wanted);
      }
    });

  test("is ready immediately without dependents, for reconcile and cleanup [ManagedWorkflowTest]", async () => {
    const { reconcile, cleanup } = createWorkflow([]);
    assert.ok((await reconcile()).isReady);
    assert.ok((await cleanup()).isReady);
  });
});
