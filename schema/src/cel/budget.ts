// What a rule may cost, in the units of the API server: a step of a loop costs one, ten characters of a text that is read through, too.
// So no rule takes longer than a second or so, and a rule that the API server can still pay is never refused.

/** What one evaluation of a rule may cost at most. */
export const RULE_LIMIT = 1_000_000;

/** What the rules of one object may cost together. */
export const OBJECT_LIMIT = 10_000_000;

const CHARACTER_COST = 0.1;
const PATTERN_COST = 0.25;

/** What is said of a rule that costs more than it may. */
export const TOO_COSTLY = "costs more than the API server lets a rule cost";

let left = 0;

/** Evaluates something that may cost `limit`, and returns what it cost: more than the limit if the evaluation was ended. */
export function withBudget<Result>(
  limit: number,
  evaluate: () => Result,
): { readonly result: Result; readonly cost: number } {
  const { stackTraceLimit } = Error;
  left = limit;
  // Every step of a loop may make an error, of which only the message is read.
  Error.stackTraceLimit = 0;
  try {
    const result = evaluate();
    return { result, cost: limit - left };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Takes a cost from what is left; throws if nothing is. The evaluator makes the value of the expression an error then. */
export function spend(cost: number): void {
  left -= cost;
  if (left < 0) throw new Error(TOO_COSTLY);
}

/** Takes the cost of reading a text through. */
export function spendText(text: { readonly length: number }): void {
  spend(Math.ceil(text.length * CHARACTER_COST));
}

/** Takes the cost of matching a text with a pattern. */
export function spendMatch(text: string, pattern: string): void {
  spend(Math.ceil((text.length + 1) * CHARACTER_COST) * Math.ceil(pattern.length * PATTERN_COST));
}
