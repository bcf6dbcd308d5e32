/** Whether to run only tests that are declared by `test.thorough`: TEST_THOROUGH=added. */
export const isAdded = process.env["TEST_THOROUGH"] === "added";

/** Whether the run is thorough: `.ci/run` sets TEST_THOROUGH=1, or `added`. */
export const isThorough = process.env["TEST_THOROUGH"] === "1" || isAdded;

/** The reason for skipping a test in other runs. */
export const ONLY_THOROUGH = "only where there is time: TEST_THOROUGH=1, as in .ci/run";

/** Returns the number of random cases of a property test: the given number in a thorough run, otherwise a sixteenth of it. */
export function runs(thorough: number): number {
  return isThorough ? thorough : Math.ceil(thorough / 16);
}

/**
 * The seed of random cases. It is constant, so that only a change of the code can break a property test. TEST_SEED=random, or a number, uses another
 * one.
 */
export const seed =
  process.env["TEST_SEED"] === "random" ? Date.now() % 2 ** 31 : Number(process.env["TEST_SEED"] ?? 1);
