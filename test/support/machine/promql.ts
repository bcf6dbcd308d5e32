import { parser } from "@prometheus-io/lezer-promql";

/** The names in a PromQL expression. */
export interface PromqlNames {
  /** The names of series, such as `workqueue_depth` or `a_seconds_bucket`. */
  readonly series: ReadonlySet<string>;
  /** The names of the labels that the expression selects or groups by. */
  readonly labels: ReadonlySet<string>;
}

/** Extracts the names in a PromQL expression; throws an error with the column of a syntax error. */
export function readPromql(expression: string): PromqlNames {
  // Grafana replaces this variable by a duration before Prometheus evaluates the expression.
  const text = expression.replaceAll("$__rate_interval", "5m");
  const [series, labels] = [new Set<string>(), new Set<string>()];
  parser.parse(text).iterate({
    enter({ name, type, from, to }) {
      if (type.isError) throw new Error(`no PromQL at column ${from + 1}: ${text}`);
      if (name === "Identifier") series.add(text.slice(from, to));
      if (name === "LabelName") labels.add(text.slice(from, to));
    },
  });
  return { series, labels };
}
