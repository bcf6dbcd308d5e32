/** One figure of ours, beside that of a peer, taken in the same run. */
export interface Measurement {
  name: string;
  unit: string;
  /** Absent where it could not be taken. */
  ours?: number;
  peer?: number;
  better: "lower" | "higher";
}

/** The figures of one benchmark. */
export interface BenchmarkResult {
  benchmark: string;
  /** What ours is compared with. */
  peer: string;
  /** What a reader has to know to judge the figures. */
  notes: string[];
  measurements: Measurement[];
}

/** Renders the figures of a benchmark as a table. */
export function renderTable({ benchmark, peer, notes, measurements }: BenchmarkResult): string {
  const rows = [
    [benchmark, "ours", peer, "ratio", ""],
    ...measurements.map((measurement) => [
      `${measurement.name} (${measurement.unit})`,
      formatNumber(measurement.ours),
      formatNumber(measurement.peer),
      formatRatio(measurement),
      `${measurement.better} is better`,
    ]),
  ];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  "),
  );
  return [...lines, ...notes.map((note) => `  ${note}`)].join("\n");
}

/** The value below which the given share of the samples lies. */
export function quantile(samples: number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The median of one figure of several runs. */
export function medianOf<Run>(runs: readonly Run[], read: (run: Run) => number): number {
  return quantile(runs.map(read), 0.5);
}

function formatNumber(value: number | undefined): string {
  if (value === undefined) return "–";
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function formatRatio({ ours, peer }: Measurement): string {
  return ours === undefined || peer === undefined || peer === 0 ? "–" : `${(ours / peer).toFixed(2)}×`;
}
