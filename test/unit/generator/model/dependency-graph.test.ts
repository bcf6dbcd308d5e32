import fc from "../../../support/fast-check.js";
import { findCycles, reachableFrom, sortGraph, type DependencyGraph } from "#generator/model/resolved-project.js";
import { assert, suite } from "../../../support/suite.js";

const graphOf = (edges: { [name: string]: string[] }): DependencyGraph => new Map(Object.entries(edges));

/** Graphs whose edges lead back only, so that they have no cycle. */
const acyclic = fc.array(fc.array(fc.nat(), { maxLength: 4 }), { maxLength: 12 }).chain((rows) => {
  const graph = rows.map((row, index): [string, string[]] => [
    `n${index}`,
    index === 0 ? [] : [...new Set(row.map((other) => `n${other % index}`))],
  ]);
  return fc.shuffledSubarray(graph, { minLength: graph.length }).map((entries): DependencyGraph => new Map(entries));
});

suite("dependency graph", (test) => {
  test("sorts names after their dependencies, otherwise in the given order", () => {
    assert.equal(sortGraph(graphOf({ d: ["b"], c: [], b: [], a: ["d"] })), ["c", "b", "d", "a"]);
  });

  test("sorts every acyclic graph and finds no cycle in it", () => {
    fc.assert(
      fc.property(acyclic, (graph) => {
        const sorted = sortGraph(graph);
        assert.equal([...sorted].sort(), [...graph.keys()].sort());
        for (const [name, others] of graph)
          for (const other of others) assert.ok(sorted.indexOf(other) < sorted.indexOf(name));
        assert.equal(findCycles(graph), []);
      }),
    );
  });

  test("finds the cycle that an added edge closes", () => {
    fc.assert(
      fc.property(acyclic, fc.nat(), fc.nat(), (graph, first, second) => {
        const names = [...graph.keys()];
        if (names.length === 0) return;
        const [from, to] = [names[first % names.length]!, names[second % names.length]!];
        const closed = new Map([...graph, [from, [...graph.get(from)!, to]]]);
        const isCycle = from === to || reachableFrom(graph, to).has(from);
        const cycles = findCycles(closed);
        assert.is(cycles.length, isCycle ? 1 : 0);
        for (const cycle of cycles) {
          assert.is(cycle[0], cycle.at(-1));
          for (let index = 1; index < cycle.length; index++)
            assert.ok(closed.get(cycle[index - 1]!)?.includes(cycle[index]!));
        }
      }),
    );
  });

  test("finds a shortest cycle for each separate one", () => {
    const graph = graphOf({ a: ["b", "c"], b: ["c"], c: ["a"], x: ["y", "a"], y: ["x"], z: ["z"] });
    assert.equal(findCycles(graph), [
      ["a", "c", "a"],
      ["x", "y", "x"],
      ["z", "z"],
    ]);
  });

  test("ignores names that are not in the graph", () => {
    const graph = graphOf({ a: ["nothing"] });
    assert.equal(sortGraph(graph), ["a"]);
    assert.equal(findCycles(graph), []);
  });
});
