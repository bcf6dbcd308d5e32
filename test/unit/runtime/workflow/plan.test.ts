import fc from "../../../support/fast-check.js";
import {
  blockersOf,
  buildPlan,
  condemn,
  endsOf,
  nextSteps,
  type NodeState,
  type Plan,
} from "#runtime/workflow/plan.js";
import { assert, suite } from "../../../support/suite.js";
import { dependentOf, dependentsOf, graphs, workflowOf } from "./graphs.js";

function planOf(graph: number[][]): Plan {
  return buildPlan(workflowOf(dependentsOf(graph)));
}

/** A graph in which some edges are optional. */
const mixedGraphs = graphs.chain((graph) =>
  fc.tuple(fc.constant(graph), ...graph.map((needed) => fc.subarray(needed))).map(([all, ...optional]) =>
    buildPlan(
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

/** All nodes that depend on `index`, directly or not. */
function closureOf(plan: Plan, index: number): Set<number> {
  const found = new Set<number>();
  const visit = (each: number): void =>
    endsOf(plan.nodes[each]!.neededBy, "required").forEach((dependent) => {
      if (!found.has(dependent)) visit((found.add(dependent), dependent));
    });
  visit(index);
  return found;
}

const isGone = (state: NodeState) => state.kind === "inactive" || (state.kind === "deleted" && state.isGone);
const isReady = (state: NodeState) => "isReady" in state && state.isReady;

/** What becomes of a node in a simulated run. */
const fates = fc.constantFrom("ready", "ready", "ready", "notReady", "failed", "condemned", "inactive", "notGone");
type Fate = "ready" | "notReady" | "failed" | "condemned" | "inactive" | "notGone";

/** Runs a plan to its end; `pick` chooses which of the running nodes finishes next. */
function simulate(plan: Plan, start: NodeState[], fateOf: (index: number) => Fate, pick: (count: number) => number) {
  let states = start;
  const running: { index: number; isDeletion: boolean }[] = [];
  const history: string[] = [];
  for (;;) {
    const steps = nextSteps(plan, states);
    states = states.map((state, index) =>
      steps.reconcile.includes(index) || steps.delete.includes(index) ? { kind: "running" } : state,
    );
    for (const index of steps.reconcile) running.push({ index, isDeletion: false });
    for (const index of steps.delete) running.push({ index, isDeletion: true });
    history.push(
      ...steps.reconcile.map((index) => `reconcile ${index}`),
      ...steps.delete.map((index) => `delete ${index}`),
    );
    checkMaximal(plan, states);
    if (running.length === 0) return { states, history };
    const [{ index, isDeletion }] = running.splice(pick(running.length), 1) as [(typeof running)[number]];
    const fate = fateOf(index);
    if (isDeletion) states[index] = { kind: "deleted", isGone: fate !== "notGone", because: "says the test" };
    else if (fate === "condemned" || fate === "inactive")
      states = condemn(plan, states, { index, because: "says the test", isActive: fate === "condemned" });
    else if (fate === "failed") states[index] = { kind: "failed", error: "says the test" };
    else states[index] = { kind: "unchanged", isReady: fate !== "notReady" };
    history.push(`end ${index}`);
  }
}

/** Whatever still waits, waits for something. */
function checkMaximal(plan: Plan, states: readonly NodeState[]): void {
  states.forEach((state, index) => {
    const { needs, neededBy } = plan.nodes[index]!;
    const [dependsOn, dependents] = [endsOf(needs, "required"), endsOf(neededBy, "required")];
    const [optional, optionalDependents] = [endsOf(needs, "optional"), endsOf(neededBy, "optional")];
    const isUnwanted = (each: number) => ["condemned", "inactive"].includes(states[each]!.kind);
    if (state.kind === "pending")
      assert.not(
        dependsOn.every((needed) => isReady(states[needed]!)) &&
          optional.every((needed) => isReady(states[needed]!) || isUnwanted(needed)),
        `${index} may run`,
      );
    if (state.kind === "condemned")
      assert.not(
        dependents.every((dependent) => isGone(states[dependent]!)) &&
          optionalDependents.every((each) => isGone(states[each]!) || isReady(states[each]!)),
        `${index} may be deleted`,
      );
    if (state.kind === "pending" || state.kind === "condemned")
      assert.ok(blockersOf(plan, states, index).length > 0, `${index} says what it waits for`);
  });
}

const picks = fc.infiniteStream(fc.nat(100));
const pickerOf = (stream: Iterator<number>) => (count: number) => (stream.next().value as number) % count;

const pendAll = ({ nodes }: Plan): NodeState[] => nodes.map(() => ({ kind: "pending" }));
const condemnAll = ({ nodes }: Plan, because: string): NodeState[] => nodes.map(() => ({ kind: "condemned", because }));

suite("plan", (test) => {
  test("two dependents of one name are refused", () => {
    const definition = workflowOf([dependentOf("web"), dependentOf("web")]);
    assert.is(
      messageOf(() => buildPlan(definition)),
      'the workflow has two dependents named "web"',
    );
  });

  test("an unknown name is refused with both names", () => {
    const definition = workflowOf([dependentOf("web", { dependsOn: ["databse"] })]);
    assert.is(
      messageOf(() => buildPlan(definition)),
      'dependent "web" depends on "databse", which the workflow does not have',
    );
  });

  test("a cycle is refused with its whole path, and nothing that only leads to it", () => {
    const definition = workflowOf([
      dependentOf("entry", { dependsOn: ["a"] }),
      dependentOf("a", { dependsOn: ["b"] }),
      dependentOf("b", { dependsOn: ["c"] }),
      dependentOf("c", { dependsOn: ["a"] }),
    ]);
    assert.is(
      messageOf(() => buildPlan(definition)),
      "the workflow has a cycle: a → b → c → a",
    );
    const self = workflowOf([dependentOf("a", { dependsOn: ["a"] })]);
    assert.is(
      messageOf(() => buildPlan(self)),
      "the workflow has a cycle: a → a",
    );
  });

  test("a graph with one more edge against its order has a cycle that is reported as it stands", () => {
    fc.assert(
      fc.property(graphs, fc.nat(7), fc.nat(7), (graph, from, to) => {
        const plan = planOf(graph);
        fc.pre(from < graph.length && to < graph.length && (from === to || closureOf(plan, from).has(to)));
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

  test("a dependency that is named twice counts once", () => {
    const plan = buildPlan(workflowOf([dependentOf("a"), dependentOf("b", { dependsOn: ["a", "a"] })]));
    assert.equal(endsOf(plan.nodes[0]!.neededBy, "required"), [1]);
    assert.equal(nextSteps(plan, [{ kind: "unchanged", isReady: true }, { kind: "pending" }]).reconcile, [1]);
  });

  test("in every run a node starts after all that it depends on is ready, and everything that may start does", () => {
    fc.assert(
      fc.property(graphs, fc.array(fates, { minLength: 8, maxLength: 8 }), picks, (graph, outcomes, stream) => {
        const plan = planOf(graph);
        const { states, history } = simulate(plan, pendAll(plan), (index) => outcomes[index]!, pickerOf(stream));
        for (const [index, { needs }] of plan.nodes.entries()) {
          const startedAt = history.indexOf(`reconcile ${index}`);
          if (startedAt === -1) continue;
          for (const needed of endsOf(needs, "required")) {
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

  test("without failures a run ends with every node reconciled exactly once", () => {
    fc.assert(
      fc.property(graphs, picks, (graph, stream) => {
        const plan = planOf(graph);
        const { states, history } = simulate(plan, pendAll(plan), () => "ready", pickerOf(stream));
        assert.ok(states.every(isReady));
        const starts = history.filter((event) => event.startsWith("reconcile"));
        assert.is(starts.length, graph.length);
        assert.is(new Set(starts).size, graph.length);
      }),
    );
  });

  test("what must not exist takes with it all that depends on it, and nothing else", () => {
    fc.assert(
      fc.property(graphs, fc.nat(7), fc.boolean(), (graph, node, isActive) => {
        fc.pre(node < graph.length);
        const plan = planOf(graph);
        const states = condemn(plan, pendAll(plan), { index: node, because: "says the test", isActive });
        const closure = closureOf(plan, node);
        states.forEach((state, index) => {
          if (index === node) assert.is(state.kind, isActive ? "condemned" : "inactive");
          else assert.is(state.kind, closure.has(index) ? "condemned" : "pending");
        });
      }),
    );
  });

  test("nothing is deleted before all that depends on it is gone", () => {
    fc.assert(
      fc.property(graphs, fc.array(fates, { minLength: 8, maxLength: 8 }), picks, (graph, outcomes, stream) => {
        const plan = planOf(graph);
        const fateOf = (index: number) => outcomes[index]!;
        const pick = pickerOf(stream);
        for (const start of [pendAll(plan), condemnAll(plan, "over")]) {
          const { states, history } = simulate(plan, start, fateOf, pick);
          for (const [index, { neededBy }] of plan.nodes.entries()) {
            const deletedAt = history.indexOf(`delete ${index}`);
            if (deletedAt === -1) continue;
            assert.is(history.lastIndexOf(`delete ${index}`), deletedAt, `${index} is deleted once`);
            for (const dependent of endsOf(neededBy, "required")) {
              assert.ok(isGone(states[dependent]!));
              assert.ok(history.lastIndexOf(`end ${dependent}`) < deletedAt || states[dependent]!.kind === "inactive");
            }
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  test("a cleanup deletes everything, in exactly the reverse order of the graph", () => {
    fc.assert(
      fc.property(graphs, picks, (graph, stream) => {
        const plan = planOf(graph);
        const { states, history } = simulate(plan, condemnAll(plan, "over"), () => "ready", pickerOf(stream));
        assert.ok(states.every(isGone));
        for (const [index, { needs }] of plan.nodes.entries())
          for (const needed of endsOf(needs, "required"))
            assert.ok(
              history.indexOf(`end ${index}`) < history.indexOf(`delete ${needed}`),
              `${index} before ${needed}`,
            );
        assert.is(history.filter((event) => event.startsWith("reconcile")).length, 0);
      }),
    );
  });

  test("over optional edges a node starts after what is wanted is ready, and what is not wanted goes after it", () => {
    fc.assert(
      fc.property(mixedGraphs, fc.array(fates, { minLength: 8, maxLength: 8 }), picks, (plan, outcomes, stream) => {
        const { states, history } = simulate(plan, pendAll(plan), (index) => outcomes[index]!, pickerOf(stream));
        for (const [index, { needs }] of plan.nodes.entries()) {
          const startedAt = history.indexOf(`reconcile ${index}`);
          const endedAt = history.indexOf(`end ${index}`);
          for (const needed of endsOf(needs, "optional")) {
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

  test("what must not exist leaves what depends on it optionally alone", () => {
    fc.assert(
      fc.property(mixedGraphs, fc.nat(7), fc.boolean(), (plan, node, isActive) => {
        fc.pre(node < plan.nodes.length);
        const states = condemn(plan, pendAll(plan), { index: node, because: "says the test", isActive });
        const closure = closureOf(plan, node);
        states.forEach((state, index) => {
          if (index !== node) assert.is(state.kind, closure.has(index) ? "condemned" : "pending");
        });
      }),
    );
  });

  test("a cleanup deletes in the reverse order of all edges, optional ones too", () => {
    fc.assert(
      fc.property(mixedGraphs, picks, (plan, stream) => {
        const { states, history } = simulate(plan, condemnAll(plan, "over"), () => "ready", pickerOf(stream));
        assert.ok(states.every(isGone));
        for (const [index, { needs }] of plan.nodes.entries())
          for (const needed of endsOf(needs, "optional"))
            assert.ok(history.indexOf(`end ${index}`) < history.indexOf(`delete ${needed}`));
      }),
    );
  });

  test("a cycle with an optional edge is refused", () => {
    const definition = workflowOf([
      dependentOf("a", { dependsOn: [{ name: "b", optional: true }] }),
      dependentOf("b", { dependsOn: ["a"] }),
    ]);
    assert.is(
      messageOf(() => buildPlan(definition)),
      "the workflow has a cycle: a → b → a",
    );
  });

  test("a dependency that is stated both ways is required", () => {
    const plan = buildPlan(
      workflowOf([dependentOf("a"), dependentOf("b", { dependsOn: [{ name: "a", optional: true }, "a"] })]),
    );
    assert.equal(endsOf(plan.nodes[1]!.needs, "required"), [0]);
    assert.equal(endsOf(plan.nodes[1]!.needs, "optional"), []);
  });

  test("a failed node holds back what depends on it, and names itself", () => {
    const plan = buildPlan(
      workflowOf([dependentOf("a"), dependentOf("b", { dependsOn: ["a"] }), dependentOf("c", { dependsOn: ["b"] })]),
    );
    const states: NodeState[] = [{ kind: "failed", error: "says the test" }, { kind: "pending" }, { kind: "pending" }];
    assert.equal(nextSteps(plan, states), { reconcile: [], delete: [] });
    assert.equal(blockersOf(plan, states, 1), ["a"]);
    assert.equal(blockersOf(plan, states, 2), ["b"]);
  });
});
