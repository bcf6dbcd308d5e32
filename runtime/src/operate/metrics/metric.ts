// One metric in the text format of Prometheus.
import type { MetricDefinition } from "./metric-table.js";

/** The values of the labels of a series, in the order of the definition. */
export type LabelValues = readonly string[];

interface Series {
  readonly labels: LabelValues;
  /** The value, or the sum of a histogram. */
  value: number;
  count: number;
  /** How many values of a histogram fell into each bucket alone. */
  readonly buckets: number[];
}

/** A metric with its series. */
export class Metric {
  readonly #name: string;
  readonly #definition: MetricDefinition;
  readonly #series = new Map<string, Series>();

  constructor(name: string, definition: MetricDefinition) {
    this.#name = name;
    this.#definition = definition;
  }

  /** Begins a series at 0. */
  initialize(labels: LabelValues): void {
    this.#of(labels);
  }

  /** Adds to a counter. */
  add(labels: LabelValues, value = 1): void {
    this.#of(labels).value += value;
  }

  /** Sets a gauge, or a counter to what was counted elsewhere. */
  set(labels: LabelValues, value: number): void {
    this.#of(labels).value = value;
  }

  /** Takes a value of a histogram. */
  observe(labels: LabelValues, value: number): void {
    const series = this.#of(labels);
    series.value += value;
    series.count++;
    const { buckets = [] } = this.#definition;
    for (let index = 0; index < buckets.length; index++)
      if (value <= buckets[index]!) {
        series.buckets[index]!++;
        return;
      }
  }

  /** Forgets all series of a gauge, which are read anew each time. */
  reset(): void {
    if (this.#definition.type === "gauge") this.#series.clear();
  }

  /** Appends the lines of the metric. */
  render(lines: string[]): void {
    const { type, help } = this.#definition;
    lines.push(
      `# HELP ${this.#name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${this.#name} ${type}`,
    );
    for (const series of this.#series.values()) {
      const { labels, value, count } = series;
      if (type !== "histogram") {
        lines.push(`${this.#name}${this.#labelled(labels)} ${textOf(value)}`);
        continue;
      }
      let below = 0;
      for (const [index, bound] of (this.#definition.buckets ?? []).entries()) {
        below += series.buckets[index]!;
        lines.push(`${this.#name}_bucket${this.#labelled(labels, textOf(bound))} ${below}`);
      }
      lines.push(
        `${this.#name}_bucket${this.#labelled(labels, "+Inf")} ${count}`,
        `${this.#name}_sum${this.#labelled(labels)} ${textOf(value)}`,
        `${this.#name}_count${this.#labelled(labels)} ${count}`,
      );
    }
  }

  #of(labels: LabelValues): Series {
    const key = labels.length === 1 ? labels[0]! : labels.join("\u0000");
    let series = this.#series.get(key);
    if (series === undefined) {
      const { buckets = [] } = this.#definition;
      series = { labels, value: 0, count: 0, buckets: buckets.map(() => 0) };
      this.#series.set(key, series);
    }
    return series;
  }

  #labelled(values: LabelValues, bound?: string): string {
    const pairs = this.#definition.labels.map((label, index) => `${label}="${escaped(values[index] ?? "")}"`);
    if (bound !== undefined) pairs.push(`le="${bound}"`);
    return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
  }
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function textOf(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}
