// The limits of kube-apiserver's endpoints/filters/warning.go, in code points.
const MAX_TOTAL = 4 * 1024;
const MAX_SHORTENED = 256;

/** Returns the texts that an answer shows as `Warning` headers: each once, and all of them shortened when they are too long together. */
export function shownWarnings(texts: readonly string[]): string[] {
  const distinct = [...new Set(texts)].filter((text) => text !== "");
  if (lengthOf(distinct.join("")) <= MAX_TOTAL) return distinct;
  const shown: string[] = [];
  let total = 0;
  for (const text of distinct) {
    if (total >= MAX_TOTAL) break;
    const shortened = [...text].slice(0, MAX_SHORTENED).join("");
    shown.push(shortened);
    total += lengthOf(shortened);
  }
  return shown;
}

function lengthOf(text: string): number {
  return [...text].length;
}
