/** Logs progress, because some benchmarks take many minutes. Uses stderr, because the tables are written to stdout. */
export function tellProgress(what: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${what}`);
}
