import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { runCommandLine } from "#generator/cli.js";
import { repositoryRoot } from "./repository.js";

/** What came of a run of the program `gen-operator`. */
export interface CommandOutcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `gen-operator` in a folder as users do: as a process of its own. */
export function runProgram(folder: string, ...args: readonly string[]): CommandOutcome {
  const program = join(repositoryRoot, "generator/bin/gen-operator.js");
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { cwd: folder, encoding: "utf8" });
  return { status, stdout, stderr };
}

/**
 * Runs a command of `gen-operator` in a folder inside this process, where the compilers it needs are loaded already.
 *
 * A process has one working directory and one output, so one command runs at a time.
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

/** Keeps what is written to a stream, until the end of the capture. */
function capture(stream: NodeJS.WriteStream): { text(): string; end(): void } {
  const { write, isTTY } = stream;
  let text = "";
  // Whoever runs the tests at a terminal compares the same texts.
  stream.isTTY = false;
  stream.write = (chunk: Uint8Array | string) => {
    text += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    return true;
  };
  return { text: () => text, end: () => void Object.assign(stream, { write, isTTY }) };
}
