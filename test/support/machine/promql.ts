import { parser } from "@prometheus-io/lezer-promql";

/** What an expression of Prometheus reads. */
export interface PromqlNames {
  /** The names of its series, such as `workqueue_depth` or `a_seconds_bucket`. */
  readonly series: ReadonlySet<string>;
  /** The names of labels that it selects or groups by. */
  readonly labels: ReadonlySet<string>;
}

/** Reads the names in an expression; throws with the place of a syntax error. */
export function readPromql(expression: string): PromqlNames {
  // Grafana puts a duration here, before Prometheus sees the expression.
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
