/** Hints for misspelled names. */

/** Returns `; did you mean "…"?` for a name that resembles a known one, otherwise "". */
export function hintOf(name: string, known: readonly string[]): string {
  const [best] = known
    .map((candidate) => ({ candidate, changes: changesBetween(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.changes - b.changes);
  if (best === undefined || best.changes > Math.max(2, Math.floor(name.length / 2))) return "";
  return `; did you mean ${JSON.stringify(best.candidate)}?`;
}

/** Throws an Error for an unknown member of an object. `what` describes the member in the message. */
export function checkNames(given: object, { known, what }: { known: readonly string[]; what: string }): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const quoted = JSON.stringify(unknown);
  throw new Error(`unknown ${what} ${quoted}: must be one of ${known.join(", ")}${hintOf(unknown, known)}`);
}

/** Returns the Levenshtein distance. */
function changesBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
