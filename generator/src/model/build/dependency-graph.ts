/** Which names a name depends on. */
export type DependencyGraph = ReadonlyMap<string, readonly string[]>;

/** Returns the names so that each comes after those it depends on, and otherwise in the order in which they were given. */
export function sortGraph(graph: DependencyGraph): string[] {
  const sorted = new Set<string>();
  const waiting = new Set(graph.keys());
  while (waiting.size > 0) {
    const next = [...waiting].find((name) => dependenciesOf(graph, name).every((other) => sorted.has(other)));
    if (next === undefined) throw new Error("a graph with a cycle has no order");
    sorted.add(next);
    waiting.delete(next);
  }
  return [...sorted];
}

/** Returns all that a name depends on, directly or through others. */
export function reachableFrom(graph: DependencyGraph, name: string): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting = [...dependenciesOf(graph, name)];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    waiting.push(...dependenciesOf(graph, next));
  }
  return reached;
}

/**
 * Returns a shortest cycle through each group of names that depend on each other, starting at the name that was given first.
 *
 * The first name is repeated at the end: `["a", "b", "a"]`.
 */
export function findCycles(graph: DependencyGraph): string[][] {
  const seen = new Set<string>();
  const cycles: string[][] = [];
  for (const name of graph.keys()) {
    if (seen.has(name)) continue;
    const cycle = shortestCycle(graph, name);
    if (cycle === undefined) continue;
    cycles.push(cycle);
    // Other cycles through the same names go away or show up once this one is broken.
    const reached = reachableFrom(graph, name);
    for (const other of reached) if (reachableFrom(graph, other).has(name)) seen.add(other);
  }
  return cycles;
}

function shortestCycle(graph: DependencyGraph, start: string): string[] | undefined {
  const paths: string[][] = [[start]];
  const visited = new Set<string>();
  for (const path of paths) {
    for (const next of dependenciesOf(graph, path.at(-1) ?? start)) {
      if (next === start) return [...path, start];
      if (visited.has(next)) continue;
      visited.add(next);
      paths.push([...path, next]);
    }
  }
  return undefined;
}

// What is not in the graph is reported by another rule.
function dependenciesOf(graph: DependencyGraph, name: string): readonly string[] {
  return (graph.get(name) ?? []).filter((other) => graph.has(other));
}
