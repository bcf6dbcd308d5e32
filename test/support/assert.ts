// The assertions of uvu, except `throws`: uvu treats a string argument as the failure message, and then does not check the error.
import { inspect } from "node:util";
import { Assertion } from "uvu/assert";

export * from "uvu/assert";

/** The expected error: a substring or pattern of its message, or a predicate. */
export type ExpectedError = string | RegExp | ((error: Error) => boolean);

/** Asserts that a call throws the expected error. `note` identifies the case within a loop. */
export function throws(call: () => unknown, expected: ExpectedError, note?: string): void {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    checkError(error, expected, note);
    return;
  }
  if (result instanceof Promise) {
    // Prevents an unhandled rejection if the promise is rejected later.
    result.catch(() => undefined);
    fail("throws", { problem: "the call returned a promise: use rejects", expected, actual: result, note });
  }
  fail("throws", { problem: "the call threw nothing", expected, actual: result, note });
}

/** Asserts that a promise is rejected with the expected error; returns the error. */
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
