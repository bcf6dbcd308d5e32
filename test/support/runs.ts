/** Whether only tests run that `test.thorough` declares, as the others ran before: TEST_THOROUGH=added. */
export const isAdded = process.env["TEST_THOROUGH"] === "added";

/** Whether as much is tried as continuous integration has time for: `.ci/run` asks for it with TEST_THOROUGH=1, or `added`. */
export const isThorough = process.env["TEST_THOROUGH"] === "1" || isAdded;

/** What is printed for a test that waits for such a run. */
export const ONLY_THOROUGH = "only where there is time: TEST_THOROUGH=1, as in .ci/run";

/** Returns how many random cases a law is tried with: a sixteenth of what it is tried with when a run is thorough. */
export function runs(thorough: number): number {
  return isThorough ? thorough : Math.ceil(thorough / 16);
}

/**
 * What random cases are made from: the same in every run, so that a change alone can make a law fail; TEST_SEED=random, or a number, tries
 * others.
 */
export const seed =
  process.env["TEST_SEED"] === "random" ? Date.now() % 2 ** 31 : Number(process.env["TEST_SEED"] ?? 1);
