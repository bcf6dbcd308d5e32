import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { runCommandLine } from "#generator/cli.js";
import { repositoryRoot } from "./repository.js";

/** The result of running `gen-operator`. */
export interface CommandOutcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `gen-operator` in a folder as a separate process, as users do. */
export function runProgram(folder: string, ...args: readonly string[]): CommandOutcome {
  const program = join(repositoryRoot, "generator/bin/gen-operator.js");
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { cwd: folder, encoding: "utf8" });
  return { status, stdout, stderr };
}

/**
 * Runs a command of `gen-operator` in a folder within this process, which has already loaded the compilers that it needs.
 *
 * It changes the working directory and the output streams of the process, so commands must not run concurrently.
 */
export async function runCommand(folder: string, ...args: readonly string[]): Promise<CommandOutcome> {
  const workingDirectory = process.cwd();
  const [stdout, stderr] = [capture(process.stdout), capture(process.stderr)];
  process.chdir(folder);
  try {
    const status = await runCommandLine(args);
    return { status, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    process.chdir(workingDirectory);
    stdout.end();
    stderr.end();
  }
}

/** Captures the output to a stream until `end` is called. */
function capture(stream: NodeJS.WriteStream): { text(): string; end(): void } {
  const { write, isTTY } = stream;
  let text = "";
  // Commands must print the same text if the tests run in a terminal.
  stream.isTTY = false;
  stream.write = (chunk: Uint8Array | string) => {
    text += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    return true;
  };
  return { text: () => text, end: () => void Object.assign(stream, { write, isTTY }) };
}
