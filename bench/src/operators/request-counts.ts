/** The number of requests by verb, as kube-apiserver names it: APPLY is a PATCH for server-side apply. */
export type RequestCounts = ReadonlyMap<string, number>;

/** Adds up the counts of each verb. */
export function sumCounts(counts: Iterable<readonly [verb: string, count: number]>): RequestCounts {
  const sum = new Map<string, number>();
  for (const [verb, count] of counts) sum.set(verb, (sum.get(verb) ?? 0) + count);
  return sum;
}

/** Returns the difference of two counts; verbs without a difference are omitted. */
export function subtract(counts: RequestCounts, before: RequestCounts): RequestCounts {
  const verbs = [...new Set([...counts.keys(), ...before.keys()])];
  const differences = verbs.map((verb) => [verb, (counts.get(verb) ?? 0) - (before.get(verb) ?? 0)] as const);
  return new Map(differences.filter(([, count]) => count !== 0));
}

/** Returns the total number of requests. */
export function totalOf(counts: RequestCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Returns the number of requests that maintain caches: lists, and watches that have ended. */
export function readsOf(counts: RequestCounts): number {
  return ["LIST", "WATCH"].reduce((sum, verb) => sum + (counts.get(verb) ?? 0), 0);
}

/** Formats counts for a note: `APPLY 400, PATCH 100`, or `none`. */
export function describeCounts(counts: RequestCounts): string {
  if (counts.size === 0) return "none";
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([verb, count]) => `${verb} ${count}`)
    .join(", ");
}
