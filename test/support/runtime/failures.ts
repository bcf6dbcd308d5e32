// Helpers that return the error of a call, for tests that check several properties of it; `assert.rejects` checks one.
import { messageOf } from "#runtime/base/logger.js";

/** Returns the error that a promise is rejected with, or an error "nothing was thrown" if it is fulfilled. */
export function errorOf(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => new Error("nothing was thrown"),
    (error: unknown) => error as Error,
  );
}

/** Returns the message of the error that a call throws or rejects with. */
export async function failureOf(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
  } catch (error) {
    return messageOf(error);
  }
  return "nothing was thrown";
}
