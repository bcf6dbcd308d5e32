import { spawn } from "node:child_process";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../repository.js";

const WAIT = { timeoutMs: 40_000 };

/** A program that goes on until it is stopped. */
export interface StartedProgram extends AsyncDisposable {
  readonly pid: number;
  /** Resolves to its exit code. */
  readonly ended: Promise<number | null>;
  /** All that it has printed. */
  output(): string;
  /** Waits until something is printed that was not there at the last `see`. */
  see(text: string | RegExp): Promise<void>;
  /** Asks for its end, as Ctrl+C does. */
  stop(): void;
}

/** Starts `gen-operator` in a folder. */
export function startProgram(folder: string, ...args: readonly string[]): StartedProgram {
  return startCommand(folder, [process.execPath, join(repositoryRoot, "generator/bin/gen-operator.js"), ...args]);
}

/** Starts a command in a folder. */
export function startCommand(folder: string, command: readonly string[], env = process.env): StartedProgram {
  const [program = "", ...args] = command;
  const child = spawn(program, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const { pid = 0 } = child;
  // Ctrl+C reaches the whole group: npm does not pass it on.
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-pid, name);
    } catch {
      // All of it has ended.
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
