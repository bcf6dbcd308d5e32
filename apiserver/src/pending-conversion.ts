/**
 * Conversions that have to be asked for.
 *
 * Code that reads and computes objects runs within one turn. Where it needs a form that only a webhook knows, it is left by throwing a
 * PendingConversion, and runs again when the answer is there. So it must have changed nothing by then.
 */
import { StatusError } from "./errors/status-error.js";
import type { JsonObject } from "./json.js";

/** The forms that were asked for, or why there is none, by what was asked. */
export type KnownForms = Map<string, JsonObject | StatusError>;

let known: KnownForms | undefined;

/** Says that a form of an object is not known yet; `ask` finds it out. */
export class PendingConversion extends Error {
  override readonly name = "PendingConversion";
  readonly ask: (forms: KnownForms) => Promise<void>;

  constructor(ask: (forms: KnownForms) => Promise<void>) {
    super("the form of an object is not known yet");
    this.ask = ask;
  }
}

/** Returns a form that was asked for; throws a PendingConversion for one that was not, or the StatusError for which there is none. */
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

/** Runs a function that knows these forms until it waits for something. */
export function runKnowing<T>(forms: KnownForms, run: () => T): T {
  const outer = known;
  known = forms;
  try {
    return run();
  } finally {
    known = outer;
  }
}

/** Runs a function until it has every form that it needs; returns a promise only if it has to wait for one. */
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
