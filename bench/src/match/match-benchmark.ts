import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { messageOf } from "#runtime/base/logger.js";
import { startChild } from "../child.js";
import type { BenchmarkResult, Measurement } from "../measurement.js";
import { findPeers } from "../peers/implementations.js";
import type { MatchReport, MatchSettings } from "./match-load.js";

const SETTINGS = { warmUpMs: 2_000, roundMs: 200, rounds: 15 };
const TITLES: { readonly [shape: string]: string } = {
  large: "Deployment, three containers",
  contract: "Deployment, one container",
  megabyte: "ConfigMap of 1 MB",
  huge: "Deployment, 500 containers",
};

/** Measures matching a live object that equals the desired one, compared with JOSDK's matcher if its program exists or can be built. */
export async function measureMatch({ peerFolder }: { peerFolder: string }): Promise<BenchmarkResult> {
  const measurements: Measurement[] = [];
  const notes: string[] = [];
  const peer = await measurePeer(peerFolder).catch((error: unknown) => {
    notes.push(`the peer was not measured: ${messageOf(error)}`);
    return new Map<string, number>();
  });
  for (const [shape, title] of Object.entries(TITLES)) {
    const { leaves, match, stringify } = await runLoad({ ...SETTINGS, shape });
    const name = `${title}, ${leaves} leaf fields`;
    const theirs = peer.get(shape);
    measurements.push(
      { name, unit: "µs", better: "lower", ours: match, peers: [theirs] },
      { name: `${title}: JSON.stringify of the live object`, unit: "µs", better: "lower", ours: stringify },
    );
  }
  return {
    benchmark: "match",
    peers: ["JOSDK"],
    notes: [
      `CPU of one match that finds nothing to do; medians of ${SETTINGS.rounds} rounds after a warm-up, in a process for each object`,
      "ours from the state as it is cached, with what is owned as text; the peer's SSA matcher from objects that it has decoded",
      ...notes,
    ],
    measurements,
  };
}

async function runLoad(settings: MatchSettings): Promise<MatchReport> {
  await using child = startChild(new URL("./match-load.js", import.meta.url), settings);
  return await child.receive<MatchReport>();
}

/** Returns the CPU time per match in microseconds, by the name of the shape. */
async function measurePeer(peerFolder: string): Promise<ReadonlyMap<string, number>> {
  const jar = process.env["JOSDK_JAR"] ?? (await buildJar(peerFolder));
  const { stdout } = await promisify(execFile)("java", ["-cp", jar, "bench.MatcherBench"]);
  const lines = stdout.matchAll(/^(\w+)\s+\d+ leaf fields:.*thread CPU ([\d.]+)/gm);
  return new Map([...lines].map(([, name = "", micros]) => [name, Number(micros)]));
}

async function buildJar(peerFolder: string): Promise<string> {
  const [peer] = findPeers(peerFolder, ["josdk"]);
  if (peer === undefined) throw new Error(`${peerFolder} has no josdk (--peer-dir), and JOSDK_JAR names no program`);
  const { cwd = "." } = await peer.build();
  return join(cwd, "target/josdk.jar");
}
