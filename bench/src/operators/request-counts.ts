/** Requests by verb, as kube-apiserver names them: APPLY is a PATCH that applies. */
export type RequestCounts = ReadonlyMap<string, number>;

/** Adds up counts of the same verb. */
export function sumCounts(counts: Iterable<readonly [verb: string, count: number]>): RequestCounts {
  const sum = new Map<string, number>();
  for (const [verb, count] of counts) sum.set(verb, (sum.get(verb) ?? 0) + count);
  return sum;
}

/** What was counted since then; verbs of which there were none are left out. */
export function subtract(counts: RequestCounts, before: RequestCounts): RequestCounts {
  const verbs = [...new Set([...counts.keys(), ...before.keys()])];
  const differences = verbs.map((verb) => [verb, (counts.get(verb) ?? 0) - (before.get(verb) ?? 0)] as const);
  return new Map(differences.filter(([, count]) => count !== 0));
}

/** How many requests there were in all. */
export function totalOf(counts: RequestCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Those that keep a cache: lists, and watches that ended. */
export function readsOf(counts: RequestCounts): number {
  return ["LIST", "WATCH"].reduce((sum, verb) => sum + (counts.get(verb) ?? 0), 0);
}

/** Renders counts for a note: `APPLY 400, PATCH 100`, or `none`. */
export function describeCounts(counts: RequestCounts): string {
  if (counts.size === 0) return "none";
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([verb, count]) => `${verb} ${count}`)
    .join(", ");
}
