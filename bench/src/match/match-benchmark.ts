import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { startChild } from "../child.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";
import type { MatchReport, MatchSettings } from "./match-load.js";

const SETTINGS = { warmUpMs: 2_000, roundMs: 200, rounds: 15 };
const TITLES: { readonly [shape: string]: string } = {
  large: "Deployment, three containers",
  contract: "Deployment, one container",
  megabyte: "ConfigMap of 1 MB",
  huge: "Deployment, 500 containers",
};

/** Measures how long it takes to find that an object is as desired; beside JOSDK if `JOSDK_JAR` names the peer's program. */
export async function measureMatch(): Promise<BenchmarkResult> {
  const measurements: Measurement[] = [];
  const peer = await measurePeer(process.env["JOSDK_JAR"]);
  for (const [shape, title] of Object.entries(TITLES)) {
    const { leaves, match, stringify } = await runLoad({ ...SETTINGS, shape });
    const name = `${title}, ${leaves} leaf fields`;
    const theirs = peer.get(shape);
    measurements.push(
      { name, unit: "µs", better: "lower", ours: match, ...(theirs === undefined ? {} : { peer: theirs }) },
      { name: `${title}: JSON.stringify of the live object`, unit: "µs", better: "lower", ours: stringify },
    );
  }
  return {
    benchmark: "match",
    peer: "JOSDK",
    notes: [
      `CPU of one match that finds nothing to do; medians of ${SETTINGS.rounds} rounds after a warm-up, in a process for each object`,
      "ours from the state as it is cached, with what is owned as text; the peer's SSA matcher from objects that it has decoded",
    ],
    measurements,
  };
}

async function runLoad(settings: MatchSettings): Promise<MatchReport> {
  await using child = startChild(new URL("./match-load.js", import.meta.url), settings);
  return await child.receive<MatchReport>();
}

/** The CPU per match in microseconds, by the name of the object. */
async function measurePeer(jar: string | undefined): Promise<ReadonlyMap<string, number>> {
  if (jar === undefined) return new Map();
  const { stdout } = await promisify(execFile)("java", ["-cp", jar, "bench.MatcherBench"]);
  const lines = stdout.matchAll(/^(\w+)\s+\d+ leaf fields:.*thread CPU ([\d.]+)/gm);
  return new Map([...lines].map(([, name = "", micros]) => [name, Number(micros)]));
}
