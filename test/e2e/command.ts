import { spawn } from "node:child_process";
import { dirname } from "node:path";

/** What became of a command. */
export interface CommandResult {
  /** Null if it was ended by a signal. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where and how a command runs. */
export interface CommandOptions {
  readonly cwd: string;
  readonly env?: { readonly [name: string]: string };
  /** The `node` that the command and what it starts find first; that of the tests unless given. */
  readonly node?: string;
}

const TIMEOUT_MS = 600_000;

/** Runs a command as a user at a terminal does: without what npm and the test runner have put into the environment. */
export function runCommand(command: readonly string[], { cwd, env, node }: CommandOptions): Promise<CommandResult> {
  const [program = "", ...args] = command;
  return new Promise((done, fail) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...userEnvironment(node ?? process.execPath), ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: TIMEOUT_MS,
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.once("error", fail);
    child.once("close", (code) => done({ code, stdout, stderr }));
  });
}

/** Runs a command that has to succeed, and returns what it prints to standard output. */
export async function runOrThrow(command: readonly string[], options: CommandOptions): Promise<string> {
  const { code, stdout, stderr } = await runCommand(command, options);
  if (code !== 0) throw new Error(`${command.join(" ")} exited with ${code}:\n${`${stdout}${stderr}`.slice(-6000)}`);
  return stdout;
}

/** Returns the environment of a terminal in which `node` is the one given, which trusts what the machine trusts. */
export function userEnvironment(node: string): { [name: string]: string } {
  const kept = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !OF_THE_TESTS.test(entry[0]),
  );
  const { PATH = "", ...rest } = Object.fromEntries(kept);
  return { ...rest, PATH: `${dirname(node)}:${PATH}`, npm_config_audit: "false", npm_config_fund: "false" };
}

const OF_THE_TESTS =
  /^(NODE_(?!EXTRA_CA_CERTS$)|INIT_CWD$|FORCE_COLOR$|KUBECONFIG$|npm_(package|lifecycle|command|config_local_prefix|config_workspace))/;
