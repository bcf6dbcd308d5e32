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

/** A server that runs in its own processes. */
export interface RunningServer extends AsyncDisposable {
  readonly connection: Connection;
  /** The time from starting the processes until the server responded, in ms. */
  readonly readyMs: number;
  /** For the embedded server: the time to load its modules and to start it, within a running process. */
  readonly inProcess?: { readonly loadMs: number; readonly startMs: number };
  /** The CPU time and resident memory of the server's processes. */
  usage(): Pick<Usage, "cpuSeconds" | "residentMb">;
  /** The memory to attribute to objects, in bytes; excludes garbage if the process can collect it. */
  usedBytes(): Promise<number>;
}

/** The storage options of a server. */
export interface ServerOptions {
  /** Whether each write is synced to disk before the response. */
  readonly isDurable: boolean;
}

export type StartServer = (options: ServerOptions) => Promise<RunningServer>;

// The bundled package, as published. Node.js resolves its dependencies from the enclosing node_modules.
const PUBLISHED = join(repositoryRoot, "node_modules/.cache/gen-operator-published-apiserver");

/** Bundles the package whose server `startEmbedded` starts. */
export async function publishEmbedded(): Promise<void> {
  await promisify(execFile)(process.execPath, [join(repositoryRoot, "apiserver/bundle.js"), PUBLISHED]);
}

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
