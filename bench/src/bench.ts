// npm run bench -- [NAME...] [--json FILE] [--count N] [--turns N] [--peer-dir FOLDER] measures our packages and peers in the same run, and prints
// the results. There are no thresholds, because they would depend on the machine.
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "#test/support/repository.js";
import { measureApiServers } from "./apiserver/api-server-benchmark.js";
import { measureSimulation } from "./apiserver/simulate-benchmark.js";
import { measureColdStart } from "./cold-start/cold-start-benchmark.js";
import { measureForeign } from "./foreign/foreign-benchmark.js";
import { measureGenerators } from "./generate/generate-benchmark.js";
import { measureJourneys } from "./journeys/journeys-benchmark.js";
import { type BenchmarkResult, renderTable } from "./measurement.js";
import { measureMatch } from "./match/match-benchmark.js";
import { measureMetrics } from "./metrics/metrics-benchmark.js";
import { measurePass } from "./pass/pass-benchmark.js";
import { measureOperate } from "./peers/operate-benchmark.js";
import { measurePeers, measurePeersOnEmbedded } from "./peers/peers-benchmark.js";
import { measureFairness } from "./fairness/fairness-benchmark.js";
import { measureQueue } from "./queue/queue-benchmark.js";
import { measureRelist } from "./relist/relist-benchmark.js";
import { measureStall } from "./stall/stall-benchmark.js";
import { measureWorkflow } from "./workflow/workflow-benchmark.js";
import { measureSync } from "./sync/sync-benchmark.js";

/** The options of all benchmarks. */
export interface BenchmarkOptions {
  /** The number of custom resources that each operator reconciles. */
  count: number;
  /** The folder with the sources of peer operators, one folder each. */
  peerFolder: string;
  /** The number of measurements of each operator when several take turns. */
  turns: number;
}

const benchmarks: Record<
  string,
  { summary: string; measure: (options: BenchmarkOptions) => Promise<BenchmarkResult> }
> = {
  apiserver: { summary: "the embedded API server beside kube-apiserver", measure: measureApiServers },
  simulate: { summary: "500 and 5,000 simulated Deployments until they are ready", measure: measureSimulation },
  generate: { summary: "generating code, beside cdk8s import", measure: measureGenerators },
  pass: {
    summary: "API calls of passes with nothing to do, beside controller-runtime and JOSDK",
    measure: measurePass,
  },
  peers: { summary: "one operator on gen-operator and on the frameworks found in --peer-dir", measure: measurePeers },
  "peers-embedded": {
    summary: "the same operators on the embedded API server with --simulate",
    measure: measurePeersOnEmbedded,
  },
  operate: { summary: "leader election, probes and metrics, beside ours without them", measure: measureOperate },
  metrics: { summary: "counting metrics, beside prom-client and OpenTelemetry", measure: measureMetrics },
  foreign: {
    summary: "an operator among 25,000 objects of others, beside itself without them and controller-runtime",
    measure: measureForeign,
  },
  workflow: { summary: "graphs of dependents, beside JOSDK", measure: measureWorkflow },
  sync: { summary: "following 50,000 objects, beside client-node", measure: measureSync },
  relist: { summary: "reading 50,000 known objects again, beside client-node", measure: measureRelist },
  queue: { summary: "events through a controller", measure: measureQueue },
  fairness: { summary: "one primary behind ten thousand, beside first come, first served", measure: measureFairness },
  match: { summary: "finding that an object is as desired, beside JOSDK", measure: measureMatch },
  stall: { summary: "how long the event loop stands still for what is large", measure: measureStall },
  journeys: { summary: "how many files run on the way of an edit, a request and a generate", measure: measureJourneys },
  "cold-start": {
    summary: "a bundled operator until its first reconcile, beside installed packages and controller-runtime",
    measure: measureColdStart,
  },
};

const USAGE = [
  "npm run bench -- [NAME...] [--json FILE] [--count N] [--turns N] [--peer-dir FOLDER]",
  "Measures all of these unless some are named:",
  ...Object.entries(benchmarks).map(([name, { summary }]) => `  ${name.padEnd(14)} ${summary}`),
].join("\n");

async function main(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      json: { type: "string" },
      count: { type: "string", default: "200" },
      turns: { type: "string", default: "1" },
      "peer-dir": { type: "string", default: join(repositoryRoot, "../shared/peers") },
    },
  });
  const unknown = positionals.filter((name) => benchmarks[name] === undefined);
  if (unknown.length > 0) {
    console.error(`no benchmark is called ${unknown.join(", ")}\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  const results: BenchmarkResult[] = [];
  for (const name of positionals.length > 0 ? positionals : Object.keys(benchmarks)) {
    const { count, turns, "peer-dir": peerFolder } = values;
    const result = await measure(name, { count: Number(count), turns: Number(turns), peerFolder });
    if (result === undefined) continue;
    results.push(result);
    console.log(`\n${renderTable(result)}`);
  }
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(reportOf(results), null, 2)}\n`);
}

/** Catches the failure of a benchmark, so that the results of the others are still printed. */
async function measure(name: string, options: BenchmarkOptions): Promise<BenchmarkResult | undefined> {
  try {
    return await benchmarks[name]?.measure(options);
  } catch (error) {
    console.error(`\n${name} could not be measured:`, error);
    process.exitCode = 1;
    return undefined;
  }
}

function reportOf(results: BenchmarkResult[]): object {
  const machine = { node: process.version, platform: process.platform, cores: availableParallelism() };
  return { takenAt: new Date().toISOString(), machine, results };
}

await main(process.argv.slice(2));
