// Completion indexes of indexed Jobs, such as `1,3-5`.
import { quote } from "../../errors/go-format.js";

type Range = [first: number, last: number];

/** Returns the number of indexes, or an error message. */
export function readIndexes(text: string, completions: number): number | string {
  if (text === "") return 0;
  let [total, last] = [0, -1];
  for (const part of text.split(",")) {
    const range = readRange(part, completions);
    if (typeof range === "string") return range;
    if (total > 0 && last >= range[0]) return `non-increasing order, previous: ${last}, current: ${range[0]}`;
    total += range[1] - range[0] + 1;
    last = range[1];
  }
  return total;
}

/** Returns the valid ranges of indexes. */
export function indexRanges(text: string, completions: number): Range[] {
  return text.split(",").flatMap((part) => {
    const range = readRange(part, completions);
    return typeof range === "string" ? [] : [range];
  });
}

function readRange(part: string, completions: number): Range | string {
  const limits = part.split("-");
  if (limits.length > 2) {
    const rule = "violates the requirement that an index interval can have at most two parts separated by '-'";
    return `the fragment ${quote(part)} ${rule}`;
  }
  for (const limit of limits) {
    if (!/^[+-]?\d+$/.test(limit)) return `cannot convert string to integer for index: ${quote(limit)}`;
    if (Number(limit) >= completions) return `too large index: ${quote(limit)}`;
  }
  const [first = 0, last = first] = limits.map(Number);
  if (limits.length > 1 && first >= last) return `non-increasing order, previous: ${first}, current: ${last}`;
  return [first, last];
}
