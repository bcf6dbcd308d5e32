/**
 * Conversions that need a webhook.
 *
 * Code that processes objects is synchronous. If it needs a conversion that only a webhook can do, it throws a PendingConversion and is run again
 * when the webhook has responded. It must therefore not have changed anything before.
 */
import { StatusError } from "./errors/status-error.js";
import type { JsonObject } from "./json.js";

/** The results of conversions by key: the converted object, or the error. */
export type KnownForms = Map<string, JsonObject | StatusError>;

let known: KnownForms | undefined;

/** Thrown when a conversion is not available yet; `ask` requests it. */
export class PendingConversion extends Error {
  override readonly name = "PendingConversion";
  readonly ask: (forms: KnownForms) => Promise<void>;

  constructor(ask: (forms: KnownForms) => Promise<void>) {
    super("the form of an object is not known yet");
    this.ask = ask;
  }
}

/** Returns the result of a conversion. Throws a PendingConversion if it was not requested yet, or the StatusError if it failed. */
export function knownFormOrThrow(key: string, ask: () => Promise<JsonObject>): JsonObject {
  const form = known?.get(key);
  if (form instanceof StatusError) throw form;
  if (form !== undefined) return form;
  throw new PendingConversion(async (forms) => {
    forms.set(key, await ask().catch(asStatusError));
  });
}

function asStatusError(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  throw error;
}

/** Runs a function with these conversions available, up to its first await. */
export function runKnowing<T>(forms: KnownForms, run: () => T): T {
  const outer = known;
  known = forms;
  try {
    return run();
  } finally {
    known = outer;
  }
}

/** Runs a function until all conversions that it needs are available. Returns a promise only if it has to wait for one. */
export function settled<T>(run: () => T): T | Promise<T> {
  const forms: KnownForms = new Map();
  try {
    return runKnowing(forms, run);
  } catch (error) {
    return rerun(error, { forms, run });
  }
}

async function rerun<T>(error: unknown, { forms, run }: { forms: KnownForms; run: () => T }): Promise<T> {
  for (let last = error; ;) {
    if (!(last instanceof PendingConversion)) throw last;
    await last.ask(forms);
    try {
      return runKnowing(forms, run);
    } catch (next) {
      last = next;
    }
  }
}
