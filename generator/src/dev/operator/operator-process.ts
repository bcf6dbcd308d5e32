import { type ChildProcess, fork } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { printableLine } from "@gen-operator/schema";
import { packageFile } from "../../package-file.js";
import type { HostMessage, RunOrder } from "./operator-host.js";

/** What an operator in a process of its own is told and tells. */
interface OperatorProcessOptions {
  readonly project: string;
  /** The compiled file that runs the operator. */
  readonly entry: string;
  /** The runtime of the project. */
  readonly runtime: string;
  /** The flags of the operator. */
  readonly args: readonly string[];
  readonly kubeconfig: string;
  onMessage(message: HostMessage): void;
  /** A line that the operator printed. */
  onLine(line: string): void;
  /** The operator ended though nobody stopped it. */
  onCrash(description: string): void;
}

/** How long the operator may finish its reconciles before a restart. */
const STOP_TIMEOUT_MS = 5_000;
const HOST = fileURLToPath(packageFile("dist/dev/operator/operator-host.js"));

/** Runs one operator at a time, and keeps a process ready for the next one. */
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

  /** Stops the operator that runs, and starts it with the code that is compiled now. */
  async restart(): Promise<void> {
    await this.stop();
    if (this.#isClosed) return;
    const child = this.#spare ?? this.#fork();
    this.#spare = undefined;
    this.#running = child;
    child.send({ entry: this.#options.entry } satisfies RunOrder);
    child.once("message", () => (this.#spare ??= this.#isClosed ? undefined : this.#fork()));
  }

  /** Stops the operator; it finishes its reconciles, if that does not take too long. */
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
      // Ctrl+C reaches every process of a terminal's group; the session alone decides when an operator ends.
      detached: process.platform !== "win32",
    });
    for (const stream of [child.stdout, child.stderr])
      if (stream !== null) createInterface({ input: stream }).on("line", onLine);
    child.on("message", (message: HostMessage) => {
      if (child === this.#running) onMessage(message);
    });
    // A process that cannot be started or told anything ends, too.
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

/** What the table shows, or what no person compares. */
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
 * Formats a line that an operator printed: JSON of its logger becomes words. All else stays, with its controls escaped. Line feeds of a message
 * and of a stack are followed by spaces, so that no text of a custom resource can look like a line of its own.
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
