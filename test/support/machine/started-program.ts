import { spawn } from "node:child_process";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../repository.js";

const WAIT = { timeoutMs: 40_000 };

/** A program that runs until it is stopped. */
export interface StartedProgram extends AsyncDisposable {
  readonly pid: number;
  /** Resolves to the exit code; null if it was killed by a signal. */
  readonly ended: Promise<number | null>;
  /** Returns the output so far. */
  output(): string;
  /** Waits until the output since the last `see` contains a text or matches a pattern. */
  see(text: string | RegExp): Promise<void>;
  /** Sends SIGINT, as Ctrl+C does. */
  stop(): void;
}

/** Starts `gen-operator` in a folder. */
export function startProgram(folder: string, ...args: readonly string[]): StartedProgram {
  return startCommand(folder, [process.execPath, join(repositoryRoot, "generator/bin/gen-operator.js"), ...args]);
}

export function startCommand(folder: string, command: readonly string[], env = process.env): StartedProgram {
  const [program = "", ...args] = command;
  const child = spawn(program, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const { pid = 0 } = child;
  // Ctrl+C signals the whole process group, because npm does not forward signals.
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-pid, name);
    } catch {
      // The processes have already exited.
    }
  };
  let output = "";
  let seen = 0;
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)));
  const ended = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const find = (text: string | RegExp) => {
    const rest = output.slice(seen);
    const [found] = typeof text === "string" ? (rest.includes(text) ? [text] : []) : (text.exec(rest) ?? []);
    if (found !== undefined) seen += rest.indexOf(found) + found.length;
    return found !== undefined;
  };
  return {
    pid,
    ended,
    output: () => output,
    async see(text) {
      try {
        await waitFor(String(text), () => find(text), WAIT);
      } catch (error) {
        throw new Error(`${text} was not printed after:\n${output.slice(seen)}`, { cause: error });
      }
    },
    stop: () => signal("SIGINT"),
    async [Symbol.asyncDispose]() {
      signal("SIGKILL");
      await ended;
    },
  };
}
