// What becomes of an occurrence that is told as an Event, after the recorder of client-go 0.36: the same one is counted, many of one reason
// are combined, and an object that is told of too often is left alone for a while.

/** An occurrence; the texts identify who tells it of what. */
export interface Occurrence {
  /** Who tells it of which object. */
  subject: string;
  type: string;
  reason: string;
  message: string;
}

/** What is written of it: which Event, how often it has happened, and in which words; a count of 1 is a new Event. */
export interface Correlated {
  name: string;
  count: number;
  message: string;
  isCombined: boolean;
}

const COMBINED_FROM = 10;
const COMBINED_WITHIN_MS = 600_000;
const BURST = 25;
const REFILL_MS = 300_000;
const CACHE_LIMIT = 4_096;

/** Remembers what was told. */
export class EventCorrelator {
  readonly #similar = new Map<string, { messages: Set<string>; last: number }>();
  readonly #told = new Map<string, { name: string; count: number }>();
  readonly #allowances = new Map<string, { left: number; at: number }>();

  /** Returns what to write, under `name` if the Event is a new one; undefined if the object was told of too often. */
  correlate(occurrence: Occurrence, { nowMs, name }: { nowMs: number; name: string }): Correlated | undefined {
    const { subject, type, reason, message } = occurrence;
    const group = [subject, type, reason].join("\n");
    const isCombined = this.#isOneOfMany(group, message, nowMs);
    const key = isCombined ? group : `${group}\n${message}`;
    const known = this.#told.get(key);
    const told = { name: known?.name ?? name, count: (known?.count ?? 0) + 1 };
    remember(this.#told, key, told);
    if (!this.#isAllowed(subject, nowMs)) return undefined;
    return { ...told, message: isCombined ? `(combined from similar events): ${message}` : message, isCombined };
  }

  #isOneOfMany(group: string, message: string, nowMs: number): boolean {
    const known = this.#similar.get(group);
    const messages =
      known === undefined || nowMs - known.last > COMBINED_WITHIN_MS ? new Set<string>() : known.messages;
    messages.add(message);
    remember(this.#similar, group, { messages, last: nowMs });
    if (messages.size < COMBINED_FROM) return false;
    messages.delete(messages.values().next().value as string);
    return true;
  }

  #isAllowed(subject: string, nowMs: number): boolean {
    const { left, at } = this.#allowances.get(subject) ?? { left: BURST, at: nowMs };
    const refilled = Math.min(BURST, left + (nowMs - at) / REFILL_MS);
    const isAllowed = refilled >= 1;
    remember(this.#allowances, subject, { left: isAllowed ? refilled - 1 : refilled, at: nowMs });
    return isAllowed;
  }
}

// The entry that was not used for longest goes first.
function remember<Value>(cache: Map<string, Value>, key: string, value: Value): void {
  cache.delete(key);
  cache.set(key, value);
  if (cache.size > CACHE_LIMIT) cache.delete(cache.keys().next().value as string);
}
