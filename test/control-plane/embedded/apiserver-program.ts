import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";

/** What a program that has ended left. */
export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** bin/apiserver.js as a process of its own. */
export interface ApiServerProgram extends AsyncDisposable {
  readonly pid: number;
  /** What it has printed so far. */
  stdout(): string;
  /** Waits for the line that says it answers, and gives its URL. */
  ready(): Promise<string>;
  /** Waits for its end. */
  ended: Promise<Ended>;
  /** Sends a signal. */
  kill(signal: NodeJS.Signals): void;
}

/** Starts bin/apiserver.js. */
export function startProgram(args: readonly string[]): ApiServerProgram {
  const child = spawn(process.execPath, [join(repositoryRoot, "apiserver/bin/apiserver.js"), ...args], {
    cwd: repositoryRoot,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = endOf(child).then((code) => ({ code, stdout, stderr }));
  const ready = async (): Promise<string> => {
    for (;;) {
      const url = /^ready (\S+)$/m.exec(stdout)?.[1];
      if (url !== undefined) return url;
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${stderr}`);
      await Promise.race([once(child.stdout, "data"), ended]);
    }
  };
  return {
    pid: child.pid ?? 0,
    stdout: () => stdout,
    ready,
    ended,
    kill: (signal) => void child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function endOf(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, "close")) as [number | null];
  return code;
}
