// A thread that notices when the main thread hangs, as in an endless loop: nothing of the main thread can say so, and its Lease, its probes and all
// its reconciles hang, too.
import { Worker } from "node:worker_threads";
import { userCalls } from "../base/user-calls.js";

/** How an operator is watched for endless loops. */
export interface WatchdogSettings {
  /**
   * How long the main thread may hang. Default: 0, which is off, as the thread takes 8 to 13 MB. At least 1,000. Example: `watchdog: { timeoutMs: 20_000 }`
   */
  readonly timeoutMs?: number | undefined;
  /**
   * `report` writes what runs to standard error. `exit` also breaks it off and ends the process with 1, and its primary is reconciled last by the
   * next leader. Default: `report`
   */
  readonly onHang?: "report" | "exit" | undefined;
}

interface WatchdogOptions {
  readonly timeoutMs: number;
  readonly onHang: "report" | "exit";
  /** Called on the main thread after what hung was broken off, so that the process can end. */
  onBroken(): void;
}

/** Throws a TypeError for settings that cannot work. */
export function checkWatchdog({ timeoutMs = 0, onHang = "report" }: WatchdogSettings): void {
  if (timeoutMs !== 0 && !(timeoutMs >= 1_000))
    throw new TypeError(
      `watchdog: invalid value ${timeoutMs}: timeoutMs must be 0, which turns it off, or at least 1000`,
    );
  if (!["report", "exit"].includes(onHang))
    throw new TypeError(`watchdog: invalid value ${JSON.stringify(onHang)}: onHang must be report or exit`);
}

const MAX_MARKER_BYTES = 1_000;
// How the two threads share memory: how often the event loop turned, how long the marker is, and the marker.
const HEADER_BYTES = 8;

/** Starts the thread; returns what stops it. */
export function startWatchdog({ timeoutMs, onHang, onBroken }: WatchdogOptions): () => void {
  const shared = new SharedArrayBuffer(HEADER_BYTES + MAX_MARKER_BYTES);
  const header = new Int32Array(shared, 0, 2);
  const marker = new Uint8Array(shared, HEADER_BYTES);
  // The encoder does not write into shared memory.
  const bytes = new Uint8Array(MAX_MARKER_BYTES);
  const encoder = new TextEncoder();
  userCalls.markWith((text) => {
    const { written } = encoder.encodeInto(text, bytes);
    marker.set(written === bytes.length ? bytes : bytes.subarray(0, written));
    Atomics.store(header, 1, written);
  });
  const intervalMs = Math.min(500, timeoutMs / 4);
  const beat = setInterval(() => Atomics.add(header, 0, 1), intervalMs).unref();
  // From a text: in a bundle there is no file beside this one. esbuild calls __name if it keeps names.
  const worker = new Worker(`const __name = (named) => named; (${watch.toString()})(require)`, {
    eval: true,
    workerData: { shared, timeoutMs, intervalMs, onHang, headerBytes: HEADER_BYTES },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    stdin: false,
    execArgv: [],
  });
  worker.unref();
  worker.on("message", onBroken);
  // Without the thread the operator is as it is by default.
  worker.on("error", (error) => process.emitWarning(`the watchdog failed: ${error.message}`));
  return () => {
    clearInterval(beat);
    userCalls.markWith(undefined);
    void worker.terminate();
  };
}

interface CallFrame {
  readonly functionName: string;
  readonly location: { readonly scriptId: string; readonly lineNumber: number; readonly columnNumber: number };
}

/** What the thread runs. It is passed on as a text, so it uses nothing from outside. */
function watch(require: NodeJS.Require): void {
  const { parentPort, workerData } = require("node:worker_threads") as typeof import("node:worker_threads");
  const { writeSync } = require("node:fs") as typeof import("node:fs");
  const { shared, timeoutMs, intervalMs, onHang, headerBytes } = workerData as {
    readonly shared: SharedArrayBuffer;
    readonly timeoutMs: number;
    readonly intervalMs: number;
    readonly onHang: "report" | "exit";
    readonly headerBytes: number;
  };
  const STACK_MS = 1_000;
  const BREAK_MS = 5_000;
  const MAX_FRAMES = 8;
  const header = new Int32Array(shared, 0, 2);
  const beats = () => Atomics.load(header, 0);
  let [seen, changedAt, isReported] = [beats(), performance.now(), false];

  const log = (fields: object, message: string) => {
    const line = JSON.stringify({ level: "error", time: new Date().toISOString(), ...fields, message });
    writeSync(2, `${line}\n`);
  };
  const readMarker = () => {
    const bytes = new Uint8Array(shared, headerBytes, Atomics.load(header, 1));
    return new TextDecoder().decode(new Uint8Array(bytes));
  };
  const report = (stack: readonly string[]) => {
    const seconds = Math.round((performance.now() - changedAt) / 1000);
    const running = readMarker();
    const which = running === "" ? "no function is before its first await" : `${running} is running`;
    const where = stack.length === 0 ? "" : `, at ${stack.join(" < ")}`;
    log(
      { seconds, function: running || undefined, stack },
      `the main thread has hung for ${seconds} s: ${which}${where}`,
    );
  };
  const onHung = () => {
    const { Session } = require("node:inspector") as typeof import("node:inspector");
    const session = new Session();
    const scripts = new Map<string, string>();
    let isOver = false;
    const end = (stack: readonly string[]) => {
      if (isOver) return;
      isOver = true;
      report(stack);
      session.post("Debugger.disable");
      if (onHang === "report") return void setTimeout(() => session.disconnect(), 100);
      parentPort?.postMessage("broken off");
      session.post("Runtime.terminateExecution");
      setTimeout(() => {
        // It waits in a call of the system, which nothing breaks off.
        if (beats() === seen) process.kill(process.pid, "SIGKILL");
      }, BREAK_MS);
      // A session that is open would keep the process from ending.
      setTimeout(() => session.disconnect(), 100);
    };
    setTimeout(() => end([]), STACK_MS);
    session.connectToMainThread();
    session.on("Debugger.scriptParsed", ({ params }) => scripts.set(params.scriptId, params.url));
    session.on("Debugger.paused", ({ params }) => {
      const frames = params.callFrames.slice(0, MAX_FRAMES) as readonly CallFrame[];
      const stack = frames.map(({ functionName, location: { scriptId, lineNumber, columnNumber } }) => {
        return `${functionName || "(anonymous)"} (${scripts.get(scriptId) ?? ""}:${lineNumber + 1}:${columnNumber + 1})`;
      });
      session.post("Debugger.resume");
      end(stack);
    });
    session.post("Debugger.enable", () => session.post("Debugger.pause"));
  };
  setInterval(() => {
    const now = performance.now();
    const current = beats();
    if (current !== seen) {
      [seen, changedAt, isReported] = [current, now, false];
    } else if (!isReported && now - changedAt >= timeoutMs) {
      isReported = true;
      onHung();
    }
  }, intervalMs);
}
