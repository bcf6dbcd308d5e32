/** Tells what is being measured, as some benchmarks take many minutes; the tables are on standard output, so this is not. */
export function tellProgress(what: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${what}`);
}
