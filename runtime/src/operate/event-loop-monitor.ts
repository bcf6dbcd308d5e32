// Detects a blocked event loop, which delays Lease renewals, probes, and all reconciles.
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import { Worker } from "node:worker_threads";
import type { ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { type LoopDelay, type UserCall, describeCall, userCalls } from "../base/user-calls.js";

/** A reconcile in progress and the user functions in it that have not returned. */
export interface ReconcileInProgress {
  readonly controller: string;
  readonly primary: ObjectKey;
  readonly calls: readonly UserCall[];
}

interface EventLoopMonitorOptions {
  readonly controllers: readonly string[];
  readonly logger: Logger;
  /** renewDeadline of the leader election; undefined without leader election. */
  readonly renewDeadlineMs: number | undefined;
  readonly watchdog: WatchdogSettings;
  /** Called after the watchdog has terminated a hung function, so that the process can exit. */
  onBroken(): void;
  inProgress(): readonly ReconcileInProgress[];
  /** Called for each primary whose user function has blocked, or may have blocked, the event loop. */
  onSuspect(controller: string, primary: ObjectKey): void;
}

const STALL_MS = 2_000;
// Half of the default renewDeadline.
const SUSPECT_MS = 5_000;
// New objects use up to three semi-spaces of the limit. The process crashes when the rest is full.
const YOUNG_BYTES = 3 * semiSpaceMb(process) * 2 ** 20;
const HEAP_WARNING = 0.9;
const HEAP_CLEAR = 0.8;
const MAX_NAMED = 10;

/** Observes the event loop and the heap while an operator runs. */
export class EventLoopMonitor {
  readonly #options: EventLoopMonitorOptions;
  readonly #stallMs: number;
  readonly #suspectMs: number;
  #maxDelayMs = 0;
  #isHeapReported = false;
  #end: (() => void) | undefined;
  #endWatchdog: (() => void) | undefined;

  constructor(options: EventLoopMonitorOptions) {
    const { renewDeadlineMs = 2 * SUSPECT_MS } = options;
    this.#options = options;
    this.#suspectMs = renewDeadlineMs / 2;
    this.#stallMs = Math.min(STALL_MS, this.#suspectMs);
  }

  open(): void {
    this.#end ??= userCalls.observe({ urgentMs: this.#stallMs, onDelay: (delay) => this.#onDelay(delay) });
    const { watchdog, onBroken } = this.#options;
    const { timeoutMs = 0, onHang = "report" } = watchdog;
    if (timeoutMs > 0) this.#endWatchdog ??= startWatchdog({ timeoutMs, onHang, onBroken });
  }

  close(): void {
    this.#end?.();
    this.#endWatchdog?.();
    this.#end = this.#endWatchdog = undefined;
  }

  /** Reports a stall immediately, because the process may exit before the next check. */
  flush(): void {
    if (this.#end !== undefined) userCalls.flush();
  }

  /** Returns the maximum event loop delay since the last call, in milliseconds. */
  takeMaxDelayMs(): number {
    const delayMs = this.#maxDelayMs;
    this.#maxDelayMs = 0;
    return delayMs;
  }

  #onDelay(delay: LoopDelay): void {
    this.#maxDelayMs = Math.max(this.#maxDelayMs, delay.delayMs);
    if (delay.delayMs >= this.#stallMs) this.#reportStall(delay);
    this.#checkHeap();
  }

  #reportStall({ delayMs, cpuMs, idleMs, blockers }: LoopDelay): void {
    const { logger, controllers, onSuspect } = this.#options;
    const fields = { blockedMs: Math.round(delayMs), cpuMs: Math.round(cpuMs) };
    // While the event loop waits for I/O, no function is running.
    if (idleMs >= delayMs / 2) {
      const what = `the process was suspended for ${secondsOf(delayMs)}, while no function of the operator was running`;
      return logger.warn(fields, `${what}; no Lease was renewed and no probe answered meanwhile`);
    }
    const running = this.#inProgress();
    // Some calls are recorded without their controller, and the blocking call may belong to another operator in this process.
    const known = blockers.map(({ call, blockedMs }) => {
      const run = running.find(({ primary }) => call.controller === undefined && primary === call.primary);
      return { blockedMs, call: run === undefined ? call : { ...call, controller: run.controller } };
    });
    const large = known.filter(({ blockedMs }) => blockedMs >= delayMs / MAX_NAMED);
    const isExplained = large.reduce((sum, { blockedMs }) => sum + blockedMs, 0) >= delayMs / 2;
    const what = `the event loop was blocked for ${secondsOf(delayMs)}`;
    // A reconcile that waits for the API server does not block the event loop.
    const waiting = running.filter(({ calls }) => calls.length > 0);
    const others = isExplained ? [] : waiting.length > 0 ? waiting : running;
    const suspects = [...large.map(({ call }) => call), ...others];
    if (delayMs >= this.#suspectMs)
      for (const { controller, primary } of suspects)
        if (primary !== undefined && controller !== undefined && controllers.includes(controller))
          onSuspect(controller, primary);
    if (isExplained) {
      const { what: name, controller, primary } = large[0]!.call;
      const named = large.map(({ call, blockedMs }) => `${describeCall(call)} was running for ${secondsOf(blockedMs)}`);
      const message = `${what}: ${listOf(named)}; no Lease was renewed and no probe answered meanwhile. Split the work, or move it to a worker thread`;
      return logger.error({ controller, primary, function: name, ...fields }, message);
    }
    const candidates = describeRuns(running);
    const why =
      cpuMs < delayMs / 5
        ? `the process used only ${secondsOf(cpuMs)} of CPU: it was suspended, throttled, or waited in a synchronous call`
        : "no function blocked it before its first await";
    const which = candidates.length === 0 ? "no reconcile was in progress" : `in progress were: ${listOf(candidates)}`;
    logger.error({ inProgress: candidates.slice(0, MAX_NAMED), ...fields }, `${what}; ${why}; ${which}`);
  }

  #inProgress(): readonly ReconcileInProgress[] {
    const pending = [...userCalls.pending];
    return this.#options.inProgress().map((run) => {
      const { controller, primary } = run;
      const own = pending.filter((call) => call.primary === primary).map((call) => ({ ...call, controller }));
      return own.length === 0 ? run : { ...run, calls: [...run.calls, ...own] };
    });
  }

  #checkHeap(): void {
    const { heap_size_limit } = getHeapStatistics();
    const limit = Math.max(heap_size_limit - YOUNG_BYTES, heap_size_limit / 2);
    const used = getHeapSpaceStatistics().reduce(
      (sum, { space_name: name, space_used_size: size }) => sum + (name.startsWith("new_") ? 0 : size),
      0,
    );
    const share = used / limit;
    if (share < HEAP_CLEAR) this.#isHeapReported = false;
    if (share < HEAP_WARNING || this.#isHeapReported) return;
    this.#isHeapReported = true;
    const candidates = describeRuns(this.#inProgress());
    const which = candidates.length === 0 ? "no reconcile is in progress" : `in progress are: ${listOf(candidates)}`;
    const [usedMb, limitMb] = [Math.round(used / 2 ** 20), Math.round(limit / 2 ** 20)];
    this.#options.logger.warn(
      { usedMb, limitMb, inProgress: candidates.slice(0, MAX_NAMED) },
      `the heap is nearly full: ${usedMb} MiB of ${limitMb} MiB; ${which}. Node.js ends the process at the limit; ` +
        "cache less, or set --max-old-space-size and the memory limit of the container higher",
    );
  }
}

