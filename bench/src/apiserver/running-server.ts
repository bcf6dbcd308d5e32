import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startControlPlane } from "#test/support/machine/control-plane.js";
import { repositoryRoot } from "#test/support/repository.js";
import type { Connection } from "../load-client.js";
import { readUsage, type Usage } from "../operators/process-usage.js";

/** A server in processes of its own. */
export interface RunningServer extends AsyncDisposable {
  readonly connection: Connection;
  /** From the start of its processes until it answered, in ms. */
  readonly readyMs: number;
  /** The same for the embedded server in a process that runs already: loading its modules, and starting it. */
  readonly inProcess?: { readonly loadMs: number; readonly startMs: number };
  /** What its processes have used, and the memory that they have. */
  usage(): Pick<Usage, "cpuSeconds" | "residentMb">;
  /** The memory that objects can be charged with, in bytes: without garbage where the process can tell. */
  usedBytes(): Promise<number>;
}

/** Where a server keeps its objects. */
export interface ServerOptions {
  /** Whether every write is synced to a disk before it is answered. */
  readonly isDurable: boolean;
}

/** Starts a server. */
export type StartServer = (options: ServerOptions) => Promise<RunningServer>;

// The package as it is published; its dependencies are found above it.
const PUBLISHED = join(repositoryRoot, "node_modules/.cache/gen-operator-published-apiserver");

/** Makes the package that `startEmbedded` starts the server of. */
export async function publishEmbedded(): Promise<void> {
  await promisify(execFile)(process.execPath, [join(repositoryRoot, "apiserver/bundle.js"), PUBLISHED]);
}

/** Starts the embedded server. */
export async function startEmbedded({ isDurable }: ServerOptions): Promise<RunningServer> {
  const program = fileURLToPath(new URL("embedded-server.js", import.meta.url));
  const folder = isDurable ? await mkdtemp(join(tmpdir(), "gen-operator-bench-")) : undefined;
  const startedAt = performance.now();
  const module = join(PUBLISHED, "dist/index.js");
  const args = ["--expose-gc", program, module, ...(folder === undefined ? [] : [folder])];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async <Line>(): Promise<Line> => {
    const line = await lines.next();
    if (line.done === true) throw new Error("the embedded server ended");
    return JSON.parse(line.value) as Line;
  };
  const { loadMs, startMs, ...connection } = await nextLine<Connection & { loadMs: number; startMs: number }>();
  const readyMs = performance.now() - startedAt;
  return {
    connection,
    readyMs,
    inProcess: { loadMs, startMs },
    usage: () => readUsage(child.pid ?? 0),
    async usedBytes() {
      child.kill("SIGUSR2");
      return (await nextLine<{ usedBytes: number }>()).usedBytes;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await exited;
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Starts etcd and kube-apiserver. */
export async function startKubeApiServer({ isDurable }: ServerOptions): Promise<RunningServer> {
  const startedAt = performance.now();
  const plane = await startControlPlane({ isDurable });
  const readyMs = performance.now() - startedAt;
  const usage = () => {
    const usages = Object.values(plane.pids).map(readUsage);
    const sumOf = (read: (usage: Usage) => number): number => usages.reduce((sum, each) => sum + read(each), 0);
    return { cpuSeconds: sumOf(({ cpuSeconds }) => cpuSeconds), residentMb: sumOf(({ residentMb }) => residentMb) };
  };
  return {
    connection: plane,
    readyMs,
    usage,
    usedBytes: () => Promise.resolve(usage().residentMb * 1024 * 1024),
    [Symbol.asyncDispose]: () => plane.close(),
  };
}
