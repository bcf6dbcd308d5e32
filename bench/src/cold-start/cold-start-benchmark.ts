// The time from starting the process of an operator to the first write of its first reconcile, with a running API server.
import { once } from "node:events";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { waitFor } from "#apiserver/wait-for.js";
import { writeKubeconfig } from "#test/support/api/kubeconfig.js";
import { startFlags } from "#test/support/projects/start-flags.js";
import { type Connection, createLoadClient, type LoadClient } from "../load-client.js";
import { type BenchmarkResult, type Measurement, medianOf } from "../measurement.js";
import { type OperatorCommand, startOperator } from "../operators/operator-process.js";
import { readUsage } from "../operators/process-usage.js";
import { findPeers } from "../peers/implementations.js";
import { childPaths, NAMESPACE, pageName, PAGES_PATH, webPage, webPageDefinition } from "../peers/web-page.js";
import { deployWorkload } from "../operators/deployed-project.js";

const RUNS = 7;
const SERVER = fileURLToPath(new URL("../apiserver/embedded-server.js", import.meta.url));
const LIMIT = { timeoutMs: 30_000, intervalMs: 50 };

/** The cost of a start. */
interface ColdStart {
  readonly ms: number;
  readonly cpuSeconds: number;
  readonly residentMb: number;
}

/** Measures a generated operator as a bundle, the same operator with installed packages, and one based on controller-runtime. */
export async function measureColdStart({ peerFolder }: { peerFolder: string }): Promise<BenchmarkResult> {
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  try {
    const { bundled, installed } = await deployWorkload(folder);
    const [peer] = findPeers(peerFolder, ["controller-runtime"]);
    const commandOf = (main: string) => ({
      name: "gen-operator",
      program: process.execPath,
      args: [...startFlags, main],
    });
    const commands = {
      bundled: commandOf(bundled.main),
      installed: commandOf(installed.main),
      ...(peer === undefined ? {} : { peer: await peer.build() }),
    };
    const starts = await measureStarts(commands, folder);
    const row = (name: string, unit: string, read: (start: ColdStart) => number): Measurement => ({
      ...{ name, unit, better: "lower" },
      ours: medianOf(starts["bundled"]!, read),
      peers: [starts["installed"], starts["peer"]].map((runs) =>
        runs === undefined ? undefined : medianOf(runs, read),
      ),
    });
    return {
      benchmark: "cold-start",
      peers: ["ours, packages installed", "controller-runtime"],
      notes: [
        `from the start of the process to the event of the first dependent, embedded API server; medians of ${RUNS} starts`,
        "ours is the bundle that a new project puts into its image; the size is that of the files beside Node, without source maps",
        ...(peer === undefined
          ? [`controller-runtime was not measured: ${peerFolder} has no controller-runtime (--peer-dir)`]
          : []),
      ],
      measurements: [
        row("until the first reconcile writes", "ms", ({ ms }) => ms),
        row("CPU until then", "s", ({ cpuSeconds }) => cpuSeconds),
        row("memory then", "MB", ({ residentMb }) => residentMb),
        { name: "size", unit: "MB", better: "lower", ours: bundled.megabytes, peers: [installed.megabytes, undefined] },
      ],
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measureStarts(
  commands: Record<string, OperatorCommand>,
  folder: string,
): Promise<Record<string, ColdStart[]>> {
  const server = spawn(process.execPath, [SERVER], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [line] = (await once(createInterface(server.stdout), "line")) as [string];
    const connection = JSON.parse(line) as Connection;
    const kubeconfig = join(folder, "kubeconfig");
    await writeKubeconfig(kubeconfig, connection);
    const client = createLoadClient(connection, 4);
    await prepare(client);
    const starts: Record<string, ColdStart[]> = {};
    let page = 0;
    for (let run = 0; run < RUNS; run++)
      for (const [name, command] of Object.entries(commands))
        (starts[name] ??= []).push(
          await measureStart(command, { client, kubeconfig, page: page++, logFile: join(folder, "operators.log") }),
        );
    client.close();
    return starts;
  } finally {
    server.kill("SIGKILL");
  }
}

async function prepare(client: LoadClient): Promise<void> {
  const create = (path: string, body: object) => client.send({ method: "POST", path, body: JSON.stringify(body) });
  await create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", webPageDefinition);
  await create("/api/v1/namespaces", { metadata: { name: NAMESPACE } });
  await waitFor(
    "WebPages are served",
    () =>
      client.send({ method: "GET", path: PAGES_PATH }).then(
        () => true,
        () => false,
      ),
    LIMIT,
  );
}

async function measureStart(
  command: OperatorCommand,
  { client, page, ...files }: { client: LoadClient; kubeconfig: string; logFile: string; page: number },
): Promise<ColdStart> {
  // Each start reconciles a new WebPage that no previous operator has seen.
  await client.send({ method: "POST", path: PAGES_PATH, body: JSON.stringify(webPage(page)) });
  let seenAt: number | undefined;
  const stopWatching = await client.watch(`${childPaths["configmaps"]}?watch=true`, (line) => {
    if (line.includes(`"name":"${pageName(page)}"`)) seenAt ??= performance.now();
  });
  const startedAt = performance.now();
  const operator = startOperator(command, files);
  try {
    await waitFor(
      "the first dependent is there",
      () => {
        operator.checkAlive();
        return Promise.resolve(seenAt !== undefined);
      },
      { ...LIMIT, intervalMs: 2 },
    );
    const { cpuSeconds, residentMb } = readUsage(operator.pid);
    return { ms: seenAt! - startedAt, cpuSeconds, residentMb };
  } finally {
    stopWatching();
    await operator.stop();
    await client.send({ method: "DELETE", path: `${PAGES_PATH}/${pageName(page)}` });
  }
}
