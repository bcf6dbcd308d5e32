import type { DependentDefinition } from "./workflow-definition.js";

/** Throws if the numbers of a dependent cannot work, saying which and what they need. */
export function checkStepNumbers(dependents: readonly DependentDefinition[]): void {
  for (const dependent of dependents) {
    const { name, timeoutMs, retry, bulk } = dependent;
    const check = (what: string, value: number | undefined, least: number) => {
      // No time is longer than forever, but NaN is no time.
      if (value === undefined || value >= least) return;
      throw new RangeError(`dependent "${name}" has ${value} for ${what}; it needs ${least} or more`);
    };
    check("timeoutMs", timeoutMs, 1);
    check("retry.maxAttempts", retry?.maxAttempts, 1);
    check("retry.initialIntervalMs", retry?.initialIntervalMs, 0);
    check("retry.multiplier", retry?.multiplier, 1);
    check("retry.maxIntervalMs", retry?.maxIntervalMs, 0);
    check("bulk.maxConcurrency", bulk?.maxConcurrency, 1);
  }
}
