// The cost limits of CEL evaluation, in the cost units of the API server: one unit per loop iteration, and one per ten characters of a string that is
// traversed. The limits keep the evaluation of a rule to about a second without rejecting a rule that the API server can evaluate.

/** The cost limit of one evaluation (PerCallLimit of k8s.io/apiserver/pkg/apis/cel). */
export const RULE_LIMIT = 1_000_000;

/** The total cost limit of all rules of an object (RuntimeCELCostBudget of k8s.io/apiserver/pkg/apis/cel). */
export const OBJECT_LIMIT = 10_000_000;

const CHARACTER_COST = 0.1;
const PATTERN_COST = 0.25;

/** The error message of an evaluation that exceeds its limit. */
export const TOO_COSTLY = "operation cancelled: actual cost limit exceeded";

let left = 0;

/** Runs `evaluate` with a cost limit, and returns the cost. The cost is greater than `limit` if the evaluation was aborted. */
export function withBudget<Result>(
  limit: number,
  evaluate: () => Result,
): { readonly result: Result; readonly cost: number } {
  const { stackTraceLimit } = Error;
  left = limit;
  // Each loop iteration may create an error. Only its message is read, so skip the stack trace.
  Error.stackTraceLimit = 0;
  try {
    const result = evaluate();
    return { result, cost: limit - left };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Charges a cost to the running evaluation; throws if its budget is exhausted. The evaluator turns the exception into an error value. */
export function spend(cost: number): void {
  left -= cost;
  if (left < 0) throw new Error(TOO_COSTLY);
}

/** Charges for traversing a string or a list of bytes. */
export function spendText(text: { readonly length: number }): void {
  spend(Math.ceil(text.length * CHARACTER_COST));
}

/** Charges for matching a string against a regular expression. */
export function spendMatch(text: string, pattern: string): void {
  spend(Math.ceil((text.length + 1) * CHARACTER_COST) * Math.ceil(pattern.length * PATTERN_COST));
}
