import fc from "../../../support/fast-check.js";
import { blockersOf, buildPlan, condemnedBy, endsOf, nextSteps } from "#runtime/workflow/plan.js";
import type { NodeState, Plan, PlanNode, Standing } from "#runtime/workflow/plan.js";
import type { KubernetesDependent, WorkflowDefinition } from "#runtime/workflow/workflow-definition.js";
import { assert, suite } from "../../../support/suite.js";
import { dependentOf, dependentsOf, graphs, workflowOf } from "./graphs.js";

/** A dependent in a simulated run. */
type Step = { -readonly [Part in keyof Standing]: Standing[Part] };

// A plan asks nothing of reconcilers.
const planned = (definition: WorkflowDefinition): Plan => buildPlan(definition, () => ({}) as never);

function planOf(graph: number[][]): Plan {
  return planned(workflowOf(dependentsOf(graph)));
}

/** A graph in which some edges are optional. */
const mixedGraphs = graphs.chain((graph) =>
  fc.tuple(fc.constant(graph), ...graph.map((needed) => fc.subarray(needed))).map(([all, ...optional]) =>
    planned(
      workflowOf(
        all.map((needed, index) =>
          dependentOf(`n${index}`, {
            dependsOn: needed.map((other) =>
              optional[index]!.includes(other) ? { name: `n${other}`, optional: true } : `n${other}`,
            ),
          }),
        ),
      ),
    ),
  ),
);

function messageOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return (error as Error).message;
  }
  return "nothing was thrown";
}

const nameOf = ({ definition }: PlanNode) => definition.name;

/** All nodes that depend on a node, directly or not. */
function closureOf(node: PlanNode): Set<PlanNode> {
  const found = new Set<PlanNode>();
  const visit = (each: PlanNode): void =>
    endsOf(each.neededBy, "required").forEach((dependent) => {
      if (!found.has(dependent)) visit((found.add(dependent), dependent));
    });
  visit(node);
  return found;
}

const isGone = (state: NodeState) => state.kind === "inactive" || (state.kind === "deleted" && state.isGone);
const isReady = (state: NodeState) => "isReady" in state && state.isReady;

/** What becomes of a node in a simulated run. */
const fates = fc.constantFrom("ready", "ready", "ready", "notReady", "failed", "condemned", "inactive", "notGone");
type Fate = "ready" | "notReady" | "failed" | "condemned" | "inactive" | "notGone";

/** Lets a dependent turn out to be unwanted, as a run does. */
function condemn(steps: readonly Step[], step: Step, isActive: boolean): void {
  for (const [each, because] of condemnedBy(steps, step, "says the test")) each.state = { kind: "condemned", because };
  if (!isActive) step.state = { kind: "inactive" };
}

/** Runs a plan to its end; `pick` chooses which of the running nodes finishes next. */
function simulate(steps: readonly Step[], fateOf: (index: number) => Fate, pick: (count: number) => number) {
  const running: { step: Step; isDeletion: boolean }[] = [];
  const history: string[] = [];
  for (;;) {
    const next = nextSteps(steps);
    for (const step of [...next.reconcile, ...next.delete]) step.state = { kind: "running" };
    for (const step of next.reconcile) running.push({ step, isDeletion: false });
    for (const step of next.delete) running.push({ step, isDeletion: true });
    history.push(
      ...next.reconcile.map(({ node }) => `reconcile ${node.index}`),
      ...next.delete.map(({ node }) => `delete ${node.index}`),
    );
    checkMaximal(steps);
    if (running.length === 0) return { states: steps.map(({ state }) => state), history };
    const [{ step, isDeletion }] = running.splice(pick(running.length), 1) as [(typeof running)[number]];
    const { index } = step.node;
    const fate = fateOf(index);
    if (isDeletion) step.state = { kind: "deleted", isGone: fate !== "notGone", because: "says the test" };
    else if (fate === "condemned" || fate === "inactive") condemn(steps, step, fate === "condemned");
    else if (fate === "failed") step.state = { kind: "failed", error: "says the test" };
    else step.state = { kind: "unchanged", isReady: fate !== "notReady" };
    history.push(`end ${index}`);
  }
}

