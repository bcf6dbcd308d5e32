import type { Status, StatusError } from "#apiserver/errors/status-error.js";

/** Returns the Status of the StatusError that `call` throws. */
export function statusOf(call: () => unknown): Status {
  try {
    call();
  } catch (error) {
    if ((error as Error).name === "StatusError") return (error as StatusError).status;
    throw error;
  }
  throw new Error("nothing was thrown");
}

/** Returns the message of the Status that `call` throws. */
export function messageOf(call: () => unknown): string | undefined {
  return statusOf(call).message;
}
