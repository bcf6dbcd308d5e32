import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";

/** The command that starts an operator. */
export interface OperatorCommand {
  /** The value of the label `bench` on its dependents. */
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  /** The working folder. Default: that of this process */
  readonly cwd?: string;
  readonly env?: { readonly [name: string]: string };
}

/** A running operator process. */
export interface OperatorProcess {
  readonly pid: number;
  /** Throws if the operator has exited by itself. */
  checkAlive(): void;
  /** Stops the operator as a kubelet does: SIGTERM, and SIGKILL after 15 s. */
  stop(): Promise<void>;
}

const STOP_TIMEOUT_MS = 15_000;

/** Starts an operator; its output is appended to `logFile`. */
export function startOperator(
  { program, args, cwd, env }: OperatorCommand,
  { kubeconfig, logFile }: { kubeconfig: string; logFile: string },
): OperatorProcess {
  const log = openSync(logFile, "a");
  const child = spawn(program, [...args], {
    stdio: ["ignore", log, log],
    env: { ...process.env, ...env, KUBECONFIG: kubeconfig },
    ...(cwd === undefined ? {} : { cwd }),
  });
  closeSync(log);
  child.on("error", () => {});
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} could not be started`);
  // Kill the operator if the driver is interrupted.
  const killAtExit = () => void child.kill("SIGKILL");
  process.once("exit", killAtExit);
  return {
    pid,
    checkAlive() {
      if (hasEnded(child))
        throw new Error(`the operator ended with ${child.exitCode ?? child.signalCode}:\n${endOf(logFile)}`);
    },
    async stop() {
      process.off("exit", killAtExit);
      if (hasEnded(child)) return;
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

function endOf(logFile: string): string {
  return readFileSync(logFile, "utf8").slice(-2_000);
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
