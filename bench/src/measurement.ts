/** One figure of ours, beside those of peers, taken in the same run. */
export interface Measurement {
  name: string;
  unit: string;
  /** Absent where it could not be taken. */
  ours?: number;
  /** In the order of the peers of the benchmark; undefined where it could not be taken. */
  peers?: readonly (number | undefined)[];
  better: "lower" | "higher";
}

/** The figures of one benchmark. */
export interface BenchmarkResult {
  benchmark: string;
  /** What ours is compared with. */
  peers: readonly string[];
  /** What a reader has to know to judge the figures. */
  notes: string[];
  measurements: Measurement[];
}

/** Renders the figures of a benchmark as a table of Markdown, with the notes below. */
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
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** How ours compares with the best of the peers. */
function formatRatio({ ours, peers = [], better }: Measurement): string {
  const taken = peers.filter((peer) => peer !== undefined);
  const best = better === "lower" ? Math.min(...taken) : Math.max(...taken);
  return ours === undefined || taken.length === 0 || best === 0 ? "–" : `${(ours / best).toFixed(2)}×`;
}
