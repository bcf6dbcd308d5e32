// Runs programs of a test in separate process groups with a temporary folder. They are stopped by `close()`, and killed if the test process exits in
// any way, including SIGKILL: a separate shell waits for the end of a pipe.
import { spawn, type ChildProcess } from "node:child_process";
import { openSync, closeSync } from "node:fs";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const STOP_TIMEOUT_MS = 10_000;

/** Reads process group ids, one per line; "0" clears the list. At the end of its input, it kills the groups and removes the folder. */
const REAPER = `
groups=
while read -r group; do
  if [ "$group" = 0 ]; then groups=; else groups="$groups $group"; fi
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
`;

/** A program in its own process group. */
export interface Program {
  readonly pid: number;
  /** Returns why the program is no longer running, with the end of its log; undefined while it is running. */
  problem(): Promise<string | undefined>;
  /** Stops the program and waits for its exit. It can be started again in its ProcessGroup. */
  stop(): Promise<void>;
}

/** Programs that share a lifetime and a folder. */
export interface ProcessGroup {
  /** A temporary folder, which `close` removes. */
  readonly folder: string;
  start(name: string, path: string, args: string[]): Program;
  /** Stops the programs in reverse order of their start, and removes the folder. */
  close(): Promise<void>;
}

/** Creates an empty group. The name of its folder, in `parent`, starts with `prefix`. */
export async function createProcessGroup(prefix: string, parent = tmpdir()): Promise<ProcessGroup> {
  const folder = await mkdtemp(join(parent, prefix));
  const reaper = spawn("sh", ["-c", REAPER, "reaper", folder], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const reaped = exitOf(reaper);
  const children: ChildProcess[] = [];
  let closing: Promise<void> | undefined;
  const closeOnce = async () => {
    for (const child of children.reverse()) await stop(child);
    reaper.stdin.end("0\n");
    await reaped;
  };
  return {
    folder,
    start(name, path, args) {
      const logFile = join(folder, `${name}.log`);
      const child = spawnLogged(path, args, logFile);
      children.push(child);
      const pid = child.pid;
      if (pid === undefined) throw new Error(`${path} could not be started`);
      reaper.stdin.write(`${pid}\n`);
      return { pid, problem: () => problemOf(name, child, logFile), stop: () => stop(child) };
    },
    close: () => (closing ??= closeOnce()),
  };
}

function spawnLogged(path: string, args: string[], logFile: string): ChildProcess {
  const log = openSync(logFile, "w");
  try {
    const child = spawn(path, args, { detached: true, stdio: ["ignore", log, log] });
    // Without a listener, a program that fails to start would crash the test process.
    child.on("error", () => {});
    return child;
  } finally {
    closeSync(log);
  }
}

async function problemOf(name: string, child: ChildProcess, logFile: string): Promise<string | undefined> {
  if (child.exitCode === null && child.signalCode === null) return undefined;
  const log = await readFile(logFile, "utf8").catch(() => "");
  return `${name} exited with ${child.exitCode ?? child.signalCode}:\n${log.slice(-2000)}`;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = exitOf(child);
  signalGroup(child.pid, "SIGTERM");
  const timer = setTimeout(() => signalGroup(child.pid, "SIGKILL"), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(timer);
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function exitOf(child: ChildProcess): Promise<void> {
  return new Promise((done) => child.once("exit", () => done()));
}