/** Whatever still waits, waits for something. */
function checkMaximal(steps: readonly Step[]): void {
  for (const step of steps) {
    const { index, needs, neededBy } = step.node;
    const { kind } = step.state;
    const statesOf = (nodes: readonly PlanNode[]) => nodes.map((node) => steps[node.index]!.state);
    const [dependsOn, dependents] = [endsOf(needs, "required"), endsOf(neededBy, "required")].map(statesOf);
    const [optional, optionalDependents] = [endsOf(needs, "optional"), endsOf(neededBy, "optional")].map(statesOf);
    const isUnwanted = (state: NodeState) => ["condemned", "inactive"].includes(state.kind);
    if (kind === "pending")
      assert.not(
        dependsOn!.every(isReady) && optional!.every((needed) => isReady(needed) || isUnwanted(needed)),
        `${index} may run`,
      );
    if (kind === "condemned")
      assert.not(
        dependents!.every(isGone) && optionalDependents!.every((each) => isGone(each) || isReady(each)),
        `${index} may be deleted`,
      );
    if (kind === "pending" || kind === "condemned")
      assert.ok(blockersOf(steps, step).length > 0, `${index} says what it waits for`);
  }
}

const picks = fc.infiniteStream(fc.nat(100));
const pickerOf = (stream: Iterator<number>) => (count: number) => (stream.next().value as number) % count;

const startIn = (plan: Plan, state: NodeState): Step[] => plan.map((node) => ({ node, state, hasItems: false }));
const pendAll = (plan: Plan) => startIn(plan, { kind: "pending" });
const condemnAll = (plan: Plan, because: string) => startIn(plan, { kind: "condemned", because });

