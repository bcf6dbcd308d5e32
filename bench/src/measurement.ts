/** A figure of ours and of the peers, measured in the same run. */
export interface Measurement {
  name: string;
  unit: string;
  /** Undefined if it could not be measured. */
  ours?: number;
  /** In the order of the peers of the benchmark; undefined if it could not be measured. */
  peers?: readonly (number | undefined)[];
  better: "lower" | "higher";
}

/** The results of a benchmark. */
export interface BenchmarkResult {
  benchmark: string;
  /** The names of the peers. */
  peers: readonly string[];
  /** Facts that are needed to interpret the figures. */
  notes: string[];
  measurements: Measurement[];
}

/** Renders a benchmark as a Markdown table, followed by its notes. */
export function renderTable({ benchmark, peers, notes, measurements }: BenchmarkResult): string {
  const ratio = peers.length === 0 ? [] : [peers.length === 1 ? "ratio" : "of the best"];
  const rows = [
    ["", "ours", ...peers, ...ratio, "better"],
    ...measurements.map((measurement) => [
      `${measurement.name} (${measurement.unit})`,
      formatNumber(measurement.ours),
      ...peers.map((_, index) => formatNumber(measurement.peers?.[index])),
      ...ratio.map(() => formatRatio(measurement)),
      measurement.better,
    ]),
  ];
  const last = rows[0]!.length - 1;
  const isText = (column: number) => column === 0 || column === last;
  const widths = rows[0]!.map((_, column) => Math.max(4, ...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row.map((cell, column) => (isText(column) ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))),
  );
  const rule = widths.map((width, column) => (isText(column) ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  const [head = [], ...body] = lines;
  const table = [head, rule, ...body].map((cells) => `| ${cells.join(" | ")} |`);
  const beside = peers.length === 0 ? "" : `, beside ${peers.join(", ")}`;
  return [`## ${benchmark}${beside}`, table.join("\n"), ...notes].join("\n\n");
}

/** Returns a quantile of the samples; `share` is between 0 and 1. */
export function quantile(samples: number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Returns the median of a figure over several runs. */
export function medianOf<Run>(runs: readonly Run[], read: (run: Run) => number): number {
  return quantile(runs.map(read), 0.5);
}

function formatNumber(value: number | undefined): string {
  if (value === undefined) return "–";
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** Returns our figure relative to that of the best peer. */
function formatRatio({ ours, peers = [], better }: Measurement): string {
  const taken = peers.filter((peer) => peer !== undefined);
  const best = better === "lower" ? Math.min(...taken) : Math.max(...taken);
  return ours === undefined || taken.length === 0 || best === 0 ? "–" : `${(ours / best).toFixed(2)}×`;
}
