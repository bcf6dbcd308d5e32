import { staleResourceVersion } from "../errors/status-error.js";
import { resourceRefOf } from "../object/object-key.js";
import { PendingConversion, runKnowing, type KnownForms } from "../pending-conversion.js";
import type { WriteContext } from "./write-context.js";

// As often as kube-apiserver starts a patch over.
const MAX_ATTEMPTS = 5;

/** Says that the stored object changed while a write waited for admission; the write has to be computed again. */
export class OutdatedWrite extends Error {
  override readonly name = "OutdatedWrite";
}

/**
 * Runs a write, again when what it was computed from has changed before it was stored.
 *
 * A write may be left by a PendingConversion until it waits for admission: it runs again when the form is known.
 * A write that waits for nothing runs within one turn, so it is stored before the returned promise can be awaited.
 *
 * @throws a conflict (409) when the last attempt is outdated, too.
 */
export async function attemptWrite<T>(context: WriteContext, name: string, write: () => Promise<T>): Promise<T> {
  // Whoever asks a webhook is often overtaken, and each time somebody else gets on; a real server does not count either.
  const most = context.resource.asksWebhook ? Infinity : MAX_ATTEMPTS;
  const told = context.warnings.length;
  const forms: KnownForms = new Map();
  for (let attempt = 1; ; attempt++) {
    try {
      return await runKnowing(forms, write);
    } catch (error) {
      if (error instanceof PendingConversion) {
        await error.ask(forms);
        attempt--;
        context.warnings.length = told;
        continue;
      }
      if (!(error instanceof OutdatedWrite)) throw error;
      if (attempt === most) throw staleResourceVersion(resourceRefOf(context.resource.type, name));
      context.warnings.length = told;
    }
  }
}

/** Returns a function that hands out `first` once and then what `make` returns: a write changes in place what it is given. */
export function renewable<T>(first: T, make: () => T): () => T {
  let next: T | undefined = first;
  return () => {
    const value = next ?? make();
    next = undefined;
    return value;
  };
}