/** Returns V8's maximum semi-space size in MiB: from flags, or the default, which Node.js 24 raised. */
export function semiSpaceMb({
  execArgv,
  env,
  versions,
}: Pick<NodeJS.Process, "execArgv" | "env" | "versions">): number {
  const flags = [...(env["NODE_OPTIONS"] ?? "").split(/\s+/), ...execArgv];
  const stated = flags.flatMap((flag) => /^--max[-_]semi[-_]space[-_]size=(\d+)$/.exec(flag)?.[1] ?? []).at(-1);
  return stated === undefined ? (Number.parseInt(versions.node) >= 24 ? 64 : 16) : Number(stated);
}

function describeRuns(runs: readonly ReconcileInProgress[]): readonly string[] {
  return runs.flatMap(({ calls, ...run }) =>
    calls.length > 0 ? calls.map(describeCall) : [describeCall({ what: "a reconcile", ...run })],
  );
}

function listOf(texts: readonly string[]): string {
  const more = texts.length - MAX_NAMED;
  return texts.slice(0, MAX_NAMED).join("; ") + (more > 0 ? `; and ${more} more` : "");
}

function secondsOf(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

// The watchdog: a worker thread that detects a hung main thread, for example in an endless loop. The main thread cannot report that itself, and its
// Lease renewals, probes, and reconciles hang as well.

/** Settings of the watchdog. */
export interface WatchdogSettings {
  /**
   * How long the main thread may hang before the watchdog acts, in milliseconds: at least 1,000, or 0 to disable it. Default: 0, because the thread
   * uses up to 12 MB. Example: `watchdog: { timeoutMs: 20_000 }`
   */
  readonly timeoutMs?: number | undefined;
  /**
   * `report` writes the running function and its stack to standard error. `exit` also terminates the function and exits with code 1; the next leader
   * reconciles its primary last. Default: `report`
   */
  readonly onHang?: "report" | "exit" | undefined;
}

interface WatchdogOptions {
  readonly timeoutMs: number;
  readonly onHang: "report" | "exit";
  /** Called on the main thread after the hung function was terminated, so that the process can exit. */
  onBroken(): void;
}

/** Throws a TypeError for invalid settings. */
export function checkWatchdog({ timeoutMs = 0, onHang = "report" }: WatchdogSettings): void {
  if (timeoutMs !== 0 && !(timeoutMs >= 1_000))
    throw new TypeError(
      `watchdog: invalid value ${timeoutMs}: timeoutMs must be 0, which turns it off, or at least 1000`,
    );
  if (!["report", "exit"].includes(onHang))
    throw new TypeError(`watchdog: invalid value ${JSON.stringify(onHang)}: onHang must be report or exit`);
}

const MAX_MARKER_BYTES = 1_000;
// Layout of the shared memory: the heartbeat count of the event loop, the length of the marker, and the marker.
const HEADER_BYTES = 8;

/** Starts the thread. Returns a function that stops it. */
export function startWatchdog({ timeoutMs, onHang, onBroken }: WatchdogOptions): () => void {
  const shared = new SharedArrayBuffer(HEADER_BYTES + MAX_MARKER_BYTES);
  const header = new Int32Array(shared, 0, 2);
  const marker = new Uint8Array(shared, HEADER_BYTES);
  // TextEncoder cannot write into shared memory.
  const bytes = new Uint8Array(MAX_MARKER_BYTES);
  const encoder = new TextEncoder();
  userCalls.markWith((text) => {
    const { written } = encoder.encodeInto(text, bytes);
    marker.set(written === bytes.length ? bytes : bytes.subarray(0, written));
    Atomics.store(header, 1, written);
  });
  const intervalMs = Math.min(500, timeoutMs / 4);
  const beat = setInterval(() => Atomics.add(header, 0, 1), intervalMs).unref();
  // Started from source text, because a bundle has no separate worker file. esbuild inserts calls to __name if it keeps names.
  const worker = new Worker(`const __name = (named) => named; (${watch.toString()})(require)`, {
    eval: true,
    workerData: { shared, timeoutMs, intervalMs, onHang, headerBytes: HEADER_BYTES },
    // The thread needs 7 MB to start, and V8 lists every loaded script for a report. With a limit of 8 MB, Node.js 24 produced no report for 5,000
    // scripts, and the thread used only 0.2 MB less.
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    stdin: false,
    execArgv: [],
  });
  worker.unref();
  worker.on("message", onBroken);
  // Without the watchdog the operator works as it does by default.
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

/** The code of the thread. It is passed as source text, so it must not refer to anything outside. */
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
        // The main thread is in a system call, which terminateExecution cannot interrupt.
        if (beats() === seen) process.kill(process.pid, "SIGKILL");
      }, BREAK_MS);
      // An open session would keep the process from exiting.
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
