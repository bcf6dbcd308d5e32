// An operator in a separate process that monitors its event loop.
import { readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createConnection, createLogger, createOperator } from "@gen-operator/runtime";
import { cpuSeconds, settingsOf, statusMb } from "../sync/sync-probe.js";
import { controllerOf, type StallCase } from "./stall-kinds.js";

/** The settings of the operator. */
export interface StallSettings {
  readonly name: StallCase;
  readonly url: string;
  readonly token: string;
  readonly ca?: string;
}

/** The figures since the last reset. */
export interface StallReport {
  readonly stallMs: number;
  /** The CPU time of the main thread in the longest turn of the event loop; unlike stallMs, it is not affected by other processes. */
  readonly turnMs: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
  /** The number of completed reconciles and requests since the start. */
  readonly done: number;
  readonly reconciles: number;
}

const RESOLUTION_MS = 5;

const { name, ...connection } = settingsOf<StallSettings>();
const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
histogram.enable();
let cpuBefore = cpuSeconds();
let reconciles = 0;
let requests = 0;

const operator = createOperator({
  controllers: [controllerOf(name)],
  connection: createConnection(connection),
  logger: createLogger("warn"),
  observer: () => void reconciles++,
  onRequest: () => void requests++,
});

let turnMs = 0;
let threadBefore = threadMs();
setInterval(() => {
  const now = threadMs();
  turnMs = Math.max(turnMs, now - threadBefore);
  threadBefore = now;
}, RESOLUTION_MS);

process.on("message", (message: "read" | "reset") => {
  const report: StallReport = {
    stallMs: Math.max(0, histogram.max / 1e6 - RESOLUTION_MS),
    turnMs,
    cpuSeconds: cpuSeconds() - cpuBefore,
    peakMb: statusMb("VmHWM"),
    done: requests + reconciles,
    reconciles,
  };
  if (message === "reset") {
    histogram.reset();
    turnMs = 0;
    cpuBefore = cpuSeconds();
  }
  process.send!(report);
});
await operator.start();

function threadMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}
