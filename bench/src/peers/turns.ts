// Measures several operators repeatedly and in turns, so that changes in the speed of the machine affect all of them.
import { medianOf, type Measurement } from "../measurement.js";
import type { PhaseCost, PhaseName } from "./operator-phases.js";

/** The costs of the phases of a run. */
export type Run = readonly PhaseCost[];

/** An operator that takes turns with others. */
export interface Contestant {
  readonly name: string;
  measure(): Promise<Run>;
}

/** The options of the measurement. `onTurn` is called before each turn, and `onFailure` for each failed measurement. */
export interface TurnsOptions {
  readonly turns: number;
  onTurn(text: string): void;
  /** Default: the failure aborts the benchmark */
  onFailure?(text: string, error: unknown): void;
}

/** Measures all contestants in turns; returns the runs of each in order. A contestant that has failed is skipped in later turns. */
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

/** Returns a function that reads a figure of a phase; undefined if the run does not include the phase. */
export function ofPhase(phase: string, read: (cost: PhaseCost) => number): (run: Run) => number | undefined {
  return (run) => run.filter((cost) => cost.phase === phase).map(read)[0];
}

/** Returns a function that adds up a figure over all phases, except those in `leftOut`. */
export function ofAllPhases(read: (cost: PhaseCost) => number, ...leftOut: readonly PhaseName[]): (run: Run) => number {
  return (run) => run.reduce((sum, cost) => (leftOut.includes(cost.phase) ? sum : sum + read(cost)), 0);
}

/** Returns the memory after the last phase in MB. */
export function memoryAtEnd(run: Run): number | undefined {
  return run.at(-1)?.residentMb;
}

/** Returns the maximum memory of all phases in MB. */
export function peakMemory(run: Run): number {
  return Math.max(...run.map(({ peakMb }) => peakMb));
}

/** Returns a row with the medians of a figure over the runs of each operator, ours first. */
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
