import type { Status, StatusError } from "#apiserver/errors/status-error.js";

/** Gives the Status that `call` throws. */
export function statusOf(call: () => unknown): Status {
  try {
    call();
  } catch (error) {
    if ((error as Error).name === "StatusError") return (error as StatusError).status;
    throw error;
  }
  throw new Error("nothing was thrown");
}

/** Gives the message of the Status that `call` throws. */
export function messageOf(call: () => unknown): string | undefined {
  return statusOf(call).message;
}
