/** A sample of a metric. */
export interface Sample {
  readonly labels: { readonly [name: string]: string };
  readonly value: number;
}

/** Parses the samples of a metric from the Prometheus text format. */
export function samplesOf(text: string, metric: string): Sample[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${metric}{`))
    .map((line) => ({
      labels: Object.fromEntries([...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value])),
      value: Number(line.slice(line.lastIndexOf(" "))),
    }));
}
