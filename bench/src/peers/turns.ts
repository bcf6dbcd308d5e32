// Operators that are measured beside each other, several times and in turns: a machine that gets slower, or faster, does so for all alike.
import { medianOf, type Measurement } from "../measurement.js";
import type { PhaseCost, PhaseName } from "./operator-phases.js";

/** What every phase of one run cost. */
export type Run = readonly PhaseCost[];

/** One of the operators that are measured beside each other. */
export interface Contestant {
  readonly name: string;
  measure(): Promise<Run>;
}

/** Who is measured, and how often; `onTurn` is told before each, `onFailure` of what could not be measured. */
export interface TurnsOptions {
  readonly turns: number;
  onTurn(text: string): void;
  /** Default: the failure ends the benchmark. */
  onFailure?(text: string, error: unknown): void;
}

/** Measures all in turns; returns the runs of each in their order. What failed once is not tried again. */
export async function measureInTurns(
  contestants: readonly Contestant[],
  { turns, onTurn, onFailure }: TurnsOptions,
): Promise<Run[][]> {
  const measured = contestants.map((contestant) => ({ contestant, runs: [] as Run[] }));
  for (let turn = 1; turn <= turns; turn++)
    for (const { contestant, runs } of turn % 2 === 1 ? measured : measured.toReversed()) {
      if (runs.length < turn - 1) continue;
      const text = `${contestant.name}, turn ${turn} of ${turns}`;
      onTurn(text);
      try {
        runs.push(await contestant.measure());
      } catch (error) {
        if (onFailure === undefined) throw error;
        onFailure(text, error);
      }
    }
  return measured.map(({ runs }) => runs);
}

/** Returns what reads one figure of a phase; undefined where a run does not have it. */
export function ofPhase(phase: string, read: (cost: PhaseCost) => number): (run: Run) => number | undefined {
  return (run) => run.filter((cost) => cost.phase === phase).map(read)[0];
}

/** Returns what adds up one figure of all phases, but for those that are left out. */
export function ofAllPhases(read: (cost: PhaseCost) => number, ...leftOut: readonly PhaseName[]): (run: Run) => number {
  return (run) => run.reduce((sum, cost) => (leftOut.includes(cost.phase) ? sum : sum + read(cost)), 0);
}

/** The memory after the last phase, in MB. */
export function memoryAtEnd(run: Run): number | undefined {
  return run.at(-1)?.residentMb;
}

/** The most memory of any phase, in MB. */
export function peakMemory(run: Run): number {
  return Math.max(...run.map(({ peakMb }) => peakMb));
}

/** What a row has: the median of what `read` finds in the runs of each operator, ours first. */
export function rowOf(
  runs: readonly (readonly Run[])[],
  { name, unit, read }: Pick<Measurement, "name" | "unit"> & { readonly read: (run: Run) => number | undefined },
): Measurement {
  const figureOf = (ofOne: readonly Run[]): number | undefined => {
    const figures = ofOne.flatMap((run) => read(run) ?? []);
    return figures.length === 0 ? undefined : medianOf(figures, (figure) => figure);
  };
  const [ours, ...peers] = runs.map(figureOf);
  return { name, unit, better: "lower", ...(ours === undefined ? {} : { ours }), peers };
}
