import type { Pod } from "./pod.js";

/** How a simulated Pod fares: the value of its annotation `simulate/outcome`. */
export type Outcome = "run" | "succeed" | "fail" | "unready" | "crash" | "no-image";

const OUTCOME = "simulate/outcome";
const EXIT_CODE = "simulate/exit-code";
const READY_AFTER = "simulate/ready-after";
const OUTCOMES: readonly string[] = ["run", "succeed", "fail", "unready", "crash", "no-image"];
const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000 };

/** How a Pod fares. Default: the Pods of Jobs succeed, all others run. */
export function outcomeOf({ metadata }: Pod): Outcome {
  const given = metadata.annotations?.[OUTCOME];
  if (given !== undefined && OUTCOMES.includes(given)) return given as Outcome;
  const isOfJob = metadata.ownerReferences?.some(({ kind, controller }) => kind === "Job" && controller === true);
  return isOfJob === true ? "succeed" : "run";
}

/** How long a Pod takes to become ready, in milliseconds. */
export function readyAfterMs({ metadata }: Pod, byDefault: number): number {
  const [, count, unit = ""] = /^(\d+)(ms|s|m)$/.exec(metadata.annotations?.[READY_AFTER] ?? "") ?? [];
  return count === undefined ? byDefault : Number(count) * (UNITS[unit] ?? 1);
}

/** The exit code of the containers of a Pod that fail. Default: 1 */
export function exitCodeOf({ metadata }: Pod): number {
  const code = Number(metadata.annotations?.[EXIT_CODE]);
  return Number.isInteger(code) && code > 0 && code < 256 ? code : 1;
}