suite("workflow plan", (test) => {
  test("rejects two dependents of the same name", () => {
    const definition = workflowOf([dependentOf("web"), dependentOf("web")]);
    assert.is(
      messageOf(() => planned(definition)),
      'the workflow has two dependents named "web"',
    );
  });

  test("rejects an unknown dependency with both names", () => {
    const definition = workflowOf([dependentOf("web", { dependsOn: ["databse"] })]);
    assert.is(
      messageOf(() => planned(definition)),
      'dependent "web" depends on "databse", which the workflow does not have',
    );
  });

  test("rejects a cycle with its path, without nodes that only lead to it", () => {
    const definition = workflowOf([
      dependentOf("entry", { dependsOn: ["a"] }),
      dependentOf("a", { dependsOn: ["b"] }),
      dependentOf("b", { dependsOn: ["c"] }),
      dependentOf("c", { dependsOn: ["a"] }),
    ]);
    assert.is(
      messageOf(() => planned(definition)),
      "the workflow has a cycle: a → b → c → a",
    );
    const self = workflowOf([dependentOf("a", { dependsOn: ["a"] })]);
    assert.is(
      messageOf(() => planned(self)),
      "the workflow has a cycle: a → a",
    );
  });

  test("reports a cycle along existing edges for any graph with a back edge", () => {
    fc.assert(
      fc.property(graphs, fc.nat(7), fc.nat(7), (graph, from, to) => {
        const plan = planOf(graph);
        const [first, second] = [from, to].map((each) => plan.find(({ definition }) => definition.name === `n${each}`));
        fc.pre(first !== undefined && second !== undefined && (from === to || closureOf(first).has(second)));
        const cyclic = graph.map((needed, index) => (index === from ? [...needed, to] : needed));
        const message = messageOf(() => planOf(cyclic));
        const [prefix, path] = message.split(": ") as [string, string];
        assert.is(prefix, "the workflow has a cycle");
        const nodes = path.split(" → ").map((name) => Number(name.slice(1)));
        assert.is(nodes[0], nodes.at(-1));
        nodes.slice(1).forEach((node, index) => assert.ok(cyclic[nodes[index]!]!.includes(node)));
      }),
    );
  });

  test("orders every node after its dependencies, stably", () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        const plan = planOf(graph);
        for (const [index, node] of plan.entries()) {
          assert.is(node.index, index);
          for (const { node: needed, kind } of node.needs) {
            assert.ok(needed.index < index);
            assert.ok(needed.neededBy.some((edge) => edge.node === node && edge.kind === kind));
          }
        }
        const again = planned(workflowOf(plan.map(({ definition }) => definition as KubernetesDependent)));
        assert.equal(again.map(nameOf), plan.map(nameOf));
      }),
    );
  });

  test("ignores a duplicate dependency", () => {
    const plan = planned(workflowOf([dependentOf("a"), dependentOf("b", { dependsOn: ["a", "a"] })]));
    const [a, b] = pendAll(plan) as [Step, Step];
    assert.is(endsOf(a.node.neededBy, "required").length, 1);
    a.state = { kind: "unchanged", isReady: true };
    assert.ok(nextSteps([a, b]).reconcile.every((each) => each === b));
    assert.is(nextSteps([a, b]).reconcile.length, 1);
  });

  test("starts every node as soon as all its dependencies are ready, and not before", () => {
    fc.assert(
      fc.property(graphs, fc.array(fates, { minLength: 8, maxLength: 8 }), picks, (graph, outcomes, stream) => {
        const plan = planOf(graph);
        const { states, history } = simulate(pendAll(plan), (index) => outcomes[index]!, pickerOf(stream));
        for (const [index, { needs }] of plan.entries()) {
          const startedAt = history.indexOf(`reconcile ${index}`);
          if (startedAt === -1) continue;
          for (const { index: needed } of endsOf(needs, "required")) {
            assert.ok(history.indexOf(`end ${needed}`) < startedAt, `${index} starts after ${needed}`);
            assert.ok(history.includes(`reconcile ${needed}`));
          }
        }
        states.forEach(({ kind }, index) => {
          const hasStarted = history.includes(`reconcile ${index}`) || history.includes(`delete ${index}`);
          if (!hasStarted)
            assert.ok(kind === "pending" || kind === "condemned", `${index} is ${kind} and never started`);
        });
      }),
      { numRuns: 300 },
    );
  });

  test("reconciles every node exactly once if nothing fails", () => {
    fc.assert(
      fc.property(graphs, picks, (graph, stream) => {
        const plan = planOf(graph);
        const { states, history } = simulate(pendAll(plan), () => "ready", pickerOf(stream));
        assert.ok(states.every(isReady));
        const starts = history.filter((event) => event.startsWith("reconcile"));
        assert.is(starts.length, graph.length);
        assert.is(new Set(starts).size, graph.length);
      }),
    );
  });

  test("excludes all dependents of an excluded node, and no others", () => {
    fc.assert(
      fc.property(graphs, fc.nat(7), fc.boolean(), (graph, node, isActive) => {
        fc.pre(node < graph.length);
        const plan = planOf(graph);
        const steps = pendAll(plan);
        condemn(steps, steps[node]!, isActive);
        const closure = closureOf(plan[node]!);
        steps.forEach(({ state }, index) => {
          if (index === node) assert.is(state.kind, isActive ? "condemned" : "inactive");
          else assert.is(state.kind, closure.has(plan[index]!) ? "condemned" : "pending");
        });
      }),
    );
  });

  test("deletes a node only after all its dependents are deleted", () => {
    fc.assert(
      fc.property(graphs, fc.array(fates, { minLength: 8, maxLength: 8 }), picks, (graph, outcomes, stream) => {
        const plan = planOf(graph);
        const fateOf = (index: number) => outcomes[index]!;
        const pick = pickerOf(stream);
        for (const start of [pendAll(plan), condemnAll(plan, "over")]) {
          const { states, history } = simulate(start, fateOf, pick);
          for (const [index, { neededBy }] of plan.entries()) {
            const deletedAt = history.indexOf(`delete ${index}`);
            if (deletedAt === -1) continue;
            assert.is(history.lastIndexOf(`delete ${index}`), deletedAt, `${index} is deleted once`);
            for (const { index: dependent } of endsOf(neededBy, "required")) {
              assert.ok(isGone(states[dependent]!));
              assert.ok(history.lastIndexOf(`end ${dependent}`) < deletedAt || states[dependent]!.kind === "inactive");
            }
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  test("deletes all nodes in reverse order in a cleanup", () => {
    fc.assert(
      fc.property(graphs, picks, (graph, stream) => {
        const plan = planOf(graph);
        const { states, history } = simulate(condemnAll(plan, "over"), () => "ready", pickerOf(stream));
        assert.ok(states.every(isGone));
        for (const [index, { needs }] of plan.entries())
          for (const { index: needed } of endsOf(needs, "required"))
            assert.ok(
              history.indexOf(`end ${index}`) < history.indexOf(`delete ${needed}`),
              `${index} before ${needed}`,
            );
        assert.is(history.filter((event) => event.startsWith("reconcile")).length, 0);
      }),
    );
  });

  test("orders nodes with optional edges by readiness, and deletes excluded dependencies afterwards", () => {
    fc.assert(
      fc.property(mixedGraphs, fc.array(fates, { minLength: 8, maxLength: 8 }), picks, (plan, outcomes, stream) => {
        const { states, history } = simulate(pendAll(plan), (index) => outcomes[index]!, pickerOf(stream));
        for (const [index, { needs }] of plan.entries()) {
          const startedAt = history.indexOf(`reconcile ${index}`);
          const endedAt = history.indexOf(`end ${index}`);
          for (const { index: needed } of endsOf(needs, "optional")) {
            const isWanted = ["unchanged", "failed"].includes(states[needed]!.kind);
            if (startedAt !== -1 && isWanted) {
              assert.ok(isReady(states[needed]!), `${needed} is ready, or ${index} waits`);
              assert.ok(history.indexOf(`end ${needed}`) < startedAt, `${index} starts after ${needed}`);
            }
            const deletedAt = history.indexOf(`delete ${needed}`);
            if (deletedAt !== -1 && states[index]!.kind !== "inactive")
              assert.ok(endedAt !== -1 && endedAt < deletedAt, `${needed} is deleted after ${index} went on`);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  test("keeps optional dependents of an excluded node", () => {
    fc.assert(
      fc.property(mixedGraphs, fc.nat(7), fc.boolean(), (plan, node, isActive) => {
        fc.pre(node < plan.length);
        const steps = pendAll(plan);
        condemn(steps, steps[node]!, isActive);
        const closure = closureOf(plan[node]!);
        steps.forEach(({ state }, index) => {
          if (index !== node) assert.is(state.kind, closure.has(plan[index]!) ? "condemned" : "pending");
        });
      }),
    );
  });

  test("deletes in reverse order of optional edges in a cleanup", () => {
    fc.assert(
      fc.property(mixedGraphs, picks, (plan, stream) => {
        const { states, history } = simulate(condemnAll(plan, "over"), () => "ready", pickerOf(stream));
        assert.ok(states.every(isGone));
        for (const [index, { needs }] of plan.entries())
          for (const { index: needed } of endsOf(needs, "optional"))
            assert.ok(history.indexOf(`end ${index}`) < history.indexOf(`delete ${needed}`));
      }),
    );
  });

  test("rejects a cycle with an optional edge", () => {
    const definition = workflowOf([
      dependentOf("a", { dependsOn: [{ name: "b", optional: true }] }),
      dependentOf("b", { dependsOn: ["a"] }),
    ]);
    assert.is(
      messageOf(() => planned(definition)),
      "the workflow has a cycle: a → b → a",
    );
  });

  test("treats a dependency that is both optional and required as required", () => {
    const plan = planned(
      workflowOf([dependentOf("a"), dependentOf("b", { dependsOn: [{ name: "a", optional: true }, "a"] })]),
    );
    const [a, b] = plan;
    assert.is(endsOf(b!.needs, "required")[0], a);
    assert.is(b!.needs.length, 1);
  });

  test("blocks the dependents of a failed node and names it as the blocker", () => {
    const plan = planned(
      workflowOf([dependentOf("a"), dependentOf("b", { dependsOn: ["a"] }), dependentOf("c", { dependsOn: ["b"] })]),
    );
    const steps = pendAll(plan);
    steps[0]!.state = { kind: "failed", error: "says the test" };
    assert.equal(nextSteps(steps), { reconcile: [], delete: [] });
    assert.equal(blockersOf(steps, steps[1]!), ["a"]);
    assert.equal(blockersOf(steps, steps[2]!), ["b"]);
  });
});
