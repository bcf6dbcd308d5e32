// What calls fail with, for tests that look at more than one thing of it; `assert.rejects` looks at one.
import { messageOf } from "#runtime/base/logger.js";

/** Returns what a promise is rejected with; an error that says so if it is fulfilled. */
export function errorOf(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => new Error("nothing was thrown"),
    (error: unknown) => error as Error,
  );
}

/** Returns the message of what a call throws, at once or later. */
export async function failureOf(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
  } catch (error) {
    return messageOf(error);
  }
  return "nothing was thrown";
}
