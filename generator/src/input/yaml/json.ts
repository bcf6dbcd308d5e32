/** Tells whether a value is a JSON object. */
export function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Returns the values of a text that is JSON, also of several documents between lines of `---`; undefined if it is anything else, or if only
 * a closer look tells whether it is right: a key that may be there twice, an infinite number, half of a character.
 */
export function parseJsonDocuments(text: string): readonly unknown[] | undefined {
  if (!/^\s*\{/.test(text) || /\\u[dD][89a-fA-F]/.test(text)) return undefined;
  try {
    const documents = text.split(/^---[ \t]*\r?$/m).filter((each) => each.trim() !== "");
    const values = documents.map((each): unknown => JSON.parse(each));
    return countKeys(values) === countWrittenKeys(text) ? values : undefined;
  } catch {
    return undefined;
  }
}

/** Counts the keys of all objects in a value; an infinite number is an error. */
function countKeys(value: unknown): number {
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError("no number of JSON");
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) for (const item of value) count += countKeys(item);
  else
    for (const name of Object.keys(value)) count += 1 + countKeys((value as { readonly [key: string]: unknown })[name]);
  return count;
}

/** Counts what looks like a key, and a text may look like one, too; infinitely many if that is hard to tell. */
function countWrittenKeys(text: string): number {
  if (/:(?<=(?:"\s+|\\\\"):)/.test(text)) return Infinity;
  let count = 0;
  for (let at = text.indexOf('":'); at !== -1; at = text.indexOf('":', at + 2)) if (text[at - 1] !== "\\") count += 1;
  return count;
}
