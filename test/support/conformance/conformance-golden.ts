import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { format } from "prettier";
import type { StepOutcome } from "./conformance-play.js";
import { repositoryRoot } from "../repository.js";

/** What a real server answered to the scenarios of an area, by title. */
export interface Golden {
  recordedFrom: string;
  scenarios: Record<string, StepOutcome[]>;
}

function goldenFile(area: string): string {
  return join(repositoryRoot, "fixtures/conformance", `${area}.json`);
}

/** Reads the golden of an area; empty when none was recorded. */
export function readGolden(area: string): Golden {
  const file = goldenFile(area);
  if (!existsSync(file)) return { recordedFrom: "", scenarios: {} };
  return JSON.parse(readFileSync(file, "utf8")) as Golden;
}

/** Writes the golden of an area. */
export async function writeGolden(area: string, golden: Golden): Promise<void> {
  await writeFile(goldenFile(area), await format(JSON.stringify(golden), { parser: "json", printWidth: 120 }));
}

/** One difference between what was recorded and what was answered. */
export interface Difference {
  /** `step/member/member`, the step counted from 1. */
  path: string;
  golden: unknown;
  answered: unknown;
}

/** Who else writes to the server under test. */
export interface ServerUse {
  /** Others write, so a list or a bookmark may have a later version than the last write of the scenario. Default: false. */
  isShared?: boolean;
}

/** Compares the outcomes of a scenario with those that were recorded. */
export function differencesOf(
  golden: StepOutcome[],
  answered: StepOutcome[],
  { isShared = false }: ServerUse = {},
): Difference[] {
  const differences: Difference[] = [];
  const report = (difference: Difference) => {
    if (!isShared || !isLaterVersion(difference)) differences.push(difference);
  };
  const steps = Math.max(golden.length, answered.length);
  for (let index = 0; index < steps; index++) compare(golden[index], answered[index], String(index + 1), report);
  return differences;
}

/** Only lists and bookmarks have such versions: that of an object is a rank of its own. */
function isLaterVersion({ path, golden, answered }: Difference): boolean {
  const [one, other] = [String(golden), String(answered)];
  return path.endsWith("/metadata/resourceVersion") && (other === `after ${one}` || one === `after ${other}`);
}

function compare(golden: unknown, answered: unknown, path: string, report: (difference: Difference) => void): void {
  if (JSON.stringify(golden) === JSON.stringify(answered)) return;
  const isComparable =
    golden !== null && answered !== null && typeof golden === "object" && typeof answered === "object";
  // Lists of other lengths are shown whole: what is missing shifts the rest.
  const isList = Array.isArray(golden) && Array.isArray(answered);
  if (
    !isComparable ||
    Array.isArray(golden) !== Array.isArray(answered) ||
    (isList && golden.length !== answered.length)
  ) {
    report({ path, golden, answered });
    return;
  }
  const one = golden as Record<string, unknown>;
  const other = answered as Record<string, unknown>;
  // The order of members is not compared: it has no meaning in JSON.
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)]))
    compare(one[name], other[name], `${path}/${name}`, report);
}

/** A difference that is known: `area › title › path: reason`. */
export interface KnownDifference {
  area: string;
  title: string;
  path: string;
  reason: string;
}

/** Reads the list of known differences; lines that start with # are comments. */
export function readKnownDifferences(): KnownDifference[] {
  const text = readFileSync(join(repositoryRoot, "test/conformance/known-differences.txt"), "utf8");
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  return lines.map((line) => {
    const match = /^(?<area>.+?) › (?<title>.+?) › (?<path>.+?): (?<reason>.+)$/.exec(line);
    if (match?.groups === undefined)
      throw new Error(`known-differences.txt: no "area › title › path: reason": ${line}`);
    return { ...match.groups } as unknown as KnownDifference;
  });
}
