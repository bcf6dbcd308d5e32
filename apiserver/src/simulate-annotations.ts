/** Annotations that control how simulated Pods behave. */
import { hintOf } from "./did-you-mean.js";

/** The outcome of a simulated Pod: the value of its annotation `simulate/outcome`. */
export type Outcome = (typeof OUTCOMES)[number];

const OUTCOMES = ["run", "succeed", "fail", "unready", "crash", "no-image"] as const;
const PREFIX = "simulate/";
const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000 };

/** The parsed annotations of a Pod. */
export interface Simulation {
  outcome?: Outcome;
  exitCode?: number;
  readyAfterMs?: number;
}

/** Parses the `simulate/` annotations of an object. Throws an Error for an unknown name or value. */
export function readSimulation(annotations: Readonly<Record<string, unknown>> = {}): Simulation {
  const simulation: Simulation = {};
  for (const [name, given] of Object.entries(annotations)) {
    if (name.startsWith(PREFIX)) Object.assign(simulation, readAnnotation(name, String(given)));
  }
  return simulation;
}

const READERS: Record<string, (value: string) => Simulation | undefined> = {
  "simulate/outcome": (value) => {
    const outcome = OUTCOMES.find((known) => known === value);
    return outcome && { outcome };
  },
  "simulate/exit-code": (value) => {
    const exitCode = /^[1-9]\d{0,2}$/.test(value) ? Number(value) : 256;
    return exitCode > 255 ? undefined : { exitCode };
  },
  "simulate/ready-after": (value) => {
    const [, count, unit = ""] = /^(\d+)(ms|s|m)$/.exec(value) ?? [];
    return count === undefined ? undefined : { readyAfterMs: Number(count) * (UNITS[unit] ?? 1) };
  },
};

const VALUES: Record<string, string> = {
  "simulate/outcome": `must be one of ${OUTCOMES.join(", ")}`,
  "simulate/exit-code": "must be an integer from 1 to 255",
  "simulate/ready-after": "must be a duration such as 500ms, 2s or 1m",
};

function readAnnotation(name: string, value: string): Simulation {
  const known = Object.keys(READERS);
  const read = Object.hasOwn(READERS, name) ? READERS[name] : undefined;
  if (read === undefined)
    throw new Error(
      `unknown annotation ${JSON.stringify(name)}: must be one of ${known.join(", ")}${hintOf(name, known)}`,
    );
  const simulation = read(value);
  if (simulation !== undefined) return simulation;
  const hint = name === "simulate/outcome" ? hintOf(value, OUTCOMES) : "";
  throw new Error(`invalid value ${JSON.stringify(value)} of annotation ${name}: ${VALUES[name]}${hint}`);
}
