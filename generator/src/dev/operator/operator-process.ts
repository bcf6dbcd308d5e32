import { type ChildProcess, fork } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { printableLine } from "@gen-operator/schema";
import { packageFile } from "../../package-file.js";
import type { HostMessage, RunOrder } from "./operator-host.js";

/** Options of {@link OperatorProcess}. */
interface OperatorProcessOptions {
  readonly project: string;
  /** The compiled file that runs the operator. */
  readonly entry: string;
  /** The runtime of the project. */
  readonly runtime: string;
  /** Flags of the operator. */
  readonly args: readonly string[];
  readonly kubeconfig: string;
  onMessage(message: HostMessage): void;
  /** Called for each line that the operator prints. */
  onLine(line: string): void;
  /** Called when the operator exits without being stopped. */
  onCrash(description: string): void;
}

/** Grace period for the operator to finish its reconciles before it is killed. */
const STOP_TIMEOUT_MS = 5_000;
const HOST = fileURLToPath(packageFile("dist/dev/operator/operator-host.js"));

/** Runs one operator at a time, and keeps a spare process ready for the next restart. */
export class OperatorProcess implements AsyncDisposable {
  readonly #options: OperatorProcessOptions;
  #running: ChildProcess | undefined;
  #spare: ChildProcess | undefined;
  #isClosed = false;

  constructor(options: OperatorProcessOptions) {
    this.#options = options;
    this.#spare = this.#fork();
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Stops the running operator and starts one with the current compiled code. */
  async restart(): Promise<void> {
    await this.stop();
    if (this.#isClosed) return;
    const child = this.#spare ?? this.#fork();
    this.#spare = undefined;
    this.#running = child;
    child.send({ entry: this.#options.entry } satisfies RunOrder);
    child.once("message", () => (this.#spare ??= this.#isClosed ? undefined : this.#fork()));
  }

  /** Stops the operator. It is killed if its reconciles do not finish within the grace period. */
  async stop(): Promise<void> {
    const child = this.#running;
    this.#running = undefined;
    await end(child, "SIGTERM");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const spare = this.#spare;
    this.#spare = undefined;
    await Promise.all([this.stop(), end(spare, "SIGKILL")]);
  }

  #fork(): ChildProcess {
    const { project, runtime, args, kubeconfig, onMessage, onLine, onCrash } = this.#options;
    const child = fork(HOST, [runtime, ...args], {
      cwd: project,
      env: { ...process.env, KUBECONFIG: kubeconfig },
      execArgv: ["--enable-source-maps"],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      // Ctrl+C is sent to the whole process group of the terminal, but only the session may end the operator.
      detached: process.platform !== "win32",
    });
    for (const stream of [child.stdout, child.stderr])
      if (stream !== null) createInterface({ input: stream }).on("line", onLine);
    child.on("message", (message: HostMessage) => {
      if (child === this.#running) onMessage(message);
    });
    // A process that fails to start or to receive a message also emits exit.
    child.on("error", () => {});
    child.on("exit", (code, signal) => {
      if (this.#spare === child) this.#spare = undefined;
      if (this.#running !== child) return;
      this.#running = undefined;
      onCrash(signal === null ? `exit code ${code}` : signal);
    });
    return child;
  }
}

async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    child.once("exit", () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill(signal);
  });
}

/** Fields that are not printed: the table shows them, or they are of no use to people. */
const OMITTED = new Set([
  "controller",
  "kind",
  "uid",
  "resourceVersion",
  "generation",
  "reasons",
  "dependent",
  "resource",
]);

/**
 * Formats a line that an operator printed. JSON of its logger is converted to readable text; other lines are printed as they are.
 *
 * Control characters are escaped, and continuation lines of messages and stacks are indented, so that text of a custom resource cannot imitate a log
 * line.
 */
export function formatLogLine(line: string): string {
  const fields = parseFields(line);
  if (fields === undefined) return printableLine(line);
  const { level, time, message, stack, namespace, name, ...rest } = fields;
  const clock = typeof time === "string" ? `${time.slice(11, 19)} ` : "";
  const primary =
    typeof name === "string" ? printableLine(`${typeof namespace === "string" ? `${namespace}/` : ""}${name}: `) : "";
  const shown = Object.entries(rest).filter(([field]) => !OMITTED.has(field));
  const facts = shown.map(
    ([name, value]) => ` ${name}=${printableLine(typeof value === "string" ? value : JSON.stringify(value))}`,
  );
  const trace = typeof stack === "string" ? `\n${indented(stack)}` : "";
  return `${printableLine(clock)}${printableLine(String(level)).padEnd(5)} ${primary}${indented(String(message)).trimStart()}${facts.join("")}${trace}`;
}

function indented(text: string): string {
  return text
    .split("\n")
    .map((line) => `    ${printableLine(line).trimStart()}`)
    .join("\n");
}

function parseFields(line: string): { readonly [field: string]: unknown } | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const fields = JSON.parse(line) as { readonly [field: string]: unknown };
    return "level" in fields && "message" in fields ? fields : undefined;
  } catch {
    return undefined;
  }
}
