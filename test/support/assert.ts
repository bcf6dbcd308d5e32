// uvu's assertions, but for `throws`: uvu takes a string behind the function for its own message, and then looks at nothing of the error.
import { inspect } from "node:util";
import { Assertion } from "uvu/assert";

export * from "uvu/assert";

/** What an error has to be: its message contains a text or matches a pattern, or a predicate holds for it. */
export type ExpectedError = string | RegExp | ((error: Error) => boolean);

/** Fails unless a call throws the expected error. `note` tells the cases of a loop apart. */
export function throws(call: () => unknown, expected: ExpectedError, note?: string): void {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    checkError(error, expected, note);
    return;
  }
  if (result instanceof Promise) {
    // It may be rejected later, when nobody looks.
    result.catch(() => undefined);
    fail("throws", { problem: "the call returned a promise: use rejects", expected, actual: result, note });
  }
  fail("throws", { problem: "the call threw nothing", expected, actual: result, note });
}

/** Fails unless a promise is rejected with the expected error, which it returns. */
export async function rejects(promise: Promise<unknown>, expected: ExpectedError, note?: string): Promise<Error> {
  const outcome = await promise.then(
    (actual) => ({ actual }),
    (error: unknown) => ({ error }),
  );
  if ("error" in outcome) return checkError(outcome.error, expected, note);
  return fail("rejects", { problem: "the promise was fulfilled", expected, actual: outcome.actual, note });
}

function checkError(error: unknown, expected: ExpectedError, note: string | undefined): Error {
  if (!(error instanceof Error))
    return fail("throws", { problem: "no Error was thrown", expected, actual: error, note });
  const { message } = error;
  if (typeof expected === "string" ? message.includes(expected) : expected instanceof RegExp && expected.test(message))
    return error;
  if (typeof expected === "function" && expected(error)) return error;
  return fail("throws", { problem: "another error was thrown", expected, actual: message, note });
}

interface Failure {
  problem: string;
  expected: ExpectedError;
  actual: unknown;
  note: string | undefined;
}

function fail(operator: string, { problem, expected, actual, note }: Failure): never {
  const message = `${note === undefined ? "" : `${note}: `}${problem}\nexpected: ${inspect(expected)}\nactual: ${inspect(actual)}`;
  throw new Assertion({ message, operator, expects: expected, actual });
}
