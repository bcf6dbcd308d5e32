// Names what blocks the event loop, on which the Lease, the probes and all reconciles depend.
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import type { ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { startWatchdog, type WatchdogSettings } from "./watchdog.js";
import { describeCall, userCalls, type LoopDelay, type UserCall } from "../base/user-calls.js";

/** A reconcile in progress, with the functions of the user that have not returned. */
export interface ReconcileInProgress {
  readonly controller: string;
  readonly primary: ObjectKey;
  readonly calls: readonly UserCall[];
}

interface EventLoopMonitorOptions {
  readonly controllers: readonly string[];
  readonly logger: Logger;
  /** The renewDeadline of the leader election; undefined if there is none. */
  readonly renewDeadlineMs: number | undefined;
  readonly watchdog: WatchdogSettings;
  /** Called when the watchdog has broken off what hung, and the process is to end. */
  onBroken(): void;
  inProgress(): readonly ReconcileInProgress[];
  /** Called for each primary whose user function blocked the event loop, or may have blocked it. */
  onSuspect(controller: string, primary: ObjectKey): void;
}

const STALL_MS = 2_000;
// Half of the default renewDeadline.
const SUSPECT_MS = 5_000;
// What new objects may take of the limit: three semi-spaces. The process ends when the rest is full.
const YOUNG_BYTES = 3 * semiSpaceMb(process) * 2 ** 20;
const HEAP_WARNING = 0.9;
const HEAP_CLEAR = 0.8;
const MAX_NAMED = 10;

/** Observes the event loop and the heap of an operator from its start to its stop. */
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

  /** Reports a stall now: the process may end before the next look at the event loop. */
  flush(): void {
    if (this.#end !== undefined) userCalls.flush();
  }

  /** Returns how late the event loop was at most since the last call. */
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
    // No function runs while the event loop waits for I/O.
    if (idleMs >= delayMs / 2) {
      const what = `the process was suspended for ${secondsOf(delayMs)}, while no function of the operator was running`;
      return logger.warn(fields, `${what}; no Lease was renewed and no probe answered meanwhile`);
    }
    const running = this.#inProgress();
    // Some functions do not know their controller; another operator of this process may have blocked the loop.
    const known = blockers.map(({ call, blockedMs }) => {
      const run = running.find(({ primary }) => call.controller === undefined && primary === call.primary);
      return { blockedMs, call: run === undefined ? call : { ...call, controller: run.controller } };
    });
    const large = known.filter(({ blockedMs }) => blockedMs >= delayMs / MAX_NAMED);
    const isExplained = large.reduce((sum, { blockedMs }) => sum + blockedMs, 0) >= delayMs / 2;
    const what = `the event loop was blocked for ${secondsOf(delayMs)}`;
    // A reconcile that waits for the API server blocks nothing.
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

/** Returns the largest size of a semi-space of V8 in MiB: a flag, or the default, which Node 24 raised. */
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
