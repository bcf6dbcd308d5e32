import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { format } from "prettier";
import type { StepOutcome } from "./conformance-play.js";
import { repositoryRoot } from "../repository.js";

/** The recorded outcomes of the scenarios of an area on a real server, by title. */
export interface Golden {
  recordedFrom: string;
  scenarios: Record<string, StepOutcome[]>;
}

function goldenFile(area: string): string {
  return join(repositoryRoot, "fixtures/conformance", `${area}.json`);
}

/** Reads the golden file of an area; returns an empty one if it does not exist. */
export function readGolden(area: string): Golden {
  const file = goldenFile(area);
  if (!existsSync(file)) return { recordedFrom: "", scenarios: {} };
  return JSON.parse(readFileSync(file, "utf8")) as Golden;
}

/** Writes the golden file of an area. */
export async function writeGolden(area: string, golden: Golden): Promise<void> {
  await writeFile(goldenFile(area), await format(JSON.stringify(golden), { parser: "json", printWidth: 120 }));
}

/** A difference between the recorded and the actual outcome. */
export interface Difference {
  /** `step/member/member`; steps are numbered from 1. */
  path: string;
  golden: unknown;
  answered: unknown;
}

/** How the server under test is used. */
export interface ServerUse {
  /** Whether other clients write, so that lists and bookmarks may have a later resourceVersion than the last write of the scenario. Default: false */
  isShared?: boolean;
}

/** Compares the outcomes of a scenario with the recorded ones. */
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

/** Only lists and bookmarks have versions of this form; the version of an object is a rank. */
function isLaterVersion({ path, golden, answered }: Difference): boolean {
  const [one, other] = [String(golden), String(answered)];
  return path.endsWith("/metadata/resourceVersion") && (other === `after ${one}` || one === `after ${other}`);
}

function compare(golden: unknown, answered: unknown, path: string, report: (difference: Difference) => void): void {
  if (JSON.stringify(golden) === JSON.stringify(answered)) return;
  const isComparable =
    golden !== null && answered !== null && typeof golden === "object" && typeof answered === "object";
  // If the lengths of lists differ, report whole lists, because a missing item shifts all following ones.
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
  // The order of members is not significant in JSON.
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)]))
    compare(one[name], other[name], `${path}/${name}`, report);
}

/** A known difference: `area › title › path: reason`. */
export interface KnownDifference {
  area: string;
  title: string;
  path: string;
  reason: string;
}

/** Reads the known differences; lines that start with # are comments. */
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
