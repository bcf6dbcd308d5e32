import type { MovedSpec } from "../input/workflow-spec.js";

/** Returns the present name of each former one; a name that was changed twice leads to the last. */
export function presentNames(moved: readonly MovedSpec[]): ReadonlyMap<string, string> {
  const next = new Map(moved.map(({ from, to }) => [from, to]));
  return new Map(
    moved.map(({ from }) => {
      const seen = new Set<string>();
      let name = from;
      for (let to = next.get(name); to !== undefined && !seen.has(to); to = next.get(name)) seen.add((name = to));
      return [from, name];
    }),
  );
}

/** Returns the former names of a dependent, the latest first. */
export function formerNamesOf(name: string, moved: readonly MovedSpec[]): string[] {
  const present = presentNames(moved);
  return moved.flatMap(({ from }) => (present.get(from) === name ? from : [])).reverse();
}
